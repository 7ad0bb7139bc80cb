/* The runtime over the test driver, as a program uses it: it starts by itself, keeps the last
   error, and reports a full device as programs print it. */
#include "tests/ptx/include/cudart_types.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <string.h>

static void *allocate(size_t bytes)
{
    void *address = NULL;

    ck_assert_int_eq(cudaMalloc(&address, bytes), cudaSuccess);
    return address;
}

START_TEST(a_full_device_is_reported)
{
    size_t free_bytes;
    size_t total_bytes;
    void *address = NULL;

    setenv("PTX_DRIVER_MEMORY", "1MiB", 1);
    allocate(1 << 19);
    ck_assert_int_eq(cudaMalloc(&address, 1 << 20), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(address);
    ck_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    ck_assert_str_eq(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    ck_assert_uint_eq(free_bytes, 1 << 19);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    ck_assert_int_eq(cudaMalloc(&address, 0), cudaSuccess);
    ck_assert_ptr_null(address);
    ck_assert_int_eq(cudaFree(NULL), cudaSuccess);
}
END_TEST

START_TEST(properties_are_those_of_the_device)
{
    struct cudaDeviceProp properties;
    int value;

    setenv("PTX_DRIVER_MEMORY", "2GiB", 1);
    setenv("PTX_DRIVER_CAPABILITY", "86", 1);
    ck_assert_int_eq(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    ck_assert_uint_eq(properties.totalGlobalMem, (size_t)2 << 30);
    ck_assert_int_eq(properties.major, 8);
    ck_assert_int_eq(properties.minor, 6);
    ck_assert_int_eq(properties.warpSize, 32);
    ck_assert_int_eq(properties.maxGridSize[1], 65535);
    ck_assert_int_eq(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0), cudaSuccess);
    ck_assert_int_eq(value, properties.maxThreadsPerBlock);
    ck_assert_int_eq(cudaGetDeviceProperties(&properties, 1), cudaErrorInvalidDevice);
    ck_assert_int_eq(cudaSetDevice(1), cudaErrorInvalidDevice);
    ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
}
END_TEST

START_TEST(copies_go_in_the_direction_asked_for)
{
    char text[16] = "";
    char *a = allocate(16);
    char *b = allocate(16);

    ck_assert_int_eq(cudaMemcpy(a, "fifteen letters", 16, cudaMemcpyHostToDevice), cudaSuccess);
    ck_assert_int_eq(cudaMemcpyAsync(b, a, 16, cudaMemcpyDeviceToDevice, NULL), cudaSuccess);
    ck_assert_int_eq(cudaMemset(b + 7, '_', 1), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy2D(b, 4, "xyzzXYZZ", 4, 2, 2, cudaMemcpyHostToDevice), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(text, b, 16, cudaMemcpyDefault), cudaSuccess);
    ck_assert_str_eq(text, "xyftXYn_letters");
    ck_assert_int_eq(cudaMemcpy2D(b, 1, text, 4, 2, 2, cudaMemcpyHostToDevice),
                     cudaErrorInvalidPitchValue);
    ck_assert_int_eq(cudaMemcpy(a, b, 4, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
    ck_assert_int_eq(cudaMemcpy(text, a, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}
END_TEST

START_TEST(pointers_are_known)
{
    struct cudaPointerAttributes attributes;
    char *device = allocate(16);
    void *pinned;
    int local;

    ck_assert_int_eq(cudaMallocHost(&pinned, 16), cudaSuccess);
    ck_assert_int_eq(cudaPointerGetAttributes(&attributes, device + 3), cudaSuccess);
    ck_assert_int_eq(attributes.type, cudaMemoryTypeDevice);
    ck_assert_ptr_eq(attributes.devicePointer, device + 3);
    ck_assert_int_eq(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
    ck_assert_int_eq(attributes.type, cudaMemoryTypeHost);
    ck_assert_ptr_eq(attributes.hostPointer, pinned);
    ck_assert_int_eq(cudaPointerGetAttributes(&attributes, &local), cudaSuccess);
    ck_assert_int_eq(attributes.type, cudaMemoryTypeUnregistered);
}
END_TEST

/* A thread that did not start anything has the device too, and a last error of its own. */
static void *other_thread(void *address)
{
    if (cudaGetLastError() != cudaSuccess ||
        cudaMemsetAsync_ptsz(address, 5, 4, NULL) != cudaSuccess) {
        return NULL;
    }
    return cudaStreamSynchronize_ptsz(NULL) == cudaSuccess ? address : NULL;
}

START_TEST(threads_have_streams_and_errors_of_their_own)
{
    void *address = allocate(4);
    pthread_t thread;
    void *result;
    unsigned value = 0;

    ck_assert_int_eq(cudaSetDevice(1), cudaErrorInvalidDevice);
    ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, address), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, address);
    ck_assert_int_eq(cudaMemcpy(&value, address, 4, cudaMemcpyDeviceToHost), cudaSuccess);
    ck_assert_uint_eq(value, 0x05050505);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDevice);
}
END_TEST

static void count(void *number)
{
    ++*(int *)number;
}

/* A graph of a copy and a host function, and its clone. */
START_TEST(graphs_are_built_and_cloned)
{
    char text[8] = "";
    char *memory = allocate(8);
    int calls = 0;
    const struct cudaHostNodeParams function = {count, &calls};
    const struct cudaMemcpy3DParms copy = {
        .srcPtr = {memory, 8, 8, 1},
        .dstPtr = {text, 8, 8, 1},
        .extent = {8, 1, 1},
        .kind = cudaMemcpyDeviceToHost,
    };
    cudaGraph_t graph;
    cudaGraph_t clone;
    cudaGraphExec_t exec;
    cudaGraphNode_t nodes[2];

    ck_assert_int_eq(cudaMemcpy(memory, "letters", 8, cudaMemcpyHostToDevice), cudaSuccess);
    ck_assert_int_eq(cudaGraphCreate(&graph, 0), cudaSuccess);
    ck_assert_int_eq(cudaGraphAddMemcpyNode(&nodes[0], graph, NULL, 0, &copy), cudaSuccess);
    ck_assert_int_eq(cudaGraphAddHostNode(&nodes[1], graph, nodes, 1, &function), cudaSuccess);
    ck_assert_int_eq(cudaGraphClone(&clone, graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphInstantiateWithFlags(&exec, clone, 0), cudaSuccess);
    ck_assert_int_eq(cudaGraphLaunch(exec, NULL), cudaSuccess);
    ck_assert_int_eq(cudaGraphLaunch(exec, NULL), cudaSuccess);
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
    ck_assert_str_eq(text, "letters");
    ck_assert_int_eq(calls, 2);
    ck_assert_int_eq(cudaGraphAddMemcpyNode(&nodes[0], clone, NULL, 0, NULL),
                     cudaErrorInvalidValue);
    ck_assert_int_eq(cudaGraphExecDestroy(exec), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(clone), cudaSuccess);
}
END_TEST

START_TEST(managed_memory_takes_advice)
{
    const struct cudaMemLocation device = {1, 0};
    char *plain = allocate(16);
    void *shared;

    ck_assert_int_eq(cudaMallocManaged(&shared, 16, 1), cudaSuccess);
    ck_assert_int_eq(cudaMemAdvise(shared, 16, cudaMemAdviseSetReadMostly, device), cudaSuccess);
    ck_assert_int_eq(cudaMemPrefetchAsync(shared, 16, device, 0, NULL), cudaSuccess);
    ck_assert_int_eq(cudaStreamAttachMemAsync(NULL, shared, 0, 4), cudaSuccess);
    ck_assert_int_eq(cudaMemPrefetchAsync(shared, 1 << 20, device, 0, NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemPrefetchAsync(plain, 16, device, 0, NULL), cudaErrorInvalidValue);
}
END_TEST

START_TEST(boxes_are_filled)
{
    char bytes[2][3][4];
    char *memory = allocate(sizeof(bytes));
    const struct cudaPitchedPtr box = {memory, 4, 3, 3};
    const struct cudaExtent extent = {3, 2, 2};

    ck_assert_int_eq(cudaMemset(memory, '_', sizeof(bytes)), cudaSuccess);
    ck_assert_int_eq(cudaMemset3D(box, 'x', extent), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(bytes, memory, sizeof(bytes), cudaMemcpyDeviceToHost), cudaSuccess);
    ck_assert_mem_eq(bytes, "xxx_xxx_____xxx_xxx_____", sizeof(bytes));
}
END_TEST

/* As a program would call it; what it is given does not matter. */
cudaError_t cudaMemPoolSetAccess(void);

START_TEST(what_is_not_supported_is_refused)
{
    ck_assert_int_eq(cudaMemPoolSetAccess(), cudaErrorNotSupported);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorNotSupported);
    allocate(16);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime over the test driver");
    TCase *tcase = tcase_create("cudart");

    tcase_add_test(tcase, a_full_device_is_reported);
    tcase_add_test(tcase, properties_are_those_of_the_device);
    tcase_add_test(tcase, copies_go_in_the_direction_asked_for);
    tcase_add_test(tcase, pointers_are_known);
    tcase_add_test(tcase, threads_have_streams_and_errors_of_their_own);
    tcase_add_test(tcase, graphs_are_built_and_cloned);
    tcase_add_test(tcase, managed_memory_takes_advice);
    tcase_add_test(tcase, boxes_are_filled);
    tcase_add_test(tcase, what_is_not_supported_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
