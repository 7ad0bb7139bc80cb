/* Device code on the test driver: images, functions, variables and launches, by the driver's calls
   and by what nvcc's code calls of the runtime. */
#include "tests/ptx/include/cudart_types.h"
#include "tests/support/suite.h"

#include <string.h>

/* Stores base + 3 * thread, and adds what the variable has. */
static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .const .align 4 .u32 limit = 4;\n"
                           ".visible .global .attribute(.managed) .align 4 .u32 extra[2];\n"
                           ".visible .entry fill(.param .u64 to, .param .u32 base)\n"
                           "{\n"
                           "    .reg .pred %p;\n"
                           "    .reg .b32 %r<6>;\n"
                           "    .reg .b64 %rd<3>;\n"
                           "    ld.param.u64 %rd1, [to];\n"
                           "    ld.param.u32 %r1, [base];\n"
                           "    mov.u32 %r2, %tid.x;\n"
                           "    ld.const.u32 %r3, [limit];\n"
                           "    setp.ge.u32 %p, %r2, %r3;\n"
                           "    @%p bra done;\n"
                           "    mad.lo.s32 %r4, %r2, 3, %r1;\n"
                           "    ld.global.u32 %r5, [extra+4];\n"
                           "    add.s32 %r4, %r4, %r5;\n"
                           "    mul.wide.u32 %rd2, %r2, 4;\n"
                           "    add.s64 %rd1, %rd1, %rd2;\n"
                           "    st.global.u32 [%rd1], %r4;\n"
                           "done:\n"
                           "    ret;\n"
                           "}\n";

enum { COUNT = 8 };

static CUmodule module;
static CUfunction fill;
static CUdeviceptr buffer;

static void start(void)
{
    CUcontext context;

    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleLoadData(&module, text), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc_v2(&buffer, COUNT * 4), CUDA_SUCCESS);
}

/* Whether the buffer has base + 3 * index in its first `count` words, and else zero. */
static void check(unsigned base, unsigned count)
{
    unsigned words[COUNT];

    ck_assert_int_eq(cuMemcpyDtoH_v2(words, buffer, sizeof(words)), CUDA_SUCCESS);
    for (unsigned i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(words[i], i < count ? base + 3 * i : 0);
    }
}

static CUresult launch(CUfunction function, CUdeviceptr to, unsigned base, unsigned threads)
{
    void *parameters[] = {&to, &base};

    return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
}

START_TEST(launches_take_parameters_in_both_forms)
{
    struct {
        CUdeviceptr to;
        unsigned base;
    } packed;
    size_t bytes = sizeof(packed);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};

    start();
    ck_assert_int_eq(launch(fill, buffer, 5, 8), CUDA_SUCCESS);
    check(5, 4);
    packed.to = buffer;
    packed.base = 9;
    ck_assert_int_eq(cuLaunchKernel_ptsz(fill, 1, 1, 1, 3, 1, 1, 0, NULL, NULL, extra),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamSynchronize_ptsz(NULL), CUDA_SUCCESS);
    ck_assert_uint_eq(((unsigned *)(uintptr_t)buffer)[2], 15);
    ck_assert_uint_eq(((unsigned *)(uintptr_t)buffer)[3], 14);
    bytes = 4;
    ck_assert_int_eq(cuLaunchKernel(fill, 1, 1, 1, 3, 1, 1, 0, NULL, NULL, extra),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(launch(fill, buffer, 5, 0), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(launch(fill, buffer, 5, 1025), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(launch(NULL, buffer, 5, 1), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(shared_memory_has_a_limit_that_can_be_raised)
{
    void *parameters[] = {&buffer, &(unsigned){1}};

    start();
    ck_assert_int_eq(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 100 << 10, NULL, parameters, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(
        cuFuncSetAttribute(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10),
        CUDA_SUCCESS);
    ck_assert_int_eq(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 100 << 10, NULL, parameters, NULL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(
        cuFuncSetAttribute(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300 << 10),
        CUDA_ERROR_INVALID_VALUE);
    check(1, 1);
}
END_TEST

START_TEST(functions_and_variables_are_described)
{
    const unsigned extra[] = {0, 100};
    const unsigned limit = 2;
    CUdeviceptr address;
    CUdeviceptr base;
    const char *name;
    size_t offset;
    size_t bytes;
    int value;

    start();
    ck_assert_int_eq(cuFuncGetName(&name, fill), CUDA_SUCCESS);
    ck_assert_str_eq(name, "fill");
    ck_assert_int_eq(cuFuncGetParamInfo(fill, 1, &offset, &bytes), CUDA_SUCCESS);
    ck_assert_uint_eq(offset, 8);
    ck_assert_uint_eq(bytes, 4);
    ck_assert_int_eq(cuFuncGetParamInfo(fill, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fill),
                     CUDA_SUCCESS);
    ck_assert_int_eq(value, 1024);
    ck_assert_int_eq(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, fill, 1024, 0),
                     CUDA_SUCCESS);
    ck_assert_int_eq(value, 2);
    ck_assert_int_eq(cuModuleGetFunction(&fill, module, "none"), CUDA_ERROR_NOT_FOUND);
    ck_assert_int_eq(cuModuleGetGlobal_v2(&address, &bytes, module, "extra"), CUDA_SUCCESS);
    ck_assert_uint_eq(bytes, 8);
    ck_assert_int_eq(cuMemcpyHtoD_v2(address, extra, 8), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyHtoD_v2(address, extra, 9), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuModuleGetGlobal_v2(&base, NULL, module, "limit"), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyHtoD_v2(base, &limit, 4), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
    ck_assert_int_eq(launch(fill, buffer, 1, 8), CUDA_SUCCESS);
    check(101, 2);
    ck_assert_int_eq(cuModuleUnload(module), CUDA_SUCCESS);
}
END_TEST

START_TEST(a_stray_address_is_an_error_that_lasts)
{
    start();
    ck_assert_int_eq(launch(fill, buffer + (UINT64_C(1) << 30), 1, 1), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_int_eq(cuMemAlloc_v2(&buffer, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_int_eq(launch(fill, buffer, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(images_that_cannot_run_are_refused)
{
    static const unsigned char elf[64] = {0x7f, 'E', 'L', 'F'};

    start();
    ck_assert_int_eq(cuModuleLoadData(&module, ".version 7.0\nnonsense"), CUDA_ERROR_INVALID_PTX);
    ck_assert_int_eq(cuModuleLoadData(&module, elf), CUDA_ERROR_NO_BINARY_FOR_GPU);
    ck_assert_int_eq(cuModuleLoad(&module, "/nowhere.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}
END_TEST

/* What a fat binary with two images of PTX begins with, and one of its images. */
struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};
struct fat_image {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t packed, unused[2], architecture;
    uint64_t more[2], flags, unpacked;
    char text[sizeof(text)];
} __attribute__((packed));

START_TEST(the_newest_fitting_image_of_a_fat_binary_is_taken)
{
    static struct {
        struct fat_header header;
        struct fat_image images[3];
    } __attribute__((packed))
    fat = {.header = {0xba55ed50, 1, sizeof(struct fat_header), 3 * sizeof(struct fat_image)}};
    const unsigned architectures[] = {80, 89, 100};
    struct {
        uint32_t magic, version;
        const void *data;
    } wrapper = {0x466243b1, 1, &fat};
    CUlibrary library;
    CUkernel kernel;

    for (int i = 0; i < 3; i++) {
        struct fat_image *image = &fat.images[i];

        image->kind = 1;
        image->header_bytes = offsetof(struct fat_image, text);
        image->bytes = sizeof(text);
        image->architecture = architectures[i];
        memcpy(image->text, text, sizeof(text));
    }
    /* Only the second has a kernel of that name. */
    memcpy(strstr(fat.images[1].text, "fill"), "pick", 4);
    start();
    ck_assert_int_eq(cuLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuLibraryGetKernel(&kernel, library, "pick"), CUDA_SUCCESS);
    /* A launch takes a kernel for a function. */
    ck_assert_int_eq(launch((CUfunction)kernel, buffer, 7, 1), CUDA_SUCCESS);
    check(7, 1);
    ck_assert_int_eq(cuLibraryUnload(library), CUDA_SUCCESS);
    fat.images[0].kind = fat.images[1].kind = fat.images[2].kind = 2;
    ck_assert_int_eq(cuLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
}
END_TEST

/* What nvcc's code calls. */
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *thread, void *block, void *block_size,
                            void *grid_size, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_external,
                       size_t bytes, int is_constant, int is_global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int is_external, size_t bytes, int is_constant, int is_global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream);

static char host_fill;
static char host_extra;
static char host_missing;
static unsigned *host_managed;

START_TEST(the_runtime_runs_what_is_registered)
{
    const dim3 one = {1, 1, 1};
    const dim3 many = {COUNT, 1, 1};
    const unsigned value = 50;
    unsigned base = 2;
    unsigned words[COUNT];
    struct cudaFuncAttributes attributes;
    struct cudaPointerAttributes pointer;
    cudaKernel_t kernel;
    void *memory;
    void *address;
    void *arguments[] = {&memory, &base};
    dim3 grid;
    dim3 block;
    size_t shared_bytes;
    cudaStream_t stream;
    void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)text);

    __cudaRegisterFunction(handle, &host_fill, NULL, "fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, &host_missing, NULL, "none", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, &host_extra, NULL, "extra", 0, 8, 0, 0);
    __cudaRegisterManagedVar(handle, (void **)&host_managed, NULL, "extra", 0, 8, 0, 0);
    ck_assert_int_eq(cudaMalloc(&memory, sizeof(words)), cudaSuccess);
    ck_assert_int_eq(cudaMemcpyToSymbol(&host_extra, &value, 4, 4, cudaMemcpyHostToDevice),
                     cudaSuccess);
    ck_assert_int_eq(cudaMemcpyToSymbol(&host_extra, &value, 4, 8, cudaMemcpyHostToDevice),
                     cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpyToSymbol(&value, &value, 4, 0, cudaMemcpyHostToDevice),
                     cudaErrorInvalidSymbol);
    ck_assert_int_eq(cudaGetSymbolAddress(&address, &host_extra), cudaSuccess);
    ck_assert_int_eq(cudaPointerGetAttributes(&pointer, address), cudaSuccess);
    ck_assert_int_eq(pointer.type, cudaMemoryTypeDevice);
    ck_assert_uint_eq(__cudaPushCallConfiguration(one, many, 16, NULL), 0);
    ck_assert_int_eq(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream),
                     cudaSuccess);
    ck_assert_uint_eq(block.x, COUNT);
    ck_assert_int_eq(__cudaGetKernel(&kernel, &host_fill), cudaSuccess);
    ck_assert_int_eq(__cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream),
                     cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(words, memory, sizeof(words), cudaMemcpyDeviceToHost), cudaSuccess);
    ck_assert_uint_eq(words[3], 61);
    ck_assert_uint_eq(words[4], 0);
    ck_assert_int_eq(__cudaInitModule(handle), 1);
    ck_assert_ptr_eq(host_managed, address);
    ck_assert_uint_eq(host_managed[1], 50);
    host_managed[1] = 70;
    ck_assert_int_eq(__cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream),
                     cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(words, memory, sizeof(words), cudaMemcpyDeviceToHost), cudaSuccess);
    ck_assert_uint_eq(words[3], 81);
    ck_assert_int_eq(cudaFuncGetAttributes(&attributes, &host_fill), cudaSuccess);
    ck_assert_int_eq(attributes.maxThreadsPerBlock, 1024);
    ck_assert_int_eq(cudaLaunchKernel(&host_fill, one, (dim3){2000, 1, 1}, arguments, 0, NULL),
                     cudaErrorInvalidConfiguration);
    ck_assert_int_eq(cudaLaunchKernel(&host_missing, one, one, arguments, 0, NULL),
                     cudaErrorInvalidDeviceFunction);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
    ck_assert_int_eq(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream),
                     cudaErrorMissingConfiguration);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device code on the test driver");
    TCase *tcase = tcase_create("code");

    tcase_add_test(tcase, launches_take_parameters_in_both_forms);
    tcase_add_test(tcase, shared_memory_has_a_limit_that_can_be_raised);
    tcase_add_test(tcase, functions_and_variables_are_described);
    tcase_add_test(tcase, a_stray_address_is_an_error_that_lasts);
    tcase_add_test(tcase, images_that_cannot_run_are_refused);
    tcase_add_test(tcase, the_newest_fitting_image_of_a_fat_binary_is_taken);
    tcase_add_test(tcase, the_runtime_runs_what_is_registered);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
