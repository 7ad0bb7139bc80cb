/*
 * Random programs as training loops in guided mode. Each iteration makes the same steps with other
 * numbers, so most iterations are measured once and guided from then on. Some iterations leave
 * their plan at any point, end early, or do something else; in programs with habits, some leave out
 * a step, or read something late. In every third program two kinds of iteration alternate, each
 * with its own label and its own plan over the same tensors. Every byte is compared with the same
 * program on plain memory.
 *
 * TEST_SEED is the first seed, and TEST_PROGRAMS says how many programs run. A failure prints the
 * seed of the program.
 */
#include "tests/stress/random_program.h"

#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Slow enough that recomputing is sometimes the better choice. */
#define SLOW_LINK UINT64_C(300000000)

/* Stands for a random host budget that is too small for most programs. */
#define SCARCE UINT64_C(1)

enum { ITERATIONS = 9, MOST_STEPS = 40 };

/* One program in three has iterations of two kinds, and not each of these follows plans of both. */
enum { ENOUGH_FOR_CHANGES = 4 };

struct totals {
    uint64_t first;  /* the first seed, in threads */
    bool has_habits; /* of the programs; see struct habits */
    bool has_visits; /* they work between iterations, while copies for the next one are under way */
    uint64_t guided;
    uint64_t unplaced; /* of these, under plans without places */
    uint64_t mixed;    /* programs with iterations of two kinds */
    uint64_t changes;  /* guided iterations after one of the other kind */
    uint64_t diverged;
    uint64_t replays;
    uint64_t back_bytes;
    uint64_t refused;  /* calls repeated after a fault */
    uint64_t lost;     /* programs ended by a fault or by a lack of host memory */
    uint64_t starved;  /* calls that failed for lack of host memory */
    uint64_t given_up; /* calls that failed because contents were */
    uint64_t pending;  /* between iterations: calls on tensors with copies under way */
};

/* Where an iteration departs from the usual steps; at = UINT64_MAX: nowhere. */
struct detour {
    uint64_t at;   /* the step */
    uint64_t turn; /* changes the random numbers of the steps that follow */
    bool ends;     /* the iteration ends here */
    bool is_wild;  /* memory changes too */
};

static struct detour draw_detour(uint64_t *state, uint64_t steps)
{
    struct program random = {.state = *state};
    struct detour detour = {.at = UINT64_MAX};

    if (random_draw(&random, 4) == 0) {
        detour.at = random_draw(&random, steps);
        detour.turn = 1 + random_draw(&random, UINT32_MAX);
        detour.ends = random_draw(&random, 3) == 0;
        detour.is_wild = random_draw(&random, 6) == 0;
    }
    *state = random.state;
    return detour;
}

/* What iterations do differently, while all other steps are the same in each. */
struct habits {
    uint64_t seed; /* 0: no habits */
    uint64_t body; /* the random numbers of the steps */
    uint64_t iteration;
};

/* A random number that depends on a step, on `what` it is for and perhaps on the iteration. */
static uint64_t habit(const struct habits *habits, uint64_t step, uint64_t what, uint64_t iteration)
{
    uint64_t state = habits->seed ^ (step << 8) ^ (what << 24) ^ (iteration << 32);

    mixing_random(&state);
    return mixing_random(&state);
}

/* One step in 24 is not made by every iteration: most leave it out, or few do. */
static bool leaves_out(const struct habits *habits, uint64_t step)
{
    uint64_t kind = habit(habits, step, 0, 0) % 48;

    return kind < 2 && (habit(habits, step, 1, habits->iteration) % 4 == 0) == (kind == 0);
}

/* After one step in 24, some iterations read a tensor that may have had its last use. */
static bool reads_late(const struct habits *habits, uint64_t step)
{
    return habit(habits, step, 2, 0) % 24 == 0 &&
           habit(habits, step, 3, habits->iteration) % 3 == 0;
}

/* Allocates, splits, describes and frees, mixed with ordinary steps. */
static void change_memory(struct program *program)
{
    for (uint64_t i = 1 + random_draw(program, 4); i > 0 && !program->is_lost; i--) {
        uint64_t choice = random_draw(program, 8);

        if (choice == 0 && program->tensor_count > 4) {
            random_free(program,
                        program->tensors[random_draw(program, program->tensor_count)].blob);
        } else if (choice == 1) {
            random_allocate(program);
        } else if (choice < 4) {
            random_split(program);
        } else if (choice < 6) {
            random_describe(program);
        } else {
            random_work(program);
        }
        random_check(program);
    }
}

/* Runs the steps of an iteration. Temporaries are allocated at its start and freed at its end, so
   they get the same addresses each time. */
static void run_iteration(struct program *program, uint64_t steps, uint64_t temporaries,
                          const struct detour *detour, const struct habits *habits)
{
    size_t first = program->blob_count;

    for (uint64_t i = 0; i < temporaries; i++) {
        random_allocate(program);
    }
    /* Once a program is lost, the mirror no longer says what its tensors are. */
    for (uint64_t i = 0; i < steps && !program->is_lost; i++) {
        if (i == detour->at && detour->ends) {
            break;
        }
        if (habits->seed != 0) {
            program->state = habits->body ^ (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
            if (leaves_out(habits, i)) {
                continue;
            }
        }
        program->state ^= i == detour->at ? detour->turn : 0;
        if (i == detour->at && detour->is_wild) {
            change_memory(program);
        }
        random_work(program);
        if (habits->seed != 0 && reads_late(habits, i)) {
            random_read_late(program);
        }
        random_check(program);
    }
    while (program->blob_count > first) {
        random_free(program, program->blob_count);
        program->blob_count--;
    }
}

static void add_report(struct program *program, bool has_changed, struct totals *totals)
{
    capu_report report = CAPU_REPORT_INIT;

    PROGRAM_WORKS(program, capu_synchronize(program->rig.context));
    PROGRAM_WORKS(program, capu_report_get(program->rig.context, &report));
    PROGRAM_HOLDS(program, report.peak_bytes <= report.budget_bytes);
    totals->guided += report.mode == CAPU_MODE_GUIDED && report.diverged == 0;
    totals->unplaced += report.unplaced != 0 && report.diverged == 0;
    totals->changes += report.mode == CAPU_MODE_GUIDED && report.diverged == 0 && has_changed;
    totals->diverged += report.diverged;
    totals->replays += report.replay_count;
    totals->back_bytes += report.prefetched_bytes;
}

static void run_program(uint64_t seed, struct rig_options options, void *user)
{
    static const char *const planners[] = {"hybrid", "hybrid", "recompute", "recompute",
                                           "swap",   "swap",   "lru",       "manual"};
    struct totals *totals = user;
    struct program program = {.state = seed};
    uint64_t detours = seed;
    uint64_t bodies[2];
    uint64_t steps;
    uint64_t temporaries;

    options.mode = CAPU_MODE_GUIDED;
    options.is_late = totals->has_visits || random_draw(&program, 2) == 0;
    program.is_sweeping = totals->has_visits || random_draw(&program, 2) == 0;
    program.is_pure = options.planner != NULL || random_draw(&program, 3) == 0;
    options.planner =
        options.planner != NULL ? options.planner : planners[random_draw(&program, 8)];
    options.wait_for_plan = options.wait_for_plan || random_draw(&program, 4) > 0;
    options.link_bytes_per_s = totals->has_visits || random_draw(&program, 3) == 0 ? SLOW_LINK : 0;
    options.budget_pages = PROGRAM_LARGEST_PAGES * 2 + random_draw(&program, 30);
    options.clear_fresh = random_draw(&program, 4) == 0;
    if (options.host_budget_bytes == SCARCE) {
        program.may_starve = true;
        options.host_budget_bytes = (4 + random_draw(&program, 60)) * RIG_PAGE;
    }
    program.is_short = options.host_budget_bytes != 0;
    options.sample_every = random_draw(&program, 3) == 0 ? 1 : 0;
    rig_init(&program.rig, &options);
    steps = 4 + random_draw(&program, totals->has_visits ? MOST_STEPS / 4 : MOST_STEPS);
    temporaries = random_draw(&program, 3) == 0 ? random_draw(&program, 4) : 0;
    for (uint64_t i = 0; i < 14; i++) {
        random_allocate(&program);
    }
    for (uint64_t i = 0; i < 10; i++) {
        random_work(&program);
    }
    bodies[0] = program.state;
    bodies[1] = seed % 3 == 0 ? ~program.state : program.state;
    totals->mixed += bodies[1] != bodies[0];
    if (options.has_faults) {
        random_faults(&program, seed);
    }
    for (uint64_t i = 0; i < ITERATIONS && !program.is_lost; i++) {
        struct detour detour = draw_detour(&detours, steps);
        bool is_second = bodies[1] != bodies[0] && i % 2 == 1;
        struct habits habits = {
            .seed = totals->has_habits ? seed : 0, .body = bodies[is_second], .iteration = i + 1};

        snprintf(program.where, sizeof(program.where), "seed %llu, iteration %llu",
                 (unsigned long long)seed, (unsigned long long)i + 1);
        program.state = bodies[is_second];
        program.salt = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        random_turn(&program, is_second ? "validate" : "train");
        /* A plan of the second kind does not touch every tensor that it begins with. */
        run_iteration(&program, is_second ? 1 + steps / 4 : steps, temporaries, &detour, &habits);
        random_turn(&program, NULL);
        random_check(&program);
        program.state ^= program.salt;
        random_visit(&program, random_draw(&program, 4) + 2 * totals->has_visits);
        add_report(&program, bodies[1] != bodies[0], totals);
        if (random_draw(&program, 16) == 0) {
            random_work(&program);
        }
        if (random_draw(&program, 24) == 0) {
            random_replace(&program);
        }
    }
    totals->refused += program.refused;
    totals->lost += program.is_lost;
    totals->starved += program.starved;
    totals->given_up += program.given_up;
    totals->pending += program.pending;
    random_finish(&program);
}

static void run_programs(const struct rig_options *options, uint64_t share, struct totals *totals)
{
    random_programs(options, share, run_program, totals);
    printf("%llu guided iterations, %llu of them without places, %llu after the other kind, %llu "
           "that left their plan, "
           "%llu replays, %llu bytes brought back, %llu calls repeated, "
           "%llu calls without host memory, %llu calls without contents, "
           "%llu programs ended early, %llu calls between iterations during copies\n",
           (unsigned long long)totals->guided, (unsigned long long)totals->unplaced,
           (unsigned long long)totals->changes, (unsigned long long)totals->diverged,
           (unsigned long long)totals->replays, (unsigned long long)totals->back_bytes,
           (unsigned long long)totals->refused, (unsigned long long)totals->starved,
           (unsigned long long)totals->given_up, (unsigned long long)totals->lost,
           (unsigned long long)totals->pending);
    ck_assert_uint_gt(totals->guided, 0);
    ck_assert(totals->changes > 0 || totals->starved > 0 || totals->mixed < ENOUGH_FOR_CHANGES);
    ck_assert_uint_gt(totals->back_bytes, 0);
}

START_TEST(without_faults)
{
    run_programs(&(struct rig_options){0}, 2, &(struct totals){0});
}
END_TEST

/* Iterations that leave something out, and read late. */
START_TEST(with_habits)
{
    run_programs(&(struct rig_options){.strict = _i == 1}, _i == 1 ? 8 : 1,
                 &(struct totals){.has_habits = true});
}
END_TEST

/* Calls between iterations on tensors that the plan is copying back for the next iteration. How
   often there are such depends on the times that plans are made for; api_order_test has each of
   them. */
START_TEST(with_visits)
{
    run_programs(&(struct rig_options){.wait_for_plan = true}, 1,
                 &(struct totals){.has_visits = true});
}
END_TEST

START_TEST(strict_mode)
{
    run_programs(&(struct rig_options){.strict = true}, 2, &(struct totals){0});
}
END_TEST

/* Programs with replayable ops, and a planner that prefers replays. */
START_TEST(replayed_programs)
{
    run_programs(&(struct rig_options){.planner = "recompute", .strict = _i == 1}, 8,
                 &(struct totals){0});
}
END_TEST

/* Plans without places, which guided mode otherwise follows only close to the floor: as they are,
   in strict mode, with delayed streams, and with faults. */
START_TEST(without_places)
{
    struct totals totals = {.has_habits = _i == 0};

    run_programs(&(struct rig_options){.places_nothing = true,
                                       .strict = _i == 1,
                                       .delay_seed = _i == 2,
                                       .has_faults = _i == 3},
                 _i == 0 ? 4 : 8, &totals);
    ck_assert_uint_gt(totals.unplaced, 0);
}
END_TEST

/* Programs that once failed. A plan discarded what an earlier iteration had left in a tensor,
   because the planned iteration clears it later with capu_zero; after a split, what could have been
   recomputed was lost; strict mode compared a replay by a checksum that depended on which pages lay
   next to each other; it compared zeros that a plan filled in again while they were being filled
   in; and it compared what a replay would have written whose work could not be enqueued. */
START_TEST(programs_that_failed)
{
    static const struct {
        uint64_t seed;
        const char *planner;
        bool strict;
        bool is_unplaced;
        bool has_faults;
    } programs[] = {{5285, "recompute", false, false, false},
                    {30110, NULL, false, false, false},
                    {11, NULL, true, true, false},
                    {236, "recompute", true, false, false},
                    {2042, NULL, true, false, true}};

    run_program(programs[_i].seed,
                (struct rig_options){.planner = programs[_i].planner,
                                     .strict = programs[_i].strict,
                                     .places_nothing = programs[_i].is_unplaced,
                                     .has_faults = programs[_i].has_faults},
                &(struct totals){0});
}
END_TEST

/* Device calls fail at random. Failed calls are repeated, and nothing is lost. */
START_TEST(device_faults)
{
    run_programs(&(struct rig_options){.has_faults = true, .strict = _i == 1}, 8,
                 &(struct totals){0});
}
END_TEST

START_TEST(delayed_streams)
{
    run_programs(&(struct rig_options){.delay_seed = 1}, 4, &(struct totals){0});
}
END_TEST

/* As much as all tensors can need at once, so no call may fail for lack of it. */
START_TEST(little_host_memory)
{
    run_programs(&(struct rig_options){.host_budget_bytes =
                                           PROGRAM_TENSORS * PROGRAM_LARGEST_PAGES * RIG_PAGE,
                                       .wait_for_plan = true},
                 8, &(struct totals){0});
}
END_TEST

/* Not every program reaches its end. One that does not has reported an error; one that does has the
   right bytes. */
START_TEST(too_little_host_memory)
{
    struct totals totals = {0};

    run_programs(&(struct rig_options){.host_budget_bytes = SCARCE}, 4, &totals);
    ck_assert_uint_gt(totals.starved, totals.lost);
}
END_TEST

static void *run_thread(void *user)
{
    struct totals *totals = user;

    for (uint64_t seed = totals->first; seed < totals->first + 2 + effort_share(18); seed++) {
        run_program(seed, (struct rig_options){.strict = seed % 4 == 0}, totals);
    }
    return NULL;
}

/* Contexts share nothing, so two threads can use one each. */
START_TEST(two_threads)
{
    struct totals totals[2] = {{.first = 1000}, {.first = 2000}};
    pthread_t threads[2];
    struct rig rig;
    bool is_host;

    rig_init(&rig, &(struct rig_options){0});
    is_host = strcmp(capu_context_device(rig.context), "host") == 0;
    rig_finish(&rig);
    if (!is_host) {
        return; /* the streams of the fake CUDA runtime belong to one thread */
    }
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_thread, &totals[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_uint_gt(totals[i].guided, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("guided programs");
    TCase *programs = tcase_create("programs");

    tcase_set_timeout(programs, 600);
    tcase_add_test(programs, without_faults);
    tcase_add_loop_test(programs, with_habits, 0, 2);
    tcase_add_test(programs, with_visits);
    tcase_add_test(programs, strict_mode);
    tcase_add_loop_test(programs, without_places, 0, 4);
    tcase_add_loop_test(programs, replayed_programs, 0, 2);
    tcase_add_loop_test(programs, programs_that_failed, 0, 5);
    tcase_add_loop_test(programs, device_faults, 0, 2);
    tcase_add_test(programs, delayed_streams);
    tcase_add_test(programs, little_host_memory);
    tcase_add_test(programs, too_little_host_memory);
    tcase_add_test(programs, two_threads);
    suite_add_tcase(suite, programs);
    return suite_run(suite);
}
