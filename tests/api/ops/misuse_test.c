/* Every kind of misuse returns a specific status and a text that names what is wrong. Afterwards
   the context still works, or reports that it cannot. */
#include "tests/api/steps.h"

#include <stdint.h>

/* Ends a test: checks that the context still works, and destroys it. */
static void finish_working(struct rig *rig)
{
    unsigned char *tensor = step_malloc(rig, PAGES(3));

    step_set(rig, tensor, PAGES(3), 3);
    step_bump(rig, "bump", tensor, PAGES(3));
    step_expect(rig, tensor, PAGES(3), 4);
    RIG_OK(rig, capu_free(rig->context, tensor));
    rig_finish(rig);
}

static void start_in(struct rig *rig, uint32_t mode)
{
    rig_init(rig, &(struct rig_options){.budget_pages = 8, .mode = mode});
}

static void start(struct rig *rig)
{
    start_in(rig, CAPU_MODE_PASSIVE);
}

START_TEST(wrong_frees_are_reported)
{
    struct rig rig;
    unsigned char *tensors[2];
    char text[32];

    start_in(&rig, (uint32_t)_i);
    for (size_t i = 0; i < 2; i++) {
        tensors[i] = step_malloc(&rig, i == 0 ? 100 : PAGES(2));
        STEP_FAILS(&rig, capu_free(rig.context, tensors[i] + 10), CAPU_WRONG_ADDRESS,
                   "lies inside the allocation");
        RIG_OK(&rig, capu_free(rig.context, tensors[i]));
        snprintf(text, sizeof(text), "%p has been freed", (void *)tensors[i]);
        STEP_FAILS(&rig, capu_free(rig.context, tensors[i]), CAPU_WRONG_ADDRESS, text);
        STEP_FAILS(&rig, step_try_set(&rig, tensors[i], 10, 1), CAPU_WRONG_ADDRESS, text);
    }
    STEP_FAILS(&rig, capu_free(rig.context, &rig), CAPU_WRONG_ADDRESS, "capu_free");
    RIG_OK(&rig, capu_free(rig.context, NULL));
    finish_working(&rig);
}
END_TEST

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

/* The count of an array that the program did not fill in. */
START_TEST(an_operand_count_out_of_range_is_rejected)
{
    static const size_t counts[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / sizeof(capu_operand) + 1,
                                    CAPU_OPERAND_COUNT_MAX + 1};
    struct rig rig;
    unsigned char *x;
    capu_operand operand;
    capu_op op = {.size = sizeof(op), .name = "many", .run = nothing, .operands = &operand};

    rig_init(&rig, &(struct rig_options){.mode = _i == 0 ? CAPU_MODE_OFF : CAPU_MODE_PASSIVE});
    x = step_tensor(&rig, "x", CAPU_PARAMETER, 2);
    step_set(&rig, x, PAGES(2), 1);
    operand = capu_operand_of(x, 0, CAPU_WRITE_REST_ZERO);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        op.operand_count = counts[i];
        STEP_FAILS(&rig, capu_run(rig.context, &op), CAPU_INVALID, "op 'many' has ");
        STEP_FAILS(&rig, capu_access_begin(rig.context, &op), CAPU_INVALID, "at most 1048576");
    }
    step_expect(&rig, x, PAGES(2), 1);
    finish_working(&rig);
}
END_TEST

START_TEST(the_largest_operand_count_works)
{
    capu_operand *operands = calloc(CAPU_OPERAND_COUNT_MAX, sizeof(*operands));
    struct rig rig;
    unsigned char *x;
    unsigned char *y;
    capu_op op = {.size = sizeof(op),
                  .name = "many",
                  .run = nothing,
                  .operands = operands,
                  .operand_count = CAPU_OPERAND_COUNT_MAX};

    ck_assert_ptr_nonnull(operands);
    start(&rig);
    x = step_tensor(&rig, "x", CAPU_PARAMETER, 2);
    y = step_tensor(&rig, "y", CAPU_PARAMETER, 2);
    step_set(&rig, x, PAGES(2), 1);
    step_set(&rig, y, PAGES(2), 2);
    for (size_t i = 0; i < CAPU_OPERAND_COUNT_MAX; i++) {
        operands[i] = capu_operand_of((i % 2 == 0 ? x : y) + i % PAGES(2), 1, CAPU_READ);
    }
    RIG_OK(&rig, capu_run(rig.context, &op));
    free(operands);
    step_expect(&rig, y, PAGES(2), 2);
    finish_working(&rig);
}
END_TEST

/* The text says which of several operands is wrong, and names its tensor. */
START_TEST(a_wrong_operand_is_named)
{
    struct rig rig;
    unsigned char *x;
    unsigned char *y;
    int none = 0;
    capu_operand operand;
    capu_op access = {
        .size = sizeof(access), .name = "access", .operands = &operand, .operand_count = 1};
    char text[64];

    start_in(&rig, (uint32_t)_i);
    x = step_tensor(&rig, "x", CAPU_PARAMETER, 2);
    y = step_tensor(&rig, "y", CAPU_PARAMETER, 2);
    operand = capu_reads(x);
    step_set(&rig, x, PAGES(2), 1);
    STEP_FAILS(&rig, CAPU_RUN(rig.context, nothing, &none, capu_reads(x), capu_reads(NULL)),
               CAPU_WRONG_ADDRESS, "op 'nothing', operand 2 of 2: the address is NULL");
    STEP_FAILS(&rig, CAPU_RUN(rig.context, nothing, &none, capu_reads(&x), capu_writes(y)),
               CAPU_WRONG_ADDRESS, "op 'nothing', operand 1 of 2: 0x");
    STEP_FAILS(&rig,
               CAPU_RUN(rig.context, nothing, &none, capu_reads(x),
                        capu_operand_of(y, PAGES(2) + 1, CAPU_WRITE)),
               CAPU_WRONG_ADDRESS, "in 'y', reach 1 bytes past the end");
    STEP_FAILS(
        &rig,
        CAPU_RUN(rig.context, nothing, &none, capu_operand_of(x, 0, (capu_role)77), capu_writes(y)),
        CAPU_INVALID, "op 'nothing', operand 1 of 2: 77 is no role");
    STEP_FAILS(&rig, capu_upload(rig.context, x, &rig, PAGES(3), 0), CAPU_WRONG_ADDRESS, "in 'x'");
    RIG_OK(&rig, capu_free(rig.context, x));
    snprintf(text, sizeof(text), "operand 2 of 2: 'x' at %p has been freed", (void *)x);
    STEP_FAILS(&rig, CAPU_RUN(rig.context, nothing, &none, capu_writes(y), capu_reads(x)),
               CAPU_WRONG_ADDRESS, text);
    /* What would be cleared is not touched either, nor what a launch of the program's own names. */
    STEP_FAILS(&rig, CAPU_RUN(rig.context, nothing, &none, capu_writes_rest_zero(x)),
               CAPU_WRONG_ADDRESS, "operand 1 of 1");
    STEP_FAILS(&rig, capu_access_begin(rig.context, &access), CAPU_WRONG_ADDRESS, "op 'access'");
    RIG_OK(&rig, capu_free(rig.context, y));
    finish_working(&rig);
}
END_TEST

START_TEST(unknown_addresses_are_reported)
{
    struct rig rig;
    capu_tensor_state state = {.size = sizeof(state)};
    unsigned char byte;

    start_in(&rig, (uint32_t)_i);
    STEP_FAILS(&rig, step_try_set(&rig, &rig, 10, 1), CAPU_WRONG_ADDRESS, "set");
    STEP_FAILS(&rig, capu_upload(rig.context, &rig, &byte, 1, 0), CAPU_WRONG_ADDRESS, "upload");
    STEP_FAILS(&rig, capu_download(rig.context, &byte, &rig, 1, 0), CAPU_WRONG_ADDRESS, "download");
    STEP_FAILS(&rig, capu_zero(rig.context, &rig, 1), CAPU_WRONG_ADDRESS, "capu_zero");
    STEP_FAILS(&rig, capu_split(rig.context, &rig, 1), CAPU_WRONG_ADDRESS, "capu_split");
    STEP_FAILS(&rig, capu_tensor_query(rig.context, &rig, &state), CAPU_WRONG_ADDRESS, "query");
    STEP_FAILS(&rig, CAPU_DESCRIBE(rig.context, &rig, .name = "x"), CAPU_WRONG_ADDRESS, "describe");
    finish_working(&rig);
}
END_TEST

START_TEST(ranges_past_the_end_are_reported)
{
    struct rig rig;
    unsigned char *tensor;
    unsigned char *other;
    static unsigned char bytes[PAGES(4)];

    start_in(&rig, (uint32_t)_i);
    tensor = step_malloc(&rig, PAGES(3));
    other = step_malloc(&rig, PAGES(4));
    step_set(&rig, tensor, PAGES(3), 1);
    step_set(&rig, other, PAGES(4), 1);
    STEP_FAILS(&rig, step_try_set(&rig, tensor + 1, PAGES(3), 1), CAPU_WRONG_ADDRESS,
               "op 'set', operand 1 of 1: 12288 bytes");
    STEP_FAILS(&rig, step_try_set(&rig, tensor, SIZE_MAX, 1), CAPU_WRONG_ADDRESS, "set");
    STEP_FAILS(&rig, capu_upload(rig.context, tensor + 1, bytes, PAGES(3), 0), CAPU_WRONG_ADDRESS,
               "reach 1 bytes past the end");
    STEP_FAILS(&rig, capu_download(rig.context, bytes, tensor + 1, PAGES(3), 0), CAPU_WRONG_ADDRESS,
               "capu_download");
    STEP_FAILS(&rig, capu_zero(rig.context, tensor, PAGES(4)), CAPU_WRONG_ADDRESS, "capu_zero");
    STEP_FAILS(&rig, capu_split(rig.context, tensor + 1, PAGES(3)), CAPU_WRONG_ADDRESS, "split");
    STEP_FAILS(&rig, capu_copy(rig.context, tensor, other, PAGES(4)), CAPU_WRONG_ADDRESS, "copy");
    STEP_FAILS(&rig, capu_copy(rig.context, other, tensor, PAGES(4)), CAPU_WRONG_ADDRESS, "copy");
    STEP_FAILS(&rig, capu_copy(rig.context, tensor + 5, tensor, 100), CAPU_INVALID, "overlap");
    step_expect(&rig, tensor, PAGES(3), 1);
    RIG_OK(&rig, capu_free(rig.context, tensor));
    finish_working(&rig);
}
END_TEST

START_TEST(wrong_sizes_are_reported)
{
    struct rig rig;
    void *address = &rig;
    unsigned char byte = 0;

    start(&rig);
    STEP_FAILS(&rig, capu_malloc(rig.context, 0, &address), CAPU_INVALID, "capu_malloc");
    STEP_FAILS(&rig, capu_malloc(rig.context, SIZE_MAX, &address), CAPU_TOO_LARGE, "malloc");
    STEP_FAILS(&rig, capu_malloc(rig.context, SIZE_MAX / 2, &address), CAPU_TOO_LARGE, "malloc");
    STEP_FAILS(&rig, capu_malloc(rig.context, (size_t)1 << 60, &address), CAPU_SYSTEM_LIMIT,
               "1152921504606846976 bytes");
    STEP_FAILS(&rig, capu_malloc(rig.context, 1, NULL), CAPU_INVALID, "malloc");
    ck_assert_ptr_eq(address, &rig);
    RIG_OK(&rig, capu_malloc(rig.context, PAGES(1), &address));
    STEP_FAILS(&rig, capu_split(rig.context, address, 0), CAPU_INVALID, "capu_split");
    STEP_FAILS(&rig, capu_upload(rig.context, address, &byte, 0, 0), CAPU_INVALID, "capu_upload");
    STEP_FAILS(&rig, capu_download(rig.context, &byte, address, 0, 0), CAPU_INVALID, "download");
    STEP_FAILS(&rig, capu_copy(rig.context, address, address, 0), CAPU_INVALID, "capu_copy");
    finish_working(&rig);
}
END_TEST

START_TEST(calls_in_the_wrong_order_are_reported)
{
    struct rig rig;
    capu_op op = {.size = sizeof(op), .name = "own"};
    void *address;

    start(&rig);
    STEP_FAILS(&rig, capu_iteration_end(rig.context), CAPU_WRONG_ORDER, "capu_iteration_end");
    STEP_FAILS(&rig, capu_access_end(rig.context), CAPU_WRONG_ORDER, "capu_access_end");
    STEP_FAILS(&rig, capu_segment_begin(rig.context, "block"), CAPU_WRONG_ORDER, "'block'");
    STEP_FAILS(&rig, capu_segment_end(rig.context), CAPU_WRONG_ORDER, "capu_segment_end");
    RIG_OK(&rig, capu_iteration_begin(rig.context, "a"));
    STEP_FAILS(&rig, capu_iteration_begin(rig.context, "b"), CAPU_WRONG_ORDER, "is open");
    STEP_FAILS(&rig, capu_segment_begin(rig.context, ""), CAPU_INVALID, "no name");
    RIG_OK(&rig, capu_segment_begin(rig.context, "block"));
    RIG_OK(&rig, capu_segment_begin(rig.context, "inner"));
    STEP_FAILS(&rig, capu_iteration_end(rig.context), CAPU_WRONG_ORDER, "segment 'block'");
    RIG_OK(&rig, capu_segment_end(rig.context));
    RIG_OK(&rig, capu_segment_end(rig.context));
    RIG_OK(&rig, capu_access_begin(rig.context, &op));
    STEP_FAILS(&rig, capu_access_begin(rig.context, &op), CAPU_WRONG_ORDER, "access_begin");
    STEP_FAILS(&rig, capu_malloc(rig.context, 1, &address), CAPU_WRONG_ORDER, "capu_malloc");
    STEP_FAILS(&rig, capu_iteration_end(rig.context), CAPU_WRONG_ORDER, "iteration_end");
    STEP_FAILS(&rig, step_touch(&rig, "run", CAPU_READ, 0, NULL), CAPU_WRONG_ORDER, "capu_run");
    STEP_FAILS(&rig, capu_synchronize(rig.context), CAPU_WRONG_ORDER, "capu_synchronize");
    RIG_OK(&rig, capu_access_end(rig.context));
    RIG_OK(&rig, capu_iteration_end(rig.context));
    finish_working(&rig);
}
END_TEST

START_TEST(structs_of_the_wrong_size_are_reported)
{
    struct rig rig;
    struct {
        capu_op op;
        uint64_t newer;
    } longer = {.op = {.size = sizeof(longer), .name = "future"}};
    capu_tensor_info info = {.size = 3};
    capu_tensor_state state = {.size = 1};
    capu_report report = {.size = 0};
    capu_traffic traffic = {.size = 2};
    capu_op op = {.size = 4, .name = "short"};
    void *address;

    start(&rig);
    address = step_malloc(&rig, PAGES(1));
    STEP_FAILS(&rig, capu_run(rig.context, &op), CAPU_WRONG_STRUCT, "capu_op of 4 bytes");
    longer.newer = 1;
    STEP_FAILS(&rig, capu_access_begin(rig.context, &longer.op), CAPU_WRONG_STRUCT, "capu_op");
    longer.newer = 0;
    RIG_OK(&rig, capu_access_begin(rig.context, &longer.op));
    RIG_OK(&rig, capu_access_end(rig.context));
    STEP_FAILS(&rig, capu_tensor_describe(rig.context, address, &info), CAPU_WRONG_STRUCT,
               "capu_tensor_info of 3 bytes");
    STEP_FAILS(&rig, capu_tensor_query(rig.context, address, &state), CAPU_WRONG_STRUCT,
               "capu_tensor_state of 1 bytes");
    STEP_FAILS(&rig, capu_traffic_get(rig.context, &traffic), CAPU_WRONG_STRUCT,
               "capu_traffic of 2 bytes");
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    RIG_OK(&rig, capu_iteration_end(rig.context));
    RIG_OK(&rig, capu_synchronize(rig.context));
    STEP_FAILS(&rig, capu_report_get(rig.context, &report), CAPU_WRONG_STRUCT, "capu_report of 0");
    ck_assert_int_eq(capu_report_print(&report, stdout), CAPU_WRONG_STRUCT);
    finish_working(&rig);
}
END_TEST

START_TEST(invalid_ops_and_infos_are_reported)
{
    struct rig rig;
    capu_operand operand = {.role = 77};
    capu_op op = {.size = sizeof(op)};
    void *address;

    start(&rig);
    address = step_malloc(&rig, PAGES(1));
    STEP_FAILS(&rig, capu_run(rig.context, NULL), CAPU_INVALID, "no op");
    STEP_FAILS(&rig, capu_run(rig.context, &op), CAPU_INVALID, "no name");
    op.name = "gelu";
    STEP_FAILS(&rig, capu_run(rig.context, &op), CAPU_INVALID, "'gelu' has no run function");
    op.operand_count = 1;
    STEP_FAILS(&rig, capu_access_begin(rig.context, &op), CAPU_INVALID,
               "'gelu' has 1 operands but no array");
    op.operands = &operand;
    STEP_FAILS(&rig, capu_access_begin(rig.context, &op), CAPU_INVALID, "'gelu', operand 1 of 1");
    op.operand_count = 0;
    op.flags = 2;
    STEP_FAILS(&rig, capu_access_begin(rig.context, &op), CAPU_INVALID, "'gelu' has unknown flags");
    STEP_FAILS(&rig, CAPU_DESCRIBE(rig.context, address, .name = "w", .kind = 99), CAPU_INVALID,
               "'w': kind is 99, and at most 6");
    STEP_FAILS(&rig, CAPU_DESCRIBE(rig.context, address, .name = "w", .hint = 4), CAPU_INVALID,
               "'w': hint is 4, and at most 3");
    STEP_FAILS(&rig, capu_tensor_describe(rig.context, address, NULL), CAPU_INVALID, "info");
    STEP_FAILS(&rig, capu_upload(rig.context, address, NULL, 1, 0), CAPU_INVALID, "capu_upload");
    STEP_FAILS(&rig, capu_tensor_query(rig.context, address, NULL), CAPU_INVALID, "query");
    STEP_FAILS(&rig, capu_report_get(rig.context, NULL), CAPU_INVALID, "report");
    finish_working(&rig);
}
END_TEST

START_TEST(a_null_context_is_reported)
{
    void *address;

    ck_assert_int_eq(capu_malloc(NULL, 1, &address), CAPU_INVALID);
    ck_assert_int_eq(capu_free(NULL, NULL), CAPU_INVALID);
    ck_assert_int_eq(capu_run(NULL, NULL), CAPU_INVALID);
    ck_assert_int_eq(capu_synchronize(NULL), CAPU_INVALID);
    ck_assert_int_eq(capu_flush(NULL), CAPU_INVALID);
    ck_assert_int_eq(capu_context_create(NULL, NULL), CAPU_INVALID);
    ck_assert_ptr_null(capu_context_stream(NULL));
    ck_assert_str_ne(capu_last_error(NULL), "");
    ck_assert_int_eq(capu_explain(NULL, CAPU_OP_FAILED, "text"), CAPU_OP_FAILED);
    capu_context_destroy(NULL);
}
END_TEST

/* Libraries on top of this one explain their own errors where a program looks for them. */
START_TEST(another_library_explains_its_error)
{
    struct rig rig;

    rig_init(&rig, &(struct rig_options){0});
    ck_assert_int_eq(capu_explain(rig.context, CAPU_OP_FAILED, "no rank answers"), CAPU_OP_FAILED);
    ck_assert_str_eq(capu_last_error(rig.context), "no rank answers");
    ck_assert_int_eq(capu_explain(rig.context, CAPU_INVALID, NULL), CAPU_INVALID);
    ck_assert_str_eq(capu_last_error(rig.context), "no rank answers");
    RIG_OK(&rig, capu_synchronize(rig.context)); /* the context goes on */
    rig_finish(&rig);
}
END_TEST

static capu_status explode(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_INVALID;
}

struct meddling {
    capu_context *context;
    void *tensor;
    capu_status *answers;
};

/* A run function that calls the library would wait for itself, forever. */
static capu_status meddle(capu_stream stream, const void *arguments)
{
    const struct meddling *meddling = arguments;
    void *address;

    (void)stream;
    meddling->answers[0] = capu_synchronize(meddling->context);
    meddling->answers[1] = capu_malloc(meddling->context, 1, &address);
    meddling->answers[2] = capu_free(meddling->context, meddling->tensor);
    meddling->answers[3] = capu_iteration_begin(meddling->context, NULL);
    return CAPU_OK;
}

START_TEST(a_run_function_may_not_call_the_library)
{
    struct rig rig;
    capu_status answers[4] = {CAPU_OK, CAPU_OK, CAPU_OK, CAPU_OK};
    struct meddling meddling = {.answers = answers};

    rig_init(&rig, &(struct rig_options){.budget_pages = 8, .mode = (uint32_t)_i});
    meddling.context = rig.context;
    meddling.tensor = step_malloc(&rig, PAGES(2));
    RIG_OK(&rig, CAPU_RUN(rig.context, meddle, &meddling, capu_writes(meddling.tensor)));
    RIG_OK(&rig, capu_synchronize(rig.context));
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(answers[i], CAPU_WRONG_ORDER);
    }
    RIG_OK(&rig, capu_free(rig.context, meddling.tensor));
    finish_working(&rig);
}
END_TEST

START_TEST(a_failed_run_function_stops_the_context)
{
    struct rig rig;
    unsigned char *tensor;
    void *address;
    unsigned char byte;
    capu_status status;

    rig_init(&rig, &(struct rig_options){.budget_pages = 8, .mode = (uint32_t)_i});
    tensor = step_malloc(&rig, PAGES(2));
    step_set(&rig, tensor, PAGES(2), 1);
    /* The function fails on the stream's thread, before or after capu_run returns. */
    status =
        capu_run(rig.context, &(capu_op){.size = sizeof(capu_op), .name = "bomb", .run = explode});
    ck_assert(status == CAPU_OK || status == rig_failure.status);
    STEP_FAILS(&rig, capu_synchronize(rig.context), rig_failure.status, rig_failure.text);
    STEP_FAILS(&rig, step_try_set(&rig, tensor, PAGES(2), 1), rig_failure.status, rig_failure.text);
    STEP_FAILS(&rig, capu_malloc(rig.context, 1, &address), rig_failure.status, rig_failure.text);
    STEP_FAILS(&rig, capu_free(rig.context, tensor), rig_failure.status, rig_failure.text);
    STEP_FAILS(&rig, capu_download(rig.context, &byte, tensor, 1, 0), rig_failure.status,
               rig_failure.text);
    STEP_FAILS(&rig, capu_iteration_begin(rig.context, NULL), rig_failure.status, rig_failure.text);
    STEP_FAILS(&rig, capu_flush(rig.context), rig_failure.status, rig_failure.text);
    capu_context_destroy(rig.context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api misuse");
    TCase *cases = tcase_create("misuse");

    tcase_add_loop_test(cases, wrong_frees_are_reported, CAPU_MODE_OFF, CAPU_MODE_GUIDED);
    tcase_add_loop_test(cases, a_wrong_operand_is_named, CAPU_MODE_OFF, CAPU_MODE_GUIDED);
    tcase_add_loop_test(cases, an_operand_count_out_of_range_is_rejected, 0, 2);
    tcase_add_test(cases, the_largest_operand_count_works);
    tcase_add_loop_test(cases, unknown_addresses_are_reported, CAPU_MODE_OFF, CAPU_MODE_GUIDED);
    tcase_add_loop_test(cases, ranges_past_the_end_are_reported, CAPU_MODE_OFF, CAPU_MODE_GUIDED);
    tcase_add_test(cases, wrong_sizes_are_reported);
    tcase_add_test(cases, calls_in_the_wrong_order_are_reported);
    tcase_add_test(cases, structs_of_the_wrong_size_are_reported);
    tcase_add_test(cases, invalid_ops_and_infos_are_reported);
    tcase_add_test(cases, a_null_context_is_reported);
    tcase_add_test(cases, another_library_explains_its_error);
    tcase_add_loop_test(cases, a_run_function_may_not_call_the_library, CAPU_MODE_OFF,
                        CAPU_MODE_GUIDED);
    tcase_add_loop_test(cases, a_failed_run_function_stops_the_context, CAPU_MODE_OFF,
                        CAPU_MODE_GUIDED);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
