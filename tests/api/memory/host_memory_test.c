/*
 * The host memory that is taken for evicted tensors, on sim: the report counts all of it, and it is
 * hardly more than what the tensors need.
 */
#include "tests/api/steps.h"
#include "tests/support/adaptor_count.h"

enum { TENSORS = 400, ITERATIONS = 5, LEAST_PAGES = 16, SIZES = 5 };

/* Pages of the tensors in turn: equal sizes, or from 64 KiB to 1 MiB. */
static size_t size_of(size_t tensor, bool is_mixed)
{
    return is_mixed ? (size_t)LEAST_PAGES << tensor * 7 % SIZES : (size_t)4 * LEAST_PAGES;
}

static void iterate(struct rig *rig, void *const *tensors)
{
    RIG_OK(rig, capu_iteration_begin(rig->context, "train"));
    for (size_t i = 0; i < TENSORS; i++) {
        RIG_OK(rig, step_touch(rig, "touch", CAPU_UPDATE, 1, &tensors[i]));
    }
    RIG_OK(rig, capu_iteration_end(rig->context));
    RIG_OK(rig, capu_synchronize(rig->context));
}

/* _i: bit 0: mixed sizes; bit 1: guided mode. */
START_TEST(little_more_is_taken_than_what_is_stored)
{
    bool is_mixed = (_i & 1) != 0;
    void *tensors[TENSORS];
    size_t pages = 0;
    struct report report = {0};
    uint64_t most = 0;
    struct adaptor_counts counts;
    struct rig rig;

    for (size_t i = 0; i < TENSORS; i++) {
        pages += size_of(i, is_mixed);
    }
    rig_init(&rig,
             &(struct rig_options){.is_sim = true,
                                   .budget_pages = pages / 8,
                                   .mode = (_i & 2) != 0 ? CAPU_MODE_GUIDED : CAPU_MODE_PASSIVE,
                                   .wait_for_plan = true});
    for (size_t i = 0; i < TENSORS; i++) {
        tensors[i] = step_tensor(&rig, "tensor", CAPU_PARAMETER, size_of(i, is_mixed));
        RIG_OK(&rig, step_touch(&rig, "make", CAPU_WRITE, 1, &tensors[i]));
    }
    for (size_t i = 0; i < ITERATIONS; i++) {
        uint64_t used;

        iterate(&rig, tensors);
        used = host_arena_used_bytes(rig.context->memory.arena);
        most = used > most ? used : most;
    }
    report = rig_report(&rig);
    ck_assert_uint_ge(most, PAGES(pages) / 2);
    ck_assert_uint_le(report.host_bytes, most + most / 5);
    /* The ops have no arguments, so all host memory of the device is for evicted tensors. It may
       just be growing. */
    adaptor_count_read(rig.count, &counts);
    ck_assert_uint_ge(counts.host_bytes, report.host_bytes);
    ck_assert_uint_le(counts.host_bytes, report.host_bytes + report.host_bytes / 15 + (4 << 20));
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api host memory");
    TCase *cases = tcase_create("host memory");

    tcase_add_loop_test(cases, little_more_is_taken_than_what_is_stored, 0, 4);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
