/*
 * Returns before the border: a tensor that has left comes back before the iteration ends, and is
 * resident over the border with a valid host copy. So its next eviction copies nothing. The plans
 * are written here; they are compiled and kept as planning does it.
 *
 * On sim, iterations take exactly the time that the timeline gives the plan. On host, every byte is
 * compared, in strict mode, with delayed streams and without places as well, and after a change of
 * plans.
 */
#include "tests/api/hand_plan.h"
#include "tests/api/steps.h"

enum { LAYER_PAGES = 4, OP_NS = 1000, BUDGET = 4 * LAYER_PAGES };

/* The tensors in order of their first access, which is how the trace numbers them. */
enum { SUM, THIRD, MADE, FIRST, SECOND, TENSORS };

/* The ops of an iteration in order. All are named after what they write. */
enum { SET, MAKE, ADD_FIRST, ADD_SECOND, ADD_MADE, GROW_THIRD, GROW_SECOND, GROW_FIRST, END };

static const struct step {
    const char *name;
    unsigned to;
    unsigned from;
    capu_role role; /* of `to` */
} ops[] = {
    [SET] = {"set", SUM, SUM, CAPU_WRITE},
    [MAKE] = {"make", MADE, THIRD, CAPU_WRITE},
    [ADD_FIRST] = {"add first", SUM, FIRST, CAPU_UPDATE},
    [ADD_SECOND] = {"add second", SUM, SECOND, CAPU_UPDATE},
    [ADD_MADE] = {"add made", SUM, MADE, CAPU_UPDATE},
    [GROW_THIRD] = {"grow third", THIRD, SUM, CAPU_UPDATE},
    [GROW_SECOND] = {"grow second", SECOND, SUM, CAPU_UPDATE},
    [GROW_FIRST] = {"grow first", FIRST, SUM, CAPU_UPDATE},
    [END] = {"end", SUM, SUM, CAPU_UPDATE},
};

enum { OPS = sizeof(ops) / sizeof(ops[0]) };

/*
 * In both plans the third tensor returns before the last op, and its eviction at the beginning
 * copies nothing, like that of the second one after it was read. The first one is resident at the
 * border without a copy, and the second one is not resident there. In the second plan what was made
 * of the third is recomputed, so that a replay is the next to read it.
 */
static const struct plan_text {
    struct hand_action actions[14];
    uint64_t copied_pages;  /* out, per iteration */
    uint64_t dropped_pages; /* evicted without a copy */
    uint64_t fetched_pages;
    uint64_t replays;
} plans[] = {
    {{{ACTION_EVICT, THIRD, MAKE, 0},
      {ACTION_EVICT, FIRST, ADD_FIRST, 0},
      {ACTION_PREFETCH, SECOND, ADD_SECOND, 0},
      {ACTION_EVICT, SECOND, ADD_SECOND, 0},
      {ACTION_PREFETCH, THIRD, GROW_THIRD, 0},
      {ACTION_EVICT, THIRD, GROW_THIRD, 0},
      {ACTION_PREFETCH, SECOND, GROW_SECOND, 0},
      {ACTION_EVICT, SECOND, GROW_SECOND, 0},
      {ACTION_PREFETCH, FIRST, GROW_FIRST, 0},
      {ACTION_PREFETCH, THIRD, END, 0}},
     3 * LAYER_PAGES,
     2 * LAYER_PAGES,
     5 * LAYER_PAGES,
     0},
    {{{ACTION_EVICT, THIRD, MAKE, 0},
      {ACTION_DROP, MADE, MAKE, 0},
      {ACTION_EVICT, FIRST, ADD_FIRST, 0},
      {ACTION_PREFETCH, SECOND, ADD_SECOND, 0},
      {ACTION_EVICT, SECOND, ADD_SECOND, 0},
      {ACTION_PREFETCH, THIRD, ADD_MADE, 0},
      {ACTION_RECOMPUTE, MADE, ADD_MADE, MAKE},
      {ACTION_SAVE, THIRD, GROW_THIRD, 0},
      {ACTION_PREFETCH, SECOND, GROW_SECOND, 0},
      {ACTION_EVICT, THIRD, GROW_SECOND, 0},
      {ACTION_EVICT, SECOND, GROW_SECOND, 0},
      {ACTION_PREFETCH, FIRST, GROW_FIRST, 0},
      {ACTION_PREFETCH, THIRD, END, 0}},
     3 * LAYER_PAGES,
     3 * LAYER_PAGES,
     5 * LAYER_PAGES,
     1},
};

enum { PLANS = sizeof(plans) / sizeof(plans[0]) };

struct loop {
    struct rig rig;
    unsigned char *tensors[TENSORS];
    unsigned char values[TENSORS]; /* that their bytes have */
    unsigned char step;
};

struct arguments {
    unsigned char *to;
    const unsigned char *from;
    unsigned number;
    unsigned char value;
};

static unsigned char result_of(unsigned number, unsigned char to, unsigned char from,
                               unsigned char value)
{
    switch (number) {
    case SET:
        return value;
    case MAKE:
        return (unsigned char)(from + 1);
    case END:
        return (unsigned char)(to + 1);
    default:
        return (unsigned char)(to + from);
    }
}

static capu_status compute(capu_stream stream, const void *arguments)
{
    const struct arguments *of = arguments;

    (void)stream;
    for (size_t i = 0; i < PAGES(LAYER_PAGES); i++) {
        of->to[i] = result_of(of->number, of->to[i], of->from[i], of->value);
    }
    return CAPU_OK;
}

static void run_op(struct loop *loop, unsigned number)
{
    const struct step *step = &ops[number];
    struct arguments arguments = {.to = loop->tensors[step->to],
                                  .from = loop->tensors[step->from],
                                  .number = number,
                                  .value = loop->step};
    capu_operand operands[] = {capu_operand_of(arguments.from, 0, CAPU_READ),
                               capu_operand_of(arguments.to, 0, step->role)};
    bool is_alone = step->to == step->from;
    capu_op op = {.size = sizeof(op),
                  .name = step->name,
                  .run = compute,
                  .arguments = &arguments,
                  .argument_bytes = sizeof(arguments),
                  .operands = is_alone ? operands + 1 : operands,
                  .operand_count = is_alone ? 1 : 2,
                  .duration_ns = OP_NS};

    RIG_OK(&loop->rig, capu_run(loop->rig.context, &op));
    loop->values[step->to] =
        result_of(number, loop->values[step->to], loop->values[step->from], loop->step);
}

static void loop_init(struct loop *loop, struct rig_options options)
{
    static const char *const names[] = {
        [SUM] = "sum", [THIRD] = "third", [MADE] = "made", [FIRST] = "first", [SECOND] = "second"};

    options.mode = CAPU_MODE_GUIDED;
    options.budget_pages = BUDGET;
    options.wait_for_plan = true;
    *loop = (struct loop){0};
    rig_init(&loop->rig, &options);
    for (unsigned i = 0; i < TENSORS; i++) {
        bool is_kept = i != SUM && i != MADE;

        loop->tensors[i] = step_tensor(&loop->rig, names[i],
                                       is_kept ? CAPU_PARAMETER : CAPU_ACTIVATION, LAYER_PAGES);
        if (is_kept) {
            loop->values[i] = (unsigned char)(10 * i);
            step_set(&loop->rig, loop->tensors[i], PAGES(LAYER_PAGES), loop->values[i]);
        }
    }
}

/* Without waiting for it, which would change the time of the next one. */
static void iterate(struct loop *loop)
{
    loop->step++;
    RIG_OK(&loop->rig, capu_iteration_begin(loop->rig.context, "train"));
    for (unsigned i = 0; i < OPS; i++) {
        run_op(loop, i);
    }
    RIG_OK(&loop->rig, capu_iteration_end(loop->rig.context));
}

static struct report report_of(struct loop *loop)
{
    struct report report = {0};

    RIG_OK(&loop->rig, capu_synchronize(loop->rig.context));
    report = rig_report(&loop->rig);
    rig_check(&loop->rig);
    return report;
}

static void expect_values(struct loop *loop)
{
    for (unsigned i = 0; i < TENSORS; i++) {
        if (i != SUM && i != MADE) {
            step_expect(&loop->rig, loop->tensors[i], PAGES(LAYER_PAGES), loop->values[i]);
        }
    }
}

/* Returns how long the model says that iterations take. */
static uint64_t give_plan(struct loop *loop, const struct plan_text *text, bool is_placed)
{
    size_t count = 1;

    while (count < sizeof(text->actions) / sizeof(text->actions[0]) &&
           text->actions[count].point > 0) {
        count++;
    }
    report_of(loop);
    return hand_plan_give(&loop->rig, loop->tensors[SUM], text->actions, count, is_placed);
}

static void expect_plan(const struct report *report, const struct plan_text *text)
{
    ck_assert_uint_eq(report->mode, CAPU_MODE_GUIDED);
    ck_assert_msg(report->diverged == 0, "it diverged at op %llu",
                  (unsigned long long)report->diverged_at);
    ck_assert_uint_eq(report->evicted_bytes, text->copied_pages * RIG_PAGE);
    ck_assert_uint_eq(report->dropped_bytes, text->dropped_pages * RIG_PAGE);
    ck_assert_uint_eq(report->prefetched_bytes, text->fetched_pages * RIG_PAGE);
    ck_assert_uint_eq(report->replay_count, text->replays);
    if (report->unplaced == 0) {
        ck_assert_uint_eq(report->map_count + report->unmap_count, 0);
        ck_assert_uint_eq(report->host_wait_ns, 0);
    }
}

/* The copies of one layer take so many ops' time. */
static const uint64_t op_counts[] = {1, 3, 10};

enum { LINKS = sizeof(op_counts) / sizeof(op_counts[0]), STEADY = 6 };

START_TEST(sim_takes_the_predicted_time)
{
    const struct plan_text *text = &plans[_i / LINKS];
    struct loop loop;
    struct report report;
    uint64_t ns;

    loop_init(&loop,
              (struct rig_options){.is_sim = true,
                                   .link_bytes_per_s = PAGES(LAYER_PAGES) * UINT64_C(1000000000) /
                                                       (op_counts[_i % LINKS] * OP_NS)});
    iterate(&loop);
    ns = give_plan(&loop, text, true);
    for (size_t i = 0; i < STEADY; i++) {
        iterate(&loop);
    }
    report = report_of(&loop);
    expect_plan(&report, text);
    ck_assert_uint_eq(report.predicted_ns, ns);
    ck_assert_uint_eq(report.time_ns, ns);
    rig_finish(&loop.rig);
}
END_TEST

enum { PLAIN, STRICT, DELAYED, UNPLACED, KINDS };

static struct rig_options options_of(int kind)
{
    return (struct rig_options){.strict = kind == STRICT, .delay_seed = kind == DELAYED ? 5 : 0};
}

START_TEST(every_byte_is_right)
{
    const struct plan_text *text = &plans[_i / KINDS];
    int kind = _i % KINDS;
    struct loop loop;

    loop_init(&loop, options_of(kind));
    iterate(&loop);
    give_plan(&loop, text, kind != UNPLACED);
    for (size_t i = 0; i < STEADY; i++) {
        struct report report;

        iterate(&loop);
        report = report_of(&loop);
        ck_assert_uint_eq(report.diverged, 0);
        ck_assert_uint_eq(report.mode, CAPU_MODE_GUIDED);
        ck_assert_uint_eq(report.unplaced, kind == UNPLACED);
        if (i > 1 && kind != STRICT) {
            expect_plan(&report, text);
        }
        if (i == 3) {
            expect_values(&loop);
        }
    }
    expect_values(&loop);
    rig_finish(&loop.rig);
}
END_TEST

/* Another iteration in between leaves the third tensor resident without a host copy (0), with one
   (1), or on the host only (2). The first eviction after that copies where it must. */
START_TEST(plans_may_change_in_between)
{
    const struct plan_text *text = &plans[_i / (KINDS * 3)];
    int other = _i / KINDS % 3;
    int kind = _i % KINDS;
    struct loop loop;
    unsigned char *large;
    struct report report;

    loop_init(&loop, options_of(kind));
    large = step_tensor(&loop.rig, "large", CAPU_ACTIVATION, BUDGET);
    iterate(&loop);
    give_plan(&loop, text, kind != UNPLACED);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3; i++) {
            iterate(&loop);
            report = report_of(&loop);
            ck_assert_uint_eq(report.mode, CAPU_MODE_GUIDED);
            ck_assert_uint_eq(report.diverged, 0);
        }
        RIG_OK(&loop.rig, capu_iteration_begin(loop.rig.context, "other"));
        if (other == 2) {
            step_set(&loop.rig, large, PAGES(BUDGET), 1);
        } else {
            step_expect(&loop.rig, loop.tensors[THIRD], PAGES(LAYER_PAGES), loop.values[THIRD]);
        }
        if (other == 0) {
            step_bump(&loop.rig, "bump", loop.tensors[THIRD], PAGES(LAYER_PAGES));
            loop.values[THIRD]++;
        }
        RIG_OK(&loop.rig, capu_iteration_end(loop.rig.context));
    }
    expect_values(&loop);
    rig_finish(&loop.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("returns before the border");
    TCase *cases = tcase_create("returns");

    tcase_add_loop_test(cases, sim_takes_the_predicted_time, 0, PLANS * LINKS);
    tcase_add_loop_test(cases, every_byte_is_right, 0, PLANS * KINDS);
    tcase_add_loop_test(cases, plans_may_change_in_between, 0, PLANS * KINDS * 3);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
