/* The tree against a plain array. */
#include "policy/lower/op_trees.h"

#include "tests/support/suite.h"

#define POINTS 37

START_TEST(segment_trees_match_an_array)
{
    struct segment_tree tree;
    int64_t values[POINTS];
    uint64_t state = 12345;

    ck_assert_int_eq(segment_tree_init(&tree, POINTS), CAPU_OK);
    for (uint32_t i = 0; i < POINTS; i++) {
        values[i] = (int64_t)i * 7 % 11 - 5;
    }
    segment_tree_fill(&tree, values, POINTS);
    for (uint32_t step = 0; step < 3000; step++) {
        uint32_t first;
        uint32_t last;
        int64_t most = INT64_MIN;

        state = state * 6364136223846793005u + 1442695040888963407u;
        first = (uint32_t)(state >> 33) % POINTS;
        last = first + (uint32_t)(state >> 50) % (POINTS - first);
        if (step % 2 == 0) {
            int64_t bytes = (int64_t)(state >> 40) % 100 - 50;

            segment_tree_add(&tree, first, last, bytes);
            for (uint32_t i = first; i <= last; i++) {
                values[i] += bytes;
            }
            continue;
        }
        for (uint32_t i = first; i <= last; i++) {
            most = values[i] > most ? values[i] : most;
        }
        ck_assert_int_eq(segment_tree_most(&tree, first, last), most);
    }
    segment_tree_finish(&tree);
}
END_TEST

START_TEST(empty_ranges_are_allowed)
{
    struct segment_tree tree;
    int64_t value = 3;

    ck_assert_int_eq(segment_tree_init(&tree, 1), CAPU_OK);
    segment_tree_fill(&tree, &value, 1);
    segment_tree_add(&tree, 1, 0, 100);
    ck_assert_int_eq(segment_tree_most(&tree, 0, 0), 3);
    ck_assert_int_eq(segment_tree_most(&tree, 1, 0), INT64_MIN);
    segment_tree_finish(&tree);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/segment_tree");
    TCase *tests = tcase_create("segment_tree");

    tcase_add_test(tests, segment_trees_match_an_array);
    tcase_add_test(tests, empty_ranges_are_allowed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
