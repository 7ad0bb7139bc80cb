/* Each claim about a GPU holds for one outcome, and fails for another. */
#include "bench/gpu/judge.h"

#include "tests/support/suite.h"

#include <string.h>

static const struct judge judge = {.steps = 10, .settle = 120};
static const struct judge untimed = {.steps = 10, .settle = 120, .is_untimed = true};
static const struct outcome off[2] = {{.wall_ns = 1e8}, {.wall_ns = 1e8}};

/* A run that bears out every claim: 20 % slower than `off`, as predicted. */
static const struct outcome fine = {
    .is_steady = true,
    .steady = 10,
    .begun = 30,
    .wall_ns = 1.2e8,
    .compute_ns = 1e8,
    .predicted_ns = 1.2e8,
    .evicted_bytes = 1e9,
    .prefetched_bytes = 1e9,
    .evict_count = 100,
    .host_bytes = (uint64_t)2 << 30,
    .used_bytes = (int64_t)1000 << 20,
    .samples = 1000,
};

static void check_holds(struct claim claim)
{
    ck_assert_msg(judge_holds(&claim) && claim.is_judged, "%s: %g, limit %g", claim.name,
                  claim.value, claim.limit);
    ck_assert_str_eq(judge_verdict(&claim), "holds");
}

static void check_broken(struct claim claim)
{
    ck_assert_msg(!judge_holds(&claim), "%s: %g, limit %g", claim.name, claim.value, claim.limit);
    ck_assert_str_eq(judge_verdict(&claim), "BROKEN");
    ck_assert_uint_gt(strlen(claim.detail), 0);
}

static void check_not_judged(struct claim claim)
{
    ck_assert(judge_holds(&claim));
    ck_assert_str_eq(judge_verdict(&claim), "not judged");
}

START_TEST(test_steady_iterations)
{
    const capu_report steady = {.mode = CAPU_MODE_GUIDED, .predicted_ns = 1};
    capu_report other = steady;

    ck_assert(judge_is_steady(&steady));
    other.mode = CAPU_MODE_PASSIVE;
    ck_assert(!judge_is_steady(&other));
    other = steady;
    other.predicted_ns = 0; /* no plan */
    ck_assert(!judge_is_steady(&other));
    other = steady;
    other.diverged = 1;
    ck_assert(!judge_is_steady(&other));
    other = steady;
    other.timed = 1;
    ck_assert(!judge_is_steady(&other));
    other = steady;
    other.install_ns = 1;
    ck_assert(!judge_is_steady(&other));
}
END_TEST

START_TEST(test_becoming_steady)
{
    struct outcome never = fine;

    check_holds(judge_steady(&judge, "steady", &fine));
    never.is_steady = false;
    never.steady = 9;
    never.begun = 120;
    check_broken(judge_steady(&judge, "steady", &never));
    check_not_judged(judge_steady(&untimed, "steady", &never));
}
END_TEST

/* Beside the budget: 64 MiB, and 8 MiB of page tables for 2 GiB of pinned memory. */
START_TEST(test_memory)
{
    struct outcome unknown = fine;

    check_holds(judge_memory((uint64_t)(1000 - 72) << 20, &fine));
    check_broken(judge_memory((uint64_t)(1000 - 73) << 20, &fine));
    unknown.samples = 0;
    unknown.used_bytes = 0;
    check_broken(judge_memory((uint64_t)1 << 30, &unknown));
}
END_TEST

START_TEST(test_steady_memory)
{
    struct outcome bad = fine;

    check_holds(judge_calls(&fine));
    bad.map_count = 1;
    check_broken(judge_calls(&bad));
    check_holds(judge_growth(&fine));
    bad.grown_bytes = (int64_t)5 << 20;
    check_broken(judge_growth(&bad));
    bad.is_steady = false; /* what no steady iteration did is not known: becoming steady fails */
    check_not_judged(judge_calls(&bad));
    check_not_judged(judge_growth(&bad));
}
END_TEST

START_TEST(test_no_overhead)
{
    const struct outcome unknown[2] = {{0}};
    struct outcome roomy = fine;

    roomy.wall_ns = 1.009e8;
    check_holds(judge_no_overhead(&judge, off, &roomy));
    check_broken(judge_no_overhead(&judge, unknown, &roomy));
    roomy.wall_ns = 1.011e8;
    check_broken(judge_no_overhead(&judge, off, &roomy));
    check_not_judged(judge_no_overhead(&untimed, off, &roomy));
}
END_TEST

/* Copies of 100 ms, of which 20 ms are seen. */
START_TEST(test_overlap)
{
    struct outcome swapped = fine;

    check_holds(judge_overlap(&judge, off, &swapped, 2e10, 2e10));
    swapped.wall_ns = 1.51e8;
    check_broken(judge_overlap(&judge, off, &swapped, 2e10, 2e10));
    check_not_judged(judge_overlap(&untimed, off, &swapped, 2e10, 2e10));
    swapped.evicted_bytes = 0;
    swapped.prefetched_bytes = 0;
    check_broken(judge_overlap(&judge, off, &swapped, 2e10, 2e10));
}
END_TEST

START_TEST(test_prediction)
{
    struct outcome planned = fine;

    check_holds(judge_prediction(&judge, "prediction", off, &planned));
    planned.predicted_ns = 1.26e8; /* too high by 6 points */
    check_broken(judge_prediction(&judge, "prediction", off, &planned));
    planned.predicted_ns = 1.14e8;
    check_broken(judge_prediction(&judge, "prediction", off, &planned));
    check_not_judged(judge_prediction(&untimed, "prediction", off, &planned));
    planned.predicted_ns = 1.2e8;
    planned.compute_ns = 0; /* no iteration was timed: the prediction is not known */
    check_broken(judge_prediction(&judge, "prediction", off, &planned));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpu_judge");
    TCase *tcase = tcase_create("claims");

    tcase_add_test(tcase, test_steady_iterations);
    tcase_add_test(tcase, test_becoming_steady);
    tcase_add_test(tcase, test_memory);
    tcase_add_test(tcase, test_steady_memory);
    tcase_add_test(tcase, test_no_overhead);
    tcase_add_test(tcase, test_overlap);
    tcase_add_test(tcase, test_prediction);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
