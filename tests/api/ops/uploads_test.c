/* Uploads in guided mode: their bytes are kept, so that plans and recovery can repeat them. */
#include "tests/api/net.h"

#include <stdio.h>
#include <unistd.h>

/* Copying a layer takes 8 ms: longer than computing it does even where the scheduler takes the
   processor away meanwhile. Times are measured, and plans follow from them. */
#define SLOW_LINK UINT64_C(2000000)

/* TIGHT: the weights, and the two layers of an op, but no third layer. */
enum { LAYER_BYTES = NET_LAYER_PAGES * 4096, TIGHT = 4 * NET_LAYER_PAGES - 2 };

/* Bytes that depend on the iteration; the source is overwritten at once. */
static void upload(struct net *net, unsigned char *to, size_t bytes, unsigned char value)
{
    static unsigned char source[2 * LAYER_BYTES];

    memset(source, value, bytes);
    RIG_OK(&net->rig, capu_upload(net->rig.context, to, source, bytes, 0));
    memset(source, 0xa5, bytes);
}

/* As net_forward, but the first layer is uploaded. */
static void forward(struct net *net, size_t layers)
{
    upload(net, net->activations[0], LAYER_BYTES, net->step);
    for (size_t i = 0; i < layers; i++) {
        step_next(&net->rig, "forward", net->activations[i + 1], net->activations[i], LAYER_BYTES);
    }
}

/* Reads the layers from the last one down to `last`. */
static struct report train(struct net *net, size_t last)
{
    net_begin(net, "train");
    forward(net, NET_LAYERS);
    for (size_t i = NET_LAYERS; i-- > last;) {
        step_next(&net->rig, "backward", net->gradients, net->activations[i], LAYER_BYTES);
    }
    step_bump(&net->rig, "update", net->weights, LAYER_BYTES);
    step_expect(&net->rig, net->gradients, LAYER_BYTES, (unsigned char)(net->step + last + 1));
    return net_end(net);
}

/* Whether the iteration dropped the tensor and recomputed it. */
static bool is_recomputed(const struct report *report, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < report->eviction_count; i++) {
        found = found || (strcmp(report->evictions[i].tensor, name) == 0 &&
                          report->evictions[i].method == CAPU_METHOD_RECOMPUTE);
    }
    return found;
}

/* An op between forward and backward that needs all memory. */
static struct report train_with_large_op(struct net *net)
{
    void *operands[NET_LAYERS - 2];

    net_begin(net, "train");
    forward(net, NET_LAYERS);
    for (size_t i = 3; i <= NET_LAYERS; i++) {
        operands[i - 3] = net->activations[i];
    }
    RIG_OK(&net->rig, step_touch(&net->rig, "large", CAPU_SCRATCH, NET_LAYERS - 2, operands));
    net_backward(net, 3);
    step_expect(&net->rig, net->gradients, LAYER_BYTES, (unsigned char)(net->step + 1));
    return net_end(net);
}

/* A plan drops the input after its first use and uploads it again, with the bytes of the iteration
   under way. A steady iteration takes no memory for that. */
START_TEST(plans_repeat_uploads)
{
    struct adaptor_counts counts;
    struct report report;
    struct net net;

    /* hybrid drops nothing where ops are slower than copies, as they are on a busy machine. */
    net_init(&net, (struct rig_options){.planner = "recompute",
                                        .places_nothing = true,
                                        .link_bytes_per_s = SLOW_LINK,
                                        .strict = _i == 1});
    for (size_t i = 0; i < 3; i++) {
        RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.activations[i],
                                       .name = i == 0 ? "input" : "activation", .kind = CAPU_INPUT,
                                       .hint = CAPU_HINT_RECOMPUTE));
    }
    RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.weights, .name = "weights",
                                   .kind = CAPU_PARAMETER, .hint = CAPU_HINT_SWAP));
    for (size_t i = 0; i < NET_WARM; i++) {
        report = train_with_large_op(&net);
    }
    net_expect_guided(&net, &report, "train");
    adaptor_count_reset(net.rig.count);
    report = train_with_large_op(&net);
    adaptor_count_read(net.rig.count, &counts);
    net_expect_guided(&net, &report, "train");
    ck_assert(is_recomputed(&report, "input"));
    ck_assert_uint_gt(report.replay_count, 0);
    ck_assert_uint_ge(report.host_bytes, 2 * LAYER_BYTES);
    ck_assert_uint_eq(net_calls(&counts, ADAPTOR_HOST_ALLOC), 0);
    rig_finish(&net.rig);
}
END_TEST

/* An iteration ends after the forward pass, as with loss scaling that skips an update, and reads
   what the plan had dropped by then: all of it is recomputed, from the upload on. */
START_TEST(dropped_inputs_are_recovered)
{
    static const char *const planners[] = {"recompute", "hybrid", "swap"};
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){
                       .planner = planners[_i / 2], .budget_pages = TIGHT, .strict = _i % 2 == 1});
    for (size_t i = 0; i < 4; i++) {
        report = train(&net, 3);
    }
    net_expect_guided(&net, &report, "train");
    net_begin(&net, "train");
    forward(&net, NET_LAYERS);
    for (size_t i = 0; i <= NET_LAYERS; i++) {
        step_expect(&net.rig, net.activations[i], LAYER_BYTES, (unsigned char)(net.step + i));
    }
    report = net_end(&net);
    ck_assert_uint_eq(report.diverged, 1);
    train(&net, 3);
    rig_finish(&net.rig);
}
END_TEST

/* Like the test before, but host memory runs out: what makes room for an upload that runs again may
   not take the memory of its bytes. The read fails, and works when there is memory again. */
START_TEST(uploads_that_run_again_keep_their_bytes)
{
    enum { BLOCKS = 64 };
    struct host_block blocks[BLOCKS];
    size_t count = 0;
    unsigned char byte;
    struct host_arena *arena;
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = TIGHT, .host_budget_bytes = PAGES(BLOCKS)});
    arena = net.rig.context->memory.arena;
    for (size_t i = 0; i < 4 + (size_t)_i; i++) { /* the first or the second half of what is kept */
        train(&net, 3);
    }
    net_begin(&net, "train");
    forward(&net, NET_LAYERS);
    step_bump(&net.rig, "leaves the plan", net.weights,
              LAYER_BYTES); /* all of them fill the budget */
    step_set(&net.rig, net.gradients, LAYER_BYTES, 1);
    step_set(&net.rig, net.activations[NET_LAYERS], LAYER_BYTES, 1);
    /* A copy that still runs would give its block back later. */
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    while (host_arena_grow(arena, 1) == CAPU_OK) {
    }
    while (count < BLOCKS && host_arena_take(arena, PAGES(1), &blocks[count]) == CAPU_OK) {
        count++;
    }
    ck_assert(tensor_is_lost(tensors_find(&net.rig.context->memory.tensors, net.activations[0])));
    STEP_FAILS(&net.rig, capu_download(net.rig.context, &byte, net.activations[0], 1, 0),
               CAPU_HOST_OVER_BUDGET, "activation");
    ck_assert(uploads_are_there(&net.rig.context->residency.uploads));
    while (count > 0) {
        host_arena_give(arena, &blocks[--count], (struct lane_position){0});
    }
    step_expect(&net.rig, net.activations[0], LAYER_BYTES, net.step);
    net_end(&net);
    rig_finish(&net.rig);
}
END_TEST

/* One tensor is uploaded several times. What was made from an earlier upload is recomputed from
   that one, and the tensor keeps the bytes of the last one. */
START_TEST(each_upload_is_repeated_with_its_own_bytes)
{
    enum { PARTS = 4 };
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "recompute", .strict = _i == 1});
    for (size_t round = 0; round < 5; round++) {
        net_begin(&net, "train");
        for (size_t i = 0; i < PARTS; i++) {
            upload(&net, net.activations[0], LAYER_BYTES, (unsigned char)(net.step + 10 * i));
            step_next(&net.rig, "part", net.activations[1 + i], net.activations[0], LAYER_BYTES);
        }
        for (size_t i = PARTS; i < NET_LAYERS; i++) {
            step_next(&net.rig, "forward", net.activations[i + 1], net.activations[i], LAYER_BYTES);
        }
        if (round < 4) {
            net_backward(&net, NET_LAYERS);
            report = net_end(&net);
        }
    }
    net_expect_guided(&net, &report, "train");
    for (size_t i = 0; i < PARTS; i++) {
        step_expect(&net.rig, net.activations[1 + i], LAYER_BYTES,
                    (unsigned char)(net.step + 10 * i + 1));
    }
    step_expect(&net.rig, net.activations[0], LAYER_BYTES,
                (unsigned char)(net.step + 10 * (PARTS - 1)));
    net_end(&net);
    rig_finish(&net.rig);
}
END_TEST

/* A host budget that has no room for uploads, or room only until tensors are evicted. Uploads are
   then not kept; nothing fails that worked without keeping them, and plans do without. */
START_TEST(uploads_give_way_to_evicted_tensors)
{
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.planner = "swap",
                                        .host_budget_bytes = PAGES(NET_LAYER_PAGES * (6 + _i))});
    for (size_t i = 0; i < 8; i++) {
        report = train(&net, 0);
        ck_assert_uint_le(report.host_bytes, PAGES(NET_LAYER_PAGES * (6 + _i)));
    }
    ck_assert(_i > 0 || net.rig.context->residency.uploads.is_off);
    if (report.mode == CAPU_MODE_GUIDED) {
        net_expect_guided(&net, &report, "train");
    }
    rig_finish(&net.rig);
}
END_TEST

/* The tensors that an upload evicts take the memory in which its own bytes were to be kept. */
START_TEST(uploads_give_way_to_what_they_evict)
{
    unsigned char *first;
    unsigned char *other;
    unsigned char *second;
    struct net net = {0};

    rig_init(&net.rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                             .budget_pages = 7,
                                             .host_budget_bytes = PAGES(16)});
    first = step_malloc(&net.rig, PAGES(3));
    other = step_malloc(&net.rig, PAGES(4));
    second = step_malloc(&net.rig, PAGES(5));
    for (size_t round = 0; round < 2; round++) {
        net_begin(&net, "train"); /* the first or the second half of what is kept */
        if (round == (size_t)_i) {
            upload(&net, first, PAGES(3), 1);
            step_set(&net.rig, other, PAGES(4), 2);
            ck_assert(uploads_are_there(&net.rig.context->residency.uploads));
            upload(&net, second, PAGES(5), 3);
            ck_assert(!uploads_are_there(&net.rig.context->residency.uploads));
            step_expect(&net.rig, first, PAGES(3), 1);
            step_expect(&net.rig, other, PAGES(4), 2);
            step_expect(&net.rig, second, PAGES(5), 3);
        }
        net_end(&net);
    }
    rig_finish(&net.rig);
}
END_TEST

/* Uploads of other sizes in each iteration do not collect memory. */
START_TEST(uploads_of_many_sizes_share_memory)
{
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = 64});
    for (size_t i = 0; i < 12; i++) {
        net_begin(&net, NULL);
        for (size_t k = 0; k < 3; k++) {
            unsigned char *input = step_malloc(&net.rig, PAGES(1 + (i + k) % 4));

            upload(&net, input, PAGES(1 + (i + k) % 4), (unsigned char)i);
            step_expect(&net.rig, input, PAGES(1 + (i + k) % 4), (unsigned char)i);
            RIG_OK(&net.rig, capu_free(net.rig.context, input));
        }
        report = net_end(&net);
    }
    ck_assert_uint_le(net.rig.context->residency.uploads.bytes, 6 * 2 * PAGES(8));
    (void)report;
    rig_finish(&net.rig);
}
END_TEST

/* The trace says which uploads a plan could repeat, whatever mode recorded it. */
START_TEST(traces_say_that_uploads_are_replayable)
{
    char path[] = "/tmp/capuchin_uploads_XXXXXX";
    char line[512];
    size_t whole = 0;
    size_t partial = 0;
    FILE *file;
    struct net net;

    ck_assert_int_ge(mkstemp(path), 0);
    net = (struct net){0};
    rig_init(&net.rig, &(struct rig_options){.mode = _i == 0 ? CAPU_MODE_GUIDED : CAPU_MODE_PASSIVE,
                                             .trace_path = path,
                                             .trace_iteration = 1});
    net.activations[0] = step_tensor(&net.rig, "input", CAPU_INPUT, NET_LAYER_PAGES);
    net_begin(&net, "train");
    upload(&net, net.activations[0], LAYER_BYTES, 1);
    upload(&net, net.activations[0], 100, 2);
    net_end(&net);
    RIG_OK(&net.rig, capu_flush(net.rig.context));
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strstr(line, "capu_upload") != NULL) {
            *(strstr(line, "\"replayable\":true") != NULL ? &whole : &partial) += 1;
        }
    }
    fclose(file);
    unlink(path);
    ck_assert_uint_eq(whole, 1);
    ck_assert_uint_eq(partial, 1);
    rig_finish(&net.rig);
}
END_TEST

/* Outside iterations, staging memory is used again when it is full. The uploads that it holds must
   be over by then. The check of the order notices, whatever the times are. */
START_TEST(staging_memory_is_used_again_when_it_is_free)
{
    enum { PIECE = 8 << 20 };
    unsigned char *source = malloc(PIECE);
    unsigned char *tensors[2];
    struct rig rig;

    ck_assert_ptr_nonnull(source);
    rig_init(&rig, &(struct rig_options){.budget_pages = 2 * PIECE / RIG_PAGE, .is_late = true});
    for (unsigned char i = 0; i < 2; i++) {
        tensors[i] = step_malloc(&rig, PIECE);
        step_set(&rig, tensors[i], PIECE, i);
    }
    for (unsigned char i = 0; i <= STAGING_LIMIT / PIECE; i++) {
        memset(source, 10 + i, PIECE);
        RIG_OK(&rig, capu_upload(rig.context, tensors[i % 2], source, PIECE, 0));
    }
    step_expect(&rig, tensors[0], PIECE, 10 + STAGING_LIMIT / PIECE);
    step_expect(&rig, tensors[1], PIECE, 9 + STAGING_LIMIT / PIECE);
    rig_finish(&rig);
    free(source);
}
END_TEST

/* A host copy is given up while it is still being made, and a part of its block goes to an upload.
   The host must not write there before the copy is over. Both evictions are for nothing, since
   there is no host memory for the next tensor: otherwise their ends would be waited for. */
START_TEST(an_upload_gets_the_block_of_a_copy_out)
{
    static const size_t pages[] = {16, 8, 9, 25, 17};
    unsigned char source[RIG_PAGE];
    unsigned char *tensors[5];
    unsigned char *input;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                         .budget_pages = 16 + 8 + 9 + 1,
                                         .host_budget_bytes = PAGES(16),
                                         .link_bytes_per_s = RIG_FAST_LINK,
                                         .is_late = true});
    for (size_t i = 0; i < 5; i++) {
        tensors[i] = step_malloc(&rig, PAGES(pages[i]));
    }
    input = step_malloc(&rig, RIG_PAGE);
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    for (unsigned char i = 0; i < 3; i++) {
        step_set(&rig, tensors[i], PAGES(pages[i]), i);
    }
    step_set(&rig, input, RIG_PAGE, 3);
    STEP_FAILS(&rig, step_try_set(&rig, tensors[3], PAGES(pages[3]), 4), CAPU_HOST_OVER_BUDGET,
               "host budget");
    step_expect(&rig, tensors[0], PAGES(pages[0]), 0); /* waits for all ops */
    STEP_FAILS(&rig, step_try_next(&rig, "next", tensors[4], tensors[0], PAGES(pages[0])),
               CAPU_HOST_OVER_BUDGET, "host budget");
    memset(source, 5, RIG_PAGE);
    RIG_OK(&rig, capu_upload(rig.context, input, source, RIG_PAGE, 0));
    ck_assert(uploads_are_there(&rig.context->residency.uploads));
    RIG_OK(&rig, capu_iteration_end(rig.context));
    step_expect(&rig, input, RIG_PAGE, 5);
    for (unsigned char i = 0; i < 3; i++) {
        step_expect(&rig, tensors[i], PAGES(pages[i]), i);
    }
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api uploads");
    TCase *cases = tcase_create("uploads");

    tcase_add_loop_test(cases, plans_repeat_uploads, 0, 2);
    tcase_add_loop_test(cases, dropped_inputs_are_recovered, 0, 6);
    tcase_add_loop_test(cases, uploads_that_run_again_keep_their_bytes, 0, 2);
    tcase_add_loop_test(cases, each_upload_is_repeated_with_its_own_bytes, 0, 2);
    tcase_add_loop_test(cases, uploads_give_way_to_evicted_tensors, 0, 6);
    tcase_add_loop_test(cases, uploads_give_way_to_what_they_evict, 0, 2);
    tcase_add_test(cases, uploads_of_many_sizes_share_memory);
    tcase_add_loop_test(cases, traces_say_that_uploads_are_replayable, 0, 2);
    tcase_add_test(cases, staging_memory_is_used_again_when_it_is_free);
    tcase_add_test(cases, an_upload_gets_the_block_of_a_copy_out);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
