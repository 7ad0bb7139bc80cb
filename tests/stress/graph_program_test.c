/*
 * Random programs whose iterations are captured and launched as graphs, over the fake CUDA runtime.
 * Each iteration makes the same steps with other numbers. One that is launched repeats the numbers
 * of the capture, on contents that have changed since. Some iterations leave their plan while they
 * are captured; between iterations the program works, reads and changes memory, so that graphs
 * become stale. Every byte is compared with the same program on plain memory.
 *
 * A launch is tried whenever the program would make the same steps as the capture. Whether it is
 * refused is up to the library: if it launches a graph that does not fit, bytes differ.
 */
#include "tests/stress/random_program.h"

#include "capuchin/graph.h"
#include "tests/support/suite.h"

#include <stdio.h>

enum { ITERATIONS = 14, MOST_STEPS = 40 };

struct totals {
    uint64_t captured;
    uint64_t given_up; /* captures that could not be continued */
    uint64_t launched;
    uint64_t refused; /* launches */
};

/* What a launch repeats. */
struct captured {
    bool is_there;
    uint64_t salt;
    size_t tensor_count;
    bool is_defined[PROGRAM_TENSORS]; /* when it began */
};

static bool is_defined_at_begin(const struct shadow *tensor)
{
    return tensor->is_defined && !tensor->is_transient;
}

static void note_begin(const struct program *program, struct captured *captured)
{
    captured->is_there = false;
    captured->salt = program->salt;
    captured->tensor_count = program->tensor_count;
    for (size_t i = 0; i < program->tensor_count; i++) {
        captured->is_defined[i] = is_defined_at_begin(&program->tensors[i]);
    }
}

/* Whether the program would make the same steps as then: they depend on what is defined. */
static bool is_same_iteration(const struct program *program, const struct captured *captured)
{
    bool is_same = captured->is_there && captured->tensor_count == program->tensor_count;

    for (size_t i = 0; i < program->tensor_count && is_same; i++) {
        is_same = captured->is_defined[i] == is_defined_at_begin(&program->tensors[i]);
    }
    return is_same;
}

/* The plan counts as timed, so that programs can be short. */
static void skip_timing(const struct program *program)
{
    struct plan_entry *active = program->rig.context->guided.active;

    if (active != NULL) {
        active->feedback.to_time = 0;
        active->feedback.since_timed = 0;
    }
}

static void run_steps(struct program *program, uint64_t steps, uint64_t detour)
{
    for (uint64_t i = 0; i < steps && !program->is_lost; i++) {
        program->state ^= i == detour ? 0x5555 : 0;
        random_work(program);
        random_check(program);
    }
}

static void run_iteration(struct program *program, uint64_t iteration, uint64_t steps,
                          struct captured *captured, struct totals *totals)
{
    uint64_t detour = iteration % 6 == 5 ? iteration % steps : UINT64_MAX;
    bool is_same = is_same_iteration(program, captured);
    bool was_captured;

    skip_timing(program);
    if (is_same && iteration % 4 != 3) {
        program->is_plain = capu_graph_launch(program->graph) == CAPU_OK;
        totals->launched += program->is_plain;
        totals->refused += !program->is_plain;
    }
    if (program->is_plain) {
        program->salt = captured->salt;
        detour = UINT64_MAX;
    } else {
        note_begin(program, captured);
    }
    random_turn(program, "train");
    was_captured = program->is_captured;
    run_steps(program, steps, detour);
    random_turn(program, NULL);
    if (was_captured) {
        totals->captured += program->is_captured;
        totals->given_up += !program->is_captured;
        captured->is_there = program->is_captured && detour == UINT64_MAX;
    }
    captured->is_there = captured->is_there && (was_captured || program->is_plain);
    program->is_plain = false;
}

static void run_program(uint64_t seed, struct rig_options options, void *user)
{
    struct totals *totals = user;
    struct program program = {.state = seed};
    struct captured captured = {0};
    uint64_t steps;
    uint64_t body;

    options.mode = CAPU_MODE_GUIDED;
    options.wait_for_plan = true;
    options.budget_pages = PROGRAM_LARGEST_PAGES * 2 + random_draw(&program, 60);
    options.keep_contents = random_draw(&program, 2) == 0;
    options.is_late = random_draw(&program, 2) == 0;
    program.is_pure = random_draw(&program, 3) > 0;
    rig_init(&program.rig, &options);
    steps = 4 + random_draw(&program, MOST_STEPS);
    for (uint64_t i = 0; i < 14; i++) {
        random_allocate(&program);
    }
    for (uint64_t i = 0; i < 10; i++) {
        random_work(&program);
    }
    PROGRAM_WORKS(&program, capu_graph_create(program.rig.context, &program.graph));
    body = program.state;
    for (uint64_t i = 0; i < ITERATIONS && !program.is_lost; i++) {
        snprintf(program.where, sizeof(program.where), "seed %llu, iteration %llu",
                 (unsigned long long)seed, (unsigned long long)i + 1);
        program.state = body;
        program.salt = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        run_iteration(&program, i, steps, &captured, totals);
        program.state ^= i << 32;
        if (random_draw(&program, 3) == 0) {
            random_visit(&program, 1);
        }
        if (random_draw(&program, 8) == 0) {
            random_work(&program);
        }
        if (random_draw(&program, 24) == 0) {
            random_replace(&program);
            captured.is_there = false; /* other addresses */
        }
    }
    random_finish(&program);
}

static void run_programs(const struct rig_options *options, uint64_t share)
{
    struct totals totals = {0};

    random_programs(options, share, run_program, &totals);
    printf("%llu iterations captured, %llu captures given up, %llu launches, %llu refused\n",
           (unsigned long long)totals.captured, (unsigned long long)totals.given_up,
           (unsigned long long)totals.launched, (unsigned long long)totals.refused);
    ck_assert_uint_gt(totals.captured, 0);
    ck_assert_uint_gt(totals.launched, 0);
}

START_TEST(captured_programs)
{
    run_programs(&(struct rig_options){0}, 4);
}
END_TEST

START_TEST(replayed_programs)
{
    run_programs(&(struct rig_options){.planner = "recompute"}, 8);
}
END_TEST

START_TEST(delayed_streams)
{
    run_programs(&(struct rig_options){.delay_seed = 1}, 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph programs");
    TCase *programs = tcase_create("programs");

    tcase_set_timeout(programs, 600);
    tcase_add_test(programs, captured_programs);
    tcase_add_test(programs, replayed_programs);
    tcase_add_test(programs, delayed_streams);
    suite_add_tcase(suite, programs);
    return suite_run(suite);
}
