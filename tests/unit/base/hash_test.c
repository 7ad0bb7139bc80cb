/* Hashes: equal for equal words and bytes, different for what is nearly the same. */
#include "base/hash.h"

#include "tests/support/suite.h"

#include <string.h>

enum { LONGEST = 40, BITS = 8, ADDRESSES = 1 << BITS };

/* Every length, and every byte of it, counts; where the bytes lie does not. */
START_TEST(all_bytes_count)
{
    unsigned char bytes[LONGEST + 1] = {0};
    unsigned char moved[LONGEST + 1] = {0};

    for (size_t count = 0; count <= LONGEST; count++) {
        uint64_t hash = hash_bytes(bytes, count);

        ck_assert_uint_le(hash, INT64_MAX);
        ck_assert_uint_eq(hash_bytes(moved + 1, count), hash);
        ck_assert(count == LONGEST || hash_bytes(bytes, count + 1) != hash);
        for (size_t i = 0; i < count; i++) {
            bytes[i] ^= 1;
            ck_assert_uint_ne(hash_bytes(bytes, count), hash);
            bytes[i] ^= 1;
        }
        if (count < LONGEST) {
            bytes[count] = (unsigned char)(count * 37);
            memcpy(moved + 1, bytes, LONGEST);
        }
    }
}
END_TEST

/* Plans depend on these: the search groups tensors by them. */
START_TEST(words_give_known_numbers)
{
    ck_assert_uint_eq(hash_mix(0, 0), 0);
    ck_assert_uint_eq(hash_mix(0, 1), 0x9e3779b97f4a7c15u ^ 0x9e3779b97f4a7c15u >> 29);
    ck_assert_uint_ne(hash_mix(hash_mix(0, 1), 2), hash_mix(hash_mix(0, 2), 1));
    ck_assert_uint_ne(hash_mix_two(0, 1, 2), hash_mix_two(0, 2, 1));
}
END_TEST

/* Addresses of equal tensors in a row: no place gets many of them. */
START_TEST(addresses_spread)
{
    for (unsigned shift = 8; shift < 32; shift++) {
        unsigned counts[ADDRESSES] = {0};

        for (uint64_t i = 0; i < ADDRESSES; i++) {
            size_t place = hash_place(UINT64_C(0x7f0000000000) + (i << shift), BITS);

            ck_assert_uint_lt(place, ADDRESSES);
            ck_assert_uint_le(++counts[place], 8);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hash");
    TCase *tcase = tcase_create("hash");

    tcase_add_test(tcase, all_bytes_count);
    tcase_add_test(tcase, words_give_known_numbers);
    tcase_add_test(tcase, addresses_spread);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
