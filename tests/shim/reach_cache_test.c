/* The cache of what launches depend on: what it finds is right, it keeps to its size, and what was
   used last stays. */
#include "shim/launch/reach_cache.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

enum { KEYS = 400, KEY_BYTES_MOST = 100 };

/* A key of a length of its own; several share a beginning. */
static size_t make_key(unsigned number, unsigned char key[KEY_BYTES_MOST])
{
    size_t bytes = 8 + number % 7 * 5;

    memset(key, 7, bytes);
    memcpy(key + bytes - sizeof(number), &number, sizeof(number));
    return bytes;
}

static unsigned *get(struct reach_cache *cache, unsigned number)
{
    unsigned char key[KEY_BYTES_MOST];
    size_t bytes = make_key(number, key);

    return reach_cache_get(cache, key, bytes);
}

static void put(struct reach_cache *cache, unsigned number, size_t value_bytes)
{
    unsigned char key[KEY_BYTES_MOST];
    size_t bytes = make_key(number, key);
    unsigned *value = reach_cache_put(cache, key, bytes, value_bytes);

    ck_assert_ptr_nonnull(value);
    memset(value, 0xff, value_bytes);
    *value = number;
}

START_TEST(what_was_put_is_found)
{
    struct reach_cache cache = {.bytes_most = 1 << 20};
    unsigned char key[KEY_BYTES_MOST];

    ck_assert_ptr_null(get(&cache, 1));
    for (unsigned i = 0; i < KEYS; i++) {
        put(&cache, i, sizeof(i) + i);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        ck_assert_uint_eq(*get(&cache, i), i);
        ck_assert_uint_eq((uintptr_t)get(&cache, i) % 16, 0);
    }
    /* A value that replaces another one, and keys that differ in their length only. */
    put(&cache, 3, 8);
    *get(&cache, 3) = 77;
    ck_assert_uint_eq(*get(&cache, 3), 77);
    ck_assert_uint_eq(cache.table.count, KEYS);
    memset(key, 0, sizeof(key));
    for (size_t bytes = 1; bytes <= 40; bytes++) {
        ck_assert_ptr_null(reach_cache_get(&cache, key, bytes));
        memset(reach_cache_put(&cache, key, bytes, sizeof(bytes)), (int)bytes, sizeof(bytes));
    }
    for (size_t bytes = 1; bytes <= 40; bytes++) {
        ck_assert_uint_eq(*(unsigned char *)reach_cache_get(&cache, key, bytes), bytes);
    }
    reach_cache_finish(&cache);
}
END_TEST

START_TEST(what_was_used_last_stays)
{
    struct reach_cache cache = {.bytes_most = 8192};
    unsigned char key[KEY_BYTES_MOST];
    uint64_t random = 1;
    unsigned kept = 0;

    for (unsigned i = 0; i < KEYS; i++) {
        put(&cache, i, 32 + random_next(&random) % 64);
        ck_assert_uint_le(cache.bytes, cache.bytes_most);
        ck_assert_uint_eq(*get(&cache, i), i);
        ck_assert_uint_eq(*get(&cache, 0), 0); /* used again and again */
    }
    /* Those after it were put last, one after the other. */
    for (unsigned i = KEYS - 1; i > 0 && get(&cache, i) != NULL; i--) {
        kept++;
    }
    ck_assert_uint_ge(kept, 30);
    ck_assert_uint_eq(kept + 1, cache.table.count);
    /* What cannot fit is not kept, nor what had its key. */
    ck_assert_ptr_null(reach_cache_put(&cache, key, make_key(0, key), 8192));
    ck_assert_ptr_null(get(&cache, 0));
    ck_assert_uint_eq(kept, cache.table.count);
    reach_cache_finish(&cache);
    ck_assert_uint_eq(cache.bytes, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reach_cache");
    TCase *cases = tcase_create("cache");

    tcase_add_test(cases, what_was_put_is_found);
    tcase_add_test(cases, what_was_used_last_stays);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
