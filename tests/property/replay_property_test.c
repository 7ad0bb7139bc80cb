/*
 * The runtime does what the model says: random traces, and real ones if they are available, run
 * through the runtime on the sim device. In steady state a guided iteration takes the time that the
 * timeline gives its plan, to the nanosecond, maps nothing and does not wait on the host; and the
 * plan is valid for the trace it was made from. A plan without places maps and waits, and takes
 * longer. In a timed iteration, ops, replays and the listed
 * stalls add up to the whole time.
 *
 * A failure names the seed, and TEST_SEED=n runs that seed alone. TEST_TRACES names the folder of
 * the real traces (default: ../shared/traces next to the source).
 */
#include "models/driver.h"
#include "models/zoo.h"
#include "policy/search/planner.h"

#include "tests/support/effort.h"
#include "tests/support/random_trace.h"
#include "tests/support/suite.h"

#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* TSan looks for races with the planner's thread, which are the same whatever is planned. */
#if defined(__SANITIZE_THREAD__)
enum { HAS_NETWORKS = 0 };
#else
enum { HAS_NETWORKS = 1 };
#endif
enum { SEEDS = 400 };
/* The fourth guided iteration is steady. Ops of the first seven are timed, and few after that. */
enum { ITERATIONS = 11, STEADY = 4, TIMED = 7 };

/* The generator's tensors have up to 1000 bytes; sim has no pages below the machine's. */
enum { SCALE = 16, PAGE = 4096 };

#define DEVICE_PAGE ((uint64_t)2 << 20) /* what sim has by default */

static glob_t found;

/* How many were compared, so that a test in which nothing happens fails. */
struct tally {
    unsigned compared;
    unsigned unplaced; /* and so many had a plan without places */
    unsigned with_copies;
    unsigned with_replays;
    unsigned with_returns;   /* before the border */
    unsigned slower;         /* than the ideal */
    unsigned stalled;        /* iterations with stalls */
    unsigned stalled_replay; /* iterations in which replays stalled */
    uint64_t last_ns;
};

struct instance {
    struct trace trace;
    struct trace_index trace_index;
    struct string_buffer expected; /* the plan, if any is */
    char what[160];                /* for messages */
};

/* Does a tensor return before the iteration ends? Nothing but the border follows its prefetch. */
static bool has_returns(const struct trace_index *trace_index, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->action_count; i++) {
        const struct plan_action *action = &plan->actions[i];
        bool is_last = action->kind == ACTION_PREFETCH &&
                       trace_index->op[trace_index->first[action->tensor + 1] - 1] < action->point;

        for (uint32_t j = i + 1; is_last && j < plan->action_count; j++) {
            is_last = plan->actions[j].kind == ACTION_RECOMPUTE ||
                      plan->actions[j].tensor != action->tensor;
        }
        if (is_last && trace_index->trace->tensors[action->tensor].persistent) {
            return true;
        }
    }
    return false;
}

static uint64_t measure(const struct instance *instance, const struct driver *driver,
                        const struct plan *plan, struct tally *tally)
{
    struct error_text error = {""};
    struct timeline timeline;
    uint64_t ns;

    ck_assert_msg(driver_simulate(driver, plan, &timeline, &error) == CAPU_OK, "%s: %s",
                  instance->what, error.text);
    ns = timeline.iteration_ns;
    tally->last_ns = ns;
    tally->compared++;
    tally->with_copies += timeline.evicted_bytes + timeline.prefetched_bytes > 0;
    tally->with_replays += plan->replay_count > 0;
    tally->with_returns += has_returns(&instance->trace_index, plan);
    tally->slower += ns > timeline.ideal_ns;
    timeline_finish(&timeline);
    return ns;
}

static void expect_plan(const struct instance *instance, const struct plan *plan)
{
    struct string_buffer text = {0};

    ck_assert_int_eq(plan_write(plan, &text, NULL), CAPU_OK);
    ck_assert_msg(strcmp(text.data, instance->expected.data) == 0, "%s: made\n%s\nnot\n%s",
                  instance->what, text.data, instance->expected.data);
    string_buffer_finish(&text);
}

/* Iterations under a plan without places follow it to their end, within the budget. */
static void expect_followed(const struct instance *instance, const struct report *reports,
                            struct tally *tally)
{
    for (unsigned i = 0; i < ITERATIONS; i++) {
        const struct report *report = &reports[i];

        ck_assert_msg(report->diverged == 0, "%s: iteration %u diverged at op %llu", instance->what,
                      i + 1, (unsigned long long)report->diverged_at);
        ck_assert_msg(i == 0 || report->mode == CAPU_MODE_GUIDED, "%s: iteration %u has no plan",
                      instance->what, i + 1);
        ck_assert_msg(report->peak_bytes <= report->budget_bytes, "%s: over budget",
                      instance->what);
        ck_assert_msg(i < 2 || report->unplaced != 0 ||
                          (report->map_count == 0 && report->unmap_count == 0),
                      "%s: iteration %u maps, and its plan has places", instance->what, i + 1);
    }
    tally->unplaced++;
}

static bool is_any_unplaced(const struct report *reports)
{
    bool is_unplaced = false;

    for (unsigned i = 0; i < ITERATIONS; i++) {
        is_unplaced = is_unplaced || reports[i].unplaced != 0;
    }
    return is_unplaced;
}

static void compare(const struct instance *instance, struct driver *driver, struct tally *tally)
{
    struct error_text error = {""};
    struct report reports[ITERATIONS];
    struct plan plan;
    uint64_t model_ns;
    unsigned guided = 0;

    ck_assert_int_eq(driver_reports(driver, reports, ITERATIONS, &error), CAPU_OK);
    if (is_any_unplaced(reports)) {
        expect_followed(instance, reports, tally);
        return;
    }
    ck_assert_int_eq(driver_plan(driver, &plan, &error), CAPU_OK);
    model_ns = measure(instance, driver, &plan, tally);
    if (instance->expected.data != NULL) {
        expect_plan(instance, &plan);
    }
    plan_finish(&plan);
    for (unsigned i = 0; i < ITERATIONS; i++) {
        const struct report *report = &reports[i];

        ck_assert_msg(report->diverged == 0, "%s: iteration %u diverged at op %llu", instance->what,
                      i + 1, (unsigned long long)report->diverged_at);
        ck_assert_msg(i == 0 || report->mode == CAPU_MODE_GUIDED, "%s: iteration %u has no plan",
                      instance->what, i + 1);
        ck_assert_msg(report->peak_bytes <= report->budget_bytes, "%s: over budget",
                      instance->what);
        guided += report->mode == CAPU_MODE_GUIDED;
        ck_assert_msg(guided < 2 || (report->map_count == 0 && report->unmap_count == 0 &&
                                     report->host_wait_ns == 0),
                      "%s: iteration %u maps or waits", instance->what, i + 1);
        ck_assert_msg(report->timed == (guided <= TIMED), "%s: iteration %u timed %llu",
                      instance->what, i + 1, (unsigned long long)report->timed);
        if (guided >= STEADY) {
            ck_assert_msg(report->time_ns == model_ns && report->predicted_ns == model_ns,
                          "%s: iteration %u took %llu ns, predicted %llu, the model says %llu",
                          instance->what, i + 1, (unsigned long long)report->time_ns,
                          (unsigned long long)report->predicted_ns, (unsigned long long)model_ns);
        }
    }
}

/* The lines of the report file, of all iterations that were timed. */
static void check_stalls(const struct instance *instance, const char *path, struct tally *tally)
{
    FILE *file = fopen(path, "r");
    json_t *line;

    ck_assert_ptr_nonnull(file);
    while ((line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        json_int_t stall_ns = json_integer_value(json_object_get(line, "stall_ns"));
        json_int_t known_ns = stall_ns + json_integer_value(json_object_get(line, "compute_ns")) +
                              json_integer_value(json_object_get(line, "recompute_ns"));
        json_int_t time_ns = json_integer_value(json_object_get(line, "time_ns"));
        json_int_t sum_ns = 0;
        const json_t *stalls = json_object_get(line, "stalls");
        bool has_replay = false;

        for (size_t i = 0; i < json_array_size(stalls); i++) {
            const json_t *stall = json_array_get(stalls, i);

            sum_ns += json_integer_value(json_object_get(stall, "wait_ns"));
            has_replay = has_replay || json_string_length(json_object_get(stall, "replay")) > 0;
        }
        if (json_integer_value(json_object_get(line, "timed")) != 0) {
            ck_assert_msg(sum_ns == stall_ns, "%s: stalls of %lld ns, and %lld are listed",
                          instance->what, (long long)stall_ns, (long long)sum_ns);
            ck_assert_msg(known_ns == time_ns, "%s: %lld ns, of which %lld are accounted for",
                          instance->what, (long long)time_ns, (long long)known_ns);
        }
        tally->stalled += stall_ns > 0;
        tally->stalled_replay += has_replay;
        json_decref(line);
    }
    fclose(file);
}

/* Runs one instance. Nothing to compare: the runtime found no plan, or the budget is below what it
   can run in. */
static void replay(const struct instance *instance, struct driver_options *options,
                   struct tally *tally)
{
    char report_path[] = "/tmp/capuchin-report-XXXXXX";
    char plan_path[] = "/tmp/capuchin-plan-XXXXXX";
    struct error_text error = {""};
    struct driver *driver = NULL;
    struct plan plan;
    bool has_plan = false;
    capu_status status;

    ck_assert_int_ge(close(mkstemp(report_path)), 0);
    ck_assert_int_ge(close(mkstemp(plan_path)), 0);
    options->report_path = report_path;
    options->plan_path = plan_path;
    options->mode = CAPU_MODE_GUIDED;
    options->effort = EFFORT_QUICK;
    status = driver_create(&instance->trace_index, options, &driver, &error);
    for (unsigned i = 0; i < ITERATIONS && status == CAPU_OK; i++) {
        status = driver_iterate(driver, &error);
    }
    ck_assert_msg(status == CAPU_OK || status == CAPU_OVER_BUDGET, "%s: %s", instance->what,
                  error.text);
    if (status == CAPU_OK) {
        ck_assert_int_eq(driver_settle(driver, &error), CAPU_OK);
        has_plan = driver_plan(driver, &plan, &error) == CAPU_OK;
    }
    if (has_plan) {
        plan_finish(&plan);
        compare(instance, driver, tally);
        check_stalls(instance, report_path, tally);
    }
    driver_destroy(driver);
    ck_assert_int_eq(unlink(report_path), 0);
    ck_assert_int_eq(unlink(plan_path), 0);
}

static uint64_t first_seed(void)
{
    const char *given = getenv("TEST_SEED");

    return given != NULL ? strtoull(given, NULL, 10) : 1;
}

static uint64_t seeds(uint64_t many)
{
    return getenv("TEST_SEED") != NULL ? 1 : effort_share(many);
}

/* Few seeds need not show everything that can happen. */
static bool is_sample_large(void)
{
    return seeds(SEEDS) >= 20;
}

static void make_random(struct instance *instance, uint64_t seed, uint64_t *state)
{
    struct error_text error = {""};
    struct trace *trace = &instance->trace;

    random_trace(trace, seed, 4 + (uint32_t)random_below(state, 60));
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        trace->tensors[t].bytes *= SCALE;
    }
    trace->total_bytes *= SCALE;
    trace->machine.d2h_bytes_per_s *= SCALE;
    trace->machine.h2d_bytes_per_s *= SCALE;
    trace->machine.copy_latency_ns += 1;
    ck_assert_msg(trace_index_init(&instance->trace_index, trace, PAGE, &error) == CAPU_OK, "%s",
                  error.text);
}

static void forget(struct instance *instance)
{
    trace_index_finish(&instance->trace_index);
    trace_finish(&instance->trace);
}

static size_t planner_count(void)
{
    size_t count = 0;

    while (planners[count].name != NULL) {
        count++;
    }
    return count;
}

START_TEST(random_traces_take_the_predicted_time)
{
    struct tally tally = {0};

    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(SEEDS); seed++) {
        uint64_t state = seed + 77;
        struct instance instance = {0};
        struct driver_options options = {0};

        make_random(&instance, seed, &state);
        options.planner = planners[random_below(&state, planner_count())].name;
        options.slab_bytes = random_below(&state, 2) == 0 ? 2 : PAGE / 2;
        options.budget_bytes =
            instance.trace_index.floor_bytes +
            random_below(&state, instance.trace_index.peak_bytes -
                                     instance.trace_index.floor_bytes + 8 * PAGE);
        snprintf(instance.what, sizeof(instance.what), "seed %llu, %s at %llu of %llu",
                 (unsigned long long)seed, options.planner,
                 (unsigned long long)options.budget_bytes,
                 (unsigned long long)instance.trace_index.peak_bytes);
        replay(&instance, &options, &tally);
        forget(&instance);
    }
    printf("%u random traces compared: %u with copies, %u with replays, %u with returns, %u above "
           "ideal; %u stalled iterations, %u in replays; %u more have plans without places\n",
           tally.compared, tally.with_copies, tally.with_replays, tally.with_returns, tally.slower,
           tally.stalled, tally.stalled_replay, tally.unplaced);
    if (is_sample_large()) {
        ck_assert_uint_gt(tally.unplaced, 0);
        ck_assert(tally.stalled > seeds(SEEDS) && tally.stalled_replay > 0);
        ck_assert(tally.compared >= seeds(SEEDS) / 2 && tally.with_copies >= seeds(SEEDS) / 4 &&
                  tally.with_replays >= seeds(SEEDS) / 20 && tally.slower >= seeds(SEEDS) / 4);
    }
}
END_TEST

/* A large parameter that has to leave before two ops that need most of the memory. After the second
   one the links are idle and memory is empty, so it should return before the next iteration. */
static void make_returning(struct trace *trace, uint64_t megabytes)
{
    enum { WEIGHT, MADE, BIG, SECOND, BIG_AGAIN, THIRD, FOURTH, TENSORS };
    static const uint64_t sizes[] = {[WEIGHT] = 64,     [MADE] = 8,  [BIG] = 160, [SECOND] = 8,
                                     [BIG_AGAIN] = 160, [THIRD] = 8, [FOURTH] = 8};
    static const struct {
        uint32_t reads[1];
        uint32_t writes[2];
        uint32_t read_count;
        uint32_t write_count;
        uint32_t update_count;
    } ops[] = {{{WEIGHT}, {MADE}, 1, 1, 0},  {{MADE}, {BIG, SECOND}, 1, 2, 0},
               {{SECOND}, {0}, 1, 0, 1},     {{SECOND}, {BIG_AGAIN, THIRD}, 1, 2, 0},
               {{THIRD}, {FOURTH}, 1, 1, 0}, {{FOURTH}, {0}, 1, 0, 0}};
    static const struct machine machine = {.name = "m",
                                           .memory_bytes = (uint64_t)1 << 32,
                                           .d2h_bytes_per_s = (uint64_t)128 << 30,
                                           .h2d_bytes_per_s = (uint64_t)128 << 30,
                                           .copy_latency_ns = 10};
    uint32_t weight = WEIGHT;

    ck_assert_int_eq(trace_init(trace, "returning", NULL), CAPU_OK);
    ck_assert_int_eq(trace_set_machine(trace, &machine, NULL), CAPU_OK);
    for (uint32_t i = 0; i < TENSORS; i++) {
        struct tensor_description description = {.name = i == WEIGHT ? "weight" : "made",
                                                 .bytes = sizes[i] * megabytes << 20,
                                                 .kind =
                                                     i == WEIGHT ? CAPU_PARAMETER : CAPU_ACTIVATION,
                                                 .persistent = i == WEIGHT};
        uint32_t id;

        ck_assert_int_eq(trace_add_tensor(trace, &description, &id, NULL), CAPU_OK);
    }
    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        struct op_description description = {.name = "op",
                                             .ns = 1000000,
                                             .reads = ops[k].reads,
                                             .writes = ops[k].writes,
                                             .updates = &weight,
                                             .read_count = ops[k].read_count,
                                             .write_count = ops[k].write_count,
                                             .update_count = ops[k].update_count};

        ck_assert_int_eq(trace_add_op(trace, &description, NULL), CAPU_OK);
    }
}

START_TEST(returns_before_the_border_take_the_predicted_time)
{
    struct instance instance = {.what = "returning"};
    struct driver_options options = {.planner = "hybrid"};
    struct tally tally = {0};

    make_returning(&instance.trace, (uint64_t)_i + 1);
    ck_assert_int_eq(trace_index_init(&instance.trace_index, &instance.trace, DEVICE_PAGE, NULL),
                     CAPU_OK);
    options.budget_bytes = instance.trace_index.peak_bytes / 100 * 85;
    replay(&instance, &options, &tally);
    ck_assert_uint_eq(tally.compared, 1);
    ck_assert_uint_eq(tally.with_returns, 1);
    forget(&instance);
}
END_TEST

/* The same trace with the ids that the runtime assigns: only tensors that ops name, in that order.
   All are managed, so that the runtime holds nothing else. */
static void renumber(const struct trace *from, struct trace *to, uint32_t *ids)
{
    ck_assert_int_eq(trace_init(to, "renumbered", NULL), CAPU_OK);
    ck_assert_int_eq(trace_set_machine(to, &from->machine, NULL), CAPU_OK);
    memset(ids, 0xff, from->tensor_count * sizeof(*ids));
    for (uint32_t i = 0; i < from->operand_count; i++) {
        uint32_t id = from->operands[i];
        const struct trace_tensor *tensor = &from->tensors[id];
        struct tensor_description description = {.name = trace_tensor_name(from, id),
                                                 .bytes = tensor->bytes,
                                                 .kind = (capu_kind)tensor->kind,
                                                 .hint = (capu_hint)tensor->hint,
                                                 .persistent = tensor->persistent};

        if (ids[id] == UINT32_MAX) {
            ck_assert_int_eq(trace_add_tensor(to, &description, &ids[id], NULL), CAPU_OK);
        }
    }
    for (uint32_t k = 0; k < from->op_count; k++) {
        const struct trace_op *op = &from->ops[k];
        uint32_t operands[16];
        struct op_description description = {.name = trace_op_name(from, k),
                                             .segment = trace_text(from, op->segment),
                                             .ns = op->ns,
                                             .reads = operands,
                                             .writes = operands + op->read_count,
                                             .updates = operands + op->read_count + op->write_count,
                                             .read_count = op->read_count,
                                             .write_count = op->write_count,
                                             .update_count = op->update_count,
                                             .replayable = op->replayable};

        ck_assert_uint_le(trace_operand_count(op), 16);
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            operands[i] = ids[from->operands[op->first + i]];
        }
        ck_assert_int_eq(trace_add_op(to, &description, NULL), CAPU_OK);
    }
}

/* The plan that a planner makes of the trace itself; "" if there is none. */
static void plan_directly(const struct instance *instance, const struct driver_options *options,
                          struct string_buffer *text)
{
    struct planner_request request = {.trace_index = &instance->trace_index,
                                      .budget_bytes = options->budget_bytes,
                                      .host_bytes = UINT64_MAX,
                                      .place = true,
                                      .apart_bytes = options->budget_bytes,
                                      .preserve = PRESERVE_UNREAD,
                                      .effort = EFFORT_QUICK};
    struct plan plan;

    if (planner_run(planner_find(options->planner), &request, &plan, NULL) == CAPU_OK) {
        ck_assert_int_eq(plan_write(&plan, text, NULL), CAPU_OK);
        plan_finish(&plan);
    }
}

/* A random trace as the runtime would number it, with a planner and a budget for it. */
static void make_renumbered(struct instance *instance, uint64_t seed,
                            struct driver_options *options)
{
    uint64_t state = seed + 78;
    struct instance random = {0};
    uint32_t ids[1024];

    make_random(&random, seed, &state);
    ck_assert_uint_lt(random.trace.tensor_count, 1024);
    renumber(&random.trace, &instance->trace, ids);
    forget(&random);
    ck_assert_int_eq(trace_index_init(&instance->trace_index, &instance->trace, PAGE, NULL),
                     CAPU_OK);
    options->planner = planners[random_below(&state, planner_count())].name;
    options->budget_bytes = instance->trace_index.floor_bytes +
                            random_below(&state, instance->trace_index.peak_bytes -
                                                     instance->trace_index.floor_bytes + PAGE);
    snprintf(instance->what, sizeof(instance->what), "seed %llu, %s at %llu",
             (unsigned long long)seed, options->planner, (unsigned long long)options->budget_bytes);
}

START_TEST(the_runtime_plans_as_the_planner_does)
{
    struct tally tally = {0};

    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(SEEDS / 2); seed++) {
        struct instance instance = {0};
        struct driver_options options = {.slab_bytes = 2};

        make_renumbered(&instance, seed, &options);
        plan_directly(&instance, &options, &instance.expected);
        replay(&instance, &options, &tally);
        string_buffer_finish(&instance.expected);
        forget(&instance);
    }
    printf("%u plans compared\n", tally.compared);
    ck_assert(!is_sample_large() || tally.compared >= seeds(SEEDS) / 4);
}
END_TEST

/* What the runtime records, including slabs, replays as what it was recorded from. */
START_TEST(recorded_traces_replay_identically)
{
    struct tally tally = {0};
    char path[] = "/tmp/capuchin-trace-XXXXXX";

    ck_assert_int_ge(close(mkstemp(path)), 0);
    for (uint64_t seed = first_seed(); seed < first_seed() + seeds(SEEDS / 4); seed++) {
        struct instance instance = {0};
        struct instance recorded = {0};
        struct driver_options options = {.trace_path = path};
        unsigned compared = tally.compared;
        uint64_t ns;

        make_renumbered(&instance, seed, &options);
        replay(&instance, &options, &tally);
        ns = tally.last_ns;
        if (tally.compared > compared) {
            options.trace_path = NULL;
            snprintf(recorded.what, sizeof(recorded.what), "%.100s, recorded", instance.what);
            ck_assert_int_eq(trace_load(&recorded.trace, path, NULL), CAPU_OK);
            ck_assert_int_eq(trace_index_init(&recorded.trace_index, &recorded.trace, PAGE, NULL),
                             CAPU_OK);
            replay(&recorded, &options, &tally);
            ck_assert_msg(tally.compared == compared + 2, "%s: no plan", recorded.what);
            ck_assert_msg(tally.last_ns == ns, "%s: %llu ns, not %llu", recorded.what,
                          (unsigned long long)tally.last_ns, (unsigned long long)ns);
            forget(&recorded);
        }
        forget(&instance);
    }
    ck_assert_int_eq(unlink(path), 0);
    printf("%u recorded traces compared\n", tally.compared / 2);
    ck_assert(!is_sample_large() || tally.compared >= seeds(SEEDS) / 4);
}
END_TEST

/* One real trace, its budget a percentage of the peak. */
static void replay_shared(const char *path, const char *planner, unsigned percent,
                          struct tally *tally)
{
    struct instance instance = {0};
    struct driver_options options = {.planner = planner};
    struct error_text error = {""};

    ck_assert_msg(trace_load(&instance.trace, path, &error) == CAPU_OK, "%s", error.text);
    ck_assert_msg(trace_index_init(&instance.trace_index, &instance.trace, DEVICE_PAGE, &error) ==
                      CAPU_OK,
                  "%s", error.text);
    options.budget_bytes = instance.trace_index.peak_bytes / 100 * percent;
    snprintf(instance.what, sizeof(instance.what), "%.100s, %s at %u %%", strrchr(path, '/') + 1,
             planner, percent);
    replay(&instance, &options, tally);
    forget(&instance);
}

START_TEST(real_traces_take_the_predicted_time)
{
    const char *path = found.gl_pathv[_i];
    struct tally tally = {0};
    unsigned least = 2;

    replay_shared(path, "lru", 70, &tally);
    replay_shared(path, "lru", 50, &tally);
    replay_shared(path, "swap", 70, &tally);
    replay_shared(path, "recompute", 50, &tally);
#ifndef CAPUCHIN_IS_SANITIZED /* its search takes minutes then */
    replay_shared(path, "hybrid", 70, &tally);
    least++;
#endif
    printf("%s: %u compared, %u with copies, %u with replays, %u above ideal\n",
           strrchr(path, '/') + 1, tally.compared, tally.with_copies, tally.with_replays,
           tally.slower);
    ck_assert_uint_ge(tally.compared, least);
}
END_TEST

/* Host copies are reserved, if not touched, and sanitizers leave less address space for that. */
#ifdef CAPUCHIN_IS_SANITIZED
#define MOST_BYTES ((uint64_t)32 << 30)
#else
#define MOST_BYTES UINT64_MAX
#endif

/* Every network of the zoo, its layers as single ops, and every other by op. */
START_TEST(networks_take_the_predicted_time)
{
    static const unsigned percents[] = {80, 60};
    const struct zoo_model *model = &zoo_models[_i];
    struct zoo_options zoo = {.batch = 16, .by_layer = _i % 2 == 0, .updates_asap = _i % 4 < 2};
    struct hardware hardware;
    struct tally tally = {0};

    ck_assert_int_eq(hardware_load(&hardware, "a100", NULL), CAPU_OK);
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
        struct instance instance = {0};
        struct driver_options options = {.planner = i == 0 ? "hybrid" : "recompute"};
        struct error_text error = {""};

        ck_assert_msg(zoo_build(model, &zoo, &hardware, &instance.trace, NULL, &error) == CAPU_OK,
                      "%s: %s", model->name, error.text);
        ck_assert_int_eq(
            trace_index_init(&instance.trace_index, &instance.trace, DEVICE_PAGE, NULL), CAPU_OK);
        options.budget_bytes = instance.trace_index.peak_bytes / 100 * percents[i];
        if (instance.trace_index.peak_bytes > MOST_BYTES) {
            forget(&instance);
            continue;
        }
        snprintf(instance.what, sizeof(instance.what), "%s, %s at %u %%", model->name,
                 options.planner, percents[i]);
        replay(&instance, &options, &tally);
        forget(&instance);
    }
    printf("%s: %u compared, %u with copies, %u with replays, %u above ideal\n", model->name,
           tally.compared, tally.with_copies, tally.with_replays, tally.slower);
}
END_TEST

static int count_models(void)
{
    int count = 0;

    while (zoo_models[count].name != NULL) {
        count++;
    }
    return count;
}

/* False: there are none. */
static bool find_traces(void)
{
    const char *folder = getenv("TEST_TRACES");
    char pattern[1024];

    snprintf(pattern, sizeof(pattern), "%s/*.jsonl",
             folder != NULL ? folder : CAPUCHIN_SOURCE "/../shared/traces");
    if (glob(pattern, 0, NULL, &found) == 0) {
        return true;
    }
    printf("no traces in %s: skipped\n", pattern);
    return false;
}

/* Random traces and the zoo; with the argument "shared", real ones. */
int main(int argc, char **argv)
{
    bool is_shared = argc > 1 && strcmp(argv[1], "shared") == 0;
    Suite *suite = suite_create("replays");
    TCase *tests = tcase_create("replays");

    if (is_shared && !find_traces()) {
        return 77;
    }
    tcase_set_timeout(tests, 250);
    if (is_shared) {
        tcase_add_loop_test(tests, real_traces_take_the_predicted_time, 0, (int)found.gl_pathc);
    } else {
        tcase_add_test(tests, random_traces_take_the_predicted_time);
        tcase_add_loop_test(tests, returns_before_the_border_take_the_predicted_time, 0, 3);
        tcase_add_test(tests, the_runtime_plans_as_the_planner_does);
        tcase_add_test(tests, recorded_traces_replay_identically);
        tcase_add_loop_test(tests, networks_take_the_predicted_time, 0,
                            HAS_NETWORKS * count_models());
    }
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
