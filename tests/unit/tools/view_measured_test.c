/* Measured views. What the runtime records on the simulated device is what the simulation of its
 * plan says, to the nanosecond: every op, replay and copy, and where each tensor is. And lines that
 * are not as they should be are rejected by name. */
#include "tools/view/view.h"

#include "models/driver.h"

#include "tests/support/effort.h"
#include "tests/support/random_trace.h"
#include "tests/support/suite.h"

#include "capuchin/op.h"
#include "policy/format/string_buffer.h"
#include "policy/search/planner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEEDS 120
#define ITERATIONS 7
#define PAGE ((uint64_t)65536)
#define SCALE 4096

static char what[128];
static unsigned compared;
static unsigned with_copies;
static unsigned with_replays;

/* The last line of the file; the caller frees it. */
static char *last_line(const char *path, size_t *number)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    char *last = NULL;
    size_t room = 0;

    ck_assert_ptr_nonnull(file);
    for (*number = 0; getline(&line, &room, file) > 0; ++*number) {
        free(last);
        last = strdup(line);
    }
    free(line);
    fclose(file);
    ck_assert_ptr_nonnull(last);
    return last;
}

static void read_view(struct view *view, const char *path)
{
    struct error_text error = {""};
    size_t number;
    char *line = last_line(path, &number);

    ck_assert_msg(view_of_timeline(view, path, number, line, strlen(line), &error) == CAPU_OK,
                  "%s: %s", what, error.text);
    free(line);
}

static void compare_ops(const struct view *planned, const struct view *measured)
{
    ck_assert_msg(planned->op_count == measured->op_count, "%s: %u ops, planned %u", what,
                  measured->op_count, planned->op_count);
    for (uint32_t i = 0; i < planned->op_count; i++) {
        const struct view_op *p = &planned->ops[i];
        const struct view_op *m = &measured->ops[i];

        ck_assert_msg(p->number == m->number && p->is_replay == m->is_replay &&
                          p->before == m->before && strcmp(p->name, m->name) == 0,
                      "%s: %u is %s %u before %u, planned %s %u before %u", what, i, m->name,
                      m->number, m->before, p->name, p->number, p->before);
        ck_assert_msg(
            p->begin_ns == m->begin_ns && p->end_ns == m->end_ns && p->wait_ns == m->wait_ns,
            "%s: %s runs from %lld to %lld after %lld, planned %lld to %lld after %lld", what,
            m->name, (long long)m->begin_ns, (long long)m->end_ns, (long long)m->wait_ns,
            (long long)p->begin_ns, (long long)p->end_ns, (long long)p->wait_ns);
        with_replays += p->is_replay;
    }
}

static void compare_copies(const struct view *planned, const struct view *measured)
{
    ck_assert_msg(planned->copy_count == measured->copy_count, "%s: %u copies, planned %u", what,
                  measured->copy_count, planned->copy_count);
    for (uint32_t i = 0; i < planned->copy_count; i++) {
        const struct view_copy *p = &planned->copies[i];
        const struct view_copy *m = &measured->copies[i];

        ck_assert_msg(p->direction == m->direction && p->begin_ns == m->begin_ns &&
                          p->end_ns == m->end_ns && p->bytes == m->bytes && p->issue == m->issue,
                      "%s: copy %u (%s) from %lld to %lld before %u, planned (%s) %lld to %lld "
                      "before %u",
                      what, i, measured->tensors[m->tensor].name, (long long)m->begin_ns,
                      (long long)m->end_ns, m->issue, planned->tensors[p->tensor].name,
                      (long long)p->begin_ns, (long long)p->end_ns, p->issue);
        ck_assert_str_eq(planned->tensors[p->tensor].name, measured->tensors[m->tensor].name);
    }
    with_copies += planned->copy_count > 0;
}

static const struct view_tensor *find(const struct view *view, const char *name)
{
    for (uint32_t t = 0; t < view->tensor_count; t++) {
        if (strcmp(view->tensors[t].name, name) == 0) {
            return &view->tensors[t];
        }
    }
    return NULL;
}

static bool is_named(const struct trace *trace, uint32_t tensor)
{
    for (uint32_t i = 0; i < trace->operand_count; i++) {
        if (trace->operands[i] == tensor) {
            return true;
        }
    }
    return false;
}

static void compare_stays(const struct trace *trace, const struct view *planned,
                          const struct view *measured)
{
    for (uint32_t t = 0; t < planned->tensor_count; t++) {
        const struct view_tensor *p = &planned->tensors[t];
        const struct view_tensor *m = find(measured, p->name);

        if (p->held_bytes == 0 || !is_named(trace, t)) {
            continue;
        }
        ck_assert_msg(m != NULL && m->held_bytes == p->held_bytes, "%s: %s", what, p->name);
        ck_assert_msg(m->stay_count == p->stay_count, "%s: %s has %u stays, planned %u", what,
                      p->name, m->stay_count, p->stay_count);
        for (uint32_t i = 0; i < p->stay_count; i++) {
            const struct view_stay *ps = &planned->stays[p->first_stay + i];
            const struct view_stay *ms = &measured->stays[m->first_stay + i];

            ck_assert_msg(
                ps->state == ms->state && ps->begin_ns == ms->begin_ns && ps->end_ns == ms->end_ns,
                "%s: %s is %s from %lld to %lld, planned %s from %lld to %lld", what, p->name,
                view_state_name(ms->state), (long long)ms->begin_ns, (long long)ms->end_ns,
                view_state_name(ps->state), (long long)ps->begin_ns, (long long)ps->end_ns);
        }
    }
}

static void compare_moves(const struct view *planned, const struct view *measured)
{
    ck_assert_msg(planned->move_count == measured->move_count, "%s: %u moves, planned %u", what,
                  measured->move_count, planned->move_count);
    for (uint32_t i = 0; i < planned->move_count; i++) {
        const struct view_move *p = &planned->moves[i];
        const struct view_move *m = &measured->moves[i];

        char texts[2][160];
        const struct view_move *moves[2] = {p, m};

        for (size_t k = 0; k < 2; k++) {
            snprintf(texts[k], sizeof(texts[k]),
                     "%s, copies %d and %d, replay %d, in-trigger %d, back at %d, waited %llu",
                     view_method_name(moves[k]->method), (int)moves[k]->copy_out,
                     (int)moves[k]->copy_in, (int)moves[k]->replay, (int)moves[k]->in_trigger,
                     (int)moves[k]->back_op, (unsigned long long)moves[k]->wait_ns);
        }
        ck_assert_msg(strcmp(texts[0], texts[1]) == 0, "%s: %s left by %s, planned %s", what,
                      planned->tensors[p->tensor].name, texts[1], texts[0]);
    }
}

static void compare_views(const struct trace *trace, const struct view *planned,
                          const struct view *measured)
{
    ck_assert_int_eq(measured->source, VIEW_MEASURED);
    ck_assert_uint_eq(measured->iteration, ITERATIONS);
    ck_assert_msg(planned->time_ns == measured->time_ns, "%s: %llu ns, planned %llu", what,
                  (unsigned long long)measured->time_ns, (unsigned long long)planned->time_ns);
    compare_ops(planned, measured);
    compare_copies(planned, measured);
    compare_moves(planned, measured);
    compare_stays(trace, planned, measured);
    ck_assert(planned->stall_ns == measured->stall_ns &&
              planned->replay_ns == measured->replay_ns &&
              planned->out_bytes == measured->out_bytes && planned->in_bytes == measured->in_bytes);
    compared++;
}

/* Runs iterations on the simulated device, and compares the last one with its plan. */
static void run(const struct trace_index *trace_index, struct driver_options *options)
{
    char report_path[] = "/tmp/capuchin-report-XXXXXX";
    char plan_path[] = "/tmp/capuchin-plan-XXXXXX";
    struct error_text error = {""};
    struct driver *driver = NULL;
    struct report reports[ITERATIONS];
    struct plan plan;
    struct view planned;
    struct view measured;
    capu_status status;

    ck_assert_int_ge(close(mkstemp(report_path)), 0);
    ck_assert_int_ge(close(mkstemp(plan_path)), 0);
    options->report_path = report_path;
    options->plan_path = plan_path;
    options->mode = CAPU_MODE_GUIDED;
    options->effort = EFFORT_QUICK;
    options->has_timelines = true;
    status = driver_create(trace_index, options, &driver, &error);
    for (unsigned i = 0; i < ITERATIONS && status == CAPU_OK; i++) {
        status = driver_iterate(driver, &error);
    }
    ck_assert_msg(status == CAPU_OK || status == CAPU_OVER_BUDGET, "%s: %s", what, error.text);
    if (status == CAPU_OK) {
        ck_assert_int_eq(driver_settle(driver, &error), CAPU_OK);
        ck_assert_int_eq(driver_reports(driver, reports, ITERATIONS, &error), CAPU_OK);
        read_view(&measured, report_path);
        if (driver_plan(driver, &plan, &error) == CAPU_OK) {
            ck_assert_int_eq(view_of_plan(&planned, trace_index, &plan, options->machine, &error),
                             CAPU_OK);
            if (plan.place_count > 0 || plan.action_count == 0) {
                compare_views(trace_index->trace, &planned, &measured);
            }
            view_finish(&planned);
            plan_finish(&plan);
        }
        view_finish(&measured);
    }
    driver_destroy(driver);
    unlink(report_path);
    unlink(plan_path);
}

START_TEST(measured_as_planned)
{
    uint64_t count = effort_share(SEEDS);

    for (uint64_t seed = 1; seed <= count; seed++) {
        struct error_text error = {""};
        struct trace trace;
        struct trace_index trace_index;
        struct driver_options options = {0};
        uint64_t state = seed + 77;

        random_trace(&trace, seed, 4 + (uint32_t)random_below(&state, 60));
        for (uint32_t t = 0; t < trace.tensor_count; t++) {
            trace.tensors[t].bytes *= SCALE;
        }
        trace.total_bytes *= SCALE;
        trace.machine.d2h_bytes_per_s *= SCALE;
        trace.machine.h2d_bytes_per_s *= SCALE;
        trace.machine.copy_latency_ns += 1;
        ck_assert_int_eq(trace_index_init(&trace_index, &trace, PAGE, &error), CAPU_OK);
        options.slab_bytes = 2;
        options.machine = &trace.machine;
        options.budget_bytes =
            trace_index.floor_bytes +
            random_below(&state, trace_index.peak_bytes - trace_index.floor_bytes + 8 * PAGE);
        snprintf(what, sizeof(what), "seed %llu at %llu of %llu", (unsigned long long)seed,
                 (unsigned long long)options.budget_bytes,
                 (unsigned long long)trace_index.peak_bytes);
        run(&trace_index, &options);
        trace_index_finish(&trace_index);
        trace_finish(&trace);
    }
    printf("%u compared, %u with copies, %u replays\n", compared, with_copies, with_replays);
    ck_assert_uint_gt(compared, 0);
    if (count >= 10) {
        ck_assert(with_copies >= count / 4 && with_replays > 0);
    }
}
END_TEST

#define HEAD                                                                           \
    "\"iteration\":3,\"label\":\"train\",\"mode\":\"guided\",\"time_ns\":100,"         \
    "\"budget_bytes\":8192,\"peak_bytes\":8192,\"fixed_bytes\":0,\"page_bytes\":4096," \
    "\"d2h_bytes_per_s\":0,\"h2d_bytes_per_s\":0,\"copy_latency_ns\":0,"
#define BEGIN "{\"type\":\"timeline\",\"version\":1," HEAD
#define TENSORS                                                           \
    "\"tensors\":[{\"name\":\"<b>&\",\"bytes\":4000,\"held_bytes\":4096," \
    "\"kind\":\"activation\",\"persistent\":false,\"start\":\"none\"}],"
#define OP                                                                                      \
    "{\"name\":\"f\",\"begin_ns\":10,\"end_ns\":20,\"wait_ns\":4,\"waited_ns\":3,\"reads\":[]," \
    "\"writes\":[0],"                                                                           \
    "\"updates\":[]}"
#define OPS "\"ops\":[" OP "],"

static capu_status read_text(struct view *view, const char *text, struct error_text *error)
{
    error->text[0] = '\0';
    return view_of_timeline(view, "r.jsonl", 7, text, strlen(text), error);
}

/* Whatever is wrong, the message names the file and the line. */
START_TEST(bad_lines_are_rejected)
{
    static const struct {
        const char *text;
        const char *named;
    } cases[] = {
        {"{\"type\":\"report\"}", "not a timeline"},
        {"{\"type\":\"timeline\",\"version\":2," HEAD "\"ops\":[]}", "version"},
        {BEGIN "\"tensors\":[],\"ops\":[],\"eve", "r.jsonl:7"},
        {BEGIN OPS "\"events\":[]}", "no list of tensors"},
        {BEGIN TENSORS "\"events\":[]}", "no list of ops"},
        {BEGIN "\"tensors\":[],\"ops\":[]}", "no list of events"},
        {BEGIN "\"tensors\":[7],\"ops\":[],\"events\":[]}", "name"},
        {BEGIN "\"tensors\":[]," OPS "\"events\":[]}", "tensor 0"},
        {BEGIN "\"tensors\":[{\"name\":\"a\\u0000b\"}]," OPS "\"events\":[]}", "r.jsonl:7"},
        {BEGIN TENSORS "\"ops\":[{\"name\":\"f\",\"begin_ns\":10,\"end_ns\":20,\"wait_ns\":0,"
                       "\"waited_ns\":11}],\"events\":[]}",
         "waited_ns"},
        {BEGIN TENSORS OPS "\"events\":[{\"kind\":\"melt\",\"tensor\":0,\"before\":0}]}",
         "event 0"},
        {BEGIN TENSORS OPS "\"events\":[{\"kind\":\"take\",\"tensor\":1,\"before\":0}]}",
         "event 0"},
        {BEGIN TENSORS OPS "\"events\":[{\"kind\":\"take\",\"tensor\":0,\"before\":2}]}", "before"},
        {BEGIN TENSORS OPS "\"events\":[{\"kind\":\"end\",\"tensor\":0,\"before\":1},"
                           "{\"kind\":\"take\",\"tensor\":0,\"before\":0}]}",
         "event 1"},
        {BEGIN TENSORS OPS "\"events\":[{\"kind\":\"out\",\"tensor\":0,\"before\":1,"
                           "\"begin_ns\":9,\"end_ns\":8}]}",
         "event 0"},
        {BEGIN TENSORS OPS "\"events\":[{\"kind\":\"evict\",\"tensor\":0,\"before\":1,"
                           "\"method\":\"magic\"}]}",
         "method"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error_text error;
        struct view view;

        ck_assert_msg(read_text(&view, cases[i].text, &error) == CAPU_FILE_FAILED, "case %zu: %s",
                      i, error.text);
        ck_assert_msg(strstr(error.text, "r.jsonl:7") != NULL &&
                          strstr(error.text, cases[i].named) != NULL,
                      "case %zu: %s", i, error.text);
        ck_assert_ptr_null(view.ops);
    }
}
END_TEST

#define EVENTS                                                                                    \
    "\"events\":[{\"kind\":\"take\",\"tensor\":0,\"before\":0},{\"kind\":\"out\",\"tensor\":0,"   \
    "\"before\":1,\"begin_ns\":21,\"end_ns\":130},{\"kind\":\"evict\",\"tensor\":0,\"before\":1," \
    "\"method\":\"swap\"},{\"kind\":\"in\",\"tensor\":0,\"before\":1,\"begin_ns\":131,"           \
    "\"end_ns\":140},{\"kind\":\"replay\",\"op\":0,\"before\":1,\"begin_ns\":141,"                \
    "\"end_ns\":150,\"wait_ns\":0},{\"kind\":\"end\",\"tensor\":0,\"before\":1}]}"

/* What is accepted can be shown: every index is inside its list, and stays are in order. */
static void check_indices(const struct view *view)
{
    for (uint32_t i = 0; i < view->op_count; i++) {
        const struct view_op *op = &view->ops[i];

        ck_assert_uint_lt(op->number, view->number_count);
        ck_assert_int_le(op->begin_ns, op->end_ns);
        ck_assert_uint_le(op->waited_ns, (uint64_t)(op->end_ns - op->begin_ns));
    }
    for (uint32_t i = 0; i < view->copy_count; i++) {
        ck_assert_uint_lt(view->copies[i].tensor, view->tensor_count);
        ck_assert_uint_lt(view->copies[i].move, view->move_count);
    }
    for (uint32_t i = 0; i < view->move_count; i++) {
        const struct view_move *move = &view->moves[i];

        ck_assert_uint_lt(move->tensor, view->tensor_count);
        ck_assert(move->copy_in == VIEW_NONE || move->copy_in < view->copy_count);
        ck_assert(move->copy_out == VIEW_NONE || move->copy_out < view->copy_count);
        ck_assert(move->replay == VIEW_NONE || move->replay < view->op_count);
        ck_assert(move->back_op == VIEW_NONE || move->back_op < view->number_count);
    }
    for (uint32_t i = 0; i < view->stay_count; i++) {
        const struct view_stay *stay = &view->stays[i];

        ck_assert_uint_lt(stay->tensor, view->tensor_count);
        ck_assert_int_lt(stay->begin_ns, stay->end_ns);
    }
}

/* Lines that were cut off or damaged are rejected, or read as something that can be shown. */
START_TEST(damaged_lines_do_no_harm)
{
    static const char whole[] = BEGIN TENSORS OPS EVENTS;
    static const char bytes[] = "0123456789-,:[]{}\"aeu\\";
    uint64_t state = 7;
    uint64_t count = effort_share(40000);
    unsigned accepted = 0;
    struct error_text error;
    struct view view;

    ck_assert_msg(read_text(&view, whole, &error) == CAPU_OK, "%s", error.text);
    check_indices(&view);
    view_finish(&view);
    for (size_t length = 0; length + 1 < sizeof(whole); length++) {
        error.text[0] = '\0';
        ck_assert_int_eq(view_of_timeline(&view, "r.jsonl", 7, whole, length, &error),
                         CAPU_FILE_FAILED);
    }
    for (uint64_t i = 0; i < count; i++) {
        char text[sizeof(whole)];
        capu_status status;

        memcpy(text, whole, sizeof(whole));
        for (uint64_t k = 0; k <= random_below(&state, 3); k++) {
            text[random_below(&state, sizeof(whole) - 1)] =
                bytes[random_below(&state, sizeof(bytes) - 1)];
        }
        status = read_text(&view, text, &error);
        if (status == CAPU_OK) {
            check_indices(&view);
            view_finish(&view);
            accepted++;
        } else {
            ck_assert_msg(error.text[0] != '\0', "%s", text);
        }
    }
    ck_assert_uint_gt(accepted, 0);
    ck_assert_uint_lt(accepted, count);
}
END_TEST

START_TEST(a_hand_made_line)
{
    struct error_text error;
    struct view view;

    ck_assert_int_eq(
        read_text(&view,
                  BEGIN TENSORS OPS
                  "\"events\":[{\"kind\":\"take\",\"tensor\":0,\"before\":0},"
                  "{\"kind\":\"out\",\"tensor\":0,\"before\":1,\"begin_ns\":21,\"end_ns\":130},"
                  "{\"kind\":\"evict\",\"tensor\":0,\"before\":1,\"method\":\"swap\"}]}",
                  &error),
        CAPU_OK);
    ck_assert_uint_eq(view.iteration, 3);
    ck_assert_str_eq(view.tensors[0].name, "<b>&");
    ck_assert_uint_eq(view.tensors[0].stay_count, 2);
    ck_assert_int_eq(view.stays[0].begin_ns, 10);
    ck_assert_int_eq(view.stays[0].end_ns, 21);
    ck_assert_int_eq(view.stays[1].state, VIEW_LEAVING);
    ck_assert_int_eq(view.stays[1].end_ns, 100); /* of the iteration */
    ck_assert_int_eq(view.copies[0].end_ns, 130);
    ck_assert_int_eq(view.ops[0].wait, VIEW_WAIT_UNKNOWN);
    ck_assert_uint_eq(view.stall_ns, 4);
    /* Waiting for others is no computing, but it happens while the op runs. */
    ck_assert_int_eq(view.ops[0].end_ns, 20);
    ck_assert_uint_eq(view.ops[0].waited_ns, 3);
    ck_assert_uint_eq(view.waited_ns, 3);
    ck_assert_uint_eq(view.ideal_ns, 7);
    ck_assert_uint_eq(view.out_bytes, 4000);
    view_finish(&view);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/view_measured");
    TCase *tests = tcase_create("measured");

    tcase_add_test(tests, measured_as_planned);
    tcase_add_test(tests, bad_lines_are_rejected);
    tcase_add_test(tests, damaged_lines_do_no_harm);
    tcase_add_test(tests, a_hand_made_line);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
