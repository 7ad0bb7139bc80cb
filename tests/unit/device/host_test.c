/* What is specific to the host device: page size, mappings, throttle, many pages. */
#include "device/host.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define CHECK_OK(call) ck_assert_int_eq((call), CAPU_OK)

static const struct host_machine machine = {
    .memory_bytes = 256 * GIB, .page_bytes = 4 * KIB, .mapping_count = 65530};

static uint64_t chosen_page(uint64_t memory_bytes)
{
    struct device_options options = {.memory_bytes = memory_bytes};

    CHECK_OK(host_options_complete(&machine, &options, NULL, 0));
    ck_assert_uint_le(options.memory_bytes / options.page_bytes, host_mapping_limit(&machine) / 2);
    return options.page_bytes;
}

START_TEST(the_page_grows_with_the_memory)
{
    struct device_options options = {0};

    ck_assert_uint_eq(host_mapping_limit(&machine), 65530 - 4096);
    ck_assert_uint_eq(chosen_page(4 * KIB), 4 * KIB);
    ck_assert_uint_eq(chosen_page(64 * MIB), 4 * KIB);
    /* The limit is 30,717 pages of 4 KiB. */
    ck_assert_uint_eq(chosen_page(30717 * 4 * KIB), 4 * KIB);
    ck_assert_uint_eq(chosen_page(30718 * 4 * KIB), 8 * KIB);
    ck_assert_uint_eq(chosen_page(1 * GIB), 64 * KIB);
    ck_assert_uint_eq(chosen_page(16 * GIB), 1 * MIB);
    CHECK_OK(host_options_complete(&machine, &options, NULL, 0));
    ck_assert_uint_eq(options.memory_bytes, 256 * GIB);
    ck_assert_uint_eq(options.page_bytes, 16 * MIB);
}
END_TEST

/* The caller may need larger pages than the memory would; but the memory must hold one. */
START_TEST(the_page_is_as_large_as_the_caller_needs)
{
    struct device_options options = {.memory_bytes = 64 * MIB, .least_page_bytes = 32 * KIB};

    CHECK_OK(host_options_complete(&machine, &options, NULL, 0));
    ck_assert_uint_eq(options.page_bytes, 32 * KIB);
    options = (struct device_options){.memory_bytes = 1 * GIB, .least_page_bytes = 32 * KIB};
    CHECK_OK(host_options_complete(&machine, &options, NULL, 0));
    ck_assert_uint_eq(options.page_bytes, 64 * KIB);
    options = (struct device_options){.memory_bytes = 1 * MIB, .least_page_bytes = 2 * MIB};
    CHECK_OK(host_options_complete(&machine, &options, NULL, 0));
    ck_assert_uint_eq(options.page_bytes, 4 * KIB);
    options = (struct device_options){
        .memory_bytes = 1 * MIB, .least_page_bytes = 32 * KIB, .page_bytes = 8 * KIB};
    CHECK_OK(host_options_complete(&machine, &options, NULL, 0));
    ck_assert_uint_eq(options.page_bytes, 8 * KIB);
}
END_TEST

START_TEST(wrong_options_are_named)
{
    struct device_options options = {.memory_bytes = 8 * GIB, .page_bytes = 64 * KIB};
    char text[512] = "";

    ck_assert_int_eq(host_options_complete(&machine, &options, text, sizeof(text)),
                     CAPU_SYSTEM_LIMIT);
    ck_assert_ptr_nonnull(strstr(text, "65536"));
    ck_assert_ptr_nonnull(strstr(text, "8589934592"));
    ck_assert_ptr_nonnull(strstr(text, "65530"));
    ck_assert_ptr_nonnull(strstr(text, "smaller budget, or pages of at least 262144 bytes"));
    options.page_bytes = 256 * KIB;
    CHECK_OK(host_options_complete(&machine, &options, NULL, 0));
    options.page_bytes = 3 * 64 * KIB;
    ck_assert_int_eq(host_options_complete(&machine, &options, text, sizeof(text)), CAPU_INVALID);
    options.page_bytes = 2 * KIB;
    ck_assert_int_eq(host_options_complete(&machine, &options, NULL, 0), CAPU_INVALID);
    options.page_bytes = 0;
    options.memory_bytes = 257 * GIB;
    ck_assert_int_eq(host_options_complete(&machine, &options, text, sizeof(text)),
                     CAPU_OVER_BUDGET);
    ck_assert_ptr_nonnull(
        strstr(text, "a budget of 263168.00 MiB (275951648768 bytes) is more than the"));
    options.memory_bytes = 4 * KIB - 1;
    ck_assert_int_eq(host_options_complete(&machine, &options, text, sizeof(text)),
                     CAPU_OVER_BUDGET);
    ck_assert_ptr_nonnull(strstr(text, "a budget of 4095 bytes is less than one page"));
    ck_assert_uint_eq(options.memory_bytes, 4 * KIB - 1);
}
END_TEST

static struct device *make(uint64_t memory_bytes, uint64_t bytes_per_s)
{
    const struct device_options options = {.memory_bytes = memory_bytes,
                                           .page_bytes = 64 * KIB,
                                           .d2h_bytes_per_s = bytes_per_s,
                                           .h2d_bytes_per_s = bytes_per_s};
    struct device *device = NULL;

    CHECK_OK(host_device_create(&options, &device, NULL, 0));
    return device;
}

/* The number of kernel mappings that overlap [address, address + bytes). */
static size_t kernel_mappings(const char *address, uint64_t bytes)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    size_t count = 0;

    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long start;
        unsigned long end;

        if (sscanf(line, "%lx-%lx ", &start, &end) == 2 && start < (uintptr_t)address + bytes &&
            end > (uintptr_t)address) {
            count++;
        }
    }
    fclose(maps);
    return count;
}

#define SLOTS 64

/* Whatever is mapped and unmapped, the kernel never has more mappings than the device counts. */
START_TEST(mappings_are_never_undercounted)
{
    struct device *device = make(SLOTS * 64 * KIB, 0);
    const struct host_device *host = host_of(device);
    device_page pages[SLOTS];
    size_t mapped[SLOTS] = {0}; /* pages of the mapping that starts there */
    uint64_t random = 7;
    void *range = NULL;
    uint64_t bytes = SLOTS * 64 * KIB;

    for (int index = 0; index < SLOTS; index++) {
        CHECK_OK(device_page_create(device, &pages[index]));
    }
    CHECK_OK(device_range_reserve(device, bytes, &range));
    ck_assert_uint_eq(host->mapping_count, 1);
    for (int round = 0; round < 3000; round++) {
        size_t slot = (random = random * 6364136223846793005u + 1442695040888963407u) >> 58;
        size_t count = 1 + (random >> 40) % 4;
        char *address = (char *)range + slot * 64 * KIB;

        if (mapped[slot] > 0) {
            CHECK_OK(device_unmap(device, address, mapped[slot]));
            mapped[slot] = 0;
        } else if (slot + count <= SLOTS &&
                   device_map(device, address, pages + (random >> 30) % (SLOTS - 4), count) ==
                       CAPU_OK) {
            mapped[slot] = count;
        }
        if (round % 10 == 0) {
            ck_assert_uint_le(kernel_mappings(range, bytes), host->mapping_count);
        }
    }
    for (size_t slot = 0; slot < SLOTS; slot++) {
        if (mapped[slot] > 0) {
            CHECK_OK(device_unmap(device, (char *)range + slot * 64 * KIB, mapped[slot]));
        }
    }
    ck_assert_uint_eq(host->mapping_count, 1);
    device_range_release(device, range, bytes);
    ck_assert_uint_eq(host->mapping_count, 0);
    device_destroy(device);
}
END_TEST

START_TEST(mappings_are_refused_below_the_limit)
{
    struct device *device = make(SLOTS * 64 * KIB, 0);
    device_page pages[SLOTS];
    device_page scattered[SLOTS];
    void *range = NULL;
    void *untouched = NULL;

    for (int index = 0; index < SLOTS; index++) {
        CHECK_OK(device_page_create(device, &pages[index]));
        ck_assert_uint_eq(pages[index], (uint64_t)index); /* low and contiguous */
        scattered[SLOTS - 1 - index] = pages[index];
    }
    CHECK_OK(device_range_reserve(device, SLOTS * 64 * KIB, &range));
    host_of(device)->mapping_limit = 20;
    /* In reverse order each page needs a mapping; in order all of them are one. */
    ck_assert_int_eq(device_map(device, range, scattered, SLOTS), CAPU_SYSTEM_LIMIT);
    CHECK_OK(device_map(device, range, scattered, 18));
    ck_assert_uint_eq(host_of(device)->mapping_count, 20);
    ck_assert_int_eq(device_range_reserve(device, 64 * KIB, &untouched), CAPU_SYSTEM_LIMIT);
    ck_assert_ptr_null(untouched);
    CHECK_OK(device_unmap(device, range, 18));
    CHECK_OK(device_map(device, range, pages, SLOTS));
    ck_assert_uint_eq(host_of(device)->mapping_count, 3);
    device_destroy(device);
}
END_TEST

/* The kernel's limit is per process: two devices can exceed it even if each stays below it. */
START_TEST(mappings_are_counted_for_all_devices)
{
    struct device *devices[2] = {make(SLOTS * 64 * KIB, 0), make(SLOTS * 64 * KIB, 0)};
    device_page scattered[2][SLOTS];
    void *ranges[2] = {NULL};

    for (int which = 0; which < 2; which++) {
        for (int index = 0; index < SLOTS; index++) {
            CHECK_OK(device_page_create(devices[which], &scattered[which][SLOTS - 1 - index]));
        }
        CHECK_OK(device_range_reserve(devices[which], SLOTS * 64 * KIB, &ranges[which]));
        host_of(devices[which])->mapping_limit = 40;
    }
    CHECK_OK(device_map(devices[0], ranges[0], scattered[0], 30));
    ck_assert_int_eq(device_map(devices[1], ranges[1], scattered[1], 30), CAPU_SYSTEM_LIMIT);
    ck_assert_uint_eq(host_of(devices[1])->mapping_count, 1);
    CHECK_OK(device_map(devices[1], ranges[1], scattered[1], 6));
    /* The mappings of a destroyed device are available to the others. */
    device_destroy(devices[0]);
    CHECK_OK(device_map(devices[1], (char *)ranges[1] + 6 * 64 * KIB, scattered[1], 30));
    device_destroy(devices[1]);
}
END_TEST

/* Makes mappings until the kernel refuses one, and returns their number. */
static size_t use_mappings_up(void **mappings, size_t limit)
{
    size_t count = 0;

    while (count < limit) {
        /* The kernel does not merge neighbours with different protection. */
        mappings[count] = mmap(NULL, 4 * KIB, count % 2 == 0 ? PROT_READ : PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mappings[count] == MAP_FAILED) {
            break;
        }
        count++;
    }
    return count;
}

/* Whether the byte is mapped. The kernel reads it, so this does not fault. */
static bool is_there(int pipe_end, const void *address)
{
    return write(pipe_end, address, 1) == 1;
}

/* A program that has used up all mappings cannot map, but can still unmap. */
START_TEST(a_program_without_mappings_can_unmap)
{
    static void *mappings[1 << 17];
    struct device *device = make(SLOTS * 64 * KIB, 0);
    device_page scattered[SLOTS];
    char *range = NULL;
    char *other = NULL;
    size_t count;
    int ends[2];
    capu_status mapped;
    capu_status unmapped;
    bool is_left[2];

    ck_assert_int_eq(pipe(ends), 0);
    for (int index = 0; index < SLOTS; index++) {
        CHECK_OK(device_page_create(device, &scattered[SLOTS - 1 - index]));
    }
    CHECK_OK(device_range_reserve(device, SLOTS * 64 * KIB, (void **)&range));
    CHECK_OK(device_range_reserve(device, SLOTS * 64 * KIB, (void **)&other));
    CHECK_OK(device_map(device, range, scattered, 32));
    ck_assert(is_there(ends[1], range));
    count = use_mappings_up(mappings, sizeof(mappings) / sizeof(mappings[0]));
    /* Leave room for some of the requested pages, but not for all. */
    for (int index = 1; index <= 8 && count > 8; index++) {
        munmap(mappings[count - (size_t)index], 4 * KIB);
    }
    mapped = device_map(device, other, scattered, SLOTS);
    is_left[0] = is_there(ends[1], other);
    unmapped = device_unmap(device, range, 32);
    is_left[1] = is_there(ends[1], range);
    for (size_t index = 0; index + 8 < count; index++) {
        munmap(mappings[index], 4 * KIB);
    }
    /* A kernel with a higher limit than this test can use up maps all pages. */
    ck_assert_int_eq(mapped,
                     count < sizeof(mappings) / sizeof(mappings[0]) ? CAPU_SYSTEM_LIMIT : CAPU_OK);
    ck_assert(is_left[0] == (mapped == CAPU_OK));
    CHECK_OK(unmapped);
    ck_assert(!is_left[1]);
    CHECK_OK(device_map(device, range, scattered, 32));
    ck_assert(is_there(ends[1], range));
    device_destroy(device);
}
END_TEST

/* A forked child would share the memory instead of copying it, so the child does not get it. */
START_TEST(children_have_no_device_memory)
{
    struct device *device = make(2 * MIB, 0);
    device_page pages[3] = {0};
    void *range = NULL;
    int result = 0;
    pid_t child;

    CHECK_OK(device_page_create(device, &pages[2]));
    CHECK_OK(device_page_create(device, &pages[0]));
    CHECK_OK(device_page_create(device, &pages[1]));
    CHECK_OK(device_range_reserve(device, 192 * KIB, &range));
    CHECK_OK(device_map(device, range, pages, 3)); /* two runs */
    memset(range, 1, 192 * KIB);
    for (int index = 0; index < 3; index++) {
        child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL);
            _exit(((volatile char *)range)[index * 64 * KIB]);
        }
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert(WIFSIGNALED(result) && WTERMSIG(result) == SIGSEGV);
    }
    ck_assert_int_eq(((char *)range)[0], 1);
    device_destroy(device);
}
END_TEST

/* 1 MiB at 20 MiB/s takes 50 ms. Two copies in the same direction queue up, on whatever streams. */
START_TEST(the_link_has_its_rate)
{
    struct device *device = make(2 * MIB, 20 * MIB);
    device_page pages[32];
    void *range = NULL;
    void *memory = NULL;
    capu_stream streams[2];
    uint64_t start;

    for (int index = 0; index < 32; index++) {
        CHECK_OK(device_page_create(device, &pages[index]));
    }
    CHECK_OK(device_range_reserve(device, 2 * MIB, &range));
    CHECK_OK(device_map(device, range, pages, 32));
    CHECK_OK(device_host_alloc(device, 2 * MIB, &memory));
    CHECK_OK(device_stream_create(device, DEVICE_D2H, &streams[0]));
    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &streams[1]));
    start = device_now_ns(device);
    CHECK_OK(device_copy_out(device, streams[0], memory, range, MIB));
    CHECK_OK(device_copy_out(device, streams[1], (char *)memory + MIB, range, MIB));
    CHECK_OK(device_stream_synchronize(device, streams[0]));
    CHECK_OK(device_stream_synchronize(device, streams[1]));
    ck_assert_uint_ge(device_now_ns(device) - start, 100000000);
    start = device_now_ns(device);
    CHECK_OK(device_copy_in(device, streams[0], range, memory, MIB));
    CHECK_OK(device_stream_synchronize(device, streams[0]));
    ck_assert_uint_ge(device_now_ns(device) - start, 50000000);
    ck_assert_uint_eq(device->capabilities.link.d2h_bytes_per_s, 20 * MIB);
    device_destroy(device);
}
END_TEST

static atomic_bool has_begun;
static atomic_bool may_end;
static atomic_bool has_ended;

static capu_status take_long(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    atomic_store(&has_begun, true);
    while (!atomic_load(&may_end)) {
        usleep(1000);
    }
    usleep(50000); /* long enough to notice if the device does not wait */
    atomic_store(&has_ended, true);
    return CAPU_OK;
}

static capu_status fail_at_once(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OP_FAILED;
}

/* Otherwise the memory of the op that is still running could be unmapped. */
START_TEST(a_failed_device_waits_for_running_work)
{
    const struct device_options options = {.memory_bytes = MIB};
    const struct device_work works[] = {{.name = "long", .run = take_long},
                                        {.name = "bad", .run = fail_at_once}};
    capu_stream streams[2];
    struct device *device;

    CHECK_OK(host_device_create(&options, &device, NULL, 0));
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &streams[i]));
    }
    CHECK_OK(device_run(device, streams[0], &works[0]));
    while (!atomic_load(&has_begun)) {
        usleep(1000);
    }
    CHECK_OK(device_run(device, streams[1], &works[1]));
    ck_assert_int_eq(device_stream_synchronize(device, streams[1]), CAPU_OP_FAILED);
    ck_assert(!atomic_load(&has_ended));
    atomic_store(&may_end, true);
    ck_assert_int_eq(device_stream_synchronize(device, streams[0]), CAPU_OP_FAILED);
    ck_assert(atomic_load(&has_ended));
    device_destroy(device);
}
END_TEST

static capu_status answer_nonsense(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return (capu_status)7;
}

START_TEST(an_invalid_status_of_an_op_is_shown)
{
    const struct device_options options = {.memory_bytes = MIB};
    const struct device_work work = {.name = "odd", .run = answer_nonsense};
    capu_stream stream;
    struct device *device;
    char text[256];

    CHECK_OK(host_device_create(&options, &device, NULL, 0));
    CHECK_OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    CHECK_OK(device_run(device, stream, &work));
    ck_assert_int_eq(device_stream_synchronize(device, stream), CAPU_OP_FAILED);
    ck_assert_int_eq(device_failure(device, text, sizeof(text)), CAPU_OP_FAILED);
    ck_assert_str_eq(text, "odd failed while running: its function returned 7, which is not a "
                           "capu_status");
    device_destroy(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host");
    TCase *tcase = tcase_create("host");

    tcase_add_test(tcase, the_page_grows_with_the_memory);
    tcase_add_test(tcase, the_page_is_as_large_as_the_caller_needs);
    tcase_add_test(tcase, wrong_options_are_named);
    tcase_add_test(tcase, mappings_are_never_undercounted);
    tcase_add_test(tcase, mappings_are_refused_below_the_limit);
    tcase_add_test(tcase, mappings_are_counted_for_all_devices);
#ifndef __SANITIZE_THREAD__ /* it needs mappings of its own */
    tcase_add_test(tcase, a_program_without_mappings_can_unmap);
#else
    (void)a_program_without_mappings_can_unmap;
#endif
    tcase_add_test(tcase, children_have_no_device_memory);
    tcase_add_test(tcase, the_link_has_its_rate);
    tcase_add_test(tcase, a_failed_device_waits_for_running_work);
    tcase_add_test(tcase, an_invalid_status_of_an_op_is_shown);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
