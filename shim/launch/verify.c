/*
 * Watching launches, see launch.h. A kernel of our own makes a checksum of each piece of memory,
 * before and after; a table of the driver's own memory says where the pieces are.
 */
#include "shim/launch/launch.h"

#include "shim/core/alloc.h"
#include "shim/core/core.h"
#include "shim/core/outside.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"

#include "base/array.h"
#include "runtime/api/describe.h"

#include <inttypes.h>
#include <pthread.h>

/* Launches of a kernel that are watched; bytes of a piece, which one block of threads reads. */
enum { LAUNCHES = 2, PIECE_BYTES = 256 << 10, THREADS = 256 };

/* Adds up a number per byte, which mixes the byte with its place. */
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry capuchin_checksum(.param .u64 table)\n"
                           "{\n"
                           "    .reg .pred %p;\n"
                           "    .reg .b32 %r<4>;\n"
                           "    .reg .b64 %rd<12>;\n"
                           "    ld.param.u64 %rd0, [table];\n"
                           "    cvta.to.global.u64 %rd0, %rd0;\n"
                           "    mov.u32 %r0, %ctaid.x;\n"
                           "    mul.wide.u32 %rd1, %r0, 24;\n"
                           "    add.s64 %rd0, %rd0, %rd1;\n"
                           "    ld.global.u64 %rd2, [%rd0];\n"
                           "    ld.global.u64 %rd3, [%rd0+8];\n"
                           "    cvta.to.global.u64 %rd2, %rd2;\n"
                           "    mov.u32 %r1, %tid.x;\n"
                           "    mov.u32 %r2, %ntid.x;\n"
                           "    cvt.u64.u32 %rd4, %r1;\n"
                           "    cvt.u64.u32 %rd5, %r2;\n"
                           "    mov.u64 %rd6, 0;\n"
                           "again:\n"
                           "    setp.ge.u64 %p, %rd4, %rd3;\n"
                           "    @%p bra done;\n"
                           "    add.s64 %rd7, %rd2, %rd4;\n"
                           "    ld.global.u8 %r3, [%rd7];\n"
                           "    cvt.u64.u32 %rd8, %r3;\n"
                           "    shl.b64 %rd9, %rd4, 8;\n"
                           "    add.s64 %rd9, %rd9, %rd8;\n"
                           "    mul.lo.s64 %rd9, %rd9, 0x9E3779B97F4A7C15;\n"
                           "    shr.u64 %rd10, %rd9, 32;\n"
                           "    xor.b64 %rd9, %rd9, %rd10;\n"
                           "    mul.lo.s64 %rd9, %rd9, 0xD6E8FEB86659FD93;\n"
                           "    add.s64 %rd6, %rd6, %rd9;\n"
                           "    add.s64 %rd4, %rd4, %rd5;\n"
                           "    bra again;\n"
                           "done:\n"
                           "    red.global.add.u64 [%rd0+16], %rd6;\n"
                           "    ret;\n"
                           "}\n";

struct piece {
    uint64_t address;
    uint64_t bytes;
    uint64_t sum;
};

/* Guarded by the core's lock, but for the function. */
static struct {
    CUfunction function; /* atomic; NULL: nothing is watched */
    struct piece *before;
    struct piece *after;
    size_t count, before_capacity, after_capacity;
    CUdeviceptr table; /* on the device */
    size_t table_count;
    uint64_t watched, failed;
} verify;

static void load_kernel(void)
{
    const struct real_calls *real = real_calls();
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUresult result;

    if (!settings_get()->is_strict || settings_get()->mode == CAPU_MODE_GUIDED) {
        return;
    }
    result = real->cuModuleLoadData(&module, text);
    if (result == DRIVER_SUCCESS) {
        result = real->cuModuleGetFunction(&function, module, "capuchin_checksum");
    }
    if (result != DRIVER_SUCCESS) {
        log_line("--strict: the driver does not load the kernel for it: error %d", result);
        return;
    }
    __atomic_store_n(&verify.function, function, __ATOMIC_RELEASE);
}

void verify_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (core_is_open() && !core_is_host()) {
        (void)pthread_once(&once, load_kernel);
    }
}

bool verify_wait(const struct code_kernel *kernel)
{
    return __atomic_load_n(&verify.function, __ATOMIC_ACQUIRE) != NULL && kernel->reason == NULL &&
           kernel->launch_count < LAUNCHES && capu_synchronize(core_context()) == CAPU_OK;
}

/* The pieces. */

static bool add_piece(uint64_t address, uint64_t end)
{
    while (address < end) {
        uint64_t bytes = end - address < PIECE_BYTES ? end - address : PIECE_BYTES;

        if (!array_reserve(&verify.before, &verify.before_capacity, verify.count + 1,
                           sizeof(verify.before[0])) ||
            !array_reserve(&verify.after, &verify.after_capacity, verify.count + 1,
                           sizeof(verify.after[0]))) {
            return false;
        }
        verify.before[verify.count++] = (struct piece){address, bytes, 0};
        address += bytes;
    }
    return true;
}

/* Adds what of a tensor may not be stored to. */
static bool add_rest(const struct operands *operands, uint64_t address, uint64_t end)
{
    bool is_added = true;

    while (address < end && is_added) {
        uint64_t next = end;
        uint64_t stored = address;

        for (size_t i = 0; i < operands->count; i++) {
            uint64_t first = (uintptr_t)operands->list[i].address;
            uint64_t last = first + operands->list[i].bytes;

            if (operands->list[i].role == CAPU_READ || last <= address) {
                continue;
            }
            if (first <= address) {
                stored = last > stored ? last : stored;
            } else if (first < next) {
                next = first;
            }
        }
        if (stored > address) {
            address = stored;
        } else {
            is_added = add_piece(address, next);
            address = next;
        }
    }
    return is_added;
}

static bool add_all(const struct operands *operands)
{
    size_t count;
    const struct allocation *list = alloc_list(&count);
    bool is_added = true;

    verify.count = 0;
    for (size_t i = 0; i < count; i++) {
        struct describe_range range = {list[i].address, list[i].address + list[i].bytes};
        capu_tensor_state state;

        while (is_added && describe_next(core_context(), &range, &state)) {
            is_added =
                !state.is_resident || add_rest(operands, (uintptr_t)state.address, range.address);
        }
    }
    return is_added;
}

/* Checksums. */

static CUresult reserve_table(void)
{
    const struct real_calls *real = real_calls();
    CUresult result;

    if (verify.count <= verify.table_count) {
        return DRIVER_SUCCESS;
    }
    if (verify.table_count > 0) {
        verify.table_count = 0;
        (void)real->cuMemFree_v2(verify.table);
    }
    result = outside_count_call(
        real->cuMemAlloc_v2(&verify.table, 2 * verify.count * sizeof(struct piece)),
        "cuMemAlloc_v2 for --strict", 2 * verify.count * sizeof(struct piece));
    if (result == DRIVER_SUCCESS) {
        verify.table_count = 2 * verify.count;
    }
    return result;
}

/* The sums of all pieces of `from`, now; waits. */
static CUresult sum_pieces(const struct piece *from, struct piece *to)
{
    const struct real_calls *real = real_calls();
    CUstream stream = core_stream(NULL);
    size_t bytes = verify.count * sizeof(*from);
    void *parameters[] = {&verify.table};
    CUresult result = reserve_table();

    if (verify.count == 0 || result != DRIVER_SUCCESS) {
        return result;
    }
    result = real->cuMemcpyHtoDAsync_v2(verify.table, from, bytes, stream);
    if (result == DRIVER_SUCCESS) {
        result = real->cuLaunchKernel(verify.function, (unsigned)verify.count, 1, 1, THREADS, 1, 1,
                                      0, stream, parameters, NULL);
    }
    if (result == DRIVER_SUCCESS) {
        result = real->cuMemcpyDtoHAsync_v2(to, verify.table, bytes, stream);
    }
    return result == DRIVER_SUCCESS ? real->cuStreamSynchronize(stream) : result;
}

bool verify_begin(const struct operands *operands)
{
    CUresult result = add_all(operands) ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;

    if (result == DRIVER_SUCCESS) {
        result = sum_pieces(verify.before, verify.before);
    }
    if (result != DRIVER_SUCCESS) {
        log_line("--strict: a launch cannot be watched: error %d", result);
    }
    return result == DRIVER_SUCCESS;
}

static CUresult compare_sums(const struct code_kernel *kernel)
{
    CUresult result;

    for (size_t i = 0; i < verify.count; i++) {
        verify.after[i] = (struct piece){verify.before[i].address, verify.before[i].bytes, 0};
    }
    result = sum_pieces(verify.after, verify.after);
    for (size_t i = 0; i < verify.count && result == DRIVER_SUCCESS; i++) {
        const struct piece *piece = &verify.before[i];

        if (piece->sum != verify.after[i].sum) {
            const struct allocation *allocation = alloc_find(piece->address);

            log_line("--strict: the kernel %s has changed memory that it was not expected to store "
                     "to, in the %" PRIu64 " bytes at 0x%" PRIx64 " (allocation of %" PRIu64
                     " bytes at 0x%" PRIx64 "): the results of this run cannot be trusted",
                     kernel->name, piece->bytes, piece->address,
                     allocation != NULL ? allocation->bytes : 0,
                     allocation != NULL ? allocation->address : 0);
            verify.failed++;
            return DRIVER_LAUNCH_FAILED;
        }
    }
    return result;
}

CUresult verify_end(const struct code_kernel *kernel)
{
    verify.watched++;
    return compare_sums(kernel);
}

void verify_figures(uint64_t *watched, uint64_t *failed)
{
    *watched = verify.watched;
    *failed = verify.failed;
}
