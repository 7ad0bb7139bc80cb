/* Reports: counters compared with values computed by hand for the sim device, the JSON line, the
   table, the trace, and files that cannot be written. */
#include "tests/api/net.h"

#include "policy/model/trace_index.h"

#include <jansson.h>
#include <unistd.h>

static void make_path(char *path)
{
    int file;

    strcpy(path, "/tmp/capuchin-test-XXXXXX");
    file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
}

/*
 * Two layers of three pages each under a budget of seven, with one page of small tensors:
 * forward 1 (w -> a), forward 2 (a -> b, w leaves), backward (b, w -> w, a leaves).
 */
static void step(struct rig *rig, void *w, void *a, void *b)
{
    capu_operand first[] = {capu_reads(w), capu_writes(a)};
    capu_operand second[] = {capu_reads(a), capu_writes(b)};
    capu_operand third[] = {capu_reads(b), capu_updates(w)};
    capu_op op = {.size = sizeof(op), .operand_count = 2};

    RIG_OK(rig, capu_iteration_begin(rig->context, "train"));
    op.run = (capu_run_function)(uintptr_t)1; /* the sim device calls nothing */
    op.name = "forward 1";
    op.operands = first;
    op.duration_ns = 1000;
    RIG_OK(rig, capu_run(rig->context, &op));
    op.name = "forward 2";
    op.operands = second;
    op.duration_ns = 2000;
    RIG_OK(rig, capu_run(rig->context, &op));
    RIG_OK(rig, capu_segment_begin(rig->context, "block"));
    op.name = "backward";
    op.operands = third;
    op.duration_ns = 4000;
    RIG_OK(rig, capu_run(rig->context, &op));
    RIG_OK(rig, capu_segment_end(rig->context));
    RIG_OK(rig, capu_iteration_end(rig->context));
}

struct model {
    void *w;
    void *a;
    void *b;
};

static struct model prepare(struct rig *rig)
{
    struct model model;

    (void)step_malloc(rig, 100);
    model.w = step_tensor(rig, "w", CAPU_PARAMETER, 3);
    model.a = step_tensor(rig, "a", CAPU_ACTIVATION, 3);
    model.b = step_malloc(rig, PAGES(3)); /* no name: identified by its address */
    RIG_OK(rig, CAPU_DESCRIBE(rig->context, model.b, .kind = CAPU_ACTIVATION));
    RIG_OK(rig, capu_zero(rig->context, model.w, 0));
    return model;
}

START_TEST(counters_match_values_computed_by_hand)
{
    struct rig rig;
    struct model model;
    capu_report none = CAPU_REPORT_INIT;
    struct report report;

    rig_init(&rig, &(struct rig_options){.budget_pages = 7, .is_sim = true});
    STEP_FAILS(&rig, capu_report_get(rig.context, &none), CAPU_NOT_READY, "no iteration");
    model = prepare(&rig);
    for (size_t i = 0; i < 3; i++) {
        step(&rig, model.w, model.a, model.b);
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    report = rig_report(&rig);
    ck_assert_uint_eq(report.iteration, 3);
    ck_assert_str_eq(report.label, "train");
    ck_assert_uint_eq(report.mode, CAPU_MODE_PASSIVE);
    ck_assert_uint_eq(report.op_count, 3);
    ck_assert_uint_eq(report.access_count, 6);
    ck_assert_uint_eq(report.compute_ns, 7000);
    ck_assert_uint_eq(report.time_ns, report.compute_ns + report.stall_ns);
    ck_assert_uint_eq(report.budget_bytes, PAGES(7));
    ck_assert_uint_eq(report.peak_bytes, PAGES(7));
    ck_assert_uint_eq(report.fixed_bytes, PAGES(1));
    ck_assert_uint_eq(report.live_peak_bytes, PAGES(10));
    ck_assert_uint_eq(report.floor_bytes, PAGES(7));
    ck_assert_uint_eq(report.next_floor_bytes, PAGES(7));
    ck_assert_str_eq(report.floor_op, "forward 1");
    /* b is empty when the iteration begins and is evicted for a. w is dirty and is evicted for b.
       Later w replaces a, which is dirty too. */
    ck_assert_uint_eq(report.evict_count, 3);
    ck_assert_uint_eq(report.evicted_bytes, PAGES(6));
    ck_assert_uint_eq(report.dropped_bytes, PAGES(3));
    ck_assert_uint_eq(report.prefetch_count, 1);
    ck_assert_uint_eq(report.prefetched_bytes, PAGES(3));
    ck_assert_uint_eq(report.map_count, 3);
    ck_assert_uint_eq(report.unmap_count, 3);
    ck_assert_uint_eq(report.recompute_ns, 0);
    ck_assert_uint_ge(report.host_bytes, PAGES(6));
    ck_assert_uint_le(report.host_bytes, host_arena_chunk_bytes(rig.context->memory.arena));
    ck_assert_uint_eq(report.eviction_count, 3);
    ck_assert_uint_eq(report.evictions[0].method, CAPU_METHOD_EMPTY);
    ck_assert_uint_eq(report.evictions[0].evicted_access, UINT64_MAX);
    ck_assert_str_eq(report.evictions[0].back_op, "forward 2");
    ck_assert_str_eq(report.evictions[1].tensor, "w");
    ck_assert_uint_eq(report.evictions[1].method, CAPU_METHOD_SWAP);
    ck_assert_uint_eq(report.evictions[1].evicted_access, 0);
    ck_assert_str_eq(report.evictions[1].evicted_op, "forward 1");
    ck_assert_uint_eq(report.evictions[1].back_access, 2);
    ck_assert_str_eq(report.evictions[1].back_op, "backward");
    ck_assert_uint_eq(report.evictions[1].is_hidden, 0);
    ck_assert_uint_gt(report.evictions[1].wait_ns, 0);
    ck_assert_str_eq(report.evictions[2].tensor, "a");
    ck_assert_uint_eq(report.evictions[2].back_access, UINT64_MAX);
    ck_assert_str_eq(report.evictions[2].back_op, "");
    /* b waited until w was copied out, and w waited for room and for its contents. That is all. */
    ck_assert_uint_eq(report.stall_count, 2);
    ck_assert_uint_eq(report.stalls[0].access, 1);
    ck_assert_str_eq(report.stalls[0].op, "forward 2");
    ck_assert_uint_eq(report.stalls[1].access, 2);
    ck_assert_str_eq(report.stalls[1].op, "backward");
    ck_assert_uint_eq(report.stalls[1].wait_ns, report.evictions[1].wait_ns);
    ck_assert_uint_eq(report.stalls[0].wait_ns + report.stalls[1].wait_ns, report.stall_ns);
    rig_finish(&rig);
}
END_TEST

/* An op on a piece of five whole pages, cut out of a blob so that it shares a page on either side,
   and a page of small tensors. */
START_TEST(the_floor_is_split_into_operands_edges_and_slabs)
{
    struct rig rig;
    unsigned char *blob;
    unsigned char *small;
    struct report report = {0};

    rig_init(&rig, &(struct rig_options){.budget_pages = 20});
    blob = step_malloc(&rig, PAGES(10));
    small = step_malloc(&rig, 100);
    RIG_OK(&rig, capu_split(rig.context, blob + 100, PAGES(6)));
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    step_set(&rig, blob + 100, PAGES(6), 1);
    step_set(&rig, small, 100, 1);
    RIG_OK(&rig, capu_iteration_end(rig.context));
    RIG_OK(&rig, capu_synchronize(rig.context));
    report = rig_report(&rig);
    ck_assert_uint_eq(report.page_bytes, RIG_PAGE);
    ck_assert_uint_eq(report.floor_operands_bytes, PAGES(5));
    ck_assert_uint_eq(report.floor_edges_bytes, PAGES(2));
    ck_assert_uint_eq(report.floor_slabs_bytes, PAGES(1));
    ck_assert_uint_eq(report.floor_bytes, PAGES(8));
    ck_assert_uint_eq(report.fixed_bytes, PAGES(3));
    rig_finish(&rig);
}
END_TEST

START_TEST(the_json_line_matches_the_struct)
{
    char path[64];
    struct rig rig;
    struct model model;
    struct report report = {0};
    FILE *file;
    json_t *line = NULL;
    json_error_t error;

    make_path(path);
    rig_init(&rig, &(struct rig_options){.budget_pages = 7, .is_sim = true, .report_path = path});
    model = prepare(&rig);
    RIG_OK(&rig,
           CAPU_DESCRIBE(rig.context, model.a, .name = "odd \xff name", .kind = CAPU_ACTIVATION));
    for (size_t i = 0; i < 3; i++) {
        step(&rig, model.w, model.a, model.b);
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_flush(rig.context));
    report = rig_report(&rig);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < 3; i++) {
        json_decref(line);
        line = json_loadf(file, JSON_DISABLE_EOF_CHECK, &error);
        ck_assert_msg(line != NULL, "line %zu: %s", i, error.text);
    }
    fclose(file);
#define SAME(name, unit, text) \
    ck_assert_int_eq(json_integer_value(json_object_get(line, #name)), (json_int_t)report.name);
    REPORT_COUNTERS(SAME)
#undef SAME
    ck_assert_str_eq(json_string_value(json_object_get(line, "label")), "train");
    ck_assert_str_eq(json_string_value(json_object_get(line, "mode")), "passive");
    ck_assert_str_eq(json_string_value(json_object_get(line, "floor_op")), "forward 1");
    ck_assert_uint_eq(json_array_size(json_object_get(line, "evictions")), report.eviction_count);
    ck_assert_uint_eq(json_array_size(json_object_get(line, "stalls")), report.stall_count);
    ck_assert_uint_gt(report.stall_count, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(
                         json_array_get(json_object_get(line, "stalls"), 0), "wait_ns")),
                     (json_int_t)report.stalls[0].wait_ns);
    ck_assert_str_eq(json_string_value(json_object_get(
                         json_array_get(json_object_get(line, "evictions"), 2), "tensor")),
                     "odd ? name");
    json_decref(line);
    unlink(path);
    rig_finish(&rig);
}
END_TEST

START_TEST(the_table_names_every_counter)
{
    struct rig rig;
    struct model model;
    capu_report report = CAPU_REPORT_INIT;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    FILE *full = fopen("/dev/full", "w");

    rig_init(&rig, &(struct rig_options){.budget_pages = 7, .is_sim = true});
    model = prepare(&rig);
    step(&rig, model.w, model.a, model.b);
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_report_get(rig.context, &report));
    ck_assert_int_eq(capu_report_print(&report, file), CAPU_OK);
    ck_assert_int_eq(capu_report_print(&report, full), CAPU_FILE_FAILED);
    ck_assert_int_eq(capu_memory_print(rig.context, full), CAPU_FILE_FAILED);
    fclose(full);
    fclose(file);
    ck_assert_ptr_nonnull(strstr(text, "iteration 1 train, passive mode"));
#define NAMED(name, unit, explanation) ck_assert_ptr_nonnull(strstr(text, "  " #name " "));
    CAPU_REPORT_COUNTERS(NAMED)
#undef NAMED
    ck_assert_ptr_nonnull(strstr(text, "28.00 KiB"));
    ck_assert_uint_gt(report.stall_count, 0);
    ck_assert_ptr_nonnull(
        strstr(text, "ops that waited for tensors or for room, longest wait first ("));
    ck_assert_ptr_nonnull(strstr(text, "backward                 op 3 "));
    ck_assert_ptr_nonnull(strstr(text, "7.00 us"));
    free(text);
    rig_finish(&rig);
}
END_TEST

/* A name could clear the screen, or forge a line of the table. */
START_TEST(names_in_the_table_are_escaped)
{
    static const char name[] = "\x1b[2J\n  forged";
    const capu_eviction eviction = {.tensor = name, .evicted_op = name, .back_op = name};
    const capu_stall stall = {.op = name, .replay = name, .access = 1};
    capu_report report = CAPU_REPORT_INIT;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    size_t count = 0;

    report.label = name;
    report.floor_op = name;
    report.plan_error = name;
    report.evictions = &eviction;
    report.eviction_count = 1;
    report.stalls = &stall;
    report.stall_count = 1;
    ck_assert_int_eq(capu_report_print(&report, file), CAPU_OK);
    fclose(file);
    ck_assert_ptr_null(strchr(text, '\x1b'));
    ck_assert_ptr_null(strstr(text, "\n  forged"));
    for (const char *at = text; (at = strstr(at, "\\x1b[2J\\x0a  forged")) != NULL; at++) {
        count++;
    }
    ck_assert_uint_eq(count, 8);
    free(text);
}
END_TEST

START_TEST(mode_off_without_files_keeps_no_records)
{
    struct rig rig;
    capu_report report = CAPU_REPORT_INIT;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_OFF});
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    RIG_OK(&rig, capu_iteration_end(rig.context));
    RIG_OK(&rig, capu_synchronize(rig.context));
    STEP_FAILS(&rig, capu_report_get(rig.context, &report), CAPU_UNSUPPORTED, "mode off");
    rig_finish(&rig);
}
END_TEST

static void read_trace(const char *path, struct trace *trace, struct trace_index *trace_index)
{
    struct error_text error = {0};

    ck_assert_msg(trace_load(trace, path, &error) == CAPU_OK, "%s", error.text);
    ck_assert_msg(trace_index_init(trace_index, trace, RIG_PAGE, &error) == CAPU_OK, "%s",
                  error.text);
}

START_TEST(the_trace_is_valid_and_has_the_same_peak)
{
    char path[64];
    struct rig rig;
    struct model model;
    capu_report report = CAPU_REPORT_INIT;
    struct trace trace;
    struct trace_index trace_index;

    make_path(path);
    rig_init(&rig, &(struct rig_options){.budget_pages = 17, .is_sim = true, .trace_path = path});
    model = prepare(&rig);
    RIG_OK(&rig,
           capu_zero(rig.context, step_malloc(&rig, PAGES(2)), 0)); /* untouched, persistent */
    for (size_t i = 0; i < 2; i++) {
        step(&rig, model.w, model.a, model.b);
    }
    /* What happens after the iteration, but before the trace is written, is not part of it. */
    RIG_OK(&rig, capu_free(rig.context, model.a));
    RIG_OK(&rig, capu_zero(rig.context, step_malloc(&rig, PAGES(5)), 0));
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_flush(rig.context));
    RIG_OK(&rig, capu_report_get(rig.context, &report));
    read_trace(path, &trace, &trace_index);
    ck_assert_str_eq(trace_text(&trace, trace.name), "train");
    ck_assert_uint_eq(trace.op_count, 3);
    ck_assert_uint_eq(trace.total_ns, 7000);
    ck_assert_uint_eq(trace_index.peak_bytes, report.live_peak_bytes);
    ck_assert_uint_eq(report.live_peak_bytes, PAGES(12));
    ck_assert_uint_eq(trace.tensors[trace.tensor_count - 2].bytes, PAGES(1)); /* what is fixed */
    ck_assert_uint_eq(trace.tensors[trace.tensor_count - 1].bytes, PAGES(2));
    ck_assert(trace.tensors[0].persistent && !trace.tensors[1].persistent);
    ck_assert_uint_eq(trace.tensors[0].kind, CAPU_PARAMETER);
    ck_assert_str_eq(trace_tensor_name(&trace, 0), "w");
    ck_assert_str_eq(trace_op_name(&trace, 2), "backward");
    ck_assert_str_eq(trace_text(&trace, trace.ops[2].segment), "block");
    ck_assert_uint_eq(trace.ops[2].update_count, 1);
    ck_assert(trace.ops[0].replayable && !trace.ops[2].replayable);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    unlink(path);
    rig_finish(&rig);
}
END_TEST

/* An untidy program: it describes few tensors, frees inside the step, and splits and zeroes tensors
   between ops. */
START_TEST(the_trace_of_an_untidy_program_is_valid)
{
    char path[64];
    struct rig rig;
    capu_report report = CAPU_REPORT_INIT;
    struct trace trace;
    struct trace_index trace_index;
    unsigned char *held;

    make_path(path);
    rig_init(&rig, &(struct rig_options){.budget_pages = 40, .trace_path = path});
    held = step_malloc(&rig, PAGES(2));
    step_set(&rig, held, PAGES(2), 1);
    for (size_t i = 0; i < 2; i++) {
        unsigned char *tensors[4];
        unsigned char byte;

        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        for (size_t k = 0; k < 4; k++) {
            tensors[k] = step_malloc(&rig, k == 3 ? 100 : PAGES(3));
            step_set(&rig, tensors[k], 100, 1);
            step_bump(&rig, "bump", tensors[k], 100);
            RIG_OK(&rig, capu_free(rig.context, tensors[k]));
        }
        tensors[0] = step_tensor(&rig, "act", CAPU_ACTIVATION, 4);
        RIG_OK(&rig, capu_zero(rig.context, tensors[0], 0));
        RIG_OK(&rig, capu_download(rig.context, &byte, tensors[0], 1, 0));
        step_bump(&rig, "accumulate", tensors[0], PAGES(4));
        RIG_OK(&rig, capu_split(rig.context, tensors[0] + 100, PAGES(2)));
        step_bump(&rig, "parts", tensors[0], PAGES(4));
        step_bump(&rig, "held", held, PAGES(2));
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_flush(rig.context));
    RIG_OK(&rig, capu_report_get(rig.context, &report));
    read_trace(path, &trace, &trace_index);
    ck_assert_uint_eq(trace_index.peak_bytes, report.live_peak_bytes);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
    unlink(path);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_tensor_freed_in_the_step_lives_from_first_use_to_last)
{
    struct rig rig;
    capu_report report = CAPU_REPORT_INIT;

    rig_init(&rig, &(struct rig_options){.budget_pages = 40});
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    for (size_t i = 0; i < 6; i++) {
        unsigned char *tensor = step_malloc(&rig, PAGES(3));

        step_set(&rig, tensor, PAGES(3), 1);
        RIG_OK(&rig, capu_free(rig.context, tensor));
    }
    RIG_OK(&rig, capu_iteration_end(rig.context));
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_report_get(rig.context, &report));
    ck_assert_uint_eq(report.live_peak_bytes, PAGES(3));
    rig_finish(&rig);
}
END_TEST

START_TEST(a_full_disk_does_not_stop_training)
{
    struct rig rig;
    struct model model;

    rig_init(&rig, &(struct rig_options){.budget_pages = 7,
                                         .is_sim = true,
                                         .report_path = _i == 0 ? "/dev/full" : NULL,
                                         .trace_path = _i == 1 ? "/dev/full" : NULL});
    model = prepare(&rig);
    for (size_t i = 0; i < 4; i++) {
        step(&rig, model.w, model.a, model.b);
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    STEP_FAILS(&rig, capu_flush(rig.context), CAPU_FILE_FAILED, "'/dev/full': No space");
    step(&rig, model.w, model.a, model.b);
    rig_finish(&rig);
}
END_TEST

/* Passive mode makes no plan, so the plan of an earlier run stays. */
START_TEST(a_plan_file_stays_without_a_plan)
{
    char path[64];
    char kept[16] = "";
    FILE *file;
    struct rig rig;
    struct model model;

    make_path(path);
    file = fopen(path, "w");
    ck_assert(file != NULL && fputs("an old plan", file) >= 0 && fclose(file) == 0);
    rig_init(&rig, &(struct rig_options){.budget_pages = 7, .is_sim = true, .plan_path = path});
    model = prepare(&rig);
    step(&rig, model.w, model.a, model.b);
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_flush(rig.context));
    rig_finish(&rig);
    file = fopen(path, "r");
    ck_assert(file != NULL && fgets(kept, sizeof(kept), file) != NULL && fclose(file) == 0);
    ck_assert_str_eq(kept, "an old plan");
    unlink(path);
}
END_TEST

/* The reason why there is no plan names an op. A name that is too long must be cut between two
   characters, or the line of the report could not be written. */
START_TEST(a_cut_name_is_still_valid_utf8)
{
    char path[64];
    char name[200] = "a";
    capu_report report = CAPU_REPORT_INIT;
    unsigned char *large;
    struct rig rig;

    while (strlen(name) + 2 < sizeof(name)) {
        strcat(name, "\xc3\xa9");
    }
    make_path(path);
    rig_init(&rig, &(struct rig_options){.budget_pages = 8,
                                         .mode = CAPU_MODE_GUIDED,
                                         .wait_for_plan = true,
                                         .report_path = path});
    large = step_malloc(&rig, PAGES(8));
    for (size_t i = 0; i < 2; i++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        if (i == 0) {
            void *list[1] = {large};

            RIG_OK(&rig, step_touch(&rig, name, CAPU_WRITE, 1, list));
            step_malloc(&rig, 100); /* now nothing is left for such an op */
        }
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    RIG_OK(&rig, capu_synchronize(rig.context));
    RIG_OK(&rig, capu_report_get(rig.context, &report));
    ck_assert_ptr_nonnull(strstr(report.plan_error, "needs them all at once"));
    RIG_OK(&rig, capu_flush(rig.context));
    rig_finish(&rig);
    unlink(path);
}
END_TEST

/* The last line of a report file. */
static json_t *last_line(const char *path)
{
    FILE *file = fopen(path, "r");
    json_t *line = NULL;
    json_t *next;

    ck_assert_ptr_nonnull(file);
    while ((next = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        json_decref(line);
        line = next;
    }
    fclose(file);
    return line;
}

/* A planner that only swaps cannot follow hints to recompute; no planner can keep all layers; hints
   to swap are followed. */
START_TEST(hints_that_a_plan_does_not_follow_are_reported)
{
    static const struct {
        uint32_t hint;
        const char *text; /* NULL: it is followed */
        const char *because;
    } cases[] = {{CAPU_HINT_RECOMPUTE, "recompute", "the best plan that was found"},
                 {CAPU_HINT_KEEP, "keep", "the budget has no room for it all the time"},
                 {CAPU_HINT_SWAP, NULL, NULL}};
    char path[64];
    struct report report = {0};
    struct net net;
    json_t *line;
    json_t *eviction;
    uint64_t ignored = 0;
    size_t i;

    make_path(path);
    net_init(&net, (struct rig_options){.planner = "swap", .report_path = path});
    for (i = 0; i <= NET_LAYERS; i++) {
        RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.activations[i], .name = "layer",
                                       .kind = CAPU_ACTIVATION, .hint = cases[_i].hint));
    }
    for (i = 0; i < 3; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    RIG_OK(&net.rig, capu_flush(net.rig.context));
    line = last_line(path);
    json_array_foreach(json_object_get(line, "evictions"), i, eviction)
    {
        const char *hint = json_string_value(json_object_get(eviction, "ignored_hint"));

        if (hint != NULL) {
            ck_assert_str_eq(hint, cases[_i].text);
            ck_assert_str_eq(json_string_value(json_object_get(eviction, "tensor")), "layer");
            ck_assert_ptr_nonnull(
                strstr(json_string_value(json_object_get(eviction, "ignored_because")),
                       cases[_i].because));
            ignored++;
        }
    }
    ck_assert_uint_eq(report.hints_ignored, ignored);
    ck_assert_int_eq(ignored > 0, cases[_i].text != NULL);
    json_decref(line);
    unlink(path);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api reports");
    TCase *cases = tcase_create("reports");

    tcase_add_test(cases, counters_match_values_computed_by_hand);
    tcase_add_test(cases, the_floor_is_split_into_operands_edges_and_slabs);
    tcase_add_test(cases, the_json_line_matches_the_struct);
    tcase_add_test(cases, the_table_names_every_counter);
    tcase_add_test(cases, names_in_the_table_are_escaped);
    tcase_add_test(cases, mode_off_without_files_keeps_no_records);
    tcase_add_test(cases, the_trace_is_valid_and_has_the_same_peak);
    tcase_add_test(cases, the_trace_of_an_untidy_program_is_valid);
    tcase_add_test(cases, a_tensor_freed_in_the_step_lives_from_first_use_to_last);
    tcase_add_test(cases, a_plan_file_stays_without_a_plan);
    tcase_add_test(cases, a_cut_name_is_still_valid_utf8);
    tcase_add_loop_test(cases, hints_that_a_plan_does_not_follow_are_reported, 0, 3);
    tcase_add_loop_test(cases, a_full_disk_does_not_stop_training, 0, 2);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
