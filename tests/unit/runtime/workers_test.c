/* Workers: order on one thread, concurrency on several, and ending with jobs pending. */
#include "runtime/context/agent.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/suite.h"

#include <pthread.h>

enum { JOBS = 500, THREADS = 4 };

struct entry {
    struct workers_job head;
    int number;
};

static int order[JOBS];
static int count; /* written by one worker, read after it has ended */

static void note(struct workers_job *job)
{
    struct entry *entry = (struct entry *)(void *)job;

    order[count++] = entry->number;
    free(entry);
}

START_TEST(one_thread_keeps_the_order)
{
    struct workers *workers = NULL;

    ck_assert_int_eq(workers_create(1, &workers), CAPU_OK);
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = malloc(sizeof(*entry));

        ck_assert_ptr_nonnull(entry);
        *entry = (struct entry){.head.run = note, .number = i};
        workers_add(workers, &entry->head);
    }
    workers_destroy(workers); /* which finishes them all */
    ck_assert_int_eq(count, JOBS);
    for (int i = 0; i < JOBS; i++) {
        ck_assert_int_eq(order[i], i);
    }
}
END_TEST

static pthread_barrier_t barrier;

static void meet(struct workers_job *job)
{
    (void)job;
    pthread_barrier_wait(&barrier);
}

/* Jobs that wait for each other finish only if all run at once. */
START_TEST(as_many_jobs_run_as_there_are_threads)
{
    struct workers_job jobs[THREADS] = {{.run = meet}, {.run = meet}, {.run = meet}, {.run = meet}};
    struct workers *workers = NULL;

    pthread_barrier_init(&barrier, NULL, THREADS);
    ck_assert_int_eq(workers_create(THREADS, &workers), CAPU_OK);
    for (size_t i = 0; i < THREADS; i++) {
        workers_add(workers, &jobs[i]);
    }
    workers_destroy(workers);
    pthread_barrier_destroy(&barrier);
}
END_TEST

START_TEST(creation_without_memory)
{
    struct workers *untouched = (struct workers *)(void *)&count;
    struct workers *workers = untouched;
    capu_status status;

    malloc_faults_arm(1, false);
    status = workers_create(1, &workers);
    malloc_faults_arm(0, false);
    ck_assert_int_eq(status, CAPU_NO_HOST_MEMORY);
    ck_assert_ptr_eq(workers, untouched);
    workers_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime workers");
    TCase *tcase = tcase_create("workers");

    tcase_add_test(tcase, one_thread_keeps_the_order);
    tcase_add_test(tcase, as_many_jobs_run_as_there_are_threads);
    tcase_add_test(tcase, creation_without_memory);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
