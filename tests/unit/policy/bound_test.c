/*
 * The bound that accounts for what replays read, against the least cost of all states at a cut,
 * and against all prices on a grid, by searches over every state of tiny traces. Closed form:
 * planner_test.c.
 */
#include "tests/unit/policy/fixture.h"

#include "policy/bound/bound.h"
#include "policy/bound/bound_iteration.h"
#include "policy/bound/replay_bound.h"
#include "policy/model/clock.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"

#include "tests/support/effort.h"
#include "tests/support/random_trace.h"

#include <math.h>

#define TRACES 1000
#define PRICES 10 /* steps from 0 to 1 */
#define OPS 7
#define VERSIONS_MAX 24

static struct trace trace;
static struct trace_index trace_index;

static void forget(void)
{
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

/* Versions in order of creation: first what each tensor holds when the iteration begins. */
struct version {
    uint32_t tensor;
    uint32_t maker; /* TRACE_INDEX_NONE: an earlier iteration */
    bool is_needed;
    bool returns; /* within the iteration, if it is on the host */
    bool is_operand;
};

struct cut {
    uint32_t op;
    struct version versions[VERSIONS_MAX];
    uint32_t count;
    uint32_t reads[OPS][VERSIONS_MAX]; /* versions that an op before the cut reads */
    uint32_t read_counts[OPS];
    double limit_bytes;
    double before_ns;
    double after_ns;
};

/* The next access at the cut or later; 0 if there is none. */
static const char *next_access(uint32_t tensor, uint32_t from, uint32_t *op)
{
    for (uint32_t k = from; k < trace.op_count; k++) {
        for (uint32_t i = 0; i < trace_operand_count(&trace.ops[k]); i++) {
            if (trace.operands[trace.ops[k].first + i] == tensor) {
                *op = k;
                return i >= trace.ops[k].read_count &&
                               i < trace.ops[k].read_count + trace.ops[k].write_count
                           ? "write"
                           : "read";
            }
        }
    }
    return "";
}

static void describe(struct cut *cut, uint32_t at, uint64_t budget)
{
    uint32_t current[VERSIONS_MAX];

    *cut = (struct cut){.op = at, .limit_bytes = (double)(budget - trace_index.fixed_bytes)};
    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        current[t] = cut->count;
        cut->versions[cut->count++] = (struct version){.tensor = t, .maker = TRACE_INDEX_NONE};
    }
    for (uint32_t k = 0; k < at; k++) {
        const struct trace_op *op = &trace.ops[k];

        cut->before_ns += (double)op->ns;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            uint32_t tensor = trace.operands[op->first + i];

            if (i < op->read_count) {
                cut->reads[k][cut->read_counts[k]++] = current[tensor];
            } else {
                current[tensor] = cut->count;
                cut->versions[cut->count++] = (struct version){.tensor = tensor, .maker = k};
            }
        }
    }
    cut->after_ns = (double)trace.total_ns - cut->before_ns;
    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        struct version *version = &cut->versions[current[t]];
        uint32_t next = 0;
        const char *access = next_access(t, at, &next);
        bool is_read = strcmp(access, "read") == 0;

        if (access[0] != '\0' && next == at) {
            cut->limit_bytes -= (double)trace_index.rounded[t];
            version->is_operand = is_read;
        } else if (is_read || (access[0] == '\0' && trace.tensors[t].persistent &&
                               version->maker != TRACE_INDEX_NONE)) {
            version->is_needed = true;
        }
        version->returns = is_read;
    }
}

/* Of copies of a version that is on the host at the cut. */
static void copy_times(const struct version *version, double *out_ns, double *in_ns)
{
    const struct machine *machine = &trace.machine;
    uint64_t bytes = trace.tensors[version->tensor].bytes;

    *out_ns = version->maker != TRACE_INDEX_NONE
                  ? (double)clock_copy_ns(bytes, machine->d2h_bytes_per_s, machine->copy_latency_ns)
                  : 0.0;
    *in_ns = version->returns || !version->is_needed
                 ? (double)clock_copy_ns(bytes, machine->h2d_bytes_per_s, machine->copy_latency_ns)
                 : 0.0;
}

/* Of each version that is demanded and not replayed: on the device or the host, whichever way is
   best together. */
static double best_states(const struct cut *cut, const bool *is_open, uint32_t from, double bytes,
                          double out_ns, double in_ns, double replay_ns)
{
    const struct version *version;
    double own_out_ns;
    double own_in_ns;
    double device;
    double host;

    while (from < cut->count && !is_open[from]) {
        from++;
    }
    if (bytes > cut->limit_bytes) {
        return INFINITY;
    }
    if (from == cut->count) {
        return fmax(0.0, out_ns - cut->before_ns) +
               fmax(replay_ns, fmax(0.0, in_ns - cut->after_ns));
    }
    version = &cut->versions[from];
    device =
        best_states(cut, is_open, from + 1, bytes + (double)trace_index.rounded[version->tensor],
                    out_ns, in_ns, replay_ns);
    copy_times(version, &own_out_ns, &own_in_ns);
    out_ns += own_out_ns;
    in_ns += own_in_ns;
    host = best_states(cut, is_open, from + 1, bytes, out_ns, in_ns, replay_ns);
    return fmin(device, host);
}

/* One way to get by: what is replayed, and what must then be on the device or the host. */
struct way {
    bool is_open[VERSIONS_MAX];
    double replay_ns;
};

/* All ways, by the set of ops that are replayed; how many there are. */
static uint32_t list_ways(const struct cut *cut, struct way *ways)
{
    uint32_t count = 0;

    for (uint32_t set = 0; set < (uint32_t)1 << cut->op; set++) {
        struct way *way = &ways[count];
        bool is_legal = true;

        *way = (struct way){.replay_ns = 0.0};
        for (uint32_t k = 0; k < cut->op; k++) {
            if ((set >> k & 1) != 0) {
                is_legal &= trace.ops[k].replayable;
                way->replay_ns += (double)trace.ops[k].ns;
            }
            for (uint32_t i = 0; (set >> k & 1) != 0 && i < cut->read_counts[k]; i++) {
                way->is_open[cut->reads[k][i]] = true;
            }
        }
        for (uint32_t v = 0; v < cut->count; v++) {
            const struct version *version = &cut->versions[v];

            way->is_open[v] =
                (way->is_open[v] || version->is_needed) && !version->is_operand &&
                trace_index.rounded[version->tensor] > 0 &&
                (version->maker == TRACE_INDEX_NONE || (set >> version->maker & 1) == 0);
        }
        count += is_legal;
    }
    return count;
}

/* What is proved by prices for the links, from 0 to 1, and the price of memory that goes with
   them. */
static double proved(const struct cut *cut, const struct way *ways, uint32_t count, double out,
                     double in)
{
    const struct machine *machine = &trace.machine;
    double byte =
        1e9 * out / (double)machine->d2h_bytes_per_s + 1e9 * in / (double)machine->h2d_bytes_per_s;
    double least = INFINITY;

    for (uint32_t i = 0; i < count; i++) {
        double cost = (1.0 - in) * ways[i].replay_ns;

        for (uint32_t v = 0; v < cut->count; v++) {
            double out_ns;
            double in_ns;

            if (ways[i].is_open[v]) {
                copy_times(&cut->versions[v], &out_ns, &in_ns);
                cost += fmin(byte * (double)trace_index.rounded[cut->versions[v].tensor],
                             out * out_ns + in * in_ns);
            }
        }
        least = fmin(least, cost);
    }
    return least - byte * cut->limit_bytes - out * cut->before_ns - in * cut->after_ns;
}

static void compare_cut(const struct cut *cut, uint64_t budget, const char *where)
{
    static struct way ways[1 << OPS];
    struct replay_bound_request request = {.trace_index = &trace_index,
                                           .machine = &trace.machine,
                                           .budget_bytes = budget,
                                           .cut = cut->op};
    uint32_t count = list_ways(cut, ways);
    double bound = (double)(replay_bound(&request, trace.total_ns) - trace.total_ns);
    double after = (double)replay_bound_after(&request);
    struct cut free_copies = *cut; /* copies out take no time */
    double optimum = INFINITY;
    double optimum_after = INFINITY;

    free_copies.before_ns = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        const struct way *way = &ways[i];

        optimum = fmin(optimum, best_states(cut, way->is_open, 0, 0.0, 0.0, 0.0, way->replay_ns));
        optimum_after = fmin(optimum_after, best_states(&free_copies, way->is_open, 0, 0.0, 0.0,
                                                        0.0, way->replay_ns));
    }
    ck_assert_msg(after <= optimum_after, "%s: %.0f after the cut, optimum %.0f", where, after,
                  optimum_after);
    ck_assert_msg(bound <= optimum, "%s: bound %.0f, optimum %.0f", where, bound, optimum);
    for (uint32_t out = 0; out <= PRICES; out++) {
        for (uint32_t in = 0; in <= PRICES; in++) {
            double least = proved(cut, ways, count, (double)out / PRICES, (double)in / PRICES);

            ck_assert_msg(bound >= least - 1.0 - 3e-4 * (double)trace.total_ns,
                          "%s: bound %.0f, but %u and %u prove %.0f", where, bound, out, in, least);
        }
    }
}

START_TEST(the_bound_is_the_best_of_all_prices_and_below_all_states)
{
    uint64_t state = 31;

    for (uint64_t seed = 1; seed <= effort_share(TRACES); seed++) {
        uint64_t budget;

        random_trace(&trace, seed, OPS);
        ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1 + seed % 3 * 60, NULL), CAPU_OK);
        budget = trace_index.floor_bytes +
                 random_below(&state, trace_index.peak_bytes - trace_index.floor_bytes + 1);
        for (uint32_t at = 1; at < trace.op_count; at++) {
            struct cut cut;
            char where[64];

            snprintf(where, sizeof(where), "seed %u, op %u", (unsigned)seed, at);
            describe(&cut, at, budget);
            compare_cut(&cut, budget, where);
        }
        forget();
    }
}
END_TEST

/* y is cheap to make again, but only from x, which is dead, was expensive and is as large. */
#define DEAD_INPUT_TRACE                                                                    \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 10, "parameter")                            \
        TENSOR_LINE(1, "x", 100000, "activation") TENSOR_LINE(2, "y", 100000, "activation") \
            TENSOR_LINE(3, "z", 200000, "activation") TENSOR_LINE(4, "g", 10, "gradient")   \
                OP_LINE("f0", 5000, "[0]", "[1]", "[]", "true")                             \
                    OP_LINE("f1", 10, "[1]", "[2]", "[]", "true")                           \
                        OP_LINE("big", 10, "[]", "[3]", "[]", "false")                      \
                            OP_LINE("b", 10, "[2]", "[4]", "[]", "false") END_LINE(5, 4)

START_TEST(replays_have_to_read_what_is_dead)
{
    struct timeline timeline;
    struct plan plan;
    uint64_t bound_ns;

    read_trace(&trace, DEAD_INPUT_TRACE);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    ck_assert_uint_le(bound_cut(&trace_index, &trace.machine, 200010), 5030 + 10);
    /* s of y on the host, the rest replayed: 100010 s - 20 = 5010 (1 - s), which is 4771. */
    bound_ns = bound_iteration(&trace_index, &trace.machine, 200010);
    ck_assert_uint_ge(bound_ns, 5030 + 4765);
    ck_assert_uint_le(bound_ns, 5030 + 4771);
    read_plan(&plan, PLAN_LINE(200010, "") AFTER("drop", 1, 1) AFTER("drop", 2, 1)
                         RECOMPUTE(3, REPLAY(0, "[]") "," REPLAY(1, "[1]")));
    ck_assert_int_eq(validate_plan(&trace_index, &plan, NULL), CAPU_OK);
    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, false, NULL), CAPU_OK);
    ck_assert_uint_eq(timeline.iteration_ns, 5030 + 5010);
    timeline_finish(&timeline);
    plan_finish(&plan);
    forget();
}
END_TEST

/* p is read by the first op only, and never changes. Whatever the link, it may be on the host
   beyond the end of the iteration, or return before it. */
START_TEST(what_is_not_read_again_may_be_away_at_no_cost)
{
    struct timeline timeline;
    struct plan plan;

    read_trace(&trace,
               TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "p", 5000, "parameter")
                   TENSOR_LINE(1, "a", 10, "activation") TENSOR_LINE(2, "big", 5000, "activation")
                       OP_LINE("f", 100, "[0]", "[1]", "[]", "false")
                           OP_LINE("big", 100, "[1]", "[2]", "[]", "false")
                               OP_LINE("end", 100, "[1]", "[]", "[]", "false") END_LINE(3, 3));
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, 1, NULL), CAPU_OK);
    read_plan(&plan, PLAN_LINE(5010, "") AFTER("evict", 0, 0) PREFETCH(0, 2));
    ck_assert_int_eq(timeline_init(&timeline, &trace_index, &plan, NULL, false, NULL), CAPU_OK);
    ck_assert_uint_ge(timeline.iteration_ns, 5000);
    ck_assert_uint_eq(bound_cut(&trace_index, &trace.machine, 5010), 300);
    ck_assert_uint_eq(bound_iteration(&trace_index, &trace.machine, 5010), 300);
    timeline_finish(&timeline);
    plan_finish(&plan);
    forget();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/bound");
    TCase *tests = tcase_create("bound");

    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, the_bound_is_the_best_of_all_prices_and_below_all_states);
    tcase_add_test(tests, replays_have_to_read_what_is_dead);
    tcase_add_test(tests, what_is_not_read_again_may_be_away_at_no_cost);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
