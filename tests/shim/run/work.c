/*
 * A program that uses the driver as CUDA programs do, in the part that its argument names. It
 * prints what it computes, so that a run under a budget can be compared with one without.
 */
#include "shim/driver/driver_calls.h"
#include "tests/shim/run/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBER(name, parameters) CUresult(*name) parameters;
#define MEMBER_WRAPPED(name, takers, parameters, arguments) MEMBER(name, parameters)
#define MEMBER_TWICE(name, suffix, takers, parameters, arguments) MEMBER(name, parameters)
#define OTHER_CALLS(X)                                                   \
    X(cuEventQuery, (CUevent event))                                     \
    X(cuEventElapsedTime, (float *ms, CUevent from, CUevent to))         \
    X(cuMemAllocHost_v2, (void **address, size_t bytes))                 \
    X(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device)) \
    X(cuMemPoolDestroy, (CUmemoryPool pool))                             \
    X(cuMemAllocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags))
static struct {
    DRIVER_WRAPPED(MEMBER_WRAPPED)
    DRIVER_WRAPPED_TWICE(MEMBER_TWICE)
    DRIVER_CALLED(MEMBER)
    OTHER_CALLS(MEMBER)
} cu;

static void find_calls(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (library == NULL) {
        printf("%s\n", dlerror());
        exit(3);
    }
#define FIND(name, parameters) cu.name = (CUresult(*) parameters)dlsym(library, #name);
#define FIND_WRAPPED(name, takers, parameters, arguments) FIND(name, parameters)
#define FIND_TWICE(name, suffix, takers, parameters, arguments) FIND(name, parameters)
    DRIVER_WRAPPED(FIND_WRAPPED)
    DRIVER_WRAPPED_TWICE(FIND_TWICE)
    DRIVER_CALLED(FIND)
    OTHER_CALLS(FIND)
}

static void check(CUresult result, const char *what)
{
    if (result != DRIVER_SUCCESS) {
        printf("%s: error %d\n", what, result);
        exit(1);
    }
}

#define CU(name, ...) check(cu.name(__VA_ARGS__), #name)

enum { TENSORS = 12, ELEMENTS = 1 << 16, TENSOR_BYTES = ELEMENTS * 4 };

static CUcontext context;
static CUmodule module;
static char ptx[65536];
static CUstream streams[2];

static void start(void)
{
    FILE *file = fopen(KERNELS_PTX, "r");

    find_calls();
    if (file == NULL || fread(ptx, 1, sizeof(ptx) - 1, file) == 0 || fclose(file) != 0) {
        printf("%s cannot be read\n", KERNELS_PTX);
        exit(3);
    }
    CU(cuInit, 0);
    CU(cuDevicePrimaryCtxRetain, &context, 0);
    CU(cuCtxSetCurrent, context);
    CU(cuModuleLoadData, &module, ptx);
    CU(cuStreamCreate, &streams[0], 1);
    CU(cuStreamCreate, &streams[1], 1);
}

static CUfunction kernel(const char *name)
{
    CUfunction function = NULL;

    CU(cuModuleGetFunction, &function, module, name);
    return function;
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;

    CU(cuMemAlloc_v2, &address, bytes);
    if (address % 512 != 0) {
        printf("an address that is not aligned\n");
        exit(1);
    }
    return address;
}

static CUresult launch(const char *name, unsigned blocks, CUstream stream, void **parameters)
{
    return cu.cuLaunchKernel(kernel(name), blocks, 1, 1, 64, 1, 1, 0, stream, parameters, NULL);
}

static void scale(CUdeviceptr to, CUdeviceptr from, float factor, CUstream stream)
{
    int count = ELEMENTS;

    check(launch("scale", ELEMENTS / 64, stream, (void *[]){&to, &from, &factor, &count}), "scale");
}

static void add(CUdeviceptr to, CUdeviceptr from, CUstream stream)
{
    int count = ELEMENTS;

    check(launch("add", ELEMENTS / 64, stream, (void *[]){&to, &from, &count}), "add");
}

static uint64_t sum_of(const unsigned char *bytes, size_t count)
{
    uint64_t sum = 1469598103934665603u;

    for (size_t i = 0; i < count; i++) {
        sum = (sum ^ bytes[i]) * 1099511628211u;
    }
    return sum;
}

static void print_tensor(const char *name, CUdeviceptr address)
{
    static unsigned char bytes[TENSOR_BYTES];

    CU(cuMemcpyDtoH_v2, bytes, address, TENSOR_BYTES);
    printf("%s %016llx\n", name, (unsigned long long)sum_of(bytes, TENSOR_BYTES));
}

/* Tensors that are written one from the other, forth and back, on two streams. */
static int train(void)
{
    static float input[ELEMENTS];
    CUdeviceptr tensors[TENSORS];
    CUevent events[2];
    float ms = -1.0f;

    start();
    for (int i = 0; i < ELEMENTS; i++) {
        input[i] = (float)(i % 1000) / 7.0f;
    }
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = allocate(TENSOR_BYTES);
    }
    CU(cuEventCreate, &events[0], 0);
    CU(cuEventCreate, &events[1], 0);
    for (int step = 0; step < 4; step++) {
        CU(cuEventRecord, events[0], streams[0]);
        CU(cuMemcpyHtoDAsync_v2, tensors[0], input, TENSOR_BYTES, streams[0]);
        for (int i = 1; i < TENSORS; i++) {
            scale(tensors[i], tensors[i - 1], 0.25f + (float)step, streams[0]);
        }
        CU(cuEventRecord, events[1], streams[0]);
        CU(cuStreamWaitEvent, streams[1], events[1], 0);
        for (int i = TENSORS - 1; i > 0; i--) {
            add(tensors[i - 1], tensors[i], streams[1]);
        }
        CU(cuStreamSynchronize, streams[1]);
        print_tensor("tensor", tensors[0]);
        print_tensor("tensor", tensors[TENSORS / 2]);
        CU(cuMemsetD32_v2, tensors[3] + 1024, 0x3f800000, 1000);
        CU(cuMemsetD8_v2, tensors[4], 0, TENSOR_BYTES);
        CU(cuMemcpyDtoD_v2, tensors[5], tensors[2], TENSOR_BYTES);
        for (int i = 3; i < 6; i++) {
            print_tensor("after", tensors[i]);
        }
    }
    CU(cuEventSynchronize, events[1]);
    CU(cuEventElapsedTime, &ms, events[0], events[1]);
    printf("time %d\n", ms >= 0.0f);
    for (int i = 0; i < TENSORS; i++) {
        CU(cuMemFree_v2, tensors[i]);
    }
    return 0;
}

/* A box into the middle of a tensor, and from there into another one, asynchronously. */
static void copy_boxes(CUdeviceptr to, CUdeviceptr other, const void *host)
{
    struct copy_3d box = {.from_type = MEMORY_HOST,
                          .from_host = host,
                          .from_pitch = 64,
                          .from_height = 20,
                          .from_y = 3,
                          .to_type = MEMORY_DEVICE,
                          .to_device = to,
                          .to_pitch = 128,
                          .to_height = 30,
                          .to_x = 5,
                          .to_y = 2,
                          .to_z = 1,
                          .width = 50,
                          .height = 12,
                          .depth = 9};

    CU(cuMemcpy3D_v2, &box);
    box.from_type = MEMORY_DEVICE;
    box.from_device = to;
    box.from_pitch = 128;
    box.from_height = 30;
    box.to_device = other;
    box.to_pitch = 50; /* without gaps between rows */
    box.to_height = 12;
    box.to_x = 0;
    box.to_y = 0;
    CU(cuMemcpy3DAsync_v2, &box, streams[0]);
    box.depth = 1000;
    printf("box out of range %d\n", cu.cuMemcpy3D_v2(&box));
}

/* Copies of every form. */
static int copies(void)
{
    static unsigned char host[TENSOR_BYTES];
    CUdeviceptr tensors[TENSORS];
    unsigned char *pinned = NULL;
    struct copy_2d rows = {.from_type = MEMORY_HOST,
                           .from_host = host,
                           .from_pitch = 128,
                           .to_type = MEMORY_DEVICE,
                           .to_pitch = 256,
                           .to_x = 16,
                           .to_y = 2,
                           .width = 100,
                           .height = 50};
    CUdeviceptr pitched = 0;
    size_t pitch = 0;

    start();
    CU(cuMemAllocHost_v2, (void **)&pinned, TENSOR_BYTES);
    for (int i = 0; i < TENSOR_BYTES; i++) {
        host[i] = (unsigned char)(i * 7 + i / 251);
        pinned[i] = (unsigned char)(i * 3);
    }
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = allocate(TENSOR_BYTES);
        CU(cuMemcpyHtoD_v2, tensors[i], host, TENSOR_BYTES - (size_t)i);
    }
    CU(cuMemcpyHtoDAsync_v2, tensors[1] + 100, pinned, 5000, streams[0]);
    CU(cuMemcpyAsync, tensors[2], (CUdeviceptr)(uintptr_t)host, 4096, streams[1]);
    CU(cuMemcpyDtoHAsync_v2, pinned, tensors[3], 3000, streams[0]);
    CU(cuStreamSynchronize, streams[0]);
    printf("pinned %016llx\n", (unsigned long long)sum_of(pinned, TENSOR_BYTES));
    CU(cuMemcpyHtoDAsync_v2, tensors[4], pinned, TENSOR_BYTES, streams[0]);
    rows.to_device = tensors[5];
    CU(cuMemcpy2D_v2, &rows);
    rows = (struct copy_2d){.from_type = MEMORY_DEVICE,
                            .from_device = tensors[5],
                            .from_pitch = 256,
                            .to_type = MEMORY_DEVICE,
                            .to_device = tensors[6],
                            .to_pitch = 512,
                            .width = 200,
                            .height = 20};
    CU(cuMemcpy2DAsync_v2, &rows, streams[1]);
    CU(cuMemsetD2D8_v2, tensors[7], 1000, 7, 10, 20);
    CU(cuMemsetD16Async, tensors[8] + 2, 0x1234, 500, streams[0]);
    CU(cuMemcpyDtoD_v2, tensors[9] + 77, tensors[10] + 7, 9999);
    CU(cuMemAllocPitch_v2, &pitched, &pitch, 1000, 3, 4);
    copy_boxes(tensors[10], tensors[11], host);
    printf("pitch %zu\n", pitch);
    for (int i = 0; i < TENSORS; i++) {
        print_tensor("tensor", tensors[i]);
    }
    rows.from_pitch = 100;
    printf("narrow rows %d %d %d\n", cu.cuMemsetD2D8_v2(tensors[6], 64, 0, 65, 2),
           cu.cuMemsetD2D8_v2(tensors[6], 64, 7, 65, 2), cu.cuMemcpy2D_v2(&rows));
    rows.from_pitch = 256;
    rows.to_pitch = 199;
    printf("narrow rows %d\n", cu.cuMemcpy2D_v2(&rows));
    print_tensor("still", tensors[6]);
    printf("out of range %d\n", cu.cuMemcpyHtoD_v2(tensors[0] + 1, host, TENSOR_BYTES));
    printf("nothing %d\n", cu.cuMemcpyHtoD_v2(tensors[0], host, 0));
    return 0;
}

/* What programs ask about their memory, and errors of allocations. */
/* Columns of a matrix whose rows have eight pages each: what lies between them is not touched. The
   matrix and its copy are each larger than some budgets. */
static int boxes(void)
{
    enum { PITCH = 32768, ROWS = 64, WIDTH = 4096 };
    static unsigned char host[ROWS][WIDTH];
    CUdeviceptr matrix;
    CUdeviceptr other;

    start();
    matrix = allocate(PITCH * ROWS);
    other = allocate(PITCH * ROWS);
    CU(cuMemsetD32_v2, matrix, 0x01020304, PITCH * ROWS / 4);
    CU(cuMemsetD2D8_v2, other + 512, PITCH, 9, PITCH / 2, ROWS);
    for (size_t i = 0; i < sizeof(host); i++) {
        host[i / WIDTH][i % WIDTH] = (unsigned char)(i * 31 >> 5);
    }
    for (size_t column = 0; column < 3; column++) {
        struct copy_2d in = {.from_type = MEMORY_HOST,
                             .from_host = host,
                             .from_pitch = WIDTH,
                             .to_type = MEMORY_DEVICE,
                             .to_device = matrix,
                             .to_pitch = PITCH,
                             .to_x = 10000 * column + 5,
                             .width = WIDTH,
                             .height = ROWS};
        struct copy_3d within = {.from_type = MEMORY_DEVICE,
                                 .from_device = matrix,
                                 .from_pitch = PITCH,
                                 .from_height = 16,
                                 .from_x = in.to_x,
                                 .to_type = MEMORY_DEVICE,
                                 .to_device = other,
                                 .to_pitch = PITCH,
                                 .to_height = 16,
                                 .to_x = 128,
                                 .to_y = 1,
                                 .width = WIDTH,
                                 .height = 15,
                                 .depth = 4};

        CU(cuMemcpy2DAsync_v2, &in, streams[0]);
        CU(cuMemcpy3DAsync_v2, &within, streams[1]);
        CU(cuMemsetD2D16_v2, other + 64, PITCH, (unsigned short)(column + 77), 8, ROWS);
    }
    for (size_t i = 0; i < 8; i++) {
        print_tensor("matrix", matrix + i * TENSOR_BYTES);
        print_tensor("other", other + i * TENSOR_BYTES);
    }
    return 0;
}

/* Managed memory as operands beside four tensors. `tries`: a launch of two tensors meanwhile. */
static int beside(bool tries)
{
    static unsigned char bytes[TENSOR_BYTES];
    CUdeviceptr tensors[4];
    CUdeviceptr managed[2];

    start();
    for (int i = 0; i < 4; i++) {
        memset(bytes, 0x30 + i, sizeof(bytes));
        tensors[i] = allocate(TENSOR_BYTES);
        CU(cuMemcpyHtoD_v2, tensors[i], bytes, TENSOR_BYTES);
    }
    for (int i = 0; i < 2; i++) {
        CU(cuMemAllocManaged, &managed[i], TENSOR_BYTES, 1);
    }
    for (int i = 0; i < 4; i++) {
        scale(managed[i % 2], tensors[i], 1.5f, streams[0]);
        add(tensors[3 - i], managed[i % 2], streams[1]);
    }
    for (int i = 0; i < 1 + tries; i++) {
        int count = ELEMENTS;
        float factor = 2.0f;

        if (i == tries) {
            CU(cuMemFree_v2, managed[0]);
            CU(cuMemFree_v2, managed[1]);
        }
        printf("launch %d\n", launch("scale", ELEMENTS / 64, streams[0],
                                     (void *[]){&tensors[1], &tensors[0], &factor, &count}));
    }
    for (int i = 0; i < 4; i++) {
        print_tensor("tensor", tensors[i]);
    }
    return 0;
}

static int queries(void)
{
    CUdeviceptr blob;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    size_t free_bytes[2] = {0, 0};
    size_t total = 0;
    unsigned type = 0;
    unsigned attributes[2] = {POINTER_MEMORY_TYPE, POINTER_RANGE_SIZE};
    CUdeviceptr start_of = 0;
    CUdeviceptr none = 0;

    start();
    CU(cuMemGetInfo_v2, &free_bytes[0], &total);
    blob = allocate(1 << 20);
    CU(cuMemGetInfo_v2, &free_bytes[1], &total);
    printf("used %zu of %zu\n", free_bytes[0] - free_bytes[1], total);
    CU(cuMemGetAddressRange_v2, &base, &bytes, blob + 12345);
    printf("range %d %zu\n", base == blob, bytes);
    CU(cuPointerGetAttribute, &type, POINTER_MEMORY_TYPE, blob + 5);
    CU(cuPointerGetAttribute, &start_of, POINTER_RANGE_START, blob + 5);
    printf("type %u, start %d\n", type, start_of == blob);
    type = 0;
    bytes = 0;
    CU(cuPointerGetAttributes, 2, attributes, (void *[]){&type, &bytes}, blob + 5);
    printf("attributes %u %zu\n", type, bytes);
    printf("zero bytes %d\n", cu.cuMemAlloc_v2(&none, 0));
    printf("too much %d\n", cu.cuMemAlloc_v2(&none, (size_t)1 << 46));
    printf("free inside %d\n", cu.cuMemFree_v2(blob + 512));
    printf("free %d\n", cu.cuMemFree_v2(blob));
    printf("again %d\n", cu.cuMemFree_v2(blob));
    printf("null %d\n", cu.cuMemFree_v2(0));
    blob = 0;
    CU(cuMemAllocAsync, &blob, 4096, streams[0]);
    CU(cuMemFreeAsync, blob, streams[0]);
    return 0;
}

/* Tensors of the device's memory pool. `of_host`: pools of other memory. */
static int pools(bool of_host)
{
    struct {
        struct page_properties known;
        char rest[128];
    } properties = {.known = {.type = POOL_PINNED, .location.type = LOCATION_HOST}};
    struct location location = {.type = LOCATION_DEVICE};
    CUdeviceptr tensors[TENSORS];
    CUmemoryPool pool;

    start();
    if (of_host) {
        printf("host %d\n", cu.cuMemPoolCreate(&pool, &properties.known));
        printf("managed %d\n", cu.cuMemGetMemPool(&pool, &location, POOL_MANAGED));
        location.type = LOCATION_HOST;
        printf("default %d\n", cu.cuMemGetDefaultMemPool(&pool, &location, POOL_PINNED));
        return 0;
    }
    CU(cuDeviceGetDefaultMemPool, &pool, 0);
    for (int i = 0; i < TENSORS; i++) {
        CU(cuMemAllocFromPoolAsync, &tensors[i], TENSOR_BYTES, pool, streams[0]);
        CU(cuMemsetD8_v2, tensors[i], (unsigned char)(i + 1), TENSOR_BYTES);
    }
    for (int i = 1; i < TENSORS; i++) {
        scale(tensors[i], tensors[i - 1], 2.0f, streams[0]);
    }
    for (int i = 0; i < TENSORS; i++) {
        print_tensor("tensor", tensors[i]);
        CU(cuMemFreeAsync, tensors[i], streams[0]);
    }
    properties.known.location.type = LOCATION_DEVICE;
    CU(cuMemPoolCreate, &pool, &properties.known);
    CU(cuMemAllocFromPoolAsync, &tensors[0], TENSOR_BYTES, pool, streams[0]);
    CU(cuMemsetD8_v2, tensors[0], 9, TENSOR_BYTES);
    print_tensor("of its own pool", tensors[0]);
    CU(cuMemFreeAsync, tensors[0], streams[0]);
    CU(cuMemPoolDestroy, pool);
    return 0;
}

/* A kernel that is open, with `argument` tensors beside its own. */
static int open_kernel(int count)
{
    CUdeviceptr tensors[TENSORS];
    CUdeviceptr table;
    float value = 4.0f;
    CUresult result;

    start();
    for (int i = 0; i < count; i++) {
        tensors[i] = allocate(TENSOR_BYTES);
        CU(cuMemsetD8_v2, tensors[i], (unsigned char)i, TENSOR_BYTES);
    }
    table = allocate(8);
    CU(cuMemcpyHtoD_v2, table, &tensors[0], 8);
    result = cu.cuLaunchKernel(kernel("through_table"), 1, 1, 1, 1, 1, 1, 0, NULL,
                               (void *[]){&table, &value}, NULL);
    printf("launch %d\n", result);
    print_tensor("tensor", tensors[0]);
    return 0;
}

static int spin(void)
{
    CUdeviceptr flag;

    start();
    flag = allocate(4);
    for (int i = 0; i < 2; i++) {
        printf("spin %d\n", launch("spin", 1, NULL, (void *[]){&flag}));
    }
    CU(cuMemsetD32_v2, flag, 1, 1);
    printf("cooperative %d\n", cu.cuLaunchCooperativeKernel(kernel("spin"), 1, 1, 1, 64, 1, 1, 0,
                                                            NULL, (void *[]){&flag}));
    return 0;
}

/* Code that is unloaded and loaded again. */
static int reload(void)
{
    CUdeviceptr tensors[TENSORS];

    start();
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = allocate(TENSOR_BYTES);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < TENSORS; i++) {
            scale(tensors[i], tensors[i - 1], 1.5f, streams[round % 2]);
        }
        CU(cuStreamSynchronize, streams[round % 2]);
        CU(cuModuleUnload, module);
        CU(cuModuleLoadData, &module, ptx);
    }
    print_tensor("tensor", tensors[TENSORS - 1]);
    return 0;
}

/* Parameters in one block, and launches that the driver refuses. */
static int forms(void)
{
    CUdeviceptr tensors[2];
    struct {
        CUdeviceptr to, from;
        float factor;
        int count;
    } block;
    size_t bytes = sizeof(block);
    struct launch_config config = {{ELEMENTS / 64, 1, 1}, {64, 1, 1}, 0, streams[0], NULL, 0};
    float factor = 2.0f;
    int count = ELEMENTS;

    start();
    tensors[0] = allocate(TENSOR_BYTES);
    tensors[1] = allocate(TENSOR_BYTES);
    CU(cuMemsetD32_v2, tensors[0], 0x40000000, ELEMENTS);
    block.to = tensors[1];
    block.from = tensors[0];
    block.factor = 3.0f;
    block.count = ELEMENTS;
    CU(cuLaunchKernel, kernel("scale"), ELEMENTS / 64, 1, 1, 64, 1, 1, 0, streams[0], NULL,
       (void *[]){LAUNCH_BUFFER, &block, LAUNCH_BUFFER_BYTES, &bytes, LAUNCH_END});
    print_tensor("block", tensors[1]);
    CU(cuLaunchKernelEx, &config, kernel("scale"),
       (void *[]){&tensors[0], &tensors[1], &factor, &count}, NULL);
    print_tensor("config", tensors[0]);
    printf("too many threads %d\n",
           cu.cuLaunchKernel(kernel("scale"), 1, 1, 1, 5000, 1, 1, 0, NULL,
                             (void *[]){&tensors[0], &tensors[1], &factor, &count}, NULL));
    print_tensor("after", tensors[0]);
    return 0;
}

/* Host threads with tensors and streams of their own. */
enum { THREADS = 4, SHARE = TENSORS / THREADS };
static struct thread {
    CUdeviceptr tensors[SHARE];
    CUstream stream;
    CUfunction scale;
} threads[THREADS];

static void *run_thread(void *argument)
{
    const struct thread *thread = argument;
    float factor = 0.5f;
    int count = ELEMENTS;

    CU(cuCtxSetCurrent, context);
    for (int step = 0; step < 12; step++) {
        CUdeviceptr to = thread->tensors[(step + 1) % SHARE];
        CUdeviceptr from = thread->tensors[step % SHARE];

        CU(cuLaunchKernel, thread->scale, ELEMENTS / 64, 1, 1, 64, 1, 1, 0, thread->stream,
           (void *[]){&to, &from, &factor, &count}, NULL);
        CU(cuStreamSynchronize, thread->stream);
    }
    return NULL;
}

static int several(void)
{
    pthread_t ids[THREADS];

    start();
    for (int i = 0; i < TENSORS; i++) {
        threads[i % THREADS].tensors[i / THREADS] = allocate(TENSOR_BYTES);
        CU(cuMemsetD32_v2, threads[i % THREADS].tensors[i / THREADS], 0x3f800000u + (unsigned)i,
           ELEMENTS);
    }
    for (int i = 0; i < THREADS; i++) {
        threads[i].stream = streams[i % 2];
        threads[i].scale = kernel("scale");
        if (pthread_create(&ids[i], NULL, run_thread, &threads[i]) != 0) {
            return 3;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(ids[i], NULL);
        for (int j = 0; j < SHARE; j++) {
            print_tensor("tensor", threads[i].tensors[j]);
        }
    }
    return 0;
}

/* Steps that allocate and free memory, of which some differ from the others: they keep what others
   free, read what others overwrite, do more or less. `unusual`: from which step on. */
enum { STEPS = 22, KEPT = 6 };

static CUdeviceptr copy_of(CUdeviceptr from)
{
    CUdeviceptr to = allocate(TENSOR_BYTES);

    CU(cuMemcpyDtoD_v2, to, from, TENSOR_BYTES);
    return to;
}

static void step(const CUdeviceptr *tensors, CUdeviceptr late, int number, int unusual)
{
    int kind = number < unusual ? 0 : number - unusual;
    CUdeviceptr first = copy_of(tensors[0]);
    CUdeviceptr second;
    CUdeviceptr third = 0;

    for (int i = 1; i < KEPT; i++) {
        scale(tensors[i], i == 1 ? first : tensors[i - 1], 0.5f, NULL);
    }
    if (kind != 1) {
        CU(cuMemFree_v2, first);
    }
    second = copy_of(tensors[KEPT - 1]);
    if (kind == 2) {
        print_tensor("late", late);
    } else {
        CU(cuMemcpyDtoD_v2, late, second, TENSOR_BYTES);
    }
    if (kind == 3) {
        third = copy_of(late);
    }
    for (int i = KEPT - 1; i > 0 && kind != 4; i--) {
        add(tensors[i - 1], i == 3 ? second : tensors[i], NULL);
    }
    if (kind == 1) {
        print_tensor("first", first);
        CU(cuMemFree_v2, first);
    }
    CU(cuMemFree_v2, second);
    if (kind == 3) {
        print_tensor("third", third);
        CU(cuMemFree_v2, third);
    }
}

static int steps(int unusual)
{
    static float input[ELEMENTS];
    CUdeviceptr tensors[KEPT];
    CUdeviceptr late;

    start();
    for (int i = 0; i < KEPT; i++) {
        tensors[i] = allocate(TENSOR_BYTES);
    }
    late = allocate(TENSOR_BYTES);
    for (int number = 0; number < STEPS; number++) {
        for (int i = 0; i < ELEMENTS; i++) {
            input[i] = (float)((i + number) % 100) / 9.0f;
        }
        push_range("load");
        CU(cuMemcpyHtoD_v2, tensors[0], input, TENSOR_BYTES);
        push_range("step");
        step(tensors, late, number, unusual);
    }
    for (int i = 0; i < KEPT; i++) {
        print_tensor("tensor", tensors[i]);
    }
    print_tensor("late", late);
    return 0;
}

/* Host functions that wait until another thread has called the driver. That it can while a call
       of this thread waits for them is what CUDA promises. */
static sem_t is_held, may_go_on;

static void hold(void *argument)
{
    (void)argument;
    (void)sem_post(&is_held);
    while (sem_wait(&may_go_on) != 0) { /* interrupted */
    }
}

static void *call_meanwhile(void *argument)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CUdeviceptr tensor;

    (void)argument;
    while (sem_wait(&is_held) != 0) {
    }
    CU(cuCtxSetCurrent, context);
    (void)usleep(20000); /* the other thread waits by now, most likely */
    tensor = allocate(TENSOR_BYTES);
    CU(cuMemsetD8Async, tensor, 0, TENSOR_BYTES, streams[1]);
    CU(cuMemGetInfo_v2, &free_bytes, &total_bytes);
    (void)sem_post(&may_go_on);
    return NULL;
}

static void wait_in(int way, CUdeviceptr tensor, CUevent event)
{
    static unsigned char bytes[8 * TENSOR_BYTES];
    const struct copy_2d copy = {.from_type = MEMORY_DEVICE,
                                 .from_device = tensor,
                                 .from_pitch = 512,
                                 .to_type = MEMORY_HOST,
                                 .to_host = bytes,
                                 .to_pitch = 256,
                                 .width = 256,
                                 .height = TENSOR_BYTES / 512};

    switch (way) {
    case 0:
        CU(cuMemcpyDtoH_v2, bytes, tensor, TENSOR_BYTES);
        break;
    case 1:
        CU(cuMemcpy2D_v2, &copy);
        break;
    case 2:
        CU(cuMemcpyHtoD_v2, tensor, bytes, 8 * TENSOR_BYTES);
        break;
    case 3:
        CU(cuMemFree_v2, tensor);
        break;
    case 4:
        CU(cuStreamSynchronize, streams[0]);
        break;
    case 5:
        CU(cuCtxSynchronize);
        break;
    default:
        CU(cuEventSynchronize, event);
    }
    printf("%02x %02x\n", bytes[0], bytes[TENSOR_BYTES / 2 - 1]);
}

static int waits(void)
{
    CUevent event;

    start();
    (void)sem_init(&is_held, 0, 0);
    (void)sem_init(&may_go_on, 0, 0);
    CU(cuEventCreate, &event, 0);
    for (int way = 0; way < 7; way++) {
        CUdeviceptr tensor = allocate(8 * TENSOR_BYTES);
        pthread_t other;

        CU(cuMemsetD8_v2, tensor, (unsigned char)(way + 1), 8 * TENSOR_BYTES);
        if (pthread_create(&other, NULL, call_meanwhile, NULL) != 0) {
            return 3;
        }
        CU(cuLaunchHostFunc, streams[0], hold, NULL);
        CU(cuEventRecord, event, streams[0]);
        wait_in(way, tensor, event);
        (void)pthread_join(other, NULL);
    }
    return 0;
}

/* Each step allocates its batch, copies it there, and frees it at the end. */
static int batches(void)
{
    static float input[ELEMENTS];
    CUdeviceptr tensors[KEPT];

    start();
    for (int i = 0; i < KEPT; i++) {
        tensors[i] = allocate(TENSOR_BYTES);
    }
    for (int number = 0; number < STEPS; number++) {
        CUdeviceptr batch = allocate(TENSOR_BYTES);

        for (int i = 0; i < ELEMENTS; i++) {
            input[i] = (float)((i + number) % 50) / 3.0f;
        }
        CU(cuMemcpyHtoD_v2, batch, input, TENSOR_BYTES);
        for (int i = 0; i < KEPT; i++) {
            scale(tensors[i], i == 0 ? batch : tensors[i - 1], 0.5f, NULL);
        }
        for (int i = KEPT - 1; i > 0; i--) {
            add(tensors[i - 1], tensors[i], NULL);
        }
        add(tensors[0], batch, NULL);
        CU(cuMemFree_v2, batch);
    }
    for (int i = 0; i < KEPT; i++) {
        print_tensor("tensor", tensors[i]);
    }
    return 0;
}

/* Managed memory is used in order with the rest, on whatever stream. */
static int managed(void)
{
    const struct location location = {LOCATION_DEVICE, 0};
    CUdeviceptr address = 0;
    size_t bytes = TENSOR_BYTES;
    size_t first = 0;

    start();
    CU(cuMemAllocManaged, &address, bytes, 1);
    CU(cuStreamAttachMemAsync, streams[0], address, bytes, 4);
    CU(cuMemPrefetchAsync_v2, address, bytes, location, 0, streams[1]);
    CU(cuMemPrefetchBatchAsync, &address, &bytes, 1, (struct location *)&location, &first, 1, 0,
       streams[0]);
    CU(cuMemDiscardBatchAsync, &address, &bytes, 1, 0, streams[1]);
    CU(cuMemDiscardAndPrefetchBatchAsync, &address, &bytes, 1, (struct location *)&location, &first,
       1, 0, streams[0]);
    printf("managed\n");
    return 0;
}

/* The child of a fork is left alone. */
static int forked(void)
{
    CUdeviceptr tensor;
    int status = 0;
    pid_t child;

    start();
    tensor = allocate(TENSOR_BYTES);
    CU(cuMemsetD8_v2, tensor, 9, TENSOR_BYTES);
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        size_t total = 0;

        (void)cu.cuMemGetInfo_v2(NULL, &total); /* to the driver, which knows about forks */
        _exit(7);
    }
    (void)waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    print_tensor("tensor", tensor);
    return 0;
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";

    return strcmp(part, "train") == 0     ? train()
           : strcmp(part, "copies") == 0  ? copies()
           : strcmp(part, "queries") == 0 ? queries()
           : strcmp(part, "pools") == 0   ? pools(argc > 2)
           : strcmp(part, "open") == 0    ? open_kernel(argc > 2 ? atoi(argv[2]) : 2)
           : strcmp(part, "spin") == 0    ? spin()
           : strcmp(part, "forms") == 0   ? forms()
           : strcmp(part, "reload") == 0  ? reload()
           : strcmp(part, "forked") == 0  ? forked()
           : strcmp(part, "managed") == 0 ? managed()
           : strcmp(part, "steps") == 0   ? steps(argc > 2 ? atoi(argv[2]) : STEPS)
           : strcmp(part, "batches") == 0 ? batches()
           : strcmp(part, "ranges") == 0  ? (load_nvtx(argc > 2), steps(STEPS))
           : strcmp(part, "threads") == 0 ? several()
           : strcmp(part, "boxes") == 0   ? boxes()
           : strcmp(part, "waits") == 0   ? waits()
           : strcmp(part, "beside") == 0  ? beside(argc > 2)
                                          : 2;
}
