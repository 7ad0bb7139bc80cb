/* Guided mode: a plan becomes active after iterations with another plan, or with other contents
   than the plan was made for. */
#include "tests/api/steps.h"

/* A tensor that the iteration overwrites before it reads it is resident when the plan is installed,
   but gives up its pages at once. The tensor that gets them must wait for the copy that brought the
   first one back. */
START_TEST(ops_wait_for_copies_of_the_install)
{
    enum { LARGE = 8, SMALL = 2, MOST = 14 };
    struct rig rig;
    unsigned char *early;
    unsigned char *kept;
    unsigned char *late;
    unsigned char *other;
    unsigned char *small;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                         .budget_pages = MOST + 1,
                                         .wait_for_plan = true,
                                         .planner = "swap",
                                         .link_bytes_per_s = 2000000});
    early = step_tensor(&rig, "early", CAPU_ACTIVATION, LARGE);
    kept = step_tensor(&rig, "kept", CAPU_PARAMETER, SMALL);
    late = step_tensor(&rig, "late", CAPU_PARAMETER, LARGE);
    other = step_tensor(&rig, "other", CAPU_ACTIVATION, MOST);
    small = step_malloc(&rig, 100);
    step_set(&rig, kept, PAGES(SMALL), 1);
    step_set(&rig, late, PAGES(LARGE), 7);
    for (unsigned char round = 0; round < 4; round++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        step_set(&rig, small, 100, round);
        step_set(&rig, early, PAGES(LARGE), round + 100);
        step_bump(&rig, "bump", kept, PAGES(SMALL));
        RIG_OK(&rig, capu_synchronize(rig.context));
        step_expect(&rig, early, PAGES(LARGE), round + 100);
        step_set(&rig, late, PAGES(LARGE), round + 1);
        RIG_OK(&rig, capu_iteration_end(rig.context));
        RIG_OK(&rig, capu_iteration_begin(rig.context, "other"));
        step_set(&rig, other, PAGES(MOST), 9);
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    step_expect(&rig, late, PAGES(LARGE), 4);
    step_expect(&rig, kept, PAGES(SMALL), 5);
    rig_finish(&rig);
}
END_TEST

/* An update makes a tensor's host copy obsolete while the copy back still reads it. The host block
   must not be reused until that copy has finished, not even for what the plan copies out next. */
START_TEST(host_blocks_are_kept_until_they_have_been_read)
{
    enum { LARGE = 8, SMALL = 2, OTHER = 10, BUDGET = 20 };
    struct rig rig;
    unsigned char *early;
    unsigned char *kept;
    unsigned char *late;
    unsigned char *other;
    unsigned char *small;
    unsigned char *sums;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                         .budget_pages = BUDGET,
                                         .wait_for_plan = true,
                                         .planner = "swap",
                                         .link_bytes_per_s = 2000000});
    kept = step_tensor(&rig, "kept", CAPU_PARAMETER, SMALL);
    sums = step_tensor(&rig, "sums", CAPU_PARAMETER, LARGE);
    early = step_tensor(&rig, "early", CAPU_ACTIVATION, LARGE);
    late = step_tensor(&rig, "late", CAPU_PARAMETER, LARGE);
    other = step_tensor(&rig, "other", CAPU_ACTIVATION, OTHER);
    small = step_malloc(&rig, 100);
    step_set(&rig, kept, PAGES(SMALL), 1);
    step_set(&rig, sums, PAGES(LARGE), 1);
    step_set(&rig, late, PAGES(LARGE), 50);
    for (unsigned char round = 0; round < 5; round++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        step_set(&rig, small, 100, round);
        step_bump(&rig, "bump", kept, PAGES(SMALL));
        step_bump(&rig, "sum", sums, PAGES(LARGE));
        step_set(&rig, early, PAGES(LARGE), round + 100);
        step_expect(&rig, early, PAGES(LARGE), round + 100);
        step_set(&rig, late, PAGES(LARGE), round + 51);
        RIG_OK(&rig, capu_iteration_end(rig.context));
        RIG_OK(&rig, capu_iteration_begin(rig.context, "other"));
        step_set(&rig, other, PAGES(OTHER), 9);
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    step_expect(&rig, sums, PAGES(LARGE), 6);
    step_expect(&rig, late, PAGES(LARGE), 55);
    rig_finish(&rig);
}
END_TEST

/* Sums are zeroed between some iterations. A plan recorded in an iteration that began with zeros
   treats them as dead until it fills in zeros. It must not do so in an iteration before which they
   were not zeroed. */
START_TEST(zeros_of_one_iteration_are_not_assumed_in_the_next)
{
    enum { LARGE = 8, BUDGET = 12 };
    struct rig rig;
    unsigned char *early;
    unsigned char *small;
    unsigned char *sums;
    unsigned char count = 0;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                         .budget_pages = BUDGET,
                                         .wait_for_plan = true,
                                         .planner = "swap",
                                         .strict = _i == 1});
    early = step_tensor(&rig, "early", CAPU_ACTIVATION, LARGE);
    sums = step_tensor(&rig, "sums", CAPU_OPTIMIZER, LARGE);
    small = step_malloc(&rig, 100);
    step_set(&rig, sums, PAGES(LARGE), 0);
    for (size_t round = 0; round < 12; round++) {
        if (round % 4 == 1) {
            RIG_OK(&rig, capu_zero(rig.context, sums, 0));
            count = 0;
        }
        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        step_set(&rig, small, 100, 1);
        step_set(&rig, early, PAGES(LARGE), 2);
        step_expect(&rig, early, PAGES(LARGE), 2);
        step_bump(&rig, "count", sums, PAGES(LARGE));
        count++;
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    step_expect(&rig, sums, PAGES(LARGE), count);
    rig_finish(&rig);
}
END_TEST

/* The first iteration writes an undefined tensor in parts, and the first part has nothing to keep.
   In later iterations each part must keep the contents of the others, so a plan recorded in the
   first iteration must not treat them as dead. */
START_TEST(first_partial_writes_are_not_planned_as_whole_ones)
{
    enum { LARGE = 8, BUDGET = 12 };
    struct rig rig;
    unsigned char *early;
    unsigned char *parts;
    unsigned char *small;

    rig_init(&rig, &(struct rig_options){.mode = CAPU_MODE_GUIDED,
                                         .budget_pages = BUDGET,
                                         .wait_for_plan = true,
                                         .planner = "swap",
                                         .strict = _i == 1});
    early = step_tensor(&rig, "early", CAPU_ACTIVATION, LARGE);
    parts = step_tensor(&rig, "parts", CAPU_OPTIMIZER, LARGE);
    small = step_malloc(&rig, 100);
    for (unsigned char round = 0; round < 6; round++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        step_set(&rig, small, 100, 1);
        step_set(&rig, early, PAGES(LARGE), 2);
        step_expect(&rig, early, PAGES(LARGE), 2);
        step_set(&rig, parts, PAGES(LARGE / 2), round);
        step_set(&rig, parts + PAGES(LARGE / 2), PAGES(LARGE / 2), round);
        RIG_OK(&rig, capu_iteration_end(rig.context));
        rig_check(&rig);
    }
    step_expect(&rig, parts, PAGES(LARGE), 5);
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api install");
    TCase *cases = tcase_create("install");

    tcase_add_test(cases, ops_wait_for_copies_of_the_install);
    tcase_add_test(cases, host_blocks_are_kept_until_they_have_been_read);
    tcase_add_loop_test(cases, zeros_of_one_iteration_are_not_assumed_in_the_next, 0, 2);
    tcase_add_loop_test(cases, first_partial_writes_are_not_planned_as_whole_ones, 0, 2);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
