/* Timelines in the report file: every timed iteration has one that agrees with its report, in
 * passive and in guided mode; without the option there is none, and nothing is made for one. */
#include "tests/api/net.h"

#include "tests/support/adaptor_fault.h"
#include "tools/view/view.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ITERATIONS = 14 };

static char path[] = "/tmp/capuchin-timelines-XXXXXX";
static struct report reports[ITERATIONS];
static struct view views[ITERATIONS]; /* of the iterations that have one */
static unsigned view_count;

static void make_file(void)
{
    ck_assert_int_ge(close(mkstemp(path)), 0);
}

static void remove_file(void)
{
    unlink(path);
    for (unsigned i = 0; i < view_count; i++) {
        view_finish(&views[i]);
    }
    view_count = 0;
}

/* Reads all timelines of the file, and checks that each comes after the report of its iteration. */
static void read_views(void)
{
    FILE *file = fopen(path, "r");
    struct error_text error = {""};
    char *line = NULL;
    size_t room = 0;
    uint64_t reported = 0;

    ck_assert_ptr_nonnull(file);
    for (size_t number = 1; getline(&line, &room, file) > 0; number++) {
        if (strstr(line, "\"type\":\"timeline\"") == NULL) {
            reported++;
            continue;
        }
        ck_assert_uint_lt(view_count, ITERATIONS);
        ck_assert_msg(view_of_timeline(&views[view_count], path, number, line, strlen(line),
                                       &error) == CAPU_OK,
                      "%s", error.text);
        ck_assert_uint_le(views[view_count++].iteration, reported);
    }
    free(line);
    fclose(file);
}

static void compare(const struct view *view, const struct report *report)
{
    ck_assert_int_eq(view->source, VIEW_MEASURED);
    ck_assert_uint_eq(view->iteration, report->iteration);
    ck_assert_uint_eq(view->time_ns, report->time_ns);
    ck_assert_uint_eq(view->ideal_ns, report->compute_ns);
    ck_assert_uint_eq(view->stall_ns, report->stall_ns);
    ck_assert_uint_eq(view->replay_ns, report->recompute_ns);
    ck_assert_uint_eq(view->out_bytes, report->evicted_bytes);
    ck_assert_uint_eq(view->in_bytes, report->prefetched_bytes);
    ck_assert_uint_eq(view->number_count, report->op_count);
    ck_assert_uint_eq(view->op_count, report->op_count + report->replay_count);
    ck_assert_uint_eq(view->budget_bytes, report->budget_bytes);
    ck_assert_uint_eq(view->peak_bytes, report->peak_bytes);
    ck_assert_str_eq(view->trace_name, "train");
    for (uint32_t i = 0; i < view->copy_count; i++) {
        const struct view_copy *copy = &view->copies[i];

        ck_assert_int_le(copy->begin_ns, copy->end_ns);
        ck_assert_uint_ne(copy->move, VIEW_NONE);
    }
}

static void compare_all(uint64_t count)
{
    unsigned next = 0;

    read_views();
    for (uint64_t i = 0; i < count; i++) {
        if (reports[i].timed != 0) {
            ck_assert_uint_lt(next, view_count);
            compare(&views[next++], &reports[i]);
        }
    }
    ck_assert_uint_eq(next, view_count);
    ck_assert_uint_gt(next, 0);
}

START_TEST(a_passive_iteration_has_a_timeline)
{
    struct net net;
    uint64_t copies = 0;

    net_init(&net, (struct rig_options){.report_path = path, .timeline = true});
    reports[0] = net_train(&net, "train"); /* the first one has no plan yet */
    ck_assert_uint_eq(reports[0].mode, CAPU_MODE_PASSIVE);
    RIG_OK(&net.rig, capu_flush(net.rig.context));
    compare_all(1);
    for (uint32_t i = 0; i < views[0].copy_count; i++) {
        copies += views[0].copies[i].direction == VIEW_IN;
    }
    ck_assert_uint_gt(copies, 0);
    rig_finish(&net.rig);
}
END_TEST

START_TEST(guided_iterations_have_timelines)
{
    struct net net;

    net_init(&net, (struct rig_options){.report_path = path,
                                        .timeline = true,
                                        .places_nothing = _i == 1,
                                        .link_bytes_per_s = UINT64_C(1) << 28});
    for (int i = 0; i < ITERATIONS; i++) {
        reports[i] = net_train(&net, "train");
    }
    RIG_OK(&net.rig, capu_flush(net.rig.context));
    compare_all(ITERATIONS);
    rig_finish(&net.rig);
}
END_TEST

/* The copies of an iteration may take longer than the iterations after it. */
START_TEST(iterations_that_are_not_waited_for)
{
    struct net net;
    struct report report = {0};

    net_init(&net, (struct rig_options){.report_path = path,
                                        .timeline = true,
                                        .sample_every = 1,
                                        .link_bytes_per_s = UINT64_C(1) << 26});
    for (int i = 0; i < ITERATIONS; i++) {
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        net_backward(&net, NET_LAYERS);
        RIG_OK(&net.rig, capu_iteration_end(net.rig.context));
    }
    RIG_OK(&net.rig, capu_synchronize(net.rig.context));
    RIG_OK(&net.rig, capu_flush(net.rig.context));
    report = rig_report(&net.rig);
    read_views();
    ck_assert_uint_eq(view_count, ITERATIONS);
    for (unsigned i = 0; i < view_count; i++) {
        ck_assert_uint_eq(views[i].iteration, i + 1);
    }
    compare(&views[ITERATIONS - 1], &report);
    rig_finish(&net.rig);
}
END_TEST

START_TEST(without_the_option_nothing_is_made)
{
    struct net net;

    net_init(&net, (struct rig_options){.report_path = path});
    for (int i = 0; i < 3; i++) {
        net_train(&net, "train");
    }
    RIG_OK(&net.rig, capu_flush(net.rig.context));
    read_views();
    ck_assert_uint_eq(view_count, 0);
    for (size_t i = 0; i < TIMELINE_LOG_COUNT; i++) {
        const struct timeline_log *log = &net.rig.context->records.timeline_logs.logs[i];

        ck_assert(log->begin == NULL && log->marks == NULL && log->tensors == NULL &&
                  log->events == NULL);
    }
    rig_finish(&net.rig);
}
END_TEST

/* A timeline that cannot be made costs its line, and capu_flush says so. Training goes on, and so
   do the timelines after it. */
START_TEST(a_failure_costs_one_timeline)
{
    struct adaptor_fault_plan once = {
        .slot = _i == 0 ? ADAPTOR_EVENT_CREATE : ADAPTOR_EVENT_RECORD,
        .call = 1,
        .status = CAPU_DEVICE_FAILED,
    };
    capu_context *context;
    struct net net;

    net_init(&net,
             (struct rig_options){
                 .report_path = path, .timeline = true, .sample_every = 1, .has_faults = true});
    context = net.rig.context;
    net_begin(&net, "train");
    adaptor_fault_arm(net.rig.faults, &once);
    timeline_log_copy_begin(&context->records, tensors_find(&context->memory.tensors, net.weights),
                            true);
    ck_assert_uint_eq(adaptor_fault_hits(net.rig.faults), 1);
    net_forward(&net, NET_LAYERS);
    net_backward(&net, NET_LAYERS);
    net_end(&net);
    for (int i = 0; i < 3; i++) {
        net_train(&net, "train");
    }
    STEP_FAILS(&net.rig, capu_flush(context), CAPU_FILE_FAILED, "cannot be timed");
    read_views();
    ck_assert_uint_eq(view_count, 3);
    ck_assert_uint_eq(views[0].iteration, 2);
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api timelines");
    TCase *cases = tcase_create("timelines");

    tcase_add_checked_fixture(cases, make_file, remove_file);
    tcase_add_test(cases, a_passive_iteration_has_a_timeline);
    tcase_add_loop_test(cases, guided_iterations_have_timelines, 0, 2);
    tcase_add_test(cases, iterations_that_are_not_waited_for);
    tcase_add_test(cases, without_the_option_nothing_is_made);
    tcase_add_loop_test(cases, a_failure_costs_one_timeline, 0, 2);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
