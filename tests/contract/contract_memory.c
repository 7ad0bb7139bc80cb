/* The contract of pages, ranges, mappings and host memory. */
#include "contract.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 4

static uint64_t page_bytes_of(const struct device *device)
{
    return device->capabilities.page_bytes;
}

/* Reads device memory on a new stream. */
static void read_out(struct device *device, char *to, const char *from, uint64_t bytes)
{
    capu_stream stream = NULL;

    CHECK_OK(device_stream_create(device, DEVICE_D2H, &stream));
    CHECK_OK(device_copy_out(device, stream, to, from, bytes));
    CHECK_OK(device_stream_synchronize(device, stream));
    device_stream_destroy(device, stream);
}

static void fill(struct device *device, char *to, unsigned char byte, uint64_t bytes)
{
    capu_stream stream = NULL;

    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    CHECK_OK(device_fill(device, stream, to, byte, bytes));
    CHECK_OK(device_stream_synchronize(device, stream));
    device_stream_destroy(device, stream);
}

START_TEST(capabilities_make_sense)
{
    struct device *device = contract_make(_i);

    if (device == NULL) {
        return;
    }
    ck_assert_ptr_nonnull(device->capabilities.name);
    ck_assert_uint_ge(page_bytes_of(device), 4096);
    ck_assert_uint_eq(page_bytes_of(device) & (page_bytes_of(device) - 1), 0);
    ck_assert_uint_ge(device->capabilities.memory_bytes, page_bytes_of(device));
    CHECK_OK(device_failure(device, NULL, 0));
    device_destroy(device);
}
END_TEST

START_TEST(the_memory_holds_exactly_its_pages)
{
    struct device *device = contract_make(_i);
    device_page pages[CONTRACT_PAGES];
    device_page extra = 12345;

    if (device == NULL) {
        return;
    }
    ck_assert_uint_eq(device->capabilities.memory_bytes, CONTRACT_PAGES * page_bytes_of(device));
    for (int round = 0; round < 2; round++) {
        for (int index = 0; index < CONTRACT_PAGES; index++) {
            CHECK_OK(device_page_create(device, &pages[index]));
            ck_assert_uint_ne(pages[index], DEVICE_NO_PAGE);
            for (int other = 0; other < index; other++) {
                ck_assert_uint_ne(pages[index], pages[other]);
            }
        }
        ck_assert_int_eq(device_page_create(device, &extra), CAPU_OVER_BUDGET);
        ck_assert_uint_eq(extra, 12345);
        device_page_destroy(device, pages[7]);
        CHECK_OK(device_page_create(device, &pages[7]));
        ck_assert_int_eq(device_page_create(device, &extra), CAPU_OVER_BUDGET);
        for (int index = 0; index < CONTRACT_PAGES; index++) {
            device_page_destroy(device, pages[index]);
        }
    }
    device_destroy(device);
}
END_TEST

START_TEST(ranges_are_aligned_and_disjoint)
{
    struct device *device = contract_make(_i);
    void *ranges[16];
    void *untouched = &device;
    uint64_t bytes;

    if (device == NULL) {
        return;
    }
    bytes = 3 * page_bytes_of(device);
    for (int index = 0; index < 16; index++) {
        CHECK_OK(device_range_reserve(device, bytes, &ranges[index]));
        ck_assert_uint_eq((uintptr_t)ranges[index] & (page_bytes_of(device) - 1), 0);
        for (int other = 0; other < index; other++) {
            char *low = ranges[index] < ranges[other] ? ranges[index] : ranges[other];
            char *high = ranges[index] < ranges[other] ? ranges[other] : ranges[index];

            ck_assert_uint_ge((uint64_t)(high - low), bytes);
        }
    }
    ck_assert_int_eq(device_range_reserve(device, (uint64_t)1 << 62, &untouched),
                     CAPU_SYSTEM_LIMIT);
    ck_assert_ptr_eq(untouched, &device);
    for (int index = 15; index >= 0; index -= 2) {
        device_range_release(device, ranges[index], bytes);
    }
    CHECK_OK(device_range_reserve(device, bytes, &ranges[1]));
    device_range_release(device, ranges[1], bytes);
    for (int index = 0; index < 16; index += 2) {
        device_range_release(device, ranges[index], bytes);
    }
    device_destroy(device);
}
END_TEST

START_TEST(contents_belong_to_pages)
{
    struct device *device = contract_make(_i);
    device_page pages[PAGES];
    uint64_t page_bytes;
    char *address;
    char *memory;

    if (device == NULL) {
        return;
    }
    page_bytes = page_bytes_of(device);
    address = contract_mapped(device, pages, PAGES);
    memory = malloc(PAGES * page_bytes);
    memset(memory, 1, PAGES * page_bytes);
    for (unsigned index = 0; index < PAGES; index++) {
        fill(device, address + index * page_bytes, (unsigned char)(index + 10), page_bytes);
    }
    read_out(device, memory, address, PAGES * page_bytes);
    for (unsigned index = 0; index < PAGES; index++) {
        ck_assert(
            contract_reads_as(device, memory + index * page_bytes, page_bytes, (char)(index + 10)));
    }
    CHECK_OK(device_unmap(device, address, PAGES));

    /* The pages are mapped in another order at the same addresses: contents belong to pages. */
    for (unsigned index = 0; index < PAGES; index++) {
        CHECK_OK(device_map(device, address + index * page_bytes, &pages[PAGES - 1 - index], 1));
    }
    memset(memory, 1, PAGES * page_bytes);
    read_out(device, memory, address, PAGES * page_bytes);
    for (unsigned index = 0; index < PAGES; index++) {
        ck_assert(contract_reads_as(device, memory + index * page_bytes, page_bytes,
                                    (char)(PAGES - 1 - index + 10)));
    }
    /* Adjacent mappings may be unmapped in one call. */
    CHECK_OK(device_unmap(device, address, PAGES));
    for (unsigned index = 0; index < PAGES; index++) {
        device_page_destroy(device, pages[index]);
    }
    device_range_release(device, address, PAGES * page_bytes);
    free(memory);
    device_destroy(device);
}
END_TEST

START_TEST(two_addresses_of_a_page_show_the_same_memory)
{
    struct device *device = contract_make(_i);
    device_page pages[PAGES];
    device_page turned[2];
    uint64_t page_bytes;
    void *alias = NULL;
    char *address;
    char *memory;

    if (device == NULL) {
        return;
    }
    page_bytes = page_bytes_of(device);
    address = contract_mapped(device, pages, PAGES);
    CHECK_OK(device_range_reserve(device, 2 * page_bytes, &alias));
    turned[0] = pages[3];
    turned[1] = pages[1];
    CHECK_OK(device_map(device, alias, turned, 2));
    memory = malloc(page_bytes);
    for (unsigned char byte = 20; byte < 24; byte++) {
        fill(device, address + 3 * page_bytes, byte, page_bytes);
        memset(memory, 1, page_bytes);
        read_out(device, memory, alias, page_bytes);
        ck_assert(contract_reads_as(device, memory, page_bytes, (char)byte));
        fill(device, (char *)alias + page_bytes, (unsigned char)(byte + 100), page_bytes);
        memset(memory, 1, page_bytes);
        read_out(device, memory, address + page_bytes, page_bytes);
        ck_assert(contract_reads_as(device, memory, page_bytes, (char)(byte + 100)));
    }
    /* Unmapping one address leaves the other. */
    CHECK_OK(device_unmap(device, address, PAGES));
    memset(memory, 1, page_bytes);
    read_out(device, memory, alias, page_bytes);
    ck_assert(contract_reads_as(device, memory, page_bytes, 23));
    free(memory);
    device_destroy(device);
}
END_TEST

START_TEST(wrong_maps_are_rejected_and_change_nothing)
{
    struct device *device = contract_make(_i);
    device_page pages[PAGES];
    device_page wrong[PAGES];
    uint64_t page_bytes;
    void *range = NULL;
    char *address;

    if (device == NULL) {
        return;
    }
    page_bytes = page_bytes_of(device);
    address = contract_mapped(device, pages, PAGES);
    CHECK_OK(device_range_reserve(device, PAGES * page_bytes, &range));

    ck_assert_int_eq(device_map(device, address, pages, PAGES), CAPU_INVALID);
    ck_assert_int_eq(device_map(device, (char *)range + page_bytes, pages, PAGES), CAPU_INVALID);
    ck_assert_int_eq(device_unmap(device, range, 1), CAPU_INVALID);
    ck_assert_int_eq(device_unmap(device, address, PAGES - 1), CAPU_INVALID);
    ck_assert_int_eq(device_unmap(device, address + page_bytes, PAGES - 1), CAPU_INVALID);

    /* The last page does not exist, so nothing is mapped. */
    memcpy(wrong, pages, sizeof(wrong));
    wrong[PAGES - 1] = pages[PAGES - 1] + 1000;
    ck_assert_int_eq(device_map(device, range, wrong, PAGES), CAPU_INVALID);
    CHECK_OK(device_map(device, range, pages, PAGES));
    /* A range that is partly mapped cannot be mapped. */
    CHECK_OK(device_unmap(device, range, PAGES));
    CHECK_OK(device_map(device, (char *)range + page_bytes, pages, 1));
    ck_assert_int_eq(device_map(device, range, pages, 2), CAPU_INVALID);
    CHECK_OK(device_map(device, range, pages, 1));
    CHECK_OK(device_unmap(device, range, 2));

    fill(device, address, 9, PAGES * page_bytes);
    CHECK_OK(device_unmap(device, address, PAGES));
    device_destroy(device);
}
END_TEST

START_TEST(arguments_are_checked)
{
    struct device *device = contract_make(_i);
    const struct device_work nameless = {
        .name = NULL, .run = contract_subjects[_i].slow, .arguments = NULL, .duration_ns = 0};
    device_page page = DEVICE_NO_PAGE;
    device_page pages[1];
    capu_stream stream = NULL;
    struct device_event *event = NULL;
    void *address = NULL;
    uint64_t page_bytes;
    uint64_t ns = 0;
    char *mapped;

    if (device == NULL) {
        return;
    }
    page_bytes = page_bytes_of(device);
    mapped = contract_mapped(device, pages, 1);
    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    CHECK_OK(device_event_create(device, false, &event));
    ck_assert_int_eq(device_page_create(device, NULL), CAPU_INVALID);
    ck_assert_int_eq(device_page_create(NULL, &page), CAPU_INVALID);
    ck_assert_int_eq(device_range_reserve(device, 0, &address), CAPU_INVALID);
    ck_assert_int_eq(device_range_reserve(device, page_bytes - 1, &address), CAPU_INVALID);
    ck_assert_int_eq(device_map(device, mapped + 1, pages, 1), CAPU_INVALID);
    ck_assert_int_eq(device_map(device, mapped, pages, 0), CAPU_INVALID);
    ck_assert_int_eq(device_map(device, mapped, &page, 1), CAPU_INVALID);
    ck_assert_int_eq(device_unmap(device, mapped, SIZE_MAX), CAPU_INVALID);
    ck_assert_int_eq(device_host_alloc(device, 0, &address), CAPU_INVALID);
    ck_assert_int_eq(device_stream_create(device, (enum device_engine)7, &stream), CAPU_INVALID);
    ck_assert_int_eq(device_event_record(device, event, NULL), CAPU_INVALID);
    ck_assert_int_eq(device_stream_follow(device, stream, NULL), CAPU_INVALID);
    ck_assert_int_eq(device_event_elapsed(device, event, event, NULL), CAPU_INVALID);
    ck_assert_int_eq(device_event_elapsed(device, event, event, &ns), CAPU_INVALID);
    ck_assert_int_eq(device_copy_out(device, stream, NULL, mapped, 1), CAPU_INVALID);
    ck_assert_int_eq(device_copy_in(device, stream, mapped, mapped, 0), CAPU_INVALID);
    ck_assert_int_eq(device_fill(device, stream, mapped, 0, UINT64_MAX), CAPU_INVALID);
    ck_assert_int_eq(device_run(device, stream, &nameless), CAPU_INVALID);
    ck_assert_int_eq(device_failure(device, NULL, 8), CAPU_INVALID);
    ck_assert_ptr_null(address);
    device_page_destroy(device, DEVICE_NO_PAGE);
    device_range_release(device, NULL, page_bytes);
    device_host_free(device, NULL, 1);
    device_stream_destroy(device, NULL);
    device_event_destroy(device, NULL);
    device_destroy(NULL);
    device_event_destroy(device, event);
    device_stream_destroy(device, stream);
    device_destroy(device);
}
END_TEST

static void *allocate_and_free(void *argument)
{
    struct device *device = argument;

    for (int round = 0; round < 100; round++) {
        void *memory = NULL;
        uint64_t bytes = (uint64_t)(round + 1) * 1000;

        if (device_host_alloc(device, bytes, &memory) != CAPU_OK) {
            return device;
        }
        memset(memory, round, bytes);
        device_host_free(device, memory, bytes);
    }
    return NULL;
}

START_TEST(a_second_thread_can_allocate_host_memory)
{
    struct device *device = contract_make(_i);
    device_page pages[PAGES];
    pthread_t thread;
    void *problem = device;
    char *address;

    if (device == NULL) {
        return;
    }
    address = contract_mapped(device, pages, PAGES);
    CHECK_OK(device_unmap(device, address, PAGES));
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate_and_free, device), 0);
    for (int round = 0; round < 50; round++) {
        void *memory = NULL;

        CHECK_OK(device_host_alloc(device, 5000, &memory));
        CHECK_OK(device_map(device, address, pages, PAGES));
        CHECK_OK(device_unmap(device, address, PAGES));
        device_host_free(device, memory, 5000);
    }
    pthread_join(thread, &problem);
    ck_assert_ptr_null(problem);
    device_destroy(device);
}
END_TEST

/* Whether the kernel has a mapping for every page of the range. */
static bool is_mapped(void *address, uint64_t bytes)
{
    static unsigned char pages[64];

    return mincore(address, bytes, pages) == 0;
}

/* A child would copy host memory page by page while the parent writes to it. */
START_TEST(host_memory_is_not_inherited)
{
    struct device *device = contract_make(_i);
    const uint64_t bytes = 16 * (uint64_t)sysconf(_SC_PAGESIZE);
    void *memory = NULL;
    int result = -1;
    pid_t child;

    if (device == NULL) {
        return;
    }
    CHECK_OK(device_host_alloc(device, bytes, &memory));
    ck_assert(is_mapped(memory, bytes));
    child = fork();
    if (child == 0) {
        _exit(is_mapped(memory, bytes) ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
    device_host_free(device, memory, bytes);
    device_destroy(device);
}
END_TEST

START_TEST(destroying_the_device_releases_everything)
{
    struct device *device = contract_make(_i);
    device_page pages[PAGES];
    void *memory = NULL;

    if (device == NULL) {
        return;
    }
    (void)contract_mapped(device, pages, PAGES);
    CHECK_OK(device_host_alloc(device, 100000, &memory));
    memset(memory, 3, 100000);
    device_destroy(device);
}
END_TEST

/* Restores the default handler, since a sanitizer's would turn the fault into an exit. */
static void touch(volatile char *address)
{
    signal(SIGSEGV, SIG_DFL);
    *address = 1;
}

START_TEST(touching_a_reserved_range_faults)
{
    struct device *device = contract_make(_i);
    void *address = NULL;

    CHECK_OK(device_range_reserve(device, page_bytes_of(device), &address));
    touch(address);
}
END_TEST

START_TEST(touching_an_unmapped_page_faults)
{
    struct device *device = contract_make(_i);
    device_page pages[PAGES];
    char *address = contract_mapped(device, pages, PAGES);

    address[0] = 1; /* still mapped: no fault */
    address[PAGES * page_bytes_of(device) - 1] = 1;
    CHECK_OK(device_unmap(device, address, PAGES));
    touch(address + (PAGES - 1) * page_bytes_of(device));
}
END_TEST

void contract_add_memory(TCase *tcase, const struct contract_subject *subject, int index)
{
    tcase_add_loop_test(tcase, capabilities_make_sense, index, index + 1);
    if (subject->has_page_limit) {
        tcase_add_loop_test(tcase, the_memory_holds_exactly_its_pages, index, index + 1);
    }
    tcase_add_loop_test(tcase, ranges_are_aligned_and_disjoint, index, index + 1);
    tcase_add_loop_test(tcase, contents_belong_to_pages, index, index + 1);
    tcase_add_loop_test(tcase, two_addresses_of_a_page_show_the_same_memory, index, index + 1);
    tcase_add_loop_test(tcase, wrong_maps_are_rejected_and_change_nothing, index, index + 1);
    tcase_add_loop_test(tcase, arguments_are_checked, index, index + 1);
    tcase_add_loop_test(tcase, a_second_thread_can_allocate_host_memory, index, index + 1);
    tcase_add_loop_test(tcase, host_memory_is_not_inherited, index, index + 1);
    tcase_add_loop_test(tcase, destroying_the_device_releases_everything, index, index + 1);
    if (subject->touching_faults) {
        tcase_add_loop_test_raise_signal(tcase, touching_a_reserved_range_faults, SIGSEGV, index,
                                         index + 1);
        tcase_add_loop_test_raise_signal(tcase, touching_an_unmapped_page_faults, SIGSEGV, index,
                                         index + 1);
    }
}
