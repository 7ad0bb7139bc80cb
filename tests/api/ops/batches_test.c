/* Batches that are smaller than the tensors that hold them: whole writes that leave a rest. */
#include "tests/api/net.h"

/* The weights, and the two layers of an op, but no third layer. */
enum { LAYER_BYTES = NET_LAYER_PAGES * 4096, TIGHT = 4 * NET_LAYER_PAGES - 2 };

/* The last batch of an epoch is smaller, and ends within a page. */
enum { EPOCH = 4, LAST_BYTES = LAYER_BYTES / 2 + 100 };

/* What the ops compute for one batch. */
struct rows {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
};

static capu_status next_rows(capu_stream stream, const void *arguments)
{
    const struct rows *rows = arguments;

    (void)stream;
    for (size_t i = 0; i < rows->bytes; i++) {
        rows->to[i] = (unsigned char)(3 * rows->from[i] + 1);
    }
    return CAPU_OK;
}

static capu_status add_rows(capu_stream stream, const void *arguments)
{
    const struct rows *rows = arguments;

    (void)stream;
    for (size_t i = 0; i < rows->bytes; i++) {
        rows->to[i] = (unsigned char)(rows->to[i] + rows->from[i]);
    }
    return CAPU_OK;
}

/* An op that writes the batch's part of a layer and no more. */
static void next(struct net *net, unsigned char *to, const unsigned char *from, size_t bytes)
{
    struct rows rows = {to, from, bytes};

    RIG_OK(&net->rig, CAPU_RUN(net->rig.context, next_rows, &rows, capu_reads(from),
                               capu_operand_of(to, bytes, CAPU_WRITE_REST_UNDEFINED)));
}

/* What the weights are, computed on plain memory. */
static unsigned char mirror[LAYER_BYTES];

static void mirror_train(const unsigned char *batch, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char value = batch[i];

        for (size_t layer = 0; layer < NET_LAYERS; layer++) {
            mirror[i] = (unsigned char)(mirror[i] + 3 * value + 1);
            value = (unsigned char)(3 * value + 1);
        }
    }
}

/* An iteration over a batch of so many bytes; checks the weights. */
static struct report train(struct net *net, size_t bytes)
{
    static unsigned char batch[LAYER_BYTES];
    struct rows update = {net->weights, net->gradients, bytes};
    static unsigned char weights[LAYER_BYTES];

    for (size_t i = 0; i < bytes; i++) {
        batch[i] = (unsigned char)(net->step + 7 * i);
    }
    net_begin(net, "train");
    RIG_OK(&net->rig, capu_upload(net->rig.context, net->activations[0], batch, bytes,
                                  CAPU_TRANSFER_REST_UNDEFINED));
    for (size_t i = 0; i < NET_LAYERS; i++) {
        next(net, net->activations[i + 1], net->activations[i], bytes);
    }
    for (size_t i = NET_LAYERS; i-- > 0;) {
        next(net, net->gradients, net->activations[i], bytes);
        RIG_OK(&net->rig, CAPU_RUN(net->rig.context, add_rows, &update, capu_reads(net->gradients),
                                   capu_updates(net->weights)));
    }
    mirror_train(batch, bytes);
    RIG_OK(&net->rig, capu_download(net->rig.context, weights, net->weights, sizeof(weights), 0));
    ck_assert_mem_eq(weights, mirror, sizeof(weights));
    return net_end(net);
}

static const char *const planners[] = {"hybrid", "recompute", "swap"};

/* Every iteration of an epoch follows the plan, also the one with fewer rows, and the weights are
   bit for bit those of plain memory. */
START_TEST(a_smaller_last_batch_stays_guided)
{
    uint64_t replays = 0;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = planners[_i / 2], .strict = _i % 2 == 1});
    memset(mirror, 1, sizeof(mirror));
    for (size_t i = 1; i <= NET_WARM + 2 * EPOCH; i++) {
        report = train(&net, i % EPOCH == 0 ? LAST_BYTES : LAYER_BYTES);
        if (i > NET_WARM) {
            net_expect_guided(&net, &report, "train");
            replays += report.replay_count;
        }
    }
    ck_assert_uint_gt(replays + report.evicted_bytes, 0);
    ck_assert(_i / 2 != 1 || replays > 0);
    rig_finish(&net.rig);
}
END_TEST

/* After an iteration with a smaller batch has left its plan, its input is recomputed from as many
   bytes as were uploaded. */
START_TEST(a_smaller_batch_is_uploaded_again)
{
    struct net net;

    net_init(&net, (struct rig_options){
                       .planner = "recompute", .budget_pages = TIGHT, .strict = _i == 1});
    memset(mirror, 1, sizeof(mirror));
    for (size_t i = 0; i < NET_WARM; i++) {
        train(&net, LAYER_BYTES);
    }
    net_begin(&net, "train");
    RIG_OK(&net.rig, capu_upload(net.rig.context, net.activations[0], "batch", 5,
                                 CAPU_TRANSFER_REST_UNDEFINED));
    for (size_t i = 0; i < NET_LAYERS; i++) {
        next(&net, net.activations[i + 1], net.activations[i], 5);
    }
    ck_assert(
        !tensor_on_device(tensors_find(&net.rig.context->memory.tensors, net.activations[0])));
    for (size_t i = 0; i < 5; i++) {
        step_expect(&net.rig, net.activations[0] + i, 1, (unsigned char)"batch"[i]);
    }
    ck_assert_uint_eq(net_end(&net).diverged, 1);
    rig_finish(&net.rig);
}
END_TEST

/* An upload may begin anywhere and cover several tensors: those are written, others keep what they
   hold. In strict mode the rest is poisoned. */
START_TEST(an_upload_discards_the_rest_of_its_tensors)
{
    unsigned char bytes[2 * 4096];
    unsigned char *blob;
    uint64_t versions[3];
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.mode = (uint32_t)(CAPU_MODE_OFF + _i / 2),
                                         .strict = _i % 2 == 1});
    blob = step_malloc(&rig, PAGES(6));
    RIG_OK(&rig, capu_split(rig.context, blob, PAGES(2)));
    RIG_OK(&rig, capu_split(rig.context, blob + PAGES(4), PAGES(2)));
    RIG_OK(&rig, capu_upload(rig.context, blob + PAGES(4), "new", 3, CAPU_TRANSFER_REST_UNDEFINED));
    ck_assert_uint_eq(step_query(&rig, blob + PAGES(4)).is_defined,
                      rig.context->settings.is_tracking);
    step_set(&rig, blob, PAGES(6), 1);
    for (size_t i = 0; i < 3; i++) {
        versions[i] = step_query(&rig, blob + PAGES(2 * i)).version;
    }
    memset(bytes, 2, sizeof(bytes));
    RIG_OK(&rig, capu_upload(rig.context, blob + PAGES(1), bytes, PAGES(2),
                             CAPU_TRANSFER_REST_UNDEFINED));
    step_expect(&rig, blob + PAGES(1), PAGES(2), 2);
    step_expect(&rig, blob + PAGES(4), PAGES(2), 1);
    for (size_t i = 0; i < 3 && rig.context->settings.is_tracking; i++) {
        ck_assert_uint_eq(step_query(&rig, blob + PAGES(2 * i)).version, versions[i] + (i < 2));
    }
    RIG_OK(&rig, capu_download(rig.context, bytes, blob, PAGES(1), 0));
    ck_assert(_i % 2 == 0 || bytes[0] != 1 || bytes[1] != 1);
    STEP_FAILS(
        &rig,
        capu_upload(rig.context, blob + PAGES(5), bytes, PAGES(2), CAPU_TRANSFER_REST_UNDEFINED),
        CAPU_WRONG_ADDRESS, "capu_upload");
    STEP_FAILS(&rig, capu_upload(rig.context, blob, bytes, 0, CAPU_TRANSFER_REST_UNDEFINED),
               CAPU_INVALID, "capu_upload");
    rig_finish(&rig);
}
END_TEST

/* An operand that discards becomes all of the tensors that it meets. */
START_TEST(an_op_discards_the_rest_of_its_tensors)
{
    struct rows rows = {.bytes = PAGES(1)};
    unsigned char *blob;
    unsigned char *from;
    struct rig rig;

    rig_init(&rig,
             &(struct rig_options){.mode = (uint32_t)(CAPU_MODE_OFF + _i), .strict = _i == 2});
    from = step_malloc(&rig, PAGES(1));
    blob = step_malloc(&rig, PAGES(6));
    step_set(&rig, from, PAGES(1), 1);
    RIG_OK(&rig, capu_split(rig.context, blob, PAGES(3)));
    rows.from = from;
    rows.to = blob + PAGES(1);
    RIG_OK(&rig, CAPU_RUN(rig.context, next_rows, &rows, capu_reads(from),
                          capu_operand_of(rows.to, rows.bytes, CAPU_WRITE_REST_UNDEFINED)));
    step_expect(&rig, rows.to, PAGES(1), 4);
    if (rig.context->settings.is_tracking) {
        ck_assert_uint_eq(step_query(&rig, blob).is_defined, 1);
        ck_assert_uint_eq(step_query(&rig, blob + PAGES(3)).is_defined, 0);
    }
    rows.to = blob + PAGES(2) + 100;
    RIG_OK(&rig, CAPU_RUN(rig.context, next_rows, &rows, capu_reads(from),
                          capu_operand_of(rows.to, rows.bytes, CAPU_WRITE_REST_UNDEFINED)));
    step_expect(&rig, rows.to, PAGES(1), 4);
    if (rig.context->settings.is_tracking) {
        ck_assert_uint_eq(step_query(&rig, blob + PAGES(3)).is_defined, 1);
        STEP_FAILS(&rig,
                   CAPU_RUN(rig.context, next_rows, &rows, capu_reads(from),
                            capu_operand_of(blob, PAGES(7), CAPU_WRITE_REST_UNDEFINED)),
                   CAPU_WRONG_ADDRESS, "past the end of the allocation");
    }
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api batches");
    TCase *cases = tcase_create("batches");

    tcase_add_loop_test(cases, a_smaller_last_batch_stays_guided, 0, 6);
    tcase_add_loop_test(cases, a_smaller_batch_is_uploaded_again, 0, 2);
    tcase_add_loop_test(cases, an_upload_discards_the_rest_of_its_tensors, 0, 6);
    tcase_add_loop_test(cases, an_op_discards_the_rest_of_its_tensors, 0, 3);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
