/* The test driver: entry points by name, version and variant; memory, copies, fills, streams,
   events, and that all of it fails as CUDA does. */
#include "tests/ptx/include/driver_types.h"
#include "tests/support/suite.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static void start(void)
{
    CUcontext context;

    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

static CUdeviceptr take(size_t bytes)
{
    CUdeviceptr address = 0;

    ck_assert_int_eq(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    ck_assert_uint_eq(address % 512, 0);
    return address;
}

START_TEST(entry_points_are_found_by_version_and_variant)
{
    CUdriverProcAddressQueryResult result;
    void *found;

    ck_assert_int_eq(cuGetProcAddress_v2("cuMemAlloc", &found, 3020, 1, &result), CUDA_SUCCESS);
    ck_assert_ptr_eq(found, (void *)cuMemAlloc_v2);
    ck_assert_int_eq(cuGetProcAddress_v2("cuMemAlloc", &found, 2000, 1, &result), CUDA_SUCCESS);
    ck_assert_ptr_null(found);
    ck_assert_uint_eq(result, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    ck_assert_int_eq(cuGetProcAddress_v2("cuNone", &found, 13000, 1, &result), CUDA_SUCCESS);
    ck_assert_ptr_null(found);
    ck_assert_uint_eq(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_assert_int_eq(cuGetProcAddress("cuNone", &found, 13000, 1), CUDA_ERROR_NOT_FOUND);
    ck_assert_int_eq(cuGetProcAddress_v2("cuEventRecord", &found, 13000, 2, &result), CUDA_SUCCESS);
    ck_assert_ptr_eq(found, (void *)cuEventRecord_ptsz);
    ck_assert_int_eq(cuGetProcAddress_v2("cuEventElapsedTime", &found, 12000, 2, &result),
                     CUDA_SUCCESS);
    ck_assert_ptr_eq(found, (void *)cuEventElapsedTime);
    ck_assert_int_eq(cuGetProcAddress_v2("cuEventElapsedTime", &found, 13000, 2, &result),
                     CUDA_SUCCESS);
    ck_assert_ptr_eq(found, (void *)cuEventElapsedTime_v2);
    ck_assert_int_eq(cuGetProcAddress_v2("cuCtxSynchronize", &found, 13000, 0, &result),
                     CUDA_SUCCESS);
    ck_assert_ptr_eq(found, (void *)cuCtxSynchronize_v2);
    ck_assert_int_eq(cuGetProcAddress_v2("cuDevicePrimaryCtxReset", &found, 7000, 0, &result),
                     CUDA_SUCCESS);
    ck_assert_ptr_eq(found, (void *)cuDevicePrimaryCtxReset);
    ck_assert_int_eq(cuGetProcAddress_v2("cuGetProcAddress", &found, 13000, 1, &result),
                     CUDA_SUCCESS);
    ck_assert_ptr_eq(found, (void *)cuGetProcAddress_v2);
}
END_TEST

START_TEST(calls_need_init_and_a_context)
{
    CUdeviceptr address;
    int count;

    ck_assert_int_eq(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDeviceGetCount(&count), CUDA_SUCCESS);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(cuMemAlloc_v2(&address, 1), CUDA_ERROR_INVALID_CONTEXT);
    start();
    ck_assert_int_eq(cuMemAlloc_v2(&address, 1), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(the_device_has_the_size_that_was_set)
{
    size_t free_bytes;
    size_t total_bytes;
    CUdeviceptr first;
    CUdeviceptr second;

    setenv("PTX_DRIVER_MEMORY", "3MiB", 1);
    start();
    first = take(2 * MIB);
    ck_assert_int_eq(cuMemAlloc_v2(&second, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    second = take(MIB - 512);
    take(500);
    ck_assert_int_eq(cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
    ck_assert_uint_eq(free_bytes, 0);
    ck_assert_uint_eq(total_bytes, 3 * MIB);
    ck_assert_int_eq(cuMemAlloc_v2(&second, 1), CUDA_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(cuMemFree_v2(first + 1), CUDA_ERROR_INVALID_VALUE);
    /* Memory that work gives back later counts too. */
    ck_assert_int_eq(cuMemFreeAsync(first, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemFree_v2(first), CUDA_ERROR_INVALID_VALUE);
    ck_assert_uint_ne(take(2 * MIB), first);
}
END_TEST

START_TEST(freed_memory_faults)
{
    CUdeviceptr address;

    start();
    address = take(64);
    *(volatile char *)(uintptr_t)address = 1;
    ck_assert_int_eq(cuMemFree_v2(address), CUDA_SUCCESS);
    *(volatile char *)(uintptr_t)address = 1;
}
END_TEST

START_TEST(copies_reach_every_side)
{
    CUdeviceptr a;
    CUdeviceptr b;
    int from[256];
    int to[256] = {0};

    start();
    for (int i = 0; i < 256; i++) {
        from[i] = i;
    }
    a = take(sizeof(from));
    b = take(sizeof(from));
    ck_assert_int_eq(cuMemcpyHtoD_v2(a, from, sizeof(from)), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoD_v2(b, a, sizeof(from)), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH_v2(to, b, sizeof(from)), CUDA_SUCCESS);
    ck_assert_mem_eq(from, to, sizeof(from));
    ck_assert_int_eq(cuMemcpyHtoD_v2(a, from, sizeof(from) + 1), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemcpyHtoD_v2((uintptr_t)to, from, 4), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemcpyDtoH_v2(to, (uintptr_t)from, 4), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemcpyHtoD_v2(a, from, 0), CUDA_SUCCESS);
}
END_TEST

START_TEST(copies_of_rows_leave_what_is_between_them)
{
    const CUDA_MEMCPY3D up = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = "abcdefghijklmnopqrstuvwx",
        .srcXInBytes = 1,
        .srcPitch = 4,
        .srcHeight = 3,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstPitch = 8,
        .dstHeight = 2,
        .WidthInBytes = 2,
        .Height = 2,
        .Depth = 2,
    };
    CUDA_MEMCPY3D copy = up;
    char to[32];

    start();
    copy.dstDevice = take(32);
    ck_assert_int_eq(cuMemsetD8_v2(copy.dstDevice, '.', 32), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpy3D_v2(&copy), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH_v2(to, copy.dstDevice, 32), CUDA_SUCCESS);
    ck_assert_mem_eq(to, "bc......fg......no......rs......", 32);
    copy.dstPitch = 1;
    ck_assert_int_eq(cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy.dstPitch = 8;
    copy.dstXInBytes = 7;
    ck_assert_int_eq(cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    ck_assert_int_eq(cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(fills_are_of_every_width)
{
    unsigned char bytes[64];
    CUdeviceptr to;

    start();
    to = take(64);
    ck_assert_int_eq(cuMemsetD32_v2(to, 0x01020304, 16), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemsetD16_v2(to + 8, 0x0506, 2), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemsetD2D8_v2(to + 16, 16, 9, 2, 3), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH_v2(bytes, to, 64), CUDA_SUCCESS);
    for (int i = 0; i < 64; i++) {
        int expected = 4 - i % 4;

        if (i >= 8 && i < 12) {
            expected = 6 - i % 2;
        } else if (i >= 16 && i % 16 < 2) {
            expected = 9;
        }
        ck_assert_int_eq(bytes[i], expected);
    }
    ck_assert_int_eq(cuMemsetD32_v2(to + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemsetD32_v2(to, 0, 17), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static atomic_int gate;
static atomic_int passed;

static void wait_for_gate(void *argument)
{
    (void)argument;
    while (!gate) {
        usleep(100);
    }
    passed++;
}

START_TEST(work_is_asynchronous_and_in_order)
{
    CUstream streams[2];
    CUevent events[2];
    CUdeviceptr to;
    int *pinned;
    float ms = -1;

    start();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ck_assert_int_eq(cuEventCreate(&events[i], 0), CUDA_SUCCESS);
    }
    to = take(4);
    ck_assert_int_eq(cuMemHostAlloc((void **)&pinned, 4, 0), CUDA_SUCCESS);
    *pinned = 1;
    ck_assert_int_eq(cuEventElapsedTime_v2(&ms, events[0], events[1]), CUDA_ERROR_INVALID_HANDLE);
    ck_assert_int_eq(cuEventQuery(events[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(events[0], streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuLaunchHostFunc(streams[0], wait_for_gate, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(events[1], streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamWaitEvent(streams[1], events[1], 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyHtoDAsync_v2(to, pinned, 4, streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamQuery(streams[1]), CUDA_ERROR_NOT_READY);
    ck_assert_int_eq(cuEventQuery(events[1]), CUDA_ERROR_NOT_READY);
    ck_assert_int_eq(cuEventElapsedTime_v2(&ms, events[0], events[1]), CUDA_ERROR_NOT_READY);
    *pinned = 2; /* pinned memory is read when the copy runs */
    gate = 1;
    ck_assert_int_eq(cuStreamSynchronize(streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(passed, 1);
    ck_assert_int_eq(cuEventElapsedTime_v2(&ms, events[0], events[1]), CUDA_SUCCESS);
    ck_assert(ms >= 0);
    ck_assert_int_eq(cuMemcpyDtoHAsync_v2(pinned, to, 4, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamSynchronize_ptsz(NULL), CUDA_SUCCESS);
    ck_assert_int_eq(*pinned, 2);
    ck_assert_int_eq(cuStreamDestroy_v2(streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamQuery(streams[0]), CUDA_ERROR_INVALID_HANDLE);
    ck_assert_int_eq(cuEventDestroy_v2(events[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventSynchronize(events[0]), CUDA_ERROR_INVALID_HANDLE);
    ck_assert_int_eq(cuMemFreeHost(pinned), CUDA_SUCCESS);
}
END_TEST

START_TEST(pageable_memory_may_change_at_once)
{
    CUdeviceptr to;
    int value = 1;
    int result = 0;

    start();
    gate = 0;
    to = take(4);
    ck_assert_int_eq(cuLaunchHostFunc(NULL, wait_for_gate, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyHtoDAsync_v2(to, &value, 4, NULL), CUDA_SUCCESS);
    value = 2;
    gate = 1;
    ck_assert_int_eq(cuMemcpyDtoHAsync_v2(&result, to, 4, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(result, 1);
}
END_TEST

START_TEST(pointers_are_known)
{
    CUdeviceptr address;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    unsigned type = 0;
    unsigned is_managed = 7;
    unsigned attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *value = &type;
    int local = 0;

    start();
    address = take(1000);
    ck_assert_int_eq(cuMemGetAddressRange_v2(&base, &bytes, address + 999), CUDA_SUCCESS);
    ck_assert_uint_eq(base, address);
    ck_assert_uint_eq(bytes, 1000);
    ck_assert_int_eq(cuMemGetAddressRange_v2(&base, &bytes, address + 1000), CUDA_ERROR_NOT_FOUND);
    ck_assert_int_eq(cuPointerGetAttribute(&type, attribute, address + 10), CUDA_SUCCESS);
    ck_assert_uint_eq(type, CU_MEMORYTYPE_DEVICE);
    ck_assert_int_eq(cuPointerGetAttribute(&type, attribute, (uintptr_t)&local),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemHostRegister_v2(&local, sizeof(local), 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemHostRegister_v2(&local, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    ck_assert_int_eq(cuPointerGetAttributes(1, &attribute, &value, (uintptr_t)&local),
                     CUDA_SUCCESS);
    ck_assert_uint_eq(type, CU_MEMORYTYPE_HOST);
    ck_assert_int_eq(cuMemHostUnregister(&local), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemHostUnregister(&local), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    ck_assert_int_eq(cuPointerGetAttributes(1, &attribute, &value, (uintptr_t)&local),
                     CUDA_SUCCESS);
    ck_assert_uint_eq(type, 0);
    ck_assert_int_eq(cuMemAllocManaged(&address, 10, 1), CUDA_SUCCESS);
    ck_assert_int_eq(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address),
                     CUDA_SUCCESS);
    ck_assert_uint_eq(is_managed, 1);
}
END_TEST

START_TEST(foreign_memory_is_used_only_if_allowed)
{
    int from = 3;
    int to = 0;

    setenv("PTX_DRIVER_FOREIGN", "1", 1);
    start();
    ck_assert_int_eq(cuMemcpyDtoDAsync_v2((uintptr_t)&to, (uintptr_t)&from, 4, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    ck_assert_int_eq(to, 3);
}
END_TEST

START_TEST(a_child_is_refused)
{
    size_t bytes;
    int state;
    pid_t child;

    start();
    child = fork();
    if (child == 0) {
        _exit(cuMemGetInfo_v2(&bytes, &bytes) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}
END_TEST

START_TEST(captured_work_runs_at_each_launch)
{
    CUstreamCaptureStatus status;
    CUstream streams[2];
    CUevent event;
    CUevent joined;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr from;
    CUdeviceptr to;
    unsigned host = 0;

    start();
    from = take(4);
    to = take(4);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(cuStreamCreate(&streams[i], 0), CUDA_SUCCESS);
    }
    ck_assert_int_eq(cuEventCreate(&event, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventCreate(&joined, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ck_assert_int_eq(cuStreamEndCapture(streams[0], &graph), CUDA_ERROR_ILLEGAL_STATE);
    ck_assert_int_eq(cuStreamBeginCapture_v2(streams[0], 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyHtoDAsync_v2(from, &host, 4, streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(event, streams[0]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamWaitEvent(streams[1], event, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamIsCapturing(streams[1], &status), CUDA_SUCCESS);
    ck_assert_uint_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ck_assert_int_eq(cuMemcpyDtoDAsync_v2(to, from, 4, streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(joined, streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamWaitEvent(streams[0], joined, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamEndCapture(streams[0], &graph), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamSynchronize(streams[1]), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuGraphDestroy(graph), CUDA_SUCCESS);
    for (unsigned i = 1; i < 4; i++) {
        unsigned got = 0;

        host = i;
        ck_assert_int_eq(cuGraphLaunch(exec, streams[0]), CUDA_SUCCESS);
        ck_assert_int_eq(cuMemcpyDtoH_v2(&got, to, 4), CUDA_SUCCESS);
        ck_assert_uint_eq(got, i);
    }
    ck_assert_int_eq(cuGraphExecDestroy(exec), CUDA_SUCCESS);
}
END_TEST

START_TEST(a_stream_waits_for_a_value)
{
    _Atomic uint32_t *flag;
    uint32_t got[2] = {0};
    CUstream stream;
    CUdeviceptr at;

    start();
    at = take(8);
    ck_assert_int_eq(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemHostAlloc((void **)&flag, 4, 0), CUDA_SUCCESS);
    for (unsigned way = CU_STREAM_WAIT_VALUE_GEQ; way <= CU_STREAM_WAIT_VALUE_NOR; way++) {
        const uint32_t values[] = {8, 7, 1, 0}; /* what ends the wait for 7, or for any bit of it */

        atomic_store(flag, way == CU_STREAM_WAIT_VALUE_NOR ? UINT32_MAX : 0);
        ck_assert_int_eq(cuStreamWaitValue32(stream, (uintptr_t)flag, 7, way), CUDA_SUCCESS);
        ck_assert_int_eq(cuMemsetD32Async(at, way + 1, 2, stream), CUDA_SUCCESS);
        usleep(2000);
        ck_assert_int_eq(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        atomic_store(flag, values[way]);
        ck_assert_int_eq(cuMemcpyDtoHAsync_v2(got, at, 8, stream), CUDA_SUCCESS);
        ck_assert_int_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
        ck_assert_uint_eq(got[1], way + 1);
    }
    ck_assert_int_eq(cuStreamWaitValue32(stream, at, 4, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamWaitValue32(stream, at + 2, 7, 0), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuStreamWaitValue32(stream, (uintptr_t)got, 7, 0), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuStreamWaitValue32(stream, at, 7, 4), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuStreamSynchronize(stream), CUDA_SUCCESS);
}
END_TEST

START_TEST(what_is_not_supported_is_refused)
{
    CUresult (*create)(void *, unsigned);
    void *found;

    start();
    ck_assert_int_eq(cuGetProcAddress_v2("cuIpcGetEventHandle", &found, 13000, 1, NULL),
                     CUDA_SUCCESS);
    memcpy(&create, &found, sizeof(found));
    ck_assert_int_eq(create(NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_SUCCESS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("test driver");
    TCase *tcase = tcase_create("driver");

    tcase_add_test(tcase, entry_points_are_found_by_version_and_variant);
    tcase_add_test(tcase, calls_need_init_and_a_context);
    tcase_add_test(tcase, the_device_has_the_size_that_was_set);
    tcase_add_test_raise_signal(tcase, freed_memory_faults, SIGSEGV);
    tcase_add_test(tcase, copies_reach_every_side);
    tcase_add_test(tcase, copies_of_rows_leave_what_is_between_them);
    tcase_add_test(tcase, fills_are_of_every_width);
    tcase_add_test(tcase, work_is_asynchronous_and_in_order);
    tcase_add_test(tcase, pageable_memory_may_change_at_once);
    tcase_add_test(tcase, pointers_are_known);
    tcase_add_test(tcase, foreign_memory_is_used_only_if_allowed);
    tcase_add_test(tcase, a_child_is_refused);
    tcase_add_test(tcase, captured_work_runs_at_each_launch);
    tcase_add_test(tcase, a_stream_waits_for_a_value);
    tcase_add_test(tcase, what_is_not_supported_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
