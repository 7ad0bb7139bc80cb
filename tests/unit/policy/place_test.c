/* Which tensors share pages, on traces small enough to work it out by hand. Pages of 500 bytes. */
#include "tests/unit/policy/fixture.h"

#include "policy/model/program.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/place/place.h"
#include "policy/search/planner.h"

#define PAGE ",\"page_bytes\":500"

static struct trace trace;
static struct trace_index trace_index;
static struct plan plan;
static struct place_result result;
static struct error_text error;

static void teardown(void)
{
    plan_finish(&plan);
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

/* Places the plan; the result has to be valid. */
static capu_status place(const char *trace_lines, const char *plan_lines)
{
    capu_status status;

    read_trace(&trace, trace_lines);
    read_plan(&plan, plan_lines);
    ck_assert_int_eq(trace_index_init(&trace_index, &trace, plan.page_bytes, &error), CAPU_OK);
    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s", error.text);
    status = place_plan(&trace_index, NULL, &plan, &result, &error);
    if (status == CAPU_OK) {
        ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s", error.text);
    }
    return status;
}

static bool share(uint32_t a, uint32_t b)
{
    struct placement placement;
    bool found = false;

    ck_assert_int_eq(placement_init(&placement, &trace_index, &plan, &error), CAPU_OK);
    ck_assert_uint_gt(placement_count(&placement, a), 0);
    ck_assert_uint_gt(placement_count(&placement, b), 0);
    for (uint32_t i = 0; i < placement_count(&placement, a); i++) {
        for (uint32_t j = 0; j < placement_count(&placement, b); j++) {
            found |= placement_page(&placement, a, i) == placement_page(&placement, b, j);
        }
    }
    placement_finish(&placement);
    return found;
}

/* y dies at f2, g is made at b0: the only two tensors of the chain that are never resident
   together. */
START_TEST(tensors_never_resident_together_share_pages)
{
    ck_assert_int_eq(place(CHAIN_TRACE, PLAN_LINE(3500, PAGE)), CAPU_OK);
    ck_assert_uint_eq(result.pages, 7);
    ck_assert_uint_eq(result.needed, 7);
    ck_assert_uint_eq(result.placed_ns, 9000);
    ck_assert(share(2, 4));
    ck_assert(!share(1, 2) && !share(1, 3) && !share(2, 3) && !share(0, 1));
}
END_TEST

START_TEST(too_few_pages_are_reported)
{
    /* 3499 bytes are six pages; the plan is not valid there, so fixed_bytes that belong to no
       tensor take the seventh page. */
    ck_assert_int_eq(place(CHAIN_TRACE, PLAN_LINE(3600, PAGE)), CAPU_OK);
    plan.fixed_bytes = 101;
    ck_assert_int_eq(place_plan(&trace_index, NULL, &plan, &result, &error), CAPU_OVER_BUDGET);
    ck_assert_str_eq(error.text, "the plan needs 7 pages, there are 6");
    ck_assert_uint_eq(result.needed, 7);
    ck_assert_uint_eq(result.placed_ns, UINT64_MAX);
    ck_assert_uint_eq(plan.place_count, 0);
}
END_TEST

START_TEST(fixed_bytes_take_pages_away)
{
    ck_assert_int_eq(place(CHAIN_TRACE, PLAN_LINE(4600, PAGE ",\"fixed_bytes\":600")), CAPU_OK);
    ck_assert_uint_eq(result.pages, 8);
}
END_TEST

/*
 * x is swapped over f2. If pages are scarce, z gets x's and waits for the copy; but then x cannot
 * return to them, because b0 reads z. So z must have others.
 */
START_TEST(all_residencies_of_a_tensor_count)
{
    ck_assert_int_eq(place(CHAIN_TRACE, PLAN_LINE(4000, PAGE) AFTER("evict", 1, 1) PREFETCH(1, 3)),
                     CAPU_OK);
    ck_assert(!share(1, 3));
    ck_assert(!share(1, 2));
    ck_assert_uint_eq(result.placed_ns, result.unplaced_ns);
}
END_TEST

/* a, then b during the time in which c, issued before b's release, waits for the link after d. */
#define QUEUE_TRACE                                                                              \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "c", 500, "parameter")                                \
        TENSOR_LINE(1, "d", 5000, "parameter") TENSOR_LINE(2, "b", 500, "activation")            \
            TENSOR_LINE(3, "e", 500, "activation") OP_LINE("f0", 100, "[]", "[2]", "[]", "true") \
                OP_LINE("f1", 100, "[2]", "[]", "[]", "true")                                    \
                    OP_LINE("f2", 6000, "[]", "[3]", "[]", "true")                               \
                        OP_LINE("b0", 100, "[0,1,3]", "[]", "[]", "false")

/* d's copy runs until 5110; c's, issued with it before f1, follows. b is released at 200. In time,
   c could have b's pages; but b's release is issued after c's prefetch. */
START_TEST(issue_order_decides_who_can_share)
{
    ck_assert_int_eq(place(QUEUE_TRACE, PLAN_LINE(7000, PAGE) PREFETCH(1, 1) PREFETCH(0, 1)
                                            AFTER("evict", 0, 3) AFTER("evict", 1, 3)),
                     CAPU_OK);
    ck_assert(!share(0, 2));
    ck_assert(!share(1, 2));
    /* b is released when e comes, and no other tensor is. */
    ck_assert(share(2, 3));
}
END_TEST

/* y's copy out ends long after x's copy in could begin; but x is not needed for long. */
START_TEST(a_prefetch_can_wait_for_pages)
{
    ck_assert_int_eq(place(TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "y", 500, "parameter")
                               TENSOR_LINE(1, "x", 500, "parameter")
                                   OP_LINE("a", 100, "[]", "[]", "[0]", "false")
                                       OP_LINE("b", 6000, "[]", "[]", "[]", "true")
                                           OP_LINE("c", 100, "[1]", "[]", "[]", "true"),
                           PLAN_LINE(2000, PAGE) PREFETCH(0, 0) AFTER("evict", 0, 0) PREFETCH(1, 1)
                               AFTER("evict", 1, 2)),
                     CAPU_OK);
    ck_assert(share(0, 1));
    ck_assert_uint_eq(result.placed_ns, result.unplaced_ns);
}
END_TEST

#define FILL_LINE OP_LINE("fill", 1000, "[]", "[]", "[]", "true")

/*
 * A and B are used together, so they are in two pages; T comes next, and B returns sooner than A.
 * But L, resident from op 2 to 14 and again together with A, can have only B's page, and only if T
 * does not: the sweep alone would need a third one.
 */
START_TEST(long_residencies_are_placed_first_if_necessary)
{
    static const char trace_lines[] = TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "A", 500, "parameter")
        TENSOR_LINE(1, "B", 500, "parameter") TENSOR_LINE(2, "T", 500, "parameter")
            TENSOR_LINE(3, "L", 500, "parameter") OP_LINE("0", 1000, "[0,1]", "[]", "[]", "true")
                OP_LINE("1", 1000, "[2]", "[]", "[]", "true")
                    OP_LINE("2", 1000, "[3]", "[]", "[]", "true")
                        OP_LINE("3", 1000, "[2]", "[]", "[]", "true")
                            FILL_LINE FILL_LINE FILL_LINE FILL_LINE FILL_LINE FILL_LINE FILL_LINE
                                FILL_LINE FILL_LINE FILL_LINE OP_LINE("14", 1000, "[3]", "[]", "[]",
                                                                      "true")
                                    OP_LINE("15", 1000, "[1]", "[]", "[]", "true")
                                        OP_LINE("16", 1000, "[0,3]", "[]", "[]", "true");

    ck_assert_int_eq(place(trace_lines,
                           PLAN_LINE(1000, PAGE) PREFETCH(0, 0) PREFETCH(1, 0) AFTER("evict", 0, 0)
                               AFTER("evict", 1, 0) PREFETCH(2, 1) AFTER("evict", 2, 1) PREFETCH(
                                   3, 2) PREFETCH(2, 3) AFTER("evict", 2, 3) AFTER("evict", 3, 14)
                                   PREFETCH(1, 15) AFTER("evict", 1, 15) PREFETCH(0, 16)
                                       PREFETCH(3, 16) AFTER("evict", 0, 16) AFTER("evict", 3, 16)),
                     CAPU_OK);
    ck_assert_uint_eq(result.needed, 2);
    ck_assert(share(1, 3));
    ck_assert(share(0, 2));
}
END_TEST

/* w is resident over the border and away between its two uses; x has its pages in between. */
#define BORDER_TRACE                                                                  \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 500, "parameter")                     \
        TENSOR_LINE(1, "x", 500, "activation") TENSOR_LINE(2, "y", 500, "activation") \
            OP_LINE("a", 2000, "[0]", "[]", "[]", "true")                             \
                OP_LINE("b", 2000, "[]", "[1]", "[]", "true")                         \
                    OP_LINE("c", 2000, "[0]", "[2]", "[]", "true")

START_TEST(a_residency_over_the_border_holds_its_pages)
{
    ck_assert_int_eq(place(BORDER_TRACE, PLAN_LINE(1000, PAGE) AFTER("evict", 0, 0) PREFETCH(0, 2)),
                     CAPU_OK);
    ck_assert(share(0, 1));
    ck_assert(!share(0, 2));
    ck_assert_uint_eq(result.needed, 2);
}
END_TEST

/* The same with w starting on the host: its pages are free between iterations, but both y and x
   overlap with it within one. */
START_TEST(a_tensor_on_the_host_returns_to_its_pages)
{
    ck_assert_int_eq(place(BORDER_TRACE, PLAN_LINE(1000, PAGE) PREFETCH(0, 0) AFTER("evict", 0, 0)
                                             PREFETCH(0, 2) AFTER("evict", 0, 2)),
                     CAPU_OK);
    ck_assert(share(0, 1));
    ck_assert(!share(0, 2));
}
END_TEST

/* Always resident, next to a tensor that no op names: neither shares pages. */
START_TEST(tensors_never_evicted_share_no_pages)
{
    ck_assert_int_eq(place(TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 700, "parameter")
                               TENSOR_LINE(1, "idle", 500, "parameter")
                                   TENSOR_LINE(2, "x", 500, "activation")
                                       OP_LINE("a", 10, "[0]", "[2]", "[]", "true"),
                           PLAN_LINE(2000, PAGE)),
                     CAPU_OK);
    ck_assert_uint_eq(plan.place_count, 3);
    ck_assert(!share(0, 1) && !share(0, 2) && !share(1, 2));
}
END_TEST

/* Not managed: no line. Nothing in it: no line. */
START_TEST(only_tensors_with_pages_have_a_line)
{
    ck_assert_int_eq(
        place(TRACE_LINE MACHINE_LINE
              "{\"type\":\"tensor\",\"id\":0,\"name\":\"s\",\"bytes\":5,\"kind\":\"parameter\","
              "\"managed\":false}\n" TENSOR_LINE(1, "x", 0, "activation") TENSOR_LINE(
                  2, "y", 10, "activation") OP_LINE("a", 1, "[0]", "[1,2]", "[]", "true"),
              PLAN_LINE(600, PAGE ",\"fixed_bytes\":5")),
        CAPU_OK);
    ck_assert_uint_eq(plan.place_count, 1);
    ck_assert_uint_eq(plan.places[0].tensor, 2);
}
END_TEST

START_TEST(placing_again_changes_nothing)
{
    struct string_buffer first = {0};
    struct string_buffer second = {0};

    ck_assert_int_eq(place(CHAIN_TRACE, PLAN_LINE(3600, PAGE)), CAPU_OK);
    ck_assert_int_eq(plan_write(&plan, &first, &error), CAPU_OK);
    ck_assert_int_eq(place_plan(&trace_index, NULL, &plan, &result, &error), CAPU_OK);
    ck_assert_int_eq(plan_write(&plan, &second, &error), CAPU_OK);
    ck_assert_str_eq(first.data, second.data);
    string_buffer_finish(&first);
    string_buffer_finish(&second);
}
END_TEST

/* w's pages are kept, x's are not: x is not resident at the border. Those of v lie beyond the
   available pages, those of u are another number, and y's are w's. */
START_TEST(pages_are_kept_over_the_border)
{
    static const char trace_lines[] = TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 1000, "parameter")
        TENSOR_LINE(1, "x", 500, "activation") TENSOR_LINE(2, "v", 500, "parameter")
            TENSOR_LINE(3, "u", 500, "parameter") TENSOR_LINE(4, "y", 500, "parameter")
                OP_LINE("a", 10, "[0,2,3,4]", "[1]", "[]", "true");
    static const uint32_t lines[][3] = {{0, 5, 1}, {0, 2, 1}, {1, 0, 1}, {2, 99, 1},
                                        {3, 0, 2}, {4, 5, 1}, {9, 0, 1}};
    struct placement placement;
    struct program program;
    struct placer *placer;
    struct plan kept;

    ck_assert_int_eq(place(trace_lines, PLAN_LINE(4000, PAGE)), CAPU_OK);
    ck_assert_int_eq(plan_init(&kept, "kept", 0, 1), CAPU_OK);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (i == 0 || lines[i][0] != lines[i - 1][0]) {
            ck_assert_int_eq(plan_add_place(&kept, lines[i][0]), CAPU_OK);
        }
        ck_assert_int_eq(plan_add_run(&kept, lines[i][1], lines[i][2]), CAPU_OK);
    }
    ck_assert_int_eq(placer_create(&trace_index, NULL, &kept, &placer, &error), CAPU_OK);
    ck_assert_int_eq(program_init(&program, &trace_index, &plan, &error), CAPU_OK);
    ck_assert_int_eq(placer_run(placer, &plan, &program, &result, &error), CAPU_OK);
    program_finish(&program);
    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s", error.text);
    ck_assert_uint_eq(plan.place_count, 5);
    ck_assert_int_eq(placement_init(&placement, &trace_index, &plan, &error), CAPU_OK);
    ck_assert_uint_eq(placement_page(&placement, 0, 0), 2);
    ck_assert_uint_eq(placement_page(&placement, 0, 1), 5);
    placement_finish(&placement);
    placer_destroy(placer);
    plan_finish(&kept);
}
END_TEST

/* Nothing writes w, so from the second iteration on its host copy is there already, and saving it
   copies nothing. */
START_TEST(a_tensor_saved_once_returns_in_every_iteration)
{
    ck_assert_int_eq(
        place(TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 500, "parameter")
                  TENSOR_LINE(1, "x", 500, "activation") TENSOR_LINE(2, "y", 500, "activation")
                      TENSOR_LINE(3, "z", 500, "activation")
                          OP_LINE("a", 5000, "[0]", "[1]", "[]", "true")
                              OP_LINE("b", 5000, "[1]", "[2]", "[]", "true")
                                  OP_LINE("c", 5000, "[0,2]", "[3]", "[]", "true")
                                      OP_LINE("d", 5000, "[3]", "[]", "[]", "true") END_LINE(4, 4),
              PLAN_LINE(2000, PAGE) AFTER("save", 0, 0) AFTER("drop", 0, 0) PREFETCH(0, 2)),
        CAPU_OK);
    ck_assert(!share(0, 1));
    ck_assert(!share(0, 3));
}
END_TEST

/* A second plan for less memory: what is resident at the border keeps its pages. */
START_TEST(planners_keep_pages)
{
    struct planner_request request = {
        .budget_bytes = 1000, .host_bytes = UINT64_MAX, .place = true, .effort = EFFORT_QUICK};
    struct placement before;
    struct placement after;
    struct plan first;

    ck_assert_int_eq(place(BORDER_TRACE, PLAN_LINE(1000, PAGE) AFTER("evict", 0, 0) PREFETCH(0, 2)),
                     CAPU_OK);
    ck_assert_int_eq(plan_init(&first, "first", 0, 1), CAPU_OK);
    ck_assert_int_eq(plan_add_place(&first, 0), CAPU_OK);
    ck_assert_int_eq(plan_add_run(&first, 1, 1), CAPU_OK);
    ck_assert_int_eq(placement_init(&before, &trace_index, &plan, &error), CAPU_OK);
    ck_assert_uint_eq(placement_page(&before, 0, 0), 0);
    plan_finish(&plan);
    request.trace_index = &trace_index;
    request.kept = &first;
    ck_assert_int_eq(planner_run(planner_find("hybrid"), &request, &plan, &error), CAPU_OK);
    ck_assert_int_eq(placement_init(&after, &trace_index, &plan, &error), CAPU_OK);
    ck_assert_uint_eq(placement_page(&after, 0, 0), 1);
    placement_finish(&before);
    placement_finish(&after);
    plan_finish(&first);
}
END_TEST

/* Every pair of the three overlaps: 1000 bytes are enough for each op, but not for separate pages
   for each. */
#define TRIANGLE_TRACE                                                              \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "u", 500, "parameter")                   \
        TENSOR_LINE(1, "v", 500, "parameter") TENSOR_LINE(2, "w", 500, "parameter") \
            OP_LINE("a", 10, "[0,1]", "[]", "[]", "true")                           \
                OP_LINE("b", 10, "[1,2]", "[]", "[]", "true")                       \
                    OP_LINE("c", 10, "[0,2]", "[]", "[]", "true")

static capu_status run_planner(const char *name, uint64_t budget, uint64_t fixed)
{
    struct planner_request request = {.trace_index = &trace_index,
                                      .budget_bytes = budget,
                                      .fixed_bytes = fixed,
                                      .host_bytes = UINT64_MAX,
                                      .place = true,
                                      .effort = EFFORT_QUICK};

    plan_finish(&plan);
    return planner_run(planner_find(name), &request, &plan, &error);
}

START_TEST(planners_name_a_sufficient_number_of_pages)
{
    ck_assert_int_eq(place(TRIANGLE_TRACE, PLAN_LINE(1500, PAGE)), CAPU_OK);
    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        ck_assert_int_eq(run_planner(planner->name, 1500, 0), CAPU_OK);
        ck_assert_uint_eq(plan.place_count, 3);
        ck_assert_int_eq(run_planner(planner->name, 1499, 0), CAPU_UNSUPPORTED);
        ck_assert_msg(strstr(error.text,
                             "found no placement within 1499 bytes; the smallest known "
                             "takes 1500 bytes (3 pages of 500 and what is fixed)") != NULL,
                      "%s: %s", planner->name, error.text);
        ck_assert_int_eq(run_planner(planner->name, 999, 0), CAPU_OVER_BUDGET);
        ck_assert_int_eq(run_planner(planner->name, 1599, 100), CAPU_UNSUPPORTED);
        ck_assert_int_eq(run_planner(planner->name, 1600, 100), CAPU_OK);
        ck_assert_uint_eq(plan.fixed_bytes, 100);
        ck_assert_uint_eq(plan.budget_bytes, 1600);
    }
}
END_TEST

/* The chain's tensors are 1, 2, 2, 2 and 1 pages. */
START_TEST(tensors_apart_share_no_pages)
{
    uint32_t freed[5] = {TRACE_INDEX_NONE, TRACE_INDEX_NONE, 3, TRACE_INDEX_NONE, TRACE_INDEX_NONE};

    ck_assert_int_eq(place(CHAIN_TRACE, PLAN_LINE(4000, PAGE)), CAPU_OK);
    ck_assert_int_eq(place_apart(&trace_index, NULL, 8, &plan), CAPU_OK);
    ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_OK);
    for (uint32_t a = 0; a < 5; a++) {
        for (uint32_t b = 0; b < a; b++) {
            ck_assert(!share(a, b));
        }
    }
    ck_assert_int_eq(place_apart(&trace_index, NULL, 7, &plan), CAPU_OVER_BUDGET);
    ck_assert_uint_eq(plan.place_count, 0);
    /* y is freed before the last op, which can have its pages. */
    ck_assert_int_eq(place_apart(&trace_index, freed, 7, &plan), CAPU_OK);
    ck_assert_int_eq(validate_plan(&trace_index, &plan, &error), CAPU_OK);
    ck_assert(share(2, 4));
    ck_assert(!share(1, 2) && !share(1, 3) && !share(2, 3) && !share(1, 4));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/place");
    TCase *tests = tcase_create("place");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, tensors_never_resident_together_share_pages);
    tcase_add_test(tests, too_few_pages_are_reported);
    tcase_add_test(tests, fixed_bytes_take_pages_away);
    tcase_add_test(tests, all_residencies_of_a_tensor_count);
    tcase_add_test(tests, issue_order_decides_who_can_share);
    tcase_add_test(tests, a_prefetch_can_wait_for_pages);
    tcase_add_test(tests, long_residencies_are_placed_first_if_necessary);
    tcase_add_test(tests, a_residency_over_the_border_holds_its_pages);
    tcase_add_test(tests, a_tensor_on_the_host_returns_to_its_pages);
    tcase_add_test(tests, tensors_never_evicted_share_no_pages);
    tcase_add_test(tests, only_tensors_with_pages_have_a_line);
    tcase_add_test(tests, tensors_apart_share_no_pages);
    tcase_add_test(tests, placing_again_changes_nothing);
    tcase_add_test(tests, pages_are_kept_over_the_border);
    tcase_add_test(tests, a_tensor_saved_once_returns_in_every_iteration);
    tcase_add_test(tests, planners_keep_pages);
    tcase_add_test(tests, planners_name_a_sufficient_number_of_pages);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
