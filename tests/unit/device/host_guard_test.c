/* The guard of the host device: what work may touch, what is noted, and the device's own copies. */
#include "device/device.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { PAGE = 4096, PAGES = 8 };

/* Pages 5, 4, 3, ... are mapped, so that consecutive addresses have no consecutive memory. */
struct ground {
    struct device *device;
    capu_stream stream;
    char *range; /* of PAGES pages; the first four are mapped */
    device_page pages[4];
};

static void ground_start(struct ground *ground, bool is_guarded)
{
    const struct device_options options = {.memory_bytes = (uint64_t)PAGES * PAGE,
                                           .page_bytes = PAGE};
    void *range;

    ck_assert_int_eq(host_device_create(&options, &ground->device, NULL, 0), CAPU_OK);
    ck_assert(ground->device->capabilities.can_guard);
    if (is_guarded) {
        ck_assert_int_eq(device_guard(ground->device), CAPU_OK);
    }
    ck_assert_int_eq(device_range_reserve(ground->device, (uint64_t)PAGES * PAGE, &range), CAPU_OK);
    ground->range = range;
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(device_page_create(ground->device, &ground->pages[3 - i]), CAPU_OK);
    }
    ck_assert_int_eq(device_map(ground->device, ground->range, ground->pages, 4), CAPU_OK);
    ck_assert_int_eq(device_stream_create(ground->device, DEVICE_COMPUTE, &ground->stream),
                     CAPU_OK);
}

static void ground_finish(struct ground *ground)
{
    device_stream_destroy(ground->device, ground->stream);
    device_destroy(ground->device);
}

/* Work that increments a byte, on a thread of its own if it says so. */
struct touch {
    char *at[2]; /* NULL: none */
    bool only_reads;
    bool has_thread;
    char sum;
};

static void *touch_all(void *data)
{
    struct touch *touch = data;

    for (size_t i = 0; i < 2; i++) {
        volatile char *at = touch->at[i];

        if (at != NULL) {
            touch->sum = (char)(touch->sum + *at);
            if (!touch->only_reads) {
                *at = (char)(*at + 1);
            }
        }
    }
    return NULL;
}

static capu_status run_touch(capu_stream stream, const void *arguments)
{
    struct touch *touch = *(struct touch *const *)arguments;
    pthread_t thread;

    (void)stream;
    if (!touch->has_thread) {
        touch_all(touch);
    } else if (pthread_create(&thread, NULL, touch_all, touch) == 0) {
        pthread_join(thread, NULL);
    }
    return CAPU_OK;
}

static struct device_faults faults_of(struct ground *ground, const struct device_grant *grants,
                                      size_t count, struct touch touch)
{
    struct touch *touched = &touch;
    const struct device_work work = {.name = "touch", .run = run_touch, .arguments = &touched};
    struct device_faults faults;

    ck_assert_int_eq(device_open(ground->device, grants, count), CAPU_OK);
    ck_assert_int_eq(device_run(ground->device, ground->stream, &work), CAPU_OK);
    ck_assert_int_eq(device_stream_synchronize(ground->device, ground->stream), CAPU_OK);
    ck_assert_int_eq(device_close(ground->device, &faults), CAPU_OK);
    return faults;
}

static char byte_at(struct ground *ground, const char *address)
{
    uint64_t one = 1;
    const char *memory = device_view(ground->device, address, &one);

    ck_assert_ptr_nonnull(memory);
    return *memory;
}

START_TEST(what_is_granted_raises_no_fault)
{
    struct ground ground;
    struct device_faults faults;

    ground_start(&ground, true);
    faults = faults_of(
        &ground,
        (const struct device_grant[]){{ground.range + PAGE, 1, true}, {ground.range, PAGE, false}},
        2, (struct touch){.at = {ground.range + 2 * PAGE - 1}});
    ck_assert(faults.strayed == NULL && faults.written == NULL);
    ck_assert_int_eq(byte_at(&ground, ground.range + 2 * PAGE - 1), 1);
    ground_finish(&ground);
}
END_TEST

/* The first address of each kind is noted, the work goes on, and later work is checked as well. */
START_TEST(what_is_not_granted_is_noted)
{
    struct ground ground;
    struct device_grant read;
    struct device_faults faults;

    ground_start(&ground, true);
    read = (struct device_grant){ground.range, PAGE, false};
    for (size_t round = 0; round < 2; round++) {
        faults = faults_of(&ground, &read, 1,
                           (struct touch){.at = {ground.range + 9, ground.range + 2 * PAGE + 5},
                                          .has_thread = _i == 1});
        ck_assert_ptr_eq(faults.written, ground.range + 9);
        ck_assert_ptr_eq(faults.strayed, ground.range + 2 * PAGE + 5);
        ck_assert_int_eq(byte_at(&ground, ground.range + 9), (int)round + 1);
        ck_assert_int_eq(byte_at(&ground, ground.range + 2 * PAGE + 5), (int)round + 1);
    }
    faults = faults_of(&ground, &read, 1,
                       (struct touch){.at = {ground.range + 9, ground.range + PAGE},
                                      .only_reads = true,
                                      .has_thread = _i == 1});
    ck_assert_ptr_eq(faults.strayed, ground.range + PAGE);
    ck_assert_ptr_null(faults.written);
    ground_finish(&ground);
}
END_TEST

/* Addresses with no page read as zero. Afterwards a page can be mapped there. */
START_TEST(unmapped_addresses_are_noted)
{
    struct ground ground;
    struct device_faults faults;
    device_page page;

    ground_start(&ground, true);
    faults = faults_of(&ground, NULL, 0, (struct touch){.at = {ground.range + 5 * PAGE}});
    ck_assert_ptr_eq(faults.strayed, ground.range + 5 * PAGE);
    ck_assert_int_eq(device_page_create(ground.device, &page), CAPU_OK);
    ck_assert_int_eq(device_map(ground.device, ground.range + 5 * PAGE, &page, 1), CAPU_OK);
    ck_assert_int_eq(byte_at(&ground, ground.range + 5 * PAGE), 0);
    faults = faults_of(&ground, NULL, 0, (struct touch){.at = {ground.range + 5 * PAGE}});
    ck_assert_ptr_eq(faults.strayed, ground.range + 5 * PAGE);
    ck_assert_int_eq(byte_at(&ground, ground.range + 5 * PAGE), 1);
    ground_finish(&ground);
}
END_TEST

START_TEST(the_larger_right_counts_in_a_shared_page)
{
    struct ground ground;
    struct device_faults faults;

    ground_start(&ground, true);
    faults = faults_of(
        &ground,
        (const struct device_grant[]){{ground.range, 100, true}, {ground.range + 200, 100, false}},
        2, (struct touch){.at = {ground.range + 250}});
    ck_assert(faults.strayed == NULL && faults.written == NULL);
    ground_finish(&ground);
}
END_TEST

/* Outside of work the program may look at what is mapped; the next work is checked all the same. */
START_TEST(the_program_may_look_at_mapped_memory)
{
    struct ground ground;

    ground_start(&ground, true);
    ground.range[7] = 3;
    ck_assert_int_eq(byte_at(&ground, ground.range + 7), 3);
    ck_assert_ptr_eq(faults_of(&ground, NULL, 0, (struct touch){.at = {ground.range + 7}}).strayed,
                     ground.range + 7);
    ground_finish(&ground);
}
END_TEST

START_TEST(the_program_faults_where_nothing_is_mapped)
{
    struct ground ground;

    signal(SIGSEGV, SIG_DFL); /* sanitizers install handlers */
    ground_start(&ground, true);
    ground.range[5 * PAGE] = 3;
}
END_TEST

/* Copies and fills do not need memory to be open, wherever its pages lie. */
START_TEST(the_devices_own_work_is_not_affected)
{
    struct ground ground;
    static char bytes[4 * PAGE];
    static char back[4 * PAGE];
    uint64_t length = sizeof(bytes);

    ground_start(&ground, _i == 1);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i / 7);
    }
    ck_assert_int_eq(
        device_copy_in(ground.device, ground.stream, ground.range, bytes, sizeof(bytes)), CAPU_OK);
    ck_assert_int_eq(device_fill(ground.device, ground.stream, ground.range + PAGE - 10, 1, 20),
                     CAPU_OK);
    ck_assert_int_eq(device_copy_within(ground.device, ground.stream, ground.range + 2 * PAGE + 50,
                                        ground.range + 10, PAGE + 100),
                     CAPU_OK);
    ck_assert_int_eq(
        device_copy_out(ground.device, ground.stream, back, ground.range, sizeof(back)), CAPU_OK);
    ck_assert_int_eq(device_stream_synchronize(ground.device, ground.stream), CAPU_OK);
    memset(bytes + PAGE - 10, 1, 20);
    memcpy(bytes + 2 * PAGE + 50, bytes + 10, PAGE + 100);
    ck_assert_int_eq(memcmp(back, bytes, sizeof(bytes)), 0);
    ck_assert((device_view(ground.device, ground.range, &length) != NULL) == (_i == 1));
    ck_assert_uint_eq(length, _i == 1 ? PAGE : sizeof(bytes));
    ground_finish(&ground);
}
END_TEST

START_TEST(misuse_is_rejected)
{
    struct ground ground;
    struct device_faults faults;
    uint64_t one = 1;
    struct device_grant grant;

    ground_start(&ground, true);
    ck_assert_int_eq(device_guard(ground.device), CAPU_INVALID);
    ck_assert_int_eq(device_close(ground.device, &faults), CAPU_INVALID);
    grant = (struct device_grant){ground.range + 4 * PAGE - 1, 2, true};
    ck_assert_int_eq(device_open(ground.device, &grant, 1), CAPU_INVALID);
    ck_assert_ptr_null(device_view(ground.device, ground.range + 4 * PAGE, &one));
    ck_assert_int_eq(device_open(ground.device, NULL, 0), CAPU_OK);
    ck_assert_int_eq(device_open(ground.device, NULL, 0), CAPU_INVALID);
    ck_assert_int_eq(device_close(ground.device, &faults), CAPU_OK);
    ground_finish(&ground);
    ground_start(&ground, false);
    ck_assert_int_eq(device_guard(ground.device), CAPU_INVALID); /* too late */
    ck_assert_int_eq(device_open(ground.device, NULL, 0), CAPU_INVALID);
    ground_finish(&ground);
}
END_TEST

START_TEST(other_devices_cannot_guard)
{
    const struct device_options options = {.memory_bytes = (uint64_t)64 << 20};
    struct device_faults faults;
    struct device *device;
    uint64_t one = 1;
    int place;

    ck_assert_int_eq(sim_device_create(&options, &device, NULL, 0), CAPU_OK);
    ck_assert_int_eq(device_guard(device), CAPU_UNSUPPORTED);
    ck_assert_int_eq(device_open(device, NULL, 0), CAPU_UNSUPPORTED);
    ck_assert_int_eq(device_close(device, &faults), CAPU_UNSUPPORTED);
    ck_assert_ptr_null(device_view(device, &place, &one));
    device_destroy(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host guard");
    TCase *cases = tcase_create("guard");

    tcase_add_test(cases, what_is_granted_raises_no_fault);
    tcase_add_loop_test(cases, what_is_not_granted_is_noted, 0, 2);
    tcase_add_test(cases, unmapped_addresses_are_noted);
    tcase_add_test(cases, the_larger_right_counts_in_a_shared_page);
    tcase_add_test(cases, the_program_may_look_at_mapped_memory);
    tcase_add_test_raise_signal(cases, the_program_faults_where_nothing_is_mapped, SIGSEGV);
    tcase_add_loop_test(cases, the_devices_own_work_is_not_affected, 0, 2);
    tcase_add_test(cases, misuse_is_rejected);
    tcase_add_test(cases, other_devices_cannot_guard);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
