/* parallel: every tile runs once, also with several callers at the same time. */
#include "kernels/parallel.h"

#include "tests/support/suite.h"

#include <pthread.h>
#include <stdatomic.h>

#define TILES 1000
#define CALLERS 4

struct counts {
    atomic_uint runs[TILES];
};

static void count_tile(const void *arguments, size_t tile)
{
    struct counts *counts = *(struct counts *const *)arguments;
    atomic_fetch_add(&counts->runs[tile], 1);
}

static void *call_often(void *argument)
{
    struct counts *counts = argument;

    for (int i = 0; i < 50; i++) {
        parallel_run(TILES, count_tile, &counts);
    }
    return NULL;
}

START_TEST(every_tile_runs_once)
{
    static struct counts counts;
    struct counts *pointer = &counts;

    parallel_set_threads((unsigned)_i);
    for (size_t tiles = 0; tiles <= TILES; tiles += 1 + tiles / 2) {
        for (size_t i = 0; i < TILES; i++) {
            atomic_store(&counts.runs[i], 0);
        }
        parallel_run(tiles, count_tile, &pointer);
        for (size_t i = 0; i < TILES; i++) {
            ck_assert_uint_eq(atomic_load(&counts.runs[i]), i < tiles);
        }
    }
}
END_TEST

START_TEST(several_threads_can_call)
{
    static struct counts counts[CALLERS];
    pthread_t threads[CALLERS];

    parallel_set_threads(3);
    for (int i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &counts[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        for (size_t tile = 0; tile < TILES; tile++) {
            ck_assert_uint_eq(atomic_load(&counts[i].runs[tile]), 50);
        }
    }
}
END_TEST

START_TEST(the_environment_sets_the_thread_count)
{
    setenv("KERNELS_THREADS", "5", 1);
    ck_assert_uint_eq(parallel_threads(), 5);
    parallel_set_threads(0);
    ck_assert_uint_eq(parallel_threads(), 1);
}
END_TEST

START_TEST(items_are_cut_into_tiles)
{
    struct parallel_range last = parallel_items(2, 10, 21);

    ck_assert_uint_eq(parallel_tiles(0, 10), 0);
    ck_assert_uint_eq(parallel_tiles(20, 10), 2);
    ck_assert_uint_eq(parallel_tiles(21, 10), 3);
    ck_assert_uint_eq(last.first, 20);
    ck_assert_uint_eq(last.end, 21);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parallel");
    TCase *tests = tcase_create("parallel");

    tcase_add_loop_test(tests, every_tile_runs_once, 1, 5);
    tcase_add_test(tests, several_threads_can_call);
    tcase_add_test(tests, the_environment_sets_the_thread_count);
    tcase_add_test(tests, items_are_cut_into_tiles);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
