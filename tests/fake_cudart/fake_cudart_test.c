/* Checks that the fake is as strict as CUDA: what it must reject, and what must lose the device. */
#include "tests/fake_cudart/fake_cudart.h"
#include "tests/support/suite.h"

#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)64 << 10)

static const CUmemAllocationProp properties = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
};
static const CUmemAccessDesc access_of_device = {
    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

#define IS(call_, expected_) ck_assert_int_eq((int)(call_), (int)(expected_))

/* A range of four pages, and two handles of one page each. */
static CUdeviceptr range;
static CUmemGenericAllocationHandle handles[2];

static void set_up(void)
{
    fake_cudart_reset(NULL);
    IS(cuMemAddressReserve(&range, 4 * PAGE, 0, 0, 0), CUDA_SUCCESS);
    IS(cuMemCreate(&handles[0], PAGE, &properties, 0), CUDA_SUCCESS);
    IS(cuMemCreate(&handles[1], PAGE, &properties, 0), CUDA_SUCCESS);
}

START_TEST(handles_are_mapped_as_a_whole)
{
    CUmemGenericAllocationHandle large;

    set_up();
    IS(cuMemCreate(&large, 2 * PAGE, &properties, 0), CUDA_SUCCESS);
    IS(cuMemMap(range, PAGE, PAGE, large, 0), CUDA_ERROR_NOT_SUPPORTED);
    IS(cuMemMap(range, PAGE, 0, large, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemMap(range + 3 * PAGE, 2 * PAGE, 0, large, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemMap(range + 1, 2 * PAGE, 0, large, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemMap(range, 2 * PAGE, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemMap(range, 2 * PAGE, 0, large, 0), CUDA_SUCCESS);
    IS(cuMemMap(range + PAGE, PAGE, 0, handles[0], 0), CUDA_ERROR_ALREADY_MAPPED);
    IS(cuMemUnmap(range, PAGE), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemUnmap(range + PAGE, PAGE), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemUnmap(range, 2 * PAGE), CUDA_SUCCESS);
    IS(cuMemCreate(&large, PAGE / 2, &properties, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(access_covers_whole_mappings_without_holes)
{
    CUmemAccessDesc wrong = access_of_device;

    set_up();
    IS(cuMemMap(range, PAGE, 0, handles[0], 0), CUDA_SUCCESS);
    IS(cuMemMap(range + 2 * PAGE, PAGE, 0, handles[1], 0), CUDA_SUCCESS);
    IS(cuMemSetAccess(range, 3 * PAGE, &access_of_device, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemUnmap(range, 3 * PAGE), CUDA_ERROR_INVALID_VALUE);
    wrong.location.id = 1; /* there is none */
    IS(cuMemSetAccess(range, PAGE, &wrong, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemSetAccess(range, PAGE, &access_of_device, 1), CUDA_SUCCESS);
    *(volatile char *)(uintptr_t)range = 1;
    IS(cuMemAddressFree(range, 4 * PAGE), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemUnmap(range, PAGE), CUDA_SUCCESS);
    IS(cuMemUnmap(range + 2 * PAGE, PAGE), CUDA_SUCCESS);
    IS(cuMemAddressFree(range, 3 * PAGE), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAddressFree(range, 4 * PAGE), CUDA_SUCCESS);
}
END_TEST

START_TEST(memory_without_access_faults)
{
    set_up();
    IS(cuMemMap(range, PAGE, 0, handles[0], 0), CUDA_SUCCESS);
    signal(SIGSEGV, SIG_DFL);
    *(volatile char *)(uintptr_t)range = 1;
}
END_TEST

START_TEST(a_released_handle_lives_as_long_as_its_mappings)
{
    set_up();
    IS(cuMemMap(range, PAGE, 0, handles[0], 0), CUDA_SUCCESS);
    IS(cuMemSetAccess(range, PAGE, &access_of_device, 1), CUDA_SUCCESS);
    IS(cuMemRelease(handles[0]), CUDA_SUCCESS);
    *(volatile char *)(uintptr_t)range = 1;
    ck_assert_uint_eq(fake_cudart_left().handles, 2);
    IS(cuMemMap(range + PAGE, PAGE, 0, handles[0], 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemRelease(handles[0]), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemUnmap(range, PAGE), CUDA_SUCCESS);
    ck_assert_uint_eq(fake_cudart_left().handles, 1);
}
END_TEST

START_TEST(a_copy_without_access_loses_the_device_when_it_runs)
{
    cudaStream_t stream;
    char bytes[16] = "";

    set_up();
    IS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    IS(cuMemMap(range, PAGE, 0, handles[0], 0), CUDA_SUCCESS);
    IS(cudaMemcpyAsync((void *)(uintptr_t)range, bytes, 16, cudaMemcpyDeviceToHost, stream),
       cudaErrorInvalidValue);
    ck_assert(!fake_cudart_is_lost());
    IS(cudaMemcpyAsync((void *)(uintptr_t)range, bytes, 16, cudaMemcpyHostToDevice, stream),
       cudaSuccess);
    IS(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    IS(cudaSetDevice(0), cudaErrorIllegalAddress);
    IS(cuMemUnmap(range, PAGE), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cudaPeekAtLastError(), cudaErrorIllegalAddress);
    IS(cudaGetLastError(), cudaErrorIllegalAddress);
    IS(cudaGetLastError(), cudaErrorIllegalAddress);
    fake_cudart_reset(NULL);
}
END_TEST

static capu_status fail_at_once(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_DEVICE_FAILED;
}

static capu_status take_a_while(capu_stream stream, const void *arguments)
{
    const atomic_bool *has_begun = arguments;

    (void)stream;
    atomic_store((atomic_bool *)(uintptr_t)has_begun, true);
    usleep(100000);
    atomic_store((atomic_bool *)(uintptr_t)(has_begun + 1), true);
    return CAPU_OK;
}

/* So what it uses may be freed. */
START_TEST(other_streams_have_stopped_when_a_loss_is_reported)
{
    atomic_bool has_begun_and_ended[2] = {false, false};
    cudaStream_t streams[2];

    set_up();
    IS(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking), cudaSuccess);
    IS(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking), cudaSuccess);
    IS(fake_cudart_launch(streams[0], take_a_while, has_begun_and_ended), CAPU_OK);
    while (!atomic_load(&has_begun_and_ended[0])) {
    }
    IS(fake_cudart_launch(streams[1], fail_at_once, NULL), CAPU_OK);
    while (cudaSetDevice(0) == cudaSuccess) {
    }
    ck_assert(atomic_load(&has_begun_and_ended[1]));
    fake_cudart_reset(NULL);
}
END_TEST

START_TEST(without_a_driver_the_entry_is_unchanged)
{
    void *entry = &range;
    size_t free_bytes;

    fake_cudart_reset(&(struct fake_cudart_machine){.has_no_driver = true});
    IS(cudaGetDriverEntryPointByVersion("cuMemMap", &entry, 10020, cudaEnableDefault, NULL),
       cudaErrorInsufficientDriver);
    ck_assert_ptr_eq(entry, &range);
    IS(cudaMemGetInfo(&free_bytes, &free_bytes), cudaErrorInsufficientDriver);
    IS(cudaGetLastError(), cudaErrorInsufficientDriver);
    IS(cudaGetLastError(), cudaSuccess);
}
END_TEST

START_TEST(streams_and_events_belong_to_a_device)
{
    cudaStream_t stream;
    cudaEvent_t event;
    float ms;

    fake_cudart_reset(&(struct fake_cudart_machine){.device_count = 2});
    IS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    IS(cudaSetDevice(1), cudaSuccess);
    IS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    IS(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    IS(cudaSetDevice(2), cudaErrorInvalidDevice);
    IS(cudaEventElapsedTime(&ms, event, event), cudaErrorInvalidResourceHandle);
    IS(cudaEventDestroy(event), cudaSuccess);
    IS(cudaStreamDestroy(stream), cudaSuccess);
}
END_TEST

START_TEST(memory_belongs_to_a_device)
{
    CUmemAllocationProp second = properties;

    fake_cudart_reset(&(struct fake_cudart_machine){.device_count = 2});
    second.location.id = 1;
    IS(cuMemAddressReserve(&range, 2 * PAGE, 0, 0, 0), CUDA_SUCCESS);
    IS(cuMemCreate(&handles[0], PAGE, &properties, 0), CUDA_SUCCESS);
    IS(cuMemCreate(&handles[1], PAGE, &second, 0), CUDA_SUCCESS);
    IS(cuMemMap(range, PAGE, 0, handles[0], 0), CUDA_SUCCESS);
    IS(cuMemMap(range + PAGE, PAGE, 0, handles[1], 0), CUDA_SUCCESS);
    IS(cuMemSetAccess(range, 2 * PAGE, &access_of_device, 1), CUDA_ERROR_INVALID_DEVICE);
    IS(cuMemSetAccess(range, PAGE, &access_of_device, 1), CUDA_SUCCESS);
}
END_TEST

static capu_status wait_for_gate(capu_stream stream, const void *gate)
{
    (void)stream;
    while (!atomic_load((atomic_bool *)(uintptr_t)gate)) {
    }
    return CAPU_OK;
}

START_TEST(a_copy_needs_pinned_memory_until_it_has_run)
{
    static char memory[4096];
    static atomic_bool gate;
    void *device;
    cudaStream_t stream;

    set_up();
    device = (void *)(uintptr_t)range;
    IS(cuMemMap(range, PAGE, 0, handles[0], 0), CUDA_SUCCESS);
    IS(cuMemSetAccess(range, PAGE, &access_of_device, 1), CUDA_SUCCESS);
    IS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    IS(cudaHostRegister(memory, sizeof(memory), 0), cudaSuccess);
    IS(cudaMemcpyAsync(device, memory, 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
    IS(cudaStreamSynchronize(stream), cudaSuccess);
    IS(fake_cudart_launch(stream, wait_for_gate, &gate), CAPU_OK);
    IS(cudaMemcpyAsync(device, memory, 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
    IS(cudaHostUnregister(memory), cudaSuccess);
    atomic_store(&gate, true);
    IS(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    fake_cudart_reset(NULL);
}
END_TEST

START_TEST(registered_memory_must_be_unregistered_before_it_is_unmapped)
{
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert(memory != MAP_FAILED);
    fake_cudart_reset(NULL);
    IS(cudaHostRegister(memory, 4096, cudaHostRegisterPortable), cudaSuccess);
    munmap(memory, 4096);
    IS(cudaHostUnregister(memory), cudaErrorInvalidValue);
}
END_TEST

START_TEST(calls_newer_than_the_driver_are_not_found)
{
    void *entry = NULL;

    fake_cudart_reset(NULL);
    IS(cudaGetDriverEntryPointByVersion("cuMemMap", &entry, 13000, cudaEnableDefault, NULL),
       cudaErrorInvalidValue);
    ck_assert_ptr_null(entry);
    IS(cudaGetDriverEntryPointByVersion("cuMemMap", &entry, 12050, cudaEnableDefault, NULL),
       cudaSuccess);
    ck_assert_ptr_nonnull(entry);
}
END_TEST

START_TEST(host_memory_can_be_registered_only_once)
{
    static char memory[4096];

    fake_cudart_reset(NULL);
    IS(cudaHostRegister(memory, sizeof(memory), cudaHostRegisterPortable), cudaSuccess);
    IS(cudaHostRegister(memory + 100, 10, 0), cudaErrorHostMemoryAlreadyRegistered);
    IS(cudaHostUnregister(memory + 100), cudaErrorHostMemoryNotRegistered);
    IS(cudaHostUnregister(memory), cudaSuccess);
}
END_TEST

/* Pinned memory with a flag in it, and a stream. */
static _Atomic uint32_t *flag;
static cudaStream_t waiting;

static void set_up_wait(void)
{
    set_up();
    IS(cudaHostAlloc((void **)&flag, PAGE, 0), cudaSuccess);
    IS(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking), cudaSuccess);
    atomic_store(flag, 0);
}

START_TEST(a_stream_waits_for_a_value_and_others_go_on)
{
    cudaStream_t other;

    set_up_wait();
    IS(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    IS(cuMemMap(range, PAGE, 0, handles[0], 0), CUDA_SUCCESS);
    IS(cuMemSetAccess(range, PAGE, &access_of_device, 1), CUDA_SUCCESS);
    for (unsigned way = CU_STREAM_WAIT_VALUE_GEQ; way <= CU_STREAM_WAIT_VALUE_NOR; way++) {
        const uint32_t values[] = {8, 7, 1, 0}; /* what ends the wait for 7, or for any bit of it */
        void *to = (void *)(uintptr_t)range;

        atomic_store(flag, way == CU_STREAM_WAIT_VALUE_NOR ? UINT32_MAX : 0);
        IS(cuStreamWaitValue32(waiting, (uintptr_t)flag, 7, way), CUDA_SUCCESS);
        IS(cudaMemsetAsync(to, (int)way + 1, 4, waiting), cudaSuccess);
        IS(cudaMemsetAsync((char *)to + 4, (int)way + 1, 4, other), cudaSuccess);
        IS(cudaStreamSynchronize(other), cudaSuccess);
        IS(cudaStreamQuery(waiting), cudaErrorNotReady);
        ck_assert_uint_eq(((const unsigned char *)to)[0], way);
        ck_assert_uint_eq(((const unsigned char *)to)[4], way + 1);
        atomic_store(flag, values[way]);
        IS(cudaStreamSynchronize(waiting), cudaSuccess);
        ck_assert_uint_eq(((const unsigned char *)to)[0], way + 1);
    }
    IS(cuStreamWaitValue32(waiting, range, 4, CU_STREAM_WAIT_VALUE_AND), CUDA_SUCCESS);
    IS(cudaStreamSynchronize(waiting), cudaSuccess);
}
END_TEST

START_TEST(a_wait_for_a_value_needs_memory_of_cuda)
{
    static uint32_t pageable;

    set_up_wait();
    IS(cuStreamWaitValue32(waiting, (uintptr_t)&pageable, 1, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitValue32(waiting, (uintptr_t)flag + 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitValue32(waiting, range, 1, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitValue32(waiting, (uintptr_t)flag, 1, 4), CUDA_ERROR_INVALID_VALUE);
    IS(cudaStreamBeginCapture(waiting, cudaStreamCaptureModeRelaxed), cudaSuccess);
    IS(cuStreamWaitValue32(waiting, (uintptr_t)flag, 1, 0), cudaErrorStreamCaptureUnsupported);
}
END_TEST

START_TEST(a_wait_for_a_value_ends_when_its_memory_goes_or_the_device_is_lost)
{
    const struct fake_cudart_fault fault = {
        .call = FAKE_cudaSetDevice, .number = 1, .error = cudaErrorUnknown, .is_sticky = true};

    set_up_wait();
    IS(cuStreamWaitValue32(waiting, (uintptr_t)flag, 1, 0), CUDA_SUCCESS);
    IS(cudaFreeHost((void *)(uintptr_t)flag), cudaSuccess);
    IS(cudaStreamSynchronize(waiting), cudaErrorIllegalAddress);
    set_up_wait();
    IS(cuStreamWaitValue32(waiting, (uintptr_t)flag, 1, 0), CUDA_SUCCESS);
    fake_cudart_arm(&fault);
    IS(cudaSetDevice(0), cudaErrorUnknown);
    IS(cudaStreamSynchronize(waiting), cudaErrorUnknown);
    fake_cudart_reset(NULL);
}
END_TEST

START_TEST(faults_occur_as_armed)
{
    struct fake_cudart_fault fault = {
        .call = FAKE_cudaSetDevice, .number = 2, .error = cudaErrorUnknown};
    unsigned failed = 0;
    int count;

    fake_cudart_reset(NULL);
    fake_cudart_arm(&fault);
    IS(cudaSetDevice(0), cudaSuccess);
    IS(cudaGetDeviceCount(&count), cudaSuccess);
    IS(cudaSetDevice(0), cudaErrorUnknown);
    IS(cudaSetDevice(0), cudaSuccess);
    ck_assert_uint_eq(fake_cudart_calls(), 3);
    ck_assert_uint_eq(fake_cudart_hits(), 1);
    fault.is_lasting = true;
    fake_cudart_arm(&fault);
    IS(cudaSetDevice(0), cudaSuccess);
    IS(cudaSetDevice(0), cudaErrorUnknown);
    IS(cudaSetDevice(0), cudaErrorUnknown);
    fault = (struct fake_cudart_fault){
        .call = FAKE_CUDART_ANY_CALL, .one_in = 4, .seed = 1, .error = cudaErrorUnknown};
    fake_cudart_arm(&fault);
    for (int i = 0; i < 400; i++) {
        failed += cudaSetDevice(0) != cudaSuccess ? 1 : 0;
    }
    ck_assert_uint_gt(failed, 50);
    ck_assert_uint_lt(failed, 150);
    ck_assert_str_eq(fake_cudart_name(FAKE_cuMemMap), "cuMemMap");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake cudart");
    TCase *cases = tcase_create("fake");

    tcase_add_test(cases, handles_are_mapped_as_a_whole);
    tcase_add_test(cases, access_covers_whole_mappings_without_holes);
    tcase_add_test_raise_signal(cases, memory_without_access_faults, SIGSEGV);
    tcase_add_test(cases, a_released_handle_lives_as_long_as_its_mappings);
    tcase_add_test(cases, a_copy_without_access_loses_the_device_when_it_runs);
    tcase_add_test(cases, other_streams_have_stopped_when_a_loss_is_reported);
    tcase_add_test(cases, without_a_driver_the_entry_is_unchanged);
    tcase_add_test(cases, streams_and_events_belong_to_a_device);
    tcase_add_test(cases, memory_belongs_to_a_device);
    tcase_add_test(cases, a_copy_needs_pinned_memory_until_it_has_run);
    tcase_add_test(cases, registered_memory_must_be_unregistered_before_it_is_unmapped);
    tcase_add_test(cases, calls_newer_than_the_driver_are_not_found);
    tcase_add_test(cases, host_memory_can_be_registered_only_once);
    tcase_add_test(cases, a_stream_waits_for_a_value_and_others_go_on);
    tcase_add_test(cases, a_wait_for_a_value_needs_memory_of_cuda);
    tcase_add_test(cases, a_wait_for_a_value_ends_when_its_memory_goes_or_the_device_is_lost);
    tcase_add_test(cases, faults_occur_as_armed);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
