/* Staging memory: alignment, reuse after a turn and a restart, large requests, the limit. */
#include "runtime/lanes/staging.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

#include <string.h>

static struct device *device;
static struct staging staging;

static void begin(void)
{
    const struct device_options options = {.memory_bytes = 1 << 20, .page_bytes = 65536};

    ck_assert_int_eq(host_device_create(&options, &device, NULL, 0), CAPU_OK);
    staging_init(&staging, device);
}

static void end(void)
{
    staging_finish(&staging);
    staging_finish(&staging); /* accepts a zeroed struct */
    device_destroy(device);
}

static unsigned char *take(uint64_t bytes)
{
    void *memory = NULL;

    ck_assert_int_eq(staging_take(&staging, bytes, &memory), CAPU_OK);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static size_t chunk_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < STAGING_SETS; i++) {
        for (struct staging_chunk *chunk = staging.sets[i].first; chunk != NULL;
             chunk = chunk->next) {
            count++;
        }
    }
    return count;
}

enum { TAKES = 2000 };

/* Every piece is aligned, and keeps its bytes while all others are written. */
START_TEST(pieces_are_aligned_and_disjoint)
{
    static unsigned char *pieces[TAKES];
    static uint64_t bytes[TAKES];
    uint64_t seed = seed_start("staging");

    for (size_t i = 0; i < TAKES; i++) {
        bytes[i] = 1 + seed_below(&seed, seed_below(&seed, 50) == 0 ? 300000 : 3000);
        pieces[i] = take(bytes[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % 64, 0);
        memset(pieces[i], (int)(i % 251), bytes[i]);
    }
    for (size_t i = 0; i < TAKES; i++) {
        ck_assert_uint_eq(pieces[i][0], i % 251);
        ck_assert_int_eq(memcmp(pieces[i], pieces[i] + 1, bytes[i] - 1), 0);
    }
}
END_TEST

/* A turn does not reuse the memory of the last two sets; it reuses the third. */
START_TEST(turns_reuse_the_third_set)
{
    unsigned char *first[STAGING_SETS];

    for (size_t i = 0; i < STAGING_SETS; i++) {
        first[i] = take(100);
        memset(first[i], (int)i + 1, 100);
        staging_turn(&staging);
    }
    for (size_t i = 0; i < STAGING_SETS; i++) {
        ck_assert_uint_eq(first[i][99], i + 1);
    }
    for (size_t round = 0; round < 10; round++) {
        for (size_t i = 0; i < STAGING_SETS; i++) {
            ck_assert_ptr_eq(take(100), first[i]);
            staging_turn(&staging);
        }
    }
    ck_assert_uint_eq(chunk_count(), STAGING_SETS);
}
END_TEST

/* After a restart, the same requests in the same order get the same addresses and no new chunk. */
START_TEST(a_restart_reuses_the_chunks)
{
    static const uint64_t sizes[] = {100, STAGING_CHUNK, 64,    3 * STAGING_CHUNK + 1,
                                     1,   900000,        200000};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    unsigned char *first[SIZES];
    size_t chunks;

    for (size_t i = 0; i < SIZES; i++) {
        first[i] = take(sizes[i]);
        memset(first[i], 1, sizes[i]);
    }
    chunks = chunk_count();
    for (int round = 0; round < 5; round++) {
        staging_restart(&staging);
        for (size_t i = 0; i < SIZES; i++) {
            ck_assert_ptr_eq(take(sizes[i]), first[i]);
        }
        ck_assert_uint_eq(chunk_count(), chunks);
    }
}
END_TEST

/* A request larger than a chunk gets a chunk of its own size. After a restart, smaller requests use
   that chunk too. */
START_TEST(large_requests_get_their_own_chunk)
{
    unsigned char *large = take(5 * STAGING_CHUNK - 64);
    unsigned char *more;

    memset(large, 7, 5 * STAGING_CHUNK - 64);
    ck_assert_uint_eq(chunk_count(), 1);
    ck_assert_uint_eq(staging.sets[0].first->bytes, 5 * STAGING_CHUNK - 64);
    more = take(64);
    ck_assert(more < large || more >= large + 5 * STAGING_CHUNK - 64);
    ck_assert_uint_eq(chunk_count(), 2);
    staging_restart(&staging);
    ck_assert_ptr_eq(take(64), large);
    ck_assert_ptr_eq(take(128), large + 64);
    ck_assert_uint_eq(chunk_count(), 2);
}
END_TEST

START_TEST(sizes_that_would_overflow_are_rejected)
{
    void *memory = &memory;

    ck_assert_int_eq(staging_take(&staging, UINT64_MAX, &memory), CAPU_TOO_LARGE);
    ck_assert_int_eq(staging_take(&staging, UINT64_MAX - 63, &memory), CAPU_TOO_LARGE);
    ck_assert_ptr_eq(memory, &memory);
    ck_assert_uint_eq(chunk_count(), 0);
    ck_assert_uint_eq(staging.sets[0].taken, 0);
}
END_TEST

START_TEST(the_limit_is_per_set)
{
    /* An empty set accepts any size; otherwise a large upload could never proceed. */
    ck_assert(!staging_is_full(&staging, STAGING_LIMIT + 1));
    for (uint64_t taken = 0; taken < STAGING_LIMIT - STAGING_CHUNK; taken += STAGING_CHUNK) {
        ck_assert(!staging_is_full(&staging, STAGING_CHUNK));
        take(STAGING_CHUNK);
    }
    ck_assert(!staging_is_full(&staging, STAGING_CHUNK));
    ck_assert(staging_is_full(&staging, STAGING_CHUNK + 1));
    ck_assert(staging_is_full(&staging, UINT64_MAX));
    take(2 * STAGING_CHUNK); /* staging_take does not check the limit */
    ck_assert(staging_is_full(&staging, 1));
    staging_turn(&staging);
    ck_assert(!staging_is_full(&staging, STAGING_LIMIT));
    staging_turn(&staging);
    staging_turn(&staging);
    ck_assert(!staging_is_full(&staging, STAGING_LIMIT));
    take(1);
    ck_assert(staging_is_full(&staging, STAGING_LIMIT));
    staging_restart(&staging);
    ck_assert(!staging_is_full(&staging, STAGING_LIMIT));
}
END_TEST

/* If any allocation fails, nothing has changed, and the same request works afterwards. */
START_TEST(a_failed_take_changes_nothing)
{
    unsigned char *kept = take(100);
    uint64_t call = 1;
    capu_status status;

    memset(kept, 3, 100);
    for (;; call++) {
        struct staging_set before = staging.sets[0];
        void *memory = &memory;

        malloc_faults_arm(call, false);
        status = staging_take(&staging, 2 * STAGING_CHUNK, &memory);
        malloc_faults_arm(0, false);
        if (malloc_faults_hits() == 0) {
            break;
        }
        ck_assert_int_eq(status, CAPU_NO_HOST_MEMORY);
        ck_assert_ptr_eq(memory, &memory);
        ck_assert_int_eq(memcmp(&before, &staging.sets[0], sizeof(before)), 0);
        ck_assert_uint_eq(chunk_count(), 1);
    }
    ck_assert_int_eq(status, CAPU_OK);
    ck_assert_uint_gt(call, 1);
    ck_assert_uint_eq(chunk_count(), 2);
    ck_assert_uint_eq(kept[99], 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime staging");
    TCase *tcase = tcase_create("staging");

    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, pieces_are_aligned_and_disjoint);
    tcase_add_test(tcase, turns_reuse_the_third_set);
    tcase_add_test(tcase, a_restart_reuses_the_chunks);
    tcase_add_test(tcase, large_requests_get_their_own_chunk);
    tcase_add_test(tcase, sizes_that_would_overflow_are_rejected);
    tcase_add_test(tcase, the_limit_is_per_set);
    tcase_add_test(tcase, a_failed_take_changes_nothing);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
