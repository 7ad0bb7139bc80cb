/*
 * The public API on the cuda device, as a program with a GPU uses it: run functions enqueue work on
 * the stream. Every byte is compared with the same program on plain memory, in half of the memory
 * that the program needs. All tests run in one process, because CUDA cannot be used after a fork.
 *
 * Built twice: for a GPU, and as api_enqueued_test over the fake runtime with smaller pages.
 */
#include "tests/gpu/api_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, MOST = 250 };

static const capu_mode modes[] = {CAPU_MODE_OFF, CAPU_MODE_PASSIVE, CAPU_MODE_GUIDED};

START_TEST(memory_of_every_size_keeps_its_bytes)
{
    const size_t sizes[] = {
        SMALL,    4096,         API_PAGE / 2 - 4,    API_PAGE / 2,     API_PAGE - 4,
        API_PAGE, API_PAGE + 4, 3 * API_PAGE + 1024, 4 * API_PAGE - 4, 12};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    struct tensor tensors[SIZES];

    open_context(modes[_i], 2 * ALL_PAGES, NULL);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < SIZES; i++) {
            tensors[i] = tensor_make(sizes[i], "tensor", CAPU_PARAMETER);
            tensor_upload(&tensors[i], round * SIZES + i);
        }
        for (size_t i = round; i < SIZES; i += 3) {
            tensor_fill(&tensors[i], (unsigned char)(i + 1));
        }
        for (size_t i = 0; i < SIZES; i++) {
            tensor_expect(&tensors[i], "after a fill");
        }
        for (size_t i = SIZES; i-- > 0;) {
            tensor_drop(&tensors[i]);
        }
    }
    close_context();
}
END_TEST

START_TEST(pieces_copies_and_larger_sizes_keep_their_bytes)
{
    struct tensor whole;
    struct tensor other;
    struct tensor piece;
    void *larger = NULL;

    open_context(modes[_i], 2 * ALL_PAGES, NULL);
    whole = tensor_make(6 * API_PAGE, "whole", CAPU_PARAMETER);
    other = tensor_make(6 * API_PAGE, "other", CAPU_PARAMETER);
    tensor_upload(&whole, 1);
    OK(capu_zero(context, other.device, 0));
    memset(other.mirror, 0, other.bytes);
    OK(capu_split(context, whole.device + API_PAGE + 512, 2 * API_PAGE));
    piece =
        (struct tensor){whole.device + API_PAGE + 512, whole.mirror + API_PAGE + 512, 2 * API_PAGE};
    tensor_fill(&piece, 77);
    tensor_expect(&whole, "a piece was filled");
    OK(capu_copy(context, other.device + 256, whole.device + API_PAGE, 4 * API_PAGE));
    memcpy(other.mirror + 256, whole.mirror + API_PAGE, 4 * API_PAGE);
    tensor_expect(&other, "a part was copied");
    OK(capu_realloc(context, other.device, 9 * API_PAGE, &larger));
    other.device = larger;
    tensor_expect(&other, "it is larger");
    tensor_drop(&whole);
    tensor_drop(&other);
    close_context();
}
END_TEST

START_TEST(eviction_keeps_every_byte)
{
    capu_traffic traffic = {.size = sizeof(traffic)};
    struct model model;

    open_context(CAPU_MODE_PASSIVE, HALF_PAGES, NULL);
    model_make(&model);
    for (unsigned char step = 1; step <= 6; step++) {
        model_iterate(&model, step);
        ck_assert_uint_gt(last_report().eviction_count, 0);
        if (step % 2 == 0) {
            model_expect(&model, "passive");
        }
    }
    OK(capu_traffic_get(context, &traffic));
    ck_assert_uint_gt(traffic.out_bytes, 6 * LAYER_BYTES);
    ck_assert_uint_gt(traffic.back_bytes, 6 * LAYER_BYTES);
    model_drop(&model);
    close_context();
}
END_TEST

/* Recomputing alone cannot evict weights, which are most of half of the memory. */
static const struct {
    const char *planner;
    uint64_t pages;
} plans[] = {{"swap", HALF_PAGES}, {"recompute", ALL_PAGES * 3 / 4}, {"hybrid", HALF_PAGES}};
enum { PLANS = sizeof(plans) / sizeof(plans[0]) };

START_TEST(plans_keep_every_byte)
{
    struct model model;
    unsigned guided = 0;
    uint64_t copied = 0;
    uint64_t replayed = 0;

    open_context(CAPU_MODE_GUIDED, plans[_i].pages, plans[_i].planner);
    model_make(&model);
    for (unsigned char step = 1; step <= 16; step++) {
        capu_report report;

        model_iterate(&model, step);
        report = last_report();
        if (report.mode == CAPU_MODE_GUIDED && report.diverged == 0) {
            guided++;
            copied += report.prefetched_bytes;
            replayed += report.replay_count;
        }
        if (step == 4 || step == 16) {
            model_expect(&model, plans[_i].planner);
        }
    }
    ck_assert_uint_gt(guided, 3);
    ck_assert_uint_gt(copied + replayed, 0);
    ck_assert(strcmp(plans[_i].planner, "swap") != 0 || replayed == 0);
    ck_assert(strcmp(plans[_i].planner, "recompute") != 0 || replayed > 0);
    model_drop(&model);
    close_context();
}
END_TEST

/* Captures an iteration, or runs it as it is. True: captured. */
static bool capture_or_iterate(struct model *model, capu_graph *graph, unsigned char value)
{
    capu_status status = capu_graph_begin(graph, "train");

    if (status != CAPU_OK) {
        ck_assert_int_eq(status, CAPU_NOT_READY);
        model_iterate(model, value);
        return false;
    }
    model_work(model, value);
    status = capu_graph_end(graph);
    ck_assert_msg(status == CAPU_OK || status == CAPU_NOT_READY, "%s", capu_last_error(context));
    return status == CAPU_OK;
}

/* Launches the graph with the input of `seed`; all else is as in the iteration of `value`, which
   was captured. False: it was refused, and nothing has run. */
static bool try_launch(struct model *model, capu_graph *graph, unsigned char value, uint64_t seed)
{
    struct tensor *input = &model->layers[0];

    make_bytes(input->mirror, input->bytes, seed);
    if (capu_graph_upload(graph, input->device, input->mirror, input->bytes) != CAPU_OK ||
        capu_graph_launch(graph) != CAPU_OK) {
        return false;
    }
    model_forward(model, value, true);
    model_backward(model, value, true);
    return true;
}

START_TEST(graphs_compute_what_iterations_compute)
{
    struct model model;
    capu_graph *graph = NULL;
    unsigned char captured = 0;
    unsigned captures = 0;
    unsigned launches = 0;

    open_context(CAPU_MODE_GUIDED, HALF_PAGES, "hybrid");
    model_make(&model);
    OK(capu_graph_create(context, &graph));
    for (unsigned step = 1; step < MOST && launches < 12; step++) {
        /* Every fifth iteration is captured again. */
        if (captured != 0 && step % 5 != 0 && try_launch(&model, graph, captured, MOST + step)) {
            launches++;
            if (launches % 4 == 0) {
                ck_assert_uint_eq(last_report().timed, 0);
                tensor_expect(&model.loss, "launched");
            }
            continue;
        }
        captured = 0;
        if (capture_or_iterate(&model, graph, (unsigned char)step)) {
            captured = (unsigned char)step;
            captures++;
        }
    }
    ck_assert_uint_eq(launches, 12);
    ck_assert_uint_gt(captures, 1);
    model_expect(&model, "graphs");
    capu_graph_destroy(graph);
    model_drop(&model);
    close_context();
}
END_TEST

START_TEST(a_lower_budget_holds_at_once_and_keeps_every_byte)
{
    const uint64_t budgets[] = {ALL_PAGES, HALF_PAGES, ALL_PAGES * 3 / 4, HALF_PAGES, 0};
    struct model model;
    unsigned char step = 0;

    open_context(modes[1 + _i], ALL_PAGES + 2, NULL);
    model_make(&model);
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        uint64_t held = 0;

        OK(capu_budget_set(context, budgets[i] * API_PAGE));
        capu_memory_usage(context, &held, NULL, NULL);
        ck_assert_uint_le(held, (budgets[i] != 0 ? budgets[i] : ALL_PAGES + 2) * API_PAGE);
        for (size_t k = 0; k < 4; k++) {
            model_iterate(&model, ++step);
        }
        model_expect(&model, "between iterations");
    }
    /* And within an iteration. */
    OK(capu_iteration_begin(context, "train"));
    tensor_upload(&model.layers[0], 1);
    model_forward(&model, 200, false);
    OK(capu_budget_set(context, HALF_PAGES * API_PAGE));
    model_backward(&model, 200, false);
    OK(capu_iteration_end(context));
    model_expect(&model, "within an iteration");
    model_drop(&model);
    close_context();
}
END_TEST

static capu_status refuse(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_DEVICE_FAILED;
}

START_TEST(what_is_refused_is_named_and_changes_nothing)
{
    struct model model;
    capu_operand all[LAYERS];
    capu_op op = {.size = sizeof(op), .name = "all at once", .run = refuse};

    open_context(CAPU_MODE_PASSIVE, HALF_PAGES / 2, NULL);
    model_make(&model);
    for (size_t i = 0; i < LAYERS; i++) {
        all[i] = capu_reads(model.weights[i].device);
    }
    op.operands = all;
    op.operand_count = LAYERS;
    ck_assert_int_eq(capu_run(context, &op), CAPU_OVER_BUDGET);
    ck_assert_ptr_nonnull(strstr(capu_last_error(context), "all at once"));
    op = (capu_op){
        .size = sizeof(op), .name = "fails", .run = refuse, .operands = all, .operand_count = 1};
    ck_assert_int_eq(capu_run(context, &op), CAPU_DEVICE_FAILED);
    ck_assert_ptr_nonnull(strstr(capu_last_error(context), "fails"));
    model_iterate(&model, 1);
    model_expect(&model, "after errors");
    model_drop(&model);
    close_context();
}
END_TEST

int main(void)
{
    capu_config config = CAPU_CONFIG_INIT;
    Suite *suite = suite_create("api on a gpu");
    TCase *cases = tcase_create("api");
    char text[512] = "";
    SRunner *runner;
    capu_status status;
    int failed;

    config.device = "cuda";
    config.budget_bytes = API_PAGE;
    config.page_bytes = API_PAGE;
    config.error = text;
    config.error_bytes = sizeof(text);
    status = capu_context_create(&config, &context);
    if (status != CAPU_OK) {
        printf("%s%s\n", status == CAPU_NO_DEVICE ? "skipped: " : "", text);
        return status == CAPU_NO_DEVICE ? SKIPPED : EXIT_FAILURE;
    }
    capu_context_destroy(context);
    tcase_add_loop_test(cases, memory_of_every_size_keeps_its_bytes, 0, 3);
    tcase_add_loop_test(cases, pieces_copies_and_larger_sizes_keep_their_bytes, 0, 3);
    tcase_add_test(cases, eviction_keeps_every_byte);
    tcase_add_loop_test(cases, plans_keep_every_byte, 0, PLANS);
    tcase_add_test(cases, graphs_compute_what_iterations_compute);
    tcase_add_loop_test(cases, a_lower_budget_holds_at_once_and_keeps_every_byte, 0, 2);
    tcase_add_test(cases, what_is_refused_is_named_and_changes_nothing);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
