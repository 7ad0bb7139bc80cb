/*
 * The numbered statements of docs/porting.md, one function each, on the host device. Prints the
 * number of each one that holds; porting.sh compares them with the document, and says in
 * CAPUCHIN_REPORT where the report file is. With the argument "touch" it reads evicted memory
 * instead, which ends it.
 */
#include <capuchin/launcher.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 4096, COUNT = 4 * PAGE / sizeof(float), BYTES = COUNT * sizeof(float), PIECES = 8 };

#define HOLDS(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #condition, \
                    capu_last_error(context));                                  \
            exit(1);                                                            \
        }                                                                       \
    } while (0)
#define OK(call) HOLDS((call) == CAPU_OK)

static capu_context *context;

static CAPU_LAUNCHER(fill, (float *, out, writes), (const float *, bias, reads),
                     (float, value, value))
{
    for (size_t i = 0; i < COUNT; i++) {
        out[i] = value + (bias != NULL ? bias[i] : 0.0f);
    }
}

static CAPU_LAUNCHER(fill_some, (float *, out, writes, count), (size_t, count, value),
                     (float, value, value))
{
    for (size_t i = 0; i < count; i++) {
        out[i] = value;
    }
}

static CAPU_LAUNCHER(accumulate, (float *, out, updates), (float, value, value))
{
    for (size_t i = 0; i < COUNT; i++) {
        out[i] += value;
    }
}

static CAPU_LAUNCHER(accumulate_wrongly, (float *, out, writes), (float, value, value))
{
    for (size_t i = 0; i < COUNT; i++) {
        out[i] += value;
    }
}

static CAPU_LAUNCHER(copy, (const char *, what, name), (int, layer, index), (float *, out, writes),
                     (const float *, in, reads))
{
    memcpy(out, in, BYTES);
}

static CAPU_LAUNCHER(restore, (const float *, in, reads))
{
    float *changed = (float *)(uintptr_t)in;
    float before = changed[COUNT - 1];

    changed[COUNT - 1] = before + 1.0f;
    changed[COUNT - 1] = before;
}

static CAPU_LAUNCHER(update, (float *, weight, updates, count), (float *, first, updates, count),
                     (float *, second, updates, count), (const float *, gradient, reads, count),
                     (size_t, count, value))
{
    for (size_t i = 0; i < count; i++) {
        first[i] = 0.9f * first[i] + 0.1f * gradient[i];
        second[i] = 0.99f * second[i] + 0.01f * gradient[i] * gradient[i];
        weight[i] -= first[i] / (second[i] + 1.0f);
    }
}

static CAPU_LAUNCHER(fill_part, (float *, out, writes_rest_undefined, count),
                     (size_t, count, value))
{
    for (size_t i = 0; i < count; i++) {
        out[i] = 2.0f;
    }
}

/* Host memory that changes. */
struct setting {
    float value;
};
static struct setting shared_setting;

static CAPU_LAUNCHER(fill_from, (float *, out, writes), (const struct setting *, setting, value))
{
    for (size_t i = 0; i < COUNT; i++) {
        out[i] = setting->value;
    }
}

static capu_status inner_status;

static CAPU_LAUNCHER(nested, (float *, out, writes))
{
    fill_some_body(out, COUNT, 1.0f);
    inner_status = fill_some(out, COUNT, 2.0f);
}

/* Ends the context of the claim before, and starts one with a budget of so many pages. */
static void start(uint64_t page_bytes, uint64_t budget_bytes, bool is_strict)
{
    capu_config config = CAPU_CONFIG_INIT;

    capu_context_destroy(context);
    config.device = "host";
    config.page_bytes = page_bytes;
    config.budget_bytes = budget_bytes;
    config.strict = is_strict;
    OK(capu_context_create(&config, &context));
    capu_context_make_current(context);
}

/* In guided mode, with a plan from the second iteration on. */
static void start_guided(uint64_t budget_bytes)
{
    capu_config config = CAPU_CONFIG_INIT;

    capu_context_destroy(context);
    config.device = "host";
    config.page_bytes = PAGE;
    config.budget_bytes = budget_bytes;
    config.mode = CAPU_MODE_GUIDED;
    config.wait_for_plan = 1;
    OK(capu_context_create(&config, &context));
    capu_context_make_current(context);
}

static bool is_guided(capu_report report)
{
    return report.mode == CAPU_MODE_GUIDED && report.diverged == 0;
}

static float *make(size_t bytes, capu_kind kind)
{
    void *address = NULL;

    OK(capu_malloc(context, bytes, &address));
    OK(CAPU_DESCRIBE(context, address, .name = "x", .kind = kind));
    return address;
}

static float item(const float *address)
{
    float value = -1.0f;

    OK(capu_download(context, &value, address, sizeof(value), 0));
    return value;
}

static bool error_has(const char *text)
{
    return strstr(capu_last_error(context), text) != NULL;
}

static capu_report report(void)
{
    capu_report report = CAPU_REPORT_INIT;

    OK(capu_synchronize(context));
    OK(capu_report_get(context, &report));
    return report;
}

/* What follows `key` in the first line of the report file. */
static uint64_t reported(const char *key)
{
    char line[8192] = "";
    const char *at;
    FILE *file;

    OK(capu_synchronize(context));
    OK(capu_flush(context));
    file = fopen(getenv("CAPUCHIN_REPORT"), "r");
    HOLDS(file != NULL && fgets(line, sizeof(line), file) != NULL);
    fclose(file);
    at = strstr(line, key);
    HOLDS(at != NULL);
    return strtoull(at + strlen(key), NULL, 10);
}

static uint64_t fixed_bytes(const void *address)
{
    capu_tensor_state state = {.size = sizeof(state)};

    OK(capu_tensor_query(context, address, &state));
    return state.fixed_bytes;
}

static void null_operands(void)
{
    capu_operand none = capu_reads(NULL);
    capu_op op = {.size = sizeof(op), .name = "none", .run = fill_run, .operands = &none};
    float *x;

    start(PAGE, 16 * PAGE, false);
    x = make(BYTES, CAPU_ACTIVATION);
    OK(fill(x, NULL, 2.0f));
    HOLDS(item(x) == 2.0f);
    op.operand_count = 1;
    HOLDS(capu_run(context, &op) == CAPU_WRONG_ADDRESS);
}

static void values_are_copied(void)
{
    float value = 3.0f;
    float *x;

    start(PAGE, 16 * PAGE, false);
    x = make(BYTES, CAPU_ACTIVATION);
    OK(fill(x, NULL, value));
    value = 4.0f;
    HOLDS(item(x) == 3.0f && value == 4.0f);
}

static void operands_reach_to_the_end(void)
{
    float *x;

    start(PAGE, 16 * PAGE, true);
    x = make(2 * BYTES, CAPU_ACTIVATION);
    HOLDS(fill(x, NULL, 1.0f) == CAPU_INVALID && error_has("unwritten"));
    OK(fill_some(x, COUNT, 1.0f));
    OK(capu_split(context, x, BYTES));
    OK(fill(x, NULL, 1.0f));
}

static void sums_are_updates(void)
{
    float *x;

    start(PAGE, 16 * PAGE, true);
    x = make(BYTES, CAPU_GRADIENT);
    HOLDS(accumulate(x, 1.0f) == CAPU_UNDEFINED_READ);
    OK(capu_zero(context, x, 0));
    OK(accumulate(x, 1.0f));
    HOLDS(item(x) == 1.0f);
    HOLDS(accumulate_wrongly(x, 1.0f) == CAPU_INVALID && error_has("before it has written it"));
}

enum { BY_OP, BY_OP_DISCARD, BY_UPLOAD, BY_UPLOAD_DISCARD };

/* What is copied back for a write of half of an evicted tensor. */
static uint64_t fetched_for(int way)
{
    static const float half[COUNT / 2] = {2.0f};
    float *x, *others;

    start(PAGE, 9 * PAGE, false);
    x = make(BYTES, CAPU_PARAMETER);
    others = make(2 * BYTES, CAPU_PARAMETER);
    OK(fill(x, NULL, 1.0f));
    OK(capu_zero(context, others, 0));
    OK(capu_iteration_begin(context, NULL));
    OK(fill_some(others, 2 * COUNT, 1.0f));
    if (way == BY_OP) {
        OK(fill_some(x, COUNT / 2, 2.0f));
    } else if (way == BY_OP_DISCARD) {
        OK(fill_part(x, COUNT / 2));
    } else if (way == BY_UPLOAD) {
        OK(capu_upload(context, x, half, sizeof(half), 0));
    } else {
        OK(capu_upload(context, x, half, sizeof(half), CAPU_TRANSFER_REST_UNDEFINED));
    }
    OK(capu_iteration_end(context));
    HOLDS(item(x) == 2.0f);
    return report().prefetched_bytes;
}

static void a_part_is_an_update(void)
{
    HOLDS(fetched_for(BY_OP) == BYTES);
    HOLDS(fetched_for(BY_OP_DISCARD) == 0);
}

/* Follows its plan through a smaller batch. */
static capu_report train_batches(uint32_t flags)
{
    static const float batch[COUNT] = {2.0f};
    float *x;

    start_guided(16 * PAGE);
    x = make(BYTES, CAPU_INPUT);
    for (size_t i = 0; i < 4; i++) {
        OK(capu_iteration_begin(context, NULL));
        OK(capu_upload(context, x, batch, i == 3 ? BYTES / 2 : BYTES, flags));
        OK(capu_iteration_end(context));
    }
    return report();
}

static void uploads_can_discard(void)
{
    HOLDS(fetched_for(BY_UPLOAD) == BYTES);
    HOLDS(fetched_for(BY_UPLOAD_DISCARD) == 0);
    HOLDS(train_batches(0).diverged == 1);
    HOLDS(is_guided(train_batches(CAPU_TRANSFER_REST_UNDEFINED)));
}

static void launchers_do_not_nest(void)
{
    float *x;

    start(PAGE, 16 * PAGE, false);
    x = make(BYTES, CAPU_ACTIVATION);
    OK(nested(x));
    HOLDS(item(x) == 1.0f);
    HOLDS(inner_status == CAPU_INVALID || inner_status == CAPU_WRONG_ORDER);
}

static void ops_have_names(void)
{
    float *x, *y;

    start(PAGE, 16 * PAGE, false);
    x = make(BYTES, CAPU_ACTIVATION);
    y = make(BYTES, CAPU_ACTIVATION);
    HOLDS(accumulate(x, 1.0f) == CAPU_UNDEFINED_READ && error_has("op 'accumulate'"));
    HOLDS(copy("qkv", 3, y, x) == CAPU_UNDEFINED_READ && error_has("op 'qkv.3'"));
}

/* Pieces of three pages of 4 KiB, each of which begins 256 bytes after a multiple of it. */
static uint64_t fixed_of_pieces(uint64_t page_bytes)
{
    const size_t bytes = 3 * PAGE;
    uint64_t fixed = 0;
    char *blob;

    start(page_bytes, 16 << 20, false);
    blob = (char *)make(PIECES * bytes + PAGE, CAPU_ACTIVATION) + 256;
    for (size_t i = 0; i < PIECES; i++) {
        OK(capu_split(context, blob + i * bytes, bytes));
    }
    for (size_t i = 0; i < PIECES; i++) {
        fixed += fixed_bytes(blob + i * bytes);
    }
    return fixed;
}

static void shared_pages_stay(void)
{
    HOLDS(fixed_of_pieces(PAGE) == PIECES * PAGE);
    HOLDS(fixed_of_pieces(16 * PAGE) == PIECES * 3 * PAGE);
}

static void whole_pages_do_not(void)
{
    float *blob;

    start(PAGE, 16 << 20, false);
    blob = make(PIECES * BYTES, CAPU_ACTIVATION);
    for (size_t i = 0; i < PIECES; i++) {
        OK(capu_split(context, blob + i * COUNT, BYTES));
    }
    for (size_t i = 0; i < PIECES; i++) {
        HOLDS(fixed_bytes(blob + i * COUNT) == 0);
    }
}

/* Large tensors of two pages and small ones, in turn or the large ones first. */
static uint64_t fixed_in_order(bool in_turn)
{
    const size_t large = 2 * PAGE, small = 256;
    char *at;

    start(PAGE, 64 * PAGE, false);
    at = (char *)make(PIECES * (large + small), CAPU_ACTIVATION);
    OK(capu_iteration_begin(context, NULL));
    for (size_t i = 0; i < 2 * PIECES; i++) {
        const size_t bytes = (in_turn ? i % 2 == 0 : i < PIECES) ? large : small;

        OK(capu_split(context, at, bytes));
        at += bytes;
    }
    OK(capu_iteration_end(context));
    return reported("\"floor_edges_bytes\":");
}

static void small_tensors_share_pages(void)
{
    HOLDS(fixed_in_order(true) == PIECES * PAGE);
    HOLDS(fixed_in_order(false) == PAGE);
}

static void reports_say_what_is_fixed(void)
{
    char *blob;

    start(PAGE, 64 * PAGE, false);
    blob = (char *)make(8 * PAGE, CAPU_ACTIVATION);
    make(16, CAPU_PARAMETER);
    OK(capu_iteration_begin(context, NULL));
    OK(capu_split(context, blob, PAGE + PAGE / 2));
    OK(capu_iteration_end(context));
    HOLDS(reported("\"fixed_bytes\":") == 2 * PAGE);
}

static void lists_split_and_tensors_are_visited(void)
{
    const size_t sizes[3] = {BYTES, 3 * BYTES, BYTES};
    char *blob, *expected;
    size_t found = 0;

    start(PAGE, 64 * PAGE, false);
    expected = blob = (char *)make(5 * BYTES, CAPU_PARAMETER);
    for (int i = 0; i < 2; i++) {
        OK(capu_split_list(context, blob, sizes, 3));
    }
    for (void *at = blob; at != NULL; at = capu_tensor_next(context, at)) {
        HOLDS(found < 3 && at == expected);
        expected += sizes[found++];
    }
    HOLDS(found == 3);
}

/* One step of the optimizer over four allocations of 8 tensors, in so many calls. */
static capu_status optimise(uint64_t budget_bytes, size_t calls, capu_report *out)
{
    float *blobs[4];
    capu_status status = CAPU_OK;

    start(PAGE, budget_bytes, false);
    for (size_t i = 0; i < 4; i++) {
        blobs[i] = make(PIECES * BYTES, CAPU_OPTIMIZER);
        for (size_t j = 0; j < PIECES; j++) {
            OK(capu_split(context, blobs[i] + j * COUNT, BYTES));
        }
        OK(capu_zero(context, blobs[i], PIECES * BYTES));
    }
    OK(capu_iteration_begin(context, NULL));
    for (size_t i = 0; i < calls && status == CAPU_OK; i++) {
        const size_t at = i * PIECES / calls * COUNT;

        status = update(blobs[0] + at, blobs[1] + at, blobs[2] + at, blobs[3] + at,
                        PIECES / calls * COUNT);
    }
    OK(capu_iteration_end(context));
    *out = report();
    return status;
}

static void the_floor_is_that_of_one_op(void)
{
    capu_report report;
    uint64_t floor_bytes;

    OK(optimise(16 << 20, PIECES, &report));
    floor_bytes = report.floor_bytes;
    HOLDS(floor_bytes == 4 * BYTES);
    HOLDS(strcmp(report.floor_op, "update") == 0);
    OK(optimise(floor_bytes, PIECES, &report));
    HOLDS(optimise(floor_bytes - PAGE, PIECES, &report) == CAPU_OVER_BUDGET);
    HOLDS(error_has("op 'update'"));
}

static void one_update_of_all_is_the_floor(void)
{
    capu_report together, apart;

    OK(optimise(16 << 20, 1, &together));
    OK(optimise(16 << 20, PIECES, &apart));
    HOLDS(together.floor_bytes == 4 * PIECES * BYTES);
    HOLDS(apart.floor_bytes == 4 * BYTES);
}

static void zeros_take_no_memory(void)
{
    uint64_t held_before, held_after;
    float *x;

    start(PAGE, 8 * PAGE, false);
    x = make(64 * PAGE, CAPU_GRADIENT);
    capu_memory_usage(context, &held_before, NULL, NULL);
    OK(capu_zero(context, x, 0));
    OK(capu_synchronize(context));
    capu_memory_usage(context, &held_after, NULL, NULL);
    HOLDS(held_after == held_before);
    HOLDS(item(x + COUNT) == 0.0f);
}

/* Whether a tensor that one iteration has written can be read in the next. */
static bool is_kept(capu_kind kind, capu_lifetime lifetime)
{
    capu_status status;
    float *x;

    start(PAGE, 16 * PAGE, false);
    x = make(BYTES, kind);
    OK(CAPU_DESCRIBE(context, x, .kind = kind, .lifetime = lifetime));
    OK(capu_iteration_begin(context, NULL));
    OK(fill(x, NULL, 1.0f));
    OK(capu_iteration_end(context));
    OK(capu_iteration_begin(context, NULL));
    status = accumulate(x, 1.0f);
    HOLDS(status == CAPU_OK || status == CAPU_UNDEFINED_READ);
    OK(capu_iteration_end(context));
    return status == CAPU_OK;
}

static void kinds_have_lifetimes(void)
{
    HOLDS(!is_kept(CAPU_ACTIVATION, CAPU_LIFETIME_DEFAULT));
    HOLDS(!is_kept(CAPU_GRADIENT, CAPU_LIFETIME_DEFAULT));
    HOLDS(!is_kept(CAPU_WORKSPACE, CAPU_LIFETIME_DEFAULT));
    HOLDS(is_kept(CAPU_GRADIENT, CAPU_PERSISTENT));
    HOLDS(is_kept(CAPU_KIND_UNKNOWN, CAPU_LIFETIME_DEFAULT));
}

/* A tensor that is not on the device. */
static float *make_evicted(void)
{
    float *x, *y;

    start(PAGE, 7 * PAGE, true);
    x = make(BYTES, CAPU_PARAMETER);
    y = make(BYTES, CAPU_PARAMETER);
    OK(fill(x, NULL, 5.0f));
    OK(fill(y, NULL, 6.0f));
    return x;
}

static void only_ops_touch_device_memory(void)
{
    HOLDS(item(make_evicted()) == 5.0f);
}

static void uploads_have_copied(void)
{
    float value = 7.0f;
    float *x;

    start(PAGE, 16 * PAGE, false);
    x = make(BYTES, CAPU_INPUT);
    OK(capu_upload(context, x, &value, sizeof(value), 0));
    value = 8.0f;
    HOLDS(item(x) == 7.0f && value == 8.0f);
}

static void restored_is_changed(void)
{
    float *x;

    start(PAGE, 16 * PAGE, true);
    x = make(BYTES, CAPU_PARAMETER);
    OK(fill(x, NULL, 1.0f));
    HOLDS(restore(x) == CAPU_INVALID && error_has("which it says it only reads"));
}

static void arguments_point_to_the_present(void)
{
    struct setting *setting = &shared_setting;
    float *x;

    start(PAGE, 16 * PAGE, false);
    x = make(BYTES, CAPU_ACTIVATION);
    setting->value = 1.0f;
    OK(fill_from(x, setting));
    OK(capu_synchronize(context));
    setting->value = 2.0f;
    HOLDS(item(x) == 1.0f);
    OK(fill_from(x, setting));
    HOLDS(item(x) == 2.0f);
}

/* Trains with a buffer that had so many bytes at first, and then has others. */
static void train_resized(float **x, size_t bytes)
{
    void *address = NULL;

    OK(capu_realloc(context, *x, bytes, &address));
    *x = address;
    OK(capu_iteration_begin(context, NULL));
    OK(fill(*x, NULL, 1.0f));
    OK(accumulate(*x, 1.0f));
    OK(capu_iteration_end(context));
}

static void resized_buffers_stay(void)
{
    float *x, *before;

    start_guided(64 * PAGE);
    before = x = make(BYTES, CAPU_ACTIVATION);
    for (size_t i = 0; i < 6; i++) {
        train_resized(&x, BYTES / (1 + i % 3));
        HOLDS(x == before && (i < 1 || is_guided(report())));
    }

    start(PAGE, 64 * PAGE, false);
    before = x = make(BYTES - PAGE / 2, CAPU_PARAMETER);
    OK(capu_zero(context, x, 0));
    OK(fill_some(x, 8, 3.0f));
    OK(capu_realloc(context, x, BYTES, (void **)&x));
    HOLDS(x == before);
    OK(capu_realloc(context, x, 2 * BYTES, (void **)&x));
    HOLDS(x != before && item(x + 7) == 3.0f);
}

/* In the order of the document. */
static const struct {
    int number;
    void (*check)(void);
} claims[] = {
    {1, null_operands},
    {2, values_are_copied},
    {3, operands_reach_to_the_end},
    {4, sums_are_updates},
    {5, a_part_is_an_update},
    {6, uploads_can_discard},
    {7, launchers_do_not_nest},
    {8, ops_have_names},
    {9, shared_pages_stay},
    {10, whole_pages_do_not},
    {11, small_tensors_share_pages},
    {12, reports_say_what_is_fixed},
    {13, lists_split_and_tensors_are_visited},
    {14, the_floor_is_that_of_one_op},
    {15, one_update_of_all_is_the_floor},
    {16, zeros_take_no_memory},
    {17, kinds_have_lifetimes},
    {18, only_ops_touch_device_memory},
    {19, uploads_have_copied},
    {20, restored_is_changed},
    {21, arguments_point_to_the_present},
    {22, resized_buffers_stay},
};

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "touch") == 0) {
        volatile float *x = make_evicted();

        printf("%f\n", (double)x[0]);
        return 0;
    }
    for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
        claims[i].check();
        printf("%d\n", claims[i].number);
    }
    capu_context_destroy(context);
    return 0;
}
