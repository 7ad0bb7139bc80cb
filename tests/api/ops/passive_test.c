/* Passive mode: which tensor is evicted, at what cost, and what happens if none can be. */
#include "tests/api/steps.h"

#include "runtime/residency/pager.h"

#include "tests/support/adaptor_count.h"
#include "tests/support/effort.h"

static bool is_in(struct rig *rig, const void *tensor)
{
    return step_query(rig, tensor).is_resident != 0;
}

static uint64_t calls(struct rig *rig, enum adaptor_slot slot)
{
    struct adaptor_counts counts;

    adaptor_count_read(rig->count, &counts);
    return counts.slots[slot].calls;
}

static void settle(struct rig *rig)
{
    RIG_OK(rig, capu_synchronize(rig->context));
}

START_TEST(the_least_recently_used_leaves_first)
{
    struct rig rig;
    void *tensors[4];
    void *fresh;

    rig_init(&rig, &(struct rig_options){.budget_pages = 8});
    for (size_t i = 0; i < 4; i++) {
        tensors[i] = step_malloc(&rig, PAGES(2));
        step_set(&rig, tensors[i], PAGES(2), (unsigned char)i);
    }
    RIG_OK(&rig, step_touch(&rig, "touch", CAPU_READ, 1, &tensors[0]));
    fresh = step_malloc(&rig, PAGES(2));
    step_set(&rig, fresh, PAGES(2), 9);
    settle(&rig);
    ck_assert(is_in(&rig, tensors[0]) && !is_in(&rig, tensors[1]) && is_in(&rig, tensors[2]));
    step_set(&rig, step_malloc(&rig, PAGES(2)), PAGES(2), 9);
    settle(&rig);
    ck_assert(is_in(&rig, tensors[0]) && !is_in(&rig, tensors[2]) && is_in(&rig, tensors[3]));
    for (size_t i = 0; i < 4; i++) {
        step_expect(&rig, tensors[i], PAGES(2), (unsigned char)i);
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(empty_leaves_before_clean_and_clean_before_dirty)
{
    struct rig rig;
    void *dirty;
    void *clean;
    void *empty;
    uint64_t copies;

    rig_init(&rig, &(struct rig_options){.budget_pages = 6});
    clean = step_malloc(&rig, PAGES(2));
    step_set(&rig, clean, PAGES(2), 1);
    step_set(&rig, step_malloc(&rig, PAGES(6)), PAGES(6), 9); /* evicts it */
    dirty = step_malloc(&rig, PAGES(2));
    step_set(&rig, dirty, PAGES(2), 2);
    RIG_OK(&rig, step_touch(&rig, "read", CAPU_READ, 1, &clean));
    empty = step_malloc(&rig, PAGES(2));
    RIG_OK(&rig, step_touch(&rig, "scratch", CAPU_SCRATCH, 1, &empty));
    settle(&rig);
    ck_assert(is_in(&rig, dirty) && is_in(&rig, clean) && is_in(&rig, empty));
    copies = calls(&rig, ADAPTOR_COPY_OUT);
    /* The empty tensor is the most recently used one, but still leaves first. */
    step_set(&rig, step_malloc(&rig, PAGES(2)), PAGES(2), 3);
    settle(&rig);
    ck_assert(is_in(&rig, dirty) && is_in(&rig, clean) && !is_in(&rig, empty));
    step_set(&rig, step_malloc(&rig, PAGES(2)), PAGES(2), 4);
    settle(&rig);
    ck_assert(is_in(&rig, dirty) && !is_in(&rig, clean));
    ck_assert_uint_eq(calls(&rig, ADAPTOR_COPY_OUT), copies);
    step_set(&rig, step_malloc(&rig, PAGES(2)), PAGES(2), 5);
    settle(&rig);
    ck_assert(!is_in(&rig, dirty));
    ck_assert_uint_eq(calls(&rig, ADAPTOR_COPY_OUT), copies + 1);
    rig_finish(&rig);
}
END_TEST

START_TEST(evicting_an_unmodified_tensor_again_costs_no_copy)
{
    struct rig rig;
    void *weights;
    void *other;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    weights = step_malloc(&rig, PAGES(3));
    other = step_malloc(&rig, PAGES(3));
    step_set(&rig, weights, PAGES(3), 5);
    for (size_t i = 0; i < 5; i++) {
        step_set(&rig, other, PAGES(3), (unsigned char)i);
        RIG_OK(&rig, capu_zero(rig.context, other, 0)); /* it leaves without a copy */
        RIG_OK(&rig, step_touch(&rig, "read", CAPU_READ, 1, &weights));
    }
    ck_assert_uint_eq(calls(&rig, ADAPTOR_COPY_OUT), 1);
    ck_assert_uint_eq(calls(&rig, ADAPTOR_COPY_IN), 5);
    step_expect(&rig, weights, PAGES(3), 5);
    rig_finish(&rig);
}
END_TEST

/* A tensor that is needed again while it is leaving stays, without a wait or a copy back. */
START_TEST(a_leaving_tensor_is_taken_back)
{
    struct rig rig;
    void *first;
    void *tensors[2];

    rig_init(&rig, &(struct rig_options){.budget_pages = 6});
    first = step_malloc(&rig, PAGES(2));
    tensors[0] = first;
    step_set(&rig, first, PAGES(2), 5);
    settle(&rig);
    ck_assert_int_eq(
        pager_evict(&rig.context->residency, tensors_find(&rig.context->memory.tensors, first)),
        CAPU_OK);
    ck_assert_ptr_nonnull(tensors_find(&rig.context->memory.tensors, first)->state.departure);
    tensors[1] = step_malloc(&rig, PAGES(2));
    step_set(&rig, tensors[1], PAGES(2), 6);
    RIG_OK(&rig, step_touch(&rig, "read", CAPU_READ, 2, tensors));
    ck_assert_ptr_null(tensors_find(&rig.context->memory.tensors, first)->state.departure);
    ck_assert_uint_eq(calls(&rig, ADAPTOR_COPY_IN), 0);
    step_bump(&rig, "bump", first, PAGES(2));
    step_expect(&rig, first, PAGES(2), 6);
    rig_finish(&rig);
}
END_TEST

START_TEST(operands_of_the_op_are_never_evicted)
{
    struct rig rig;
    void *tensors[8];

    rig_init(&rig, &(struct rig_options){.budget_pages = 8, .delay_seed = 11});
    for (size_t i = 0; i < 8; i++) {
        tensors[i] = step_malloc(&rig, PAGES(2));
        step_set(&rig, tensors[i], PAGES(2), (unsigned char)i);
    }
    for (size_t i = 0; i < 40; i++) {
        void *four[4];

        for (size_t k = 0; k < 4; k++) {
            four[k] = tensors[(i * 3 + k * 5) % 8 / 4 * 4 + k];
        }
        RIG_OK(&rig, step_touch(&rig, "four", CAPU_READ, 4, four));
        for (size_t k = 0; k < 4; k++) {
            ck_assert(is_in(&rig, four[k]));
        }
        rig_check(&rig);
    }
    for (size_t i = 0; i < 8; i++) {
        step_expect(&rig, tensors[i], PAGES(2), (unsigned char)i);
    }
    rig_finish(&rig);
}
END_TEST

/* A small training program; returns the first failure. */
static capu_status train(struct rig *rig, unsigned char *sum)
{
    unsigned char *weights = step_tensor(rig, "w", CAPU_PARAMETER, 3);
    unsigned char *layers[4];
    unsigned char *small = step_malloc(rig, 100);
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < 4; i++) {
        layers[i] = step_tensor(rig, "layer", CAPU_ACTIVATION, 3);
    }
    step_set(rig, small, 100, 1);
    step_set(rig, weights, PAGES(3), 1);
    for (size_t step = 0; step < 3 && status == CAPU_OK; step++) {
        RIG_OK(rig, capu_iteration_begin(rig->context, "train"));
        status = step_try_next(rig, "forward", layers[0], weights, PAGES(3));
        for (size_t i = 1; i < 4 && status == CAPU_OK; i++) {
            status = step_try_next(rig, "forward", layers[i], layers[i - 1], PAGES(3));
        }
        if (status == CAPU_OK) {
            status = step_try_next(rig, "backward", weights, layers[3], PAGES(3));
        }
        RIG_OK(rig, capu_iteration_end(rig->context));
    }
    if (status == CAPU_OK) {
        RIG_OK(rig, capu_download(rig->context, sum, weights, 1, 0));
    }
    return status;
}

START_TEST(the_floor_budget_works_and_one_page_less_names_the_op)
{
    capu_report report = CAPU_REPORT_INIT;
    struct rig rig;
    unsigned char expected = 0;

    rig_init(&rig, &(struct rig_options){0});
    ck_assert_int_eq(train(&rig, &expected), CAPU_OK);
    settle(&rig);
    RIG_OK(&rig, capu_report_get(rig.context, &report));
    ck_assert_uint_eq(report.floor_bytes, PAGES(7)); /* two operands and a page of small tensors */
    ck_assert_str_eq(report.floor_op, "forward");
    rig_finish(&rig);
    for (uint64_t pages = 7; pages <= 20; pages++) {
        unsigned char sum = 0;

        rig_init(&rig, &(struct rig_options){.budget_pages = pages, .delay_seed = pages});
        ck_assert_int_eq(train(&rig, &sum), CAPU_OK);
        ck_assert_uint_eq(sum, expected);
        ck_assert_uint_le(rig_pages(&rig), pages);
        rig_finish(&rig);
    }
    rig_init(&rig, &(struct rig_options){.budget_pages = 6});
    STEP_FAILS(&rig, train(&rig, &expected), CAPU_OVER_BUDGET,
               "op 'forward' needs 28672 bytes of device memory at once (24576 bytes for its "
               "operands, 4096 bytes always resident), and the budget is 24576 bytes: raise it");
    rig_finish(&rig);
}
END_TEST

START_TEST(a_full_host_budget_loses_nothing)
{
    struct rig rig;
    void *tensors[4];

    rig_init(&rig,
             &(struct rig_options){.budget_pages = 4, .host_budget_bytes = PAGES(4) + PAGES(1)});
    for (size_t i = 0; i < 4; i++) {
        tensors[i] = step_tensor(&rig, i == 2 ? "third" : "tensor", CAPU_PARAMETER, 2);
        step_set(&rig, tensors[i], PAGES(2), (unsigned char)(i + 1));
    }
    /* Four pages on the device and four of five on the host are in use. */
    STEP_FAILS(
        &rig, step_try_set(&rig, step_malloc(&rig, PAGES(2)), PAGES(2), 9), CAPU_HOST_OVER_BUDGET,
        "no host memory to evict 'third' to, which has 8192 bytes: 16384 bytes of a host budget of "
        "20480 bytes are in use; raise it (host_budget), or the device budget");
    rig_check(&rig);
    for (size_t i = 0; i < 4; i++) {
        /* A download reads an evicted tensor on the host; bringing it back would need room. */
        step_expect(&rig, tensors[i], PAGES(2), (unsigned char)(i + 1));
    }
    RIG_OK(&rig, capu_free(rig.context, tensors[0]));
    step_set(&rig, step_malloc(&rig, PAGES(2)), PAGES(2), 9);
    for (size_t i = 1; i < 4; i++) {
        step_expect(&rig, tensors[i], PAGES(2), (unsigned char)(i + 1));
    }
    rig_finish(&rig);
}
END_TEST

/* Host copies of resident tensors are discarded if an eviction needs their room. */
START_TEST(clean_copies_make_room_on_the_host)
{
    struct rig rig;
    void *first;
    void *second;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4, .host_budget_bytes = PAGES(4)});
    first = step_malloc(&rig, PAGES(4));
    second = step_malloc(&rig, PAGES(4));
    step_set(&rig, first, PAGES(4), 1);
    for (unsigned char i = 0; i < 6; i++) {
        step_set(&rig, second, PAGES(4), i);
        RIG_OK(&rig, capu_zero(rig.context, second, 0));
        RIG_OK(&rig, step_touch(&rig, "read", CAPU_READ, 1, &first));
        step_expect(&rig, first, PAGES(4), 1);
    }
    rig_finish(&rig);
}
END_TEST

/* An eviction may find the host budget full of blocks whose copies have just finished, or are about
   to. A loop that fits the budget must not fail because of that. _i: passive, guided. */
START_TEST(a_loop_that_fits_its_host_budget_never_fails)
{
    enum { TENSORS = 3, ROUNDS = 400 };
    struct rig rig;
    void *tensors[TENSORS];
    unsigned char value = 0;

    /* One tensor is out at a time, and a second one while the two change places. */
    rig_init(&rig, &(struct rig_options){.budget_pages = 4,
                                         .host_budget_bytes = PAGES(4),
                                         .mode = _i == 0 ? CAPU_MODE_PASSIVE : CAPU_MODE_GUIDED,
                                         .wait_for_plan = true});
    for (size_t i = 0; i < TENSORS; i++) {
        tensors[i] = step_tensor(&rig, "tensor", CAPU_PARAMETER, 2);
        step_set(&rig, tensors[i], PAGES(2), 0);
    }
    for (size_t round = 0; round < effort_share(ROUNDS); round++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        for (size_t i = 0; i < TENSORS; i++) {
            step_bump(&rig, "bump", tensors[i], PAGES(2));
        }
        RIG_OK(&rig, capu_iteration_end(rig.context));
        value++;
    }
    for (size_t i = 0; i < TENSORS; i++) {
        step_expect(&rig, tensors[i], PAGES(2), value);
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(traffic_says_what_was_copied_and_what_was_not)
{
    capu_traffic traffic = {.size = sizeof(traffic)};
    capu_op op = {.size = sizeof(op), .name = "access"};
    capu_tensor_state state;
    struct rig rig;
    void *a;
    unsigned char *b;
    void *scratch;

    rig_init(&rig, &(struct rig_options){.budget_pages = 6});
    a = step_malloc(&rig, PAGES(4));
    b = step_malloc(&rig, PAGES(5));
    scratch = step_malloc(&rig, PAGES(6));
    step_set(&rig, a, PAGES(4), 1);
    /* Copies a out; copies b out and a back. */
    step_set(&rig, b, PAGES(5), 2);
    RIG_OK(&rig, step_touch(&rig, "read", CAPU_READ, 1, &a));
    /* Drops a, which is clean, and overwrites b; copies b out; drops the scratch and copies b back.
     */
    step_set(&rig, b, PAGES(5), 3);
    RIG_OK(&rig, step_touch(&rig, "scratch", CAPU_SCRATCH, 1, &scratch));
    RIG_OK(&rig, step_touch(&rig, "read", CAPU_READ, 1, (void *[]){b}));
    RIG_OK(&rig, capu_access_begin(rig.context, &op));
    RIG_OK(&rig, capu_traffic_get(rig.context, &traffic));
    RIG_OK(&rig, capu_access_end(rig.context));
    ck_assert_uint_eq(traffic.out_bytes, PAGES(4 + 5 + 5));
    ck_assert_uint_eq(traffic.out_count, 3);
    ck_assert_uint_eq(traffic.back_bytes, PAGES(4 + 5));
    ck_assert_uint_eq(traffic.back_count, 2);
    ck_assert_uint_eq(traffic.out_count, calls(&rig, ADAPTOR_COPY_OUT));
    ck_assert_uint_eq(traffic.clean_bytes, PAGES(4));
    ck_assert_uint_eq(traffic.empty_bytes, PAGES(6));
    ck_assert_uint_eq(traffic.discarded_bytes, 0);
    ck_assert_uint_eq(traffic.overwritten_bytes, PAGES(5));
    /* What was copied of a tensor counts for its first part. */
    RIG_OK(&rig, capu_split(rig.context, b + PAGES(2), PAGES(3)));
    state = step_query(&rig, b);
    ck_assert_uint_eq(state.out_bytes, PAGES(5 + 5));
    ck_assert_uint_eq(state.back_bytes, PAGES(5));
    state = step_query(&rig, b + PAGES(2));
    ck_assert_uint_eq(state.out_bytes + state.back_bytes, 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(two_contexts_live_side_by_side)
{
    struct rig rigs[2];
    unsigned char *tensors[2][4];

    for (size_t r = 0; r < 2; r++) {
        rig_init(&rigs[r], &(struct rig_options){.budget_pages = 6, .delay_seed = r + 1});
        for (size_t i = 0; i < 4; i++) {
            tensors[r][i] = step_malloc(&rigs[r], PAGES(3));
        }
    }
    for (size_t i = 0; i < 16; i++) {
        step_set(&rigs[i % 2], tensors[i % 2][i / 2 % 4], PAGES(3), (unsigned char)(i + 1));
    }
    for (size_t i = 8; i < 16; i++) {
        step_expect(&rigs[i % 2], tensors[i % 2][i / 2 % 4], PAGES(3), (unsigned char)(i + 1));
    }
    STEP_FAILS(&rigs[0], capu_free(rigs[0].context, tensors[1][0]), CAPU_WRONG_ADDRESS,
               "no tensor of this context");
    ck_assert_str_eq(capu_last_error(rigs[1].context), "");
    rig_finish(&rigs[0]);
    step_expect(&rigs[1], tensors[1][0], PAGES(3), 10);
    rig_finish(&rigs[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api passive");
    TCase *cases = tcase_create("passive");

    tcase_add_test(cases, the_least_recently_used_leaves_first);
    tcase_add_test(cases, empty_leaves_before_clean_and_clean_before_dirty);
    tcase_add_test(cases, evicting_an_unmodified_tensor_again_costs_no_copy);
    tcase_add_test(cases, a_leaving_tensor_is_taken_back);
    tcase_add_test(cases, operands_of_the_op_are_never_evicted);
    tcase_add_test(cases, the_floor_budget_works_and_one_page_less_names_the_op);
    tcase_add_test(cases, a_full_host_budget_loses_nothing);
    tcase_add_test(cases, clean_copies_make_room_on_the_host);
    tcase_add_loop_test(cases, a_loop_that_fits_its_host_budget_never_fails, 0, 2);
    tcase_add_test(cases, traffic_says_what_was_copied_and_what_was_not);
    tcase_add_test(cases, two_contexts_live_side_by_side);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
