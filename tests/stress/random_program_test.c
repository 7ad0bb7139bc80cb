/*
 * Random programs in every mode without plans. TEST_SEED is the first seed, and TEST_PROGRAMS says
 * how many programs run. A failure prints the seed of the program.
 */
#include "tests/stress/random_program.h"

#include "tests/support/suite.h"

#include <stdio.h>

/* Stands for a random host budget that is too small for most programs. */
#define SCARCE UINT64_C(1)

enum { STEPS = 160 };

static void run_program(uint64_t seed, struct rig_options options, void *user)
{
    struct program program = {.state = seed};

    (void)user;
    options.budget_pages = PROGRAM_LARGEST_PAGES * 2 + random_draw(&program, 80);
    if (options.mode == CAPU_MODE_OFF) {
        options.budget_pages = 2048;
    }
    if (options.host_budget_bytes == SCARCE) {
        program.may_starve = true;
        options.host_budget_bytes = (4 + random_draw(&program, 60)) * RIG_PAGE;
    }
    options.clear_fresh = random_draw(&program, 4) == 0;
    options.is_late = random_draw(&program, 2) == 0;
    rig_init(&program.rig, &options);
    if (options.has_faults) {
        random_faults(&program, seed);
    }
    for (size_t i = 0; i < STEPS && !program.is_lost; i++) {
        snprintf(program.where, sizeof(program.where), "seed %llu, step %zu",
                 (unsigned long long)seed, i);
        random_step(&program);
        random_check(&program);
    }
    random_finish(&program);
}

static void run_programs(const struct rig_options *options, uint64_t share)
{
    random_programs(options, share, run_program, NULL);
}

START_TEST(passive_mode)
{
    run_programs(&(struct rig_options){0}, 1);
}
END_TEST

START_TEST(strict_mode)
{
    run_programs(&(struct rig_options){.strict = true}, 2);
}
END_TEST

START_TEST(delayed_streams)
{
    run_programs(&(struct rig_options){.delay_seed = 1}, 10);
}
END_TEST

/* Device calls fail at random. Failed calls are repeated, and nothing is lost. */
START_TEST(device_faults)
{
    run_programs(&(struct rig_options){.has_faults = true, .strict = _i == 1}, 8);
}
END_TEST

START_TEST(little_host_memory)
{
    run_programs(&(struct rig_options){.host_budget_bytes =
                                           PROGRAM_TENSORS * PROGRAM_LARGEST_PAGES * RIG_PAGE},
                 4);
}
END_TEST

/* Calls fail, without any effect, if there is no host memory to evict to. */
START_TEST(too_little_host_memory)
{
    run_programs(&(struct rig_options){.host_budget_bytes = SCARCE}, 4);
}
END_TEST

START_TEST(mode_off)
{
    run_programs(&(struct rig_options){.mode = CAPU_MODE_OFF, .strict = true}, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random programs");
    TCase *programs = tcase_create("programs");

    tcase_set_timeout(programs, 600);
    tcase_add_test(programs, passive_mode);
    tcase_add_test(programs, strict_mode);
    tcase_add_test(programs, delayed_streams);
    tcase_add_loop_test(programs, device_faults, 0, 2);
    tcase_add_test(programs, little_host_memory);
    tcase_add_test(programs, too_little_host_memory);
    tcase_add_test(programs, mode_off);
    suite_add_tcase(suite, programs);
    return suite_run(suite);
}
