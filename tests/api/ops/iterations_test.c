/* Iterations: repeated addresses, how far the host runs ahead, labels, uploads and downloads. */
#include "tests/api/steps.h"

#include "tests/support/adaptor_count.h"

#include <stdatomic.h>
#include <time.h>

START_TEST(each_step_gets_the_same_addresses)
{
    static const size_t sizes[] = {PAGES(3), 100, PAGES(1), 700, 100, PAGES(3), RIG_PAGE / 2};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    struct rig rig;
    unsigned char *first[SIZES];
    unsigned char *now[SIZES];

    rig_init(&rig, &(struct rig_options){.budget_pages = 10, .delay_seed = 7});
    for (size_t step = 0; step < 6; step++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        for (size_t i = 0; i < SIZES; i++) {
            now[i] = step_malloc(&rig, sizes[i]);
            if (step > 0) {
                ck_assert_ptr_eq(now[i], first[i]);
            }
            step_set(&rig, now[i], sizes[i], (unsigned char)(step + i));
        }
        for (size_t i = 0; i < SIZES; i++) {
            step_expect(&rig, now[i], sizes[i], (unsigned char)(step + i));
        }
        for (size_t i = SIZES; i-- > 0;) {
            RIG_OK(&rig, capu_free(rig.context, now[i]));
        }
        RIG_OK(&rig, capu_iteration_end(rig.context));
        rig_check(&rig);
        memcpy(first, now, sizeof(first));
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(split_allocations_get_the_same_addresses)
{
    struct rig rig;
    unsigned char *first = NULL;

    rig_init(&rig, &(struct rig_options){.budget_pages = 10, .delay_seed = 7});
    for (size_t step = 0; step < 6; step++) {
        unsigned char *blob;

        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        blob = step_malloc(&rig, PAGES(6));
        RIG_OK(&rig, capu_split(rig.context, blob + 1000, PAGES(3)));
        ck_assert(first == NULL || blob == first);
        first = blob;
        step_set(&rig, blob, PAGES(6), (unsigned char)step);
        step_set(&rig, blob + 1000, PAGES(3), (unsigned char)(100 + step));
        step_expect(&rig, blob, 1000, (unsigned char)step);
        step_expect(&rig, blob + 1000, PAGES(3), (unsigned char)(100 + step));
        RIG_OK(&rig, capu_free(rig.context, blob));
        RIG_OK(&rig, capu_iteration_end(rig.context));
        rig_check(&rig);
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(an_address_is_not_reused_within_the_iteration)
{
    static const size_t sizes[] = {PAGES(2), 200};
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.budget_pages = 40});
    for (size_t i = 0; i < 2; i++) {
        unsigned char *freed;

        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        freed = step_malloc(&rig, sizes[i]);
        RIG_OK(&rig, capu_free(rig.context, freed));
        RIG_OK(&rig, capu_synchronize(rig.context));
        for (size_t k = 0; k < 20; k++) {
            ck_assert_ptr_ne(step_malloc(&rig, sizes[i]), freed);
        }
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    rig_finish(&rig);
}
END_TEST

/* A validation pass between training steps does not disturb the addresses of training. */
START_TEST(each_label_has_its_own_addresses)
{
    struct rig rig;
    unsigned char *train = NULL;
    unsigned char *validate = NULL;

    rig_init(&rig, &(struct rig_options){.budget_pages = 40});
    for (size_t i = 0; i < 8; i++) {
        bool is_training = i % 3 != 2;
        unsigned char **seen = is_training ? &train : &validate;
        unsigned char *head;
        unsigned char *tensor;

        RIG_OK(&rig, capu_iteration_begin(rig.context, is_training ? "train" : "validate"));
        head = step_malloc(&rig, is_training ? PAGES(5) : PAGES(7));
        tensor = step_malloc(&rig, PAGES(2));
        ck_assert(*seen == NULL || *seen == tensor);
        *seen = tensor;
        RIG_OK(&rig, capu_free(rig.context, head));
        RIG_OK(&rig, capu_free(rig.context, tensor));
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    rig_finish(&rig);
}
END_TEST

static atomic_int running;

static capu_status slow(capu_stream stream, const void *arguments)
{
    struct timespec while_ = {0, 20000000};

    (void)stream;
    (void)arguments;
    nanosleep(&while_, NULL);
    atomic_fetch_sub(&running, 1);
    return CAPU_OK;
}

START_TEST(the_host_runs_at_most_two_iterations_ahead)
{
    struct rig rig;
    capu_op op = {.size = sizeof(op), .name = "slow", .run = slow};

    rig_init(&rig, &(struct rig_options){.budget_pages = 4});
    for (size_t i = 0; i < 6; i++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
        ck_assert_int_le(atomic_load(&running), 1);
        atomic_fetch_add(&running, 1);
        RIG_OK(&rig, capu_run(rig.context, &op));
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    rig_finish(&rig);
}
END_TEST

START_TEST(an_upload_copies_its_source)
{
    enum { BYTES = 20 << 20 };
    struct rig rig;
    unsigned char *source = malloc(BYTES);
    unsigned char *tensor;

    ck_assert_ptr_nonnull(source);
    rig_init(&rig, &(struct rig_options){.budget_pages = 6000, .delay_seed = 3});
    tensor = step_malloc(&rig, BYTES);
    for (unsigned char i = 1; i < 6; i++) {
        memset(source, i, BYTES);
        RIG_OK(&rig, capu_upload(rig.context, tensor, source, BYTES, 0));
        memset(source, 0xee, BYTES);
        step_expect(&rig, tensor + BYTES / 2, 1000, i);
        step_expect(&rig, tensor + BYTES - 1000, 1000, i);
    }
    free(source);
    rig_finish(&rig);
}
END_TEST

START_TEST(an_evicted_tensor_is_downloaded_from_the_host)
{
    struct rig rig;
    struct adaptor_counts counts;
    unsigned char *tensor;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4, .mode = CAPU_MODE_PASSIVE});
    tensor = step_malloc(&rig, PAGES(3));
    step_set(&rig, tensor, PAGES(3), 6);
    step_set(&rig, step_malloc(&rig, PAGES(4)), PAGES(4), 1);
    RIG_OK(&rig, capu_synchronize(rig.context));
    ck_assert_uint_eq(step_query(&rig, tensor).is_resident, 0);
    step_expect(&rig, tensor + 1000, PAGES(2), 6);
    ck_assert_uint_eq(step_query(&rig, tensor).is_resident, 0);
    adaptor_count_read(rig.count, &counts);
    ck_assert_uint_eq(counts.slots[ADAPTOR_COPY_IN].calls, 0);
    rig_finish(&rig);
}
END_TEST

START_TEST(device_copies_move_bytes)
{
    struct rig rig;
    unsigned char *from;
    unsigned char *to;

    rig_init(&rig, &(struct rig_options){.budget_pages = 8, .mode = (uint32_t)_i});
    from = step_malloc(&rig, PAGES(3));
    to = step_malloc(&rig, PAGES(4));
    step_set(&rig, from, PAGES(3), 6);
    step_set(&rig, to, PAGES(4), 1);
    RIG_OK(&rig, capu_copy(rig.context, to + 100, from + 50, PAGES(2)));
    step_expect(&rig, to, 100, 1);
    step_expect(&rig, to + 100, PAGES(2), 6);
    step_expect(&rig, to + 100 + PAGES(2), PAGES(2) - 100, 1);
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api iterations");
    TCase *cases = tcase_create("iterations");

    tcase_add_test(cases, each_step_gets_the_same_addresses);
    tcase_add_test(cases, split_allocations_get_the_same_addresses);
    tcase_add_test(cases, an_address_is_not_reused_within_the_iteration);
    tcase_add_test(cases, each_label_has_its_own_addresses);
    tcase_add_test(cases, the_host_runs_at_most_two_iterations_ahead);
    tcase_add_test(cases, an_upload_copies_its_source);
    tcase_add_test(cases, an_evicted_tensor_is_downloaded_from_the_host);
    tcase_add_loop_test(cases, device_copies_move_bytes, CAPU_MODE_OFF, CAPU_MODE_GUIDED);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
