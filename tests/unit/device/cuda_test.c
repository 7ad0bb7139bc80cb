/* The cuda device over the fake runtime: which CUDA calls it makes, and how it handles results. */
#include "device/device.h"
#include "tests/support/suite.h"
#include "tests/unit/device/on_fake.h"

#include <pthread.h>
#include <string.h>

/* Checks that creation fails with this status and a text that contains `word`. */
static void refuses(const struct fake_cudart_machine *machine, const struct device_options *options,
                    capu_status status, const char *word)
{
    struct device *device = NULL;
    char text[300] = "";

    fake_cudart_reset(machine);
    ck_assert_int_eq(cuda_device_create(options, &device, text, sizeof(text)), status);
    ck_assert_ptr_null(device);
    ck_assert_msg(strstr(text, word) != NULL, "'%s' does not say '%s'", text, word);
    ck_assert_int_eq(cuda_device_create(options, &device, NULL, 0), status);
    ck_assert_int_eq(fake_cudart_last_error(), 0); /* no error is left for the program to find */
    on_fake_nothing_is_left();
}

START_TEST(machines_without_a_device_say_so)
{
    refuses(&(struct fake_cudart_machine){.has_no_driver = true}, NULL, CAPU_NO_DEVICE,
            "cudaErrorInsufficientDriver");
    refuses(&(struct fake_cudart_machine){.has_no_devices = true}, NULL, CAPU_NO_DEVICE,
            "cudaErrorNoDevice");
    refuses(&(struct fake_cudart_machine){.device_count = 2},
            &(struct device_options){.ordinal = 2}, CAPU_NO_DEVICE, "2 CUDA devices");
    refuses(NULL, &(struct device_options){.ordinal = UINT32_MAX}, CAPU_NO_DEVICE, "1 CUDA device");
    refuses(&(struct fake_cudart_machine){.missing = "cuMemAddressFree"}, NULL, CAPU_NO_DEVICE,
            "cuMemAddressFree");
}
END_TEST

START_TEST(devices_that_cannot_be_used_say_so)
{
    static const struct {
        enum fake_cudart_call call;
        capu_status status;
        const char *word;
    } cases[] = {
        {FAKE_cudaSetDevice, CAPU_NO_DEVICE, "cannot be used"},
        {FAKE_cudaGetDriverEntryPointByVersion, CAPU_NO_DEVICE, "cuMem"},
        {FAKE_cuMemGetAllocationGranularity, CAPU_NO_DEVICE, "virtual memory"},
        {FAKE_cudaMemGetInfo, CAPU_DEVICE_FAILED, "memory"},
    };
    struct device *device = NULL;
    char text[300] = "";

    fake_cudart_reset(NULL);
    on_fake_fail(cases[_i].call, 1, DEVICES_UNAVAILABLE);
    ck_assert_int_eq(cuda_device_create(NULL, &device, text, sizeof(text)), cases[_i].status);
    ck_assert_ptr_nonnull(strstr(text, cases[_i].word));
    ck_assert_int_eq(fake_cudart_last_error(), 0);
    on_fake_nothing_is_left();
}
END_TEST

START_TEST(options_are_checked)
{
    const struct fake_cudart_machine machine = {.memory_bytes = (uint64_t)64 << 20};

    refuses(&machine, &(struct device_options){.memory_bytes = (uint64_t)65 << 20},
            CAPU_OVER_BUDGET, "67108864");
    refuses(&machine, &(struct device_options){.memory_bytes = PAGE, .page_bytes = 2 * PAGE},
            CAPU_OVER_BUDGET, "one page");
    refuses(&machine, &(struct device_options){.page_bytes = PAGE / 2}, CAPU_INVALID, "65536");
    refuses(&machine, &(struct device_options){.page_bytes = 3 * PAGE}, CAPU_INVALID, "196608");
}
END_TEST

START_TEST(defaults_follow_the_device)
{
    struct fake_cudart_machine machine = {.memory_bytes = (uint64_t)256 << 20};
    struct device_options options = {.d2h_bytes_per_s = RATE, .h2d_bytes_per_s = RATE};
    struct device *device = NULL;

    /* A sixteenth is left for the program. */
    fake_cudart_reset(&machine);
    OK(cuda_device_create(&options, &device, NULL, 0));
    ck_assert_str_eq(device->capabilities.name, "cuda");
    ck_assert_uint_eq(device->capabilities.page_bytes, (uint64_t)2 << 20);
    ck_assert_uint_eq(device->capabilities.memory_bytes, (uint64_t)240 << 20);
    ck_assert_uint_eq(device->capabilities.link.d2h_bytes_per_s, RATE);
    ck_assert(!device->capabilities.is_simulated && !device->capabilities.runs_on_stream);
    device_destroy(device);

    /* A driver that needs larger pages. */
    machine.granularity_bytes = (uint64_t)4 << 20;
    fake_cudart_reset(&machine);
    OK(cuda_device_create(&options, &device, NULL, 0));
    ck_assert_uint_eq(device->capabilities.page_bytes, (uint64_t)4 << 20);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

START_TEST(the_link_is_measured_unless_it_is_given)
{
    struct device_options options = {.memory_bytes = PAGES * PAGE, .page_bytes = PAGE};
    const struct device_link *found;
    struct device *device = NULL;

    fake_cudart_reset(NULL);
    OK(cuda_device_create(&options, &device, NULL, 0));
    found = &device->capabilities.link;
    ck_assert_uint_gt(found->d2h_bytes_per_s, 1000);
    ck_assert_uint_gt(found->h2d_bytes_per_s, 1000);
    ck_assert_uint_gt(found->d2h_duplex_bytes_per_s, 1000);
    ck_assert_uint_gt(found->h2d_duplex_bytes_per_s, 1000);
    ck_assert_uint_gt(found->copy_latency_ns, 0);
    /* Both directions at once are measured as often as each alone. */
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaStreamWaitEvent), 3);
    device_destroy(device);
    on_fake_nothing_is_left();

    /* One rate is given and the other is measured, on a device with one page. */
    options.memory_bytes = PAGE;
    options.h2d_bytes_per_s = RATE;
    options.copy_latency_ns = 17;
    OK(cuda_device_create(&options, &device, NULL, 0));
    found = &device->capabilities.link;
    ck_assert_uint_gt(found->d2h_bytes_per_s, 1000);
    ck_assert_uint_eq(found->h2d_bytes_per_s, RATE);
    ck_assert_uint_eq(found->copy_latency_ns, 17);
    device_destroy(device);

    options.d2h_bytes_per_s = RATE;
    fake_cudart_reset(NULL);
    OK(cuda_device_create(&options, &device, NULL, 0));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaMemcpyAsync), 0);
    ck_assert_uint_eq(device->capabilities.link.d2h_duplex_bytes_per_s, 0);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

/* Each CUDA call of a creation with measurement fails in turn: creation returns a status and a
   text, and leaves nothing behind. */
START_TEST(creation_fails_at_every_call)
{
    const struct device_options options = {
        .memory_bytes = PAGES * PAGE, .page_bytes = PAGE, .host_wait_ns = 1000000};
    struct fake_cudart_fault fault = {
        .call = FAKE_CUDART_ANY_CALL, .error = OUT_OF_MEMORY, .is_sticky = _i == 1};
    bool is_hit = true;

    for (fault.number = 1; is_hit; fault.number++) {
        struct device *device = NULL;
        char text[300] = "";
        capu_status status;

        fake_cudart_reset(NULL);
        fake_cudart_arm(&fault);
        status = cuda_device_create(&options, &device, text, sizeof(text));
        is_hit = fake_cudart_hits() > 0;
        fake_cudart_arm(NULL);
        if (status != CAPU_OK) {
            ck_assert_ptr_null(device);
            ck_assert_str_ne(text, "");
        }
        device_destroy(device);
        if (!fault.is_sticky && status != CAPU_OK) {
            struct fake_cudart_left left = fake_cudart_left();

            /* A failed release call leaves one object. */
            ck_assert_uint_le(left.handles + left.mappings + left.ranges + left.registered +
                                  left.streams + left.events,
                              1);
        }
    }
    ck_assert_uint_gt(fault.number, 100);
}
END_TEST

START_TEST(mapping_sets_access_with_one_call)
{
    struct device *device = on_fake_make(NULL);
    device_page pages[PAGES];
    void *range = on_fake_reserve(device, PAGES);

    on_fake_pages(device, pages, PAGES);
    OK(device_map(device, range, pages, PAGES));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cuMemCreate), PAGES);
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cuMemMap), PAGES);
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cuMemSetAccess), 1);
    OK(device_unmap(device, range, PAGES));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cuMemUnmap), 1);
    /* Pages are reused: mapping them again creates none. */
    OK(device_map(device, range, pages, PAGES));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cuMemCreate), PAGES);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

START_TEST(a_map_that_fails_half_way_is_undone)
{
    static const struct {
        enum fake_cudart_call call;
        uint64_t number;
        int error;
        capu_status status;
    } cases[] = {
        {FAKE_cuMemMap, 1, OUT_OF_MEMORY, CAPU_SYSTEM_LIMIT},
        {FAKE_cuMemMap, 4, OUT_OF_MEMORY, CAPU_SYSTEM_LIMIT},
        {FAKE_cuMemMap, PAGES, INVALID_VALUE, CAPU_DEVICE_FAILED},
        {FAKE_cuMemSetAccess, 1, INVALID_VALUE, CAPU_DEVICE_FAILED},
        {FAKE_cudaSetDevice, 1, INVALID_VALUE, CAPU_DEVICE_FAILED},
    };
    struct device *device = on_fake_make(NULL);
    device_page pages[PAGES];
    void *range = on_fake_reserve(device, PAGES);

    on_fake_pages(device, pages, PAGES);
    on_fake_fail(cases[_i].call, cases[_i].number, cases[_i].error);
    ck_assert_int_eq(device_map(device, range, pages, PAGES), cases[_i].status);
    ck_assert_uint_eq(fake_cudart_left().mappings, 0);
    OK(device_failure(device, NULL, 0));
    OK(device_map(device, range, pages, PAGES));
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

START_TEST(a_map_that_cannot_be_undone_loses_the_device)
{
    struct device *device = on_fake_make(NULL);
    struct fake_cudart_fault fault = {
        .call = FAKE_CUDART_ANY_CALL, .number = 4, .error = INVALID_VALUE, .is_lasting = true};
    device_page pages[PAGES];
    void *range = on_fake_reserve(device, PAGES);
    char text[300] = "";

    on_fake_pages(device, pages, PAGES);
    fake_cudart_arm(&fault); /* the third page, after cudaSetDevice, and all later calls */
    ck_assert_int_eq(device_map(device, range, pages, PAGES), CAPU_DEVICE_FAILED);
    ck_assert_int_eq(device_failure(device, text, sizeof(text)), CAPU_DEVICE_LOST);
    ck_assert_ptr_nonnull(strstr(text, "half way"));
    fake_cudart_arm(NULL);
    device_destroy(device);
}
END_TEST

START_TEST(access_that_is_not_ready_is_retried)
{
    struct device *device = on_fake_make(NULL);
    struct fake_cudart_fault fault = {
        .call = FAKE_cuMemSetAccess, .number = 1, .error = NOT_READY, .is_lasting = true};
    device_page page;
    void *range = on_fake_reserve(device, 1);

    on_fake_pages(device, &page, 1);
    on_fake_fail(FAKE_cuMemSetAccess, 1, NOT_READY);
    OK(device_map(device, range, &page, 1));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaDeviceSynchronize), 1);
    OK(device_unmap(device, range, 1));

    /* It is not retried forever, and a failed wait is not reported. */
    fake_cudart_arm(&fault);
    ck_assert_int_eq(device_map(device, range, &page, 1), CAPU_DEVICE_FAILED);
    ck_assert_uint_eq(fake_cudart_left().mappings, 0);
    fault.call = FAKE_CUDART_ANY_CALL;
    fault.number = 3; /* cudaSetDevice, cuMemMap, cuMemSetAccess */
    fault.is_lasting = false;
    fake_cudart_arm(&fault);
    OK(device_map(device, range, &page, 1));
    fake_cudart_arm(NULL);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

START_TEST(a_range_refused_by_the_driver_is_reported)
{
    struct device *device = on_fake_make(NULL);
    void *range = NULL;

    on_fake_fail(FAKE_cuMemAddressReserve, 1, INVALID_VALUE);
    ck_assert_int_eq(device_range_reserve(device, PAGE, &range), CAPU_SYSTEM_LIMIT);
    on_fake_fail(FAKE_cuMemAddressReserve, 1, OUT_OF_MEMORY);
    ck_assert_int_eq(device_range_reserve(device, PAGE, &range), CAPU_SYSTEM_LIMIT);
    ck_assert_ptr_null(range);
    device_destroy(device);
}
END_TEST

START_TEST(only_events_for_times_have_timing)
{
    struct device *device = on_fake_make(NULL);
    struct device_event *timed = NULL;
    struct device_event *plain = NULL;

    OK(device_event_create(device, true, &timed));
    ck_assert_uint_eq(fake_cudart_event_flags(), 0);
    OK(device_event_create(device, false, &plain));
    ck_assert_uint_eq(fake_cudart_event_flags(), 2); /* cudaEventDisableTiming */
    device_event_destroy(device, timed);
    device_event_destroy(device, plain);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

START_TEST(a_failed_query_is_not_ready)
{
    struct device *device = on_fake_make(NULL);
    struct device_event *event = NULL;

    OK(device_event_create(device, false, &event));
    on_fake_fail(FAKE_cudaEventQuery, 1, INVALID_VALUE);
    ck_assert_int_eq(device_event_query(device, event), CAPU_NOT_READY);
    OK(device_event_query(device, event));
    device_event_destroy(device, event);
    device_destroy(device);
}
END_TEST

START_TEST(host_memory_is_registered_in_one_piece)
{
    struct device *device = on_fake_make(&(struct fake_cudart_machine){.host_node = _i});
    const uint64_t large = ((uint64_t)65 << 20) + 123; /* large enough for several threads */
    char *memory = NULL;
    void *other = NULL;

    OK(device_host_alloc(device, large, (void **)&memory));
    ck_assert_uint_eq(fake_cudart_left().registered, 1);
    memory[0] = 1;
    memory[large - 1] = 2;
    fake_cudart_arm(&(struct fake_cudart_fault){
        .call = FAKE_CUDART_ANY_CALL, .number = 3, .error = OUT_OF_MEMORY, .is_lasting = true});
    ck_assert_int_eq(device_host_alloc(device, 100, &other), CAPU_NO_HOST_MEMORY);
    ck_assert_ptr_null(other);
    /* Memory that cannot be unregistered stays mapped until the device is destroyed. */
    on_fake_fail(FAKE_cudaHostUnregister, 1, INVALID_VALUE);
    device_host_free(device, memory, large);
    ck_assert_uint_eq(fake_cudart_left().registered, 1);
    memory[large - 1] = 3;
    device_host_free(device, memory + 64, large - 64); /* not a block: ignored */
    OK(device_host_alloc(device, 100, &other));
    device_host_free(device, other, 100);
    ck_assert_uint_eq(fake_cudart_left().registered, 1);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

static void *allocate_elsewhere(void *argument)
{
    void *memory = NULL;

    if (fake_cudart_current() != 0 || device_host_alloc(argument, 1000, &memory) != CAPU_OK ||
        fake_cudart_current() != 1) {
        return argument;
    }
    device_host_free(argument, memory, 1000);
    return NULL;
}

START_TEST(the_device_is_current_where_it_is_called)
{
    const struct device_options options = {.memory_bytes = PAGES * PAGE,
                                           .page_bytes = PAGE,
                                           .ordinal = 1,
                                           .d2h_bytes_per_s = RATE,
                                           .h2d_bytes_per_s = RATE};
    struct device *other;
    struct device *device = NULL;
    capu_stream stream = NULL;
    pthread_t thread;
    void *problem = NULL;
    device_page page;
    void *range;

    other = on_fake_make(&(struct fake_cudart_machine){.device_count = 2});
    OK(cuda_device_create(&options, &device, NULL, 0));
    ck_assert_int_eq(fake_cudart_current(), 1);
    OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    on_fake_pages(device, &page, 1);
    range = on_fake_reserve(device, 1);
    OK(device_map(device, range, &page, 1));
    /* Calls of the other device make it current; the following calls make this one current again.
     */
    on_fake_pages(other, &page, 1);
    ck_assert_int_eq(fake_cudart_current(), 0);
    OK(device_fill(device, stream, range, 7, PAGE));
    ck_assert_int_eq(fake_cudart_current(), 1);
    /* Waiting, too: cudaStreamLegacy, say, means a stream of the device that is current. */
    on_fake_pages(other, &page, 1);
    ck_assert_int_eq(fake_cudart_current(), 0);
    OK(device_stream_synchronize(device, stream));
    ck_assert_int_eq(fake_cudart_current(), 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, allocate_elsewhere, device), 0);
    pthread_join(thread, &problem);
    ck_assert_ptr_null(problem);
    device_stream_destroy(device, stream);
    device_destroy(device);
    device_destroy(other);
    on_fake_nothing_is_left();
}
END_TEST

/* A program can make a context of its own current, also where there is only one device. */
START_TEST(a_foreign_context_is_replaced_where_calls_depend_on_it)
{
    struct device *device = on_fake_make(NULL);
    void *range = on_fake_reserve(device, 1);
    struct device_event *event;
    capu_stream stream;
    device_page page;

    OK(device_stream_create(device, DEVICE_COMPUTE, &stream));
    OK(device_event_create(device, false, &event));
    on_fake_pages(device, &page, 1);
    OK(device_map(device, range, &page, 1));
    fake_cudart_make_current(FAKE_CUDART_FOREIGN);
    OK(device_event_record(device, event, stream));
    ck_assert_int_eq(fake_cudart_current(), 0);
    fake_cudart_make_current(FAKE_CUDART_FOREIGN);
    OK(device_fill(device, stream, range, 7, PAGE));
    ck_assert_int_eq(fake_cudart_current(), 0);
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaSetDevice), 8);
    OK(device_fill(device, stream, range, 7, PAGE)); /* is current already */
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaSetDevice), 8);
    OK(device_stream_synchronize(device, stream));
    device_event_destroy(device, event);
    device_stream_destroy(device, stream);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

/* Creates a device, and maps one of its pages. */
static void map_one(const struct fake_cudart_machine *machine, bool has_peers, bool is_exportable)
{
    const struct device_options options = {.memory_bytes = PAGES * PAGE,
                                           .page_bytes = PAGE,
                                           .ordinal = 1,
                                           .d2h_bytes_per_s = RATE,
                                           .h2d_bytes_per_s = RATE,
                                           .has_peers = has_peers,
                                           .is_exportable = is_exportable};
    struct device *device = NULL;
    device_page page;

    fake_cudart_reset(machine);
    OK(cuda_device_create(&options, &device, NULL, 0));
    on_fake_pages(device, &page, 1);
    OK(device_map(device, on_fake_reserve(device, 1), &page, 1));
    device_destroy(device);
}

START_TEST(peers_have_access_if_they_are_to)
{
    struct fake_cudart_machine machine = {.device_count = 3, .has_peers = true};

    map_one(&machine, false, false);
    ck_assert_uint_eq(fake_cudart_access_count(), 1);
    map_one(&machine, true, false);
    ck_assert_uint_eq(fake_cudart_access_count(), 3);
    machine.has_peers = false;
    map_one(&machine, true, false);
    ck_assert_uint_eq(fake_cudart_access_count(), 1);
    machine.has_peers = true;
    machine.device_count = 17;
    refuses(&machine, &(struct device_options){.has_peers = true}, CAPU_UNSUPPORTED,
            "limited to 16 devices");
}
END_TEST

START_TEST(pages_can_be_exported_if_they_are_to)
{
    struct fake_cudart_machine machine = {.device_count = 2};

    map_one(&machine, false, false);
    ck_assert(!fake_cudart_is_exportable());
    map_one(&machine, false, true);
    ck_assert(fake_cudart_is_exportable());
    machine.has_no_exporting = true;
    map_one(&machine, false, false);
    refuses(&machine, &(struct device_options){.is_exportable = true}, CAPU_UNSUPPORTED,
            "memory cannot be exported");
}
END_TEST

/* Some machines do not let the driver pin memory that is not its own. */
START_TEST(host_memory_comes_from_the_driver_if_registering_fails)
{
    struct device *device = on_fake_make(NULL);
    struct fake_cudart_fault fault = {
        .call = FAKE_cudaHostRegister, .number = 1, .error = NOT_SUPPORTED, .is_lasting = true};
    char *memory[2] = {NULL, NULL};

    fake_cudart_arm(&fault);
    OK(device_host_alloc(device, 1000, (void **)&memory[0]));
    OK(device_host_alloc(device, 2000, (void **)&memory[1]));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostRegister), 1);
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostAlloc), 2);
    memory[0][999] = 1;
    device_host_free(device, memory[0], 1000);
    ck_assert_uint_eq(fake_cudart_left().registered, 1);
    memory[1][1999] = 1;
    device_destroy(device);
    on_fake_nothing_is_left();

    /* If neither works, registering is tried again next time. */
    device = on_fake_make(NULL);
    fault.call = FAKE_CUDART_ANY_CALL;
    fault.number = 3; /* after those that set the capture mode and make the device current */
    fake_cudart_arm(&fault);
    ck_assert_int_eq(device_host_alloc(device, 1000, (void **)&memory[0]), CAPU_DEVICE_FAILED);
    fake_cudart_arm(NULL);
    OK(device_host_alloc(device, 1000, (void **)&memory[0]));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostRegister), 2);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

START_TEST(pages_are_unmapped_one_by_one_if_necessary)
{
    struct device *device = on_fake_make(&(struct fake_cudart_machine){.unmaps_singly = true});
    device_page pages[PAGES];
    void *range = on_fake_reserve(device, PAGES);

    on_fake_pages(device, pages, PAGES);
    OK(device_map(device, range, pages, PAGES));
    OK(device_unmap(device, range, PAGES));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cuMemUnmap), 1 + PAGES);
    ck_assert_uint_eq(fake_cudart_left().mappings, 0);
    OK(device_map(device, range, pages, PAGES));
    OK(device_unmap(device, range, PAGES));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cuMemUnmap), 1 + 2 * PAGES);
    /* If the first unmap fails, nothing has changed. If a later one fails, the device is lost. */
    OK(device_map(device, range, pages, PAGES));
    on_fake_fail(FAKE_cuMemUnmap, 1, INVALID_VALUE);
    ck_assert_int_eq(device_unmap(device, range, PAGES), CAPU_DEVICE_FAILED);
    ck_assert_uint_eq(fake_cudart_left().mappings, PAGES);
    on_fake_fail(FAKE_cuMemUnmap, 3, INVALID_VALUE);
    OK(device_unmap(device, range, PAGES));
    ck_assert_int_eq(device_failure(device, NULL, 0), CAPU_DEVICE_LOST);
    fake_cudart_arm(NULL);
    device_destroy(device);
}
END_TEST

/* The driver may ignore an alignment above its granularity. */
START_TEST(ranges_are_aligned_even_if_the_driver_does_not)
{
    const struct device_options options = {.memory_bytes = PAGES * PAGE,
                                           .page_bytes = 4 * PAGE,
                                           .d2h_bytes_per_s = RATE,
                                           .h2d_bytes_per_s = RATE};
    struct device *device = NULL;
    device_page page;
    void *range[3];

    fake_cudart_reset(&(struct fake_cudart_machine){.has_own_alignment = true});
    OK(cuda_device_create(&options, &device, NULL, 0));
    for (size_t i = 0; i < 3; i++) {
        OK(device_range_reserve(device, 4 * PAGE, &range[i]));
        ck_assert_uint_eq((uintptr_t)range[i] % (4 * PAGE), 0);
    }
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cuMemAddressReserve),
                      4); /* not asked twice again */
    on_fake_pages(device, &page, 1);
    OK(device_map(device, range[2], &page, 1));
    device_range_release(device, range[0], 4 * PAGE);
    ck_assert_uint_eq(fake_cudart_left().ranges, 2);
    /* If it cannot be reserved with a page more, nothing is left. */
    on_fake_fail(FAKE_cuMemAddressReserve, 1, OUT_OF_MEMORY);
    ck_assert_int_eq(device_range_reserve(device, 4 * PAGE, &range[0]), CAPU_SYSTEM_LIMIT);
    ck_assert_uint_eq(fake_cudart_left().ranges, 2);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

/* A machine that is short of memory may have some a moment later. */
START_TEST(pinning_is_repeated_where_memory_is_short)
{
    const struct device_options options = {.memory_bytes = PAGES * PAGE,
                                           .page_bytes = PAGE,
                                           .d2h_bytes_per_s = RATE,
                                           .h2d_bytes_per_s = RATE,
                                           .host_wait_ns = 1000000};
    struct fake_cudart_fault fault = {
        .call = FAKE_cudaHostRegister, .number = 1, .error = OUT_OF_MEMORY};
    struct device *device = NULL;
    void *memory[3] = {NULL, NULL, NULL};

    fake_cudart_reset(NULL);
    OK(cuda_device_create(&options, &device, NULL, 0));
    fake_cudart_arm(&fault);
    OK(device_host_alloc(device, 1000, &memory[0]));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostRegister), 2);
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostAlloc), 0);
    /* If there is none at all, the driver is asked once. That does not mean that memory is never
       registered again. */
    fault.is_lasting = true;
    fake_cudart_arm(&fault);
    OK(device_host_alloc(device, 1000, &memory[1]));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostRegister), 2 + 6);
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostAlloc), 1);
    fake_cudart_arm(NULL);
    OK(device_host_alloc(device, 1000, &memory[2]));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostRegister), 2 + 6 + 1);
    /* Waiting in vain is not repeated. */
    fault.call = FAKE_CUDART_ANY_CALL;
    fault.number = 3; /* after those that set the capture mode and make the device current */
    fake_cudart_arm(&fault);
    ck_assert_int_eq(device_host_alloc(device, 1000, &memory[0]), CAPU_NO_HOST_MEMORY);
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostRegister), 2 + 6 + 1 + 6);
    fake_cudart_arm(&fault);
    ck_assert_int_eq(device_host_alloc(device, 1000, &memory[0]), CAPU_NO_HOST_MEMORY);
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostRegister), 2 + 6 + 1 + 6 + 1);
    fake_cudart_arm(NULL);
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

START_TEST(the_refused_driver_call_is_named)
{
    struct device *device = on_fake_make(NULL);
    device_page page;
    char text[100] = "?";
    void *range = on_fake_reserve(device, 1);

    ck_assert_int_eq(device_failure(device, text, sizeof(text)), CAPU_OK);
    ck_assert_str_eq(text, "");
    on_fake_pages(device, &page, 1);
    on_fake_fail(FAKE_cuMemMap, 1, NOT_SUPPORTED);
    ck_assert_int_eq(device_map(device, range, &page, 1), CAPU_DEVICE_FAILED);
    ck_assert_int_eq(device_failure(device, text, sizeof(text)), CAPU_OK);
    ck_assert_str_eq(text, "cuMemMap returned cudaErrorNotSupported");
    device_destroy(device);
    on_fake_nothing_is_left();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda device");
    TCase *cases = tcase_create("cuda");

    tcase_add_test(cases, machines_without_a_device_say_so);
    tcase_add_loop_test(cases, devices_that_cannot_be_used_say_so, 0, 4);
    tcase_add_test(cases, options_are_checked);
    tcase_add_test(cases, defaults_follow_the_device);
    tcase_add_test(cases, the_link_is_measured_unless_it_is_given);
    tcase_add_loop_test(cases, creation_fails_at_every_call, 0, 2);
    tcase_add_test(cases, mapping_sets_access_with_one_call);
    tcase_add_loop_test(cases, a_map_that_fails_half_way_is_undone, 0, 5);
    tcase_add_test(cases, a_map_that_cannot_be_undone_loses_the_device);
    tcase_add_test(cases, access_that_is_not_ready_is_retried);
    tcase_add_test(cases, a_range_refused_by_the_driver_is_reported);
    tcase_add_test(cases, only_events_for_times_have_timing);
    tcase_add_test(cases, a_failed_query_is_not_ready);
    tcase_add_loop_test(cases, host_memory_is_registered_in_one_piece, -1, 2);
    tcase_add_test(cases, the_device_is_current_where_it_is_called);
    tcase_add_test(cases, a_foreign_context_is_replaced_where_calls_depend_on_it);
    tcase_add_test(cases, peers_have_access_if_they_are_to);
    tcase_add_test(cases, pages_can_be_exported_if_they_are_to);
    tcase_add_test(cases, host_memory_comes_from_the_driver_if_registering_fails);
    tcase_add_test(cases, pages_are_unmapped_one_by_one_if_necessary);
    tcase_add_test(cases, ranges_are_aligned_even_if_the_driver_does_not);
    tcase_add_test(cases, pinning_is_repeated_where_memory_is_short);
    tcase_add_test(cases, the_refused_driver_call_is_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
