/*
 * The functions that are exported under the names of the driver, cuBLAS and NCCL. One of the driver
 * decides by its caller whether the call is taken (driver_calls.h) or goes to the real driver as it
 * is.
 */
#include "shim/core/core.h"
#include "shim/core/outside.h"
#include "shim/driver/caller.h"
#include "shim/driver/driver.h"
#include "shim/driver/loader.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"
#include "shim/driver/symbol.h"
#include "shim/libraries/blas.h"

#include <stdbool.h>

/* Whose calls are ours, see driver_calls.h. */
struct whose {
    bool is_program_only;
    size_t library_bytes; /* that a call of a library takes from the driver, to: */
    const CUdeviceptr *place;
    CUdeviceptr freed;
};
#define ALL ((struct whose){.is_program_only = false})
#define PROGRAM ((struct whose){.is_program_only = true})
#define PROGRAM_BYTES(bytes) ((struct whose){true, (bytes), address, 0})
#define FREES ((struct whose){.freed = address})

/* Before and after a call of the driver that is not ours: what a library allocates is taken from
   the budget, and given back when it is freed. */
static bool is_library_memory(const struct whose *who, enum caller caller)
{
    return who->library_bytes != 0 && caller == CALLER_LIBRARY;
}

static CUresult prepare_call(const struct whose *who, enum caller caller, const char *name)
{
    CUresult result = is_library_memory(who, caller)
                          ? outside_take(caller, name, who->library_bytes)
                          : DRIVER_SUCCESS;

    /* Without its workspace, a library may succeed in another way, with other bits. */
    if (result != DRIVER_SUCCESS) {
        core_note_undone();
    }
    return result;
}

static CUresult account_call(const struct whose *who, enum caller caller, const char *name,
                             CUresult result)
{
    if (who->freed != 0) {
        return outside_freed(caller, result, OUTSIDE_ADDRESS, who->freed);
    }
    if (!is_library_memory(who, caller)) {
        return result;
    }
    outside_note(caller, result, OUTSIDE_ADDRESS, result == DRIVER_SUCCESS ? *who->place : 0,
                 who->library_bytes);
    return settings_get()->is_managed ? outside_count_call(result, name, who->library_bytes)
                                      : result;
}

static inline CUstream per_thread(CUstream stream)
{
    return stream != NULL ? stream : STREAM_PER_THREAD;
}

/* A copy of the configuration, on the stream that the variant means. */
static inline const struct launch_config *per_thread_config(const struct launch_config *config,
                                                            struct launch_config *copy)
{
    if (config == NULL) {
        return NULL;
    }
    *copy = *config;
    copy->stream = per_thread(config->stream);
    return copy;
}

#define EXPORT(symbol, name, takers, parameters, arguments)                                  \
    DRIVER_EXPORT CUresult symbol parameters;                                                \
    CUresult symbol parameters                                                               \
    {                                                                                        \
        static const char by_library[] = #name " by libraries of CUDA";                      \
        const struct whose who = takers;                                                     \
        enum caller caller = CALLER();                                                       \
        bool is_taken = core_takes(caller, who.is_program_only);                             \
        CUresult result;                                                                     \
                                                                                             \
        if (is_taken) {                                                                      \
            result = on_##name arguments;                                                    \
            return who.freed == 0 ? result : account_call(&who, caller, by_library, result); \
        }                                                                                    \
        result = prepare_call(&who, caller, by_library);                                     \
        return result != DRIVER_SUCCESS                                                      \
                   ? result                                                                  \
                   : account_call(&who, caller, by_library, real_calls()->symbol arguments); \
    }
#define EXPORT_ONE(name, takers, parameters, arguments) \
    EXPORT(name, name, takers, parameters, arguments)
#define EXPORT_PLAIN(name, suffix, takers, parameters, arguments) \
    EXPORT(name, name, takers, parameters, arguments)
#define EXPORT_PER_THREAD(name, suffix, takers, parameters, arguments) \
    EXPORT(name##suffix, name, takers, parameters, arguments)

DRIVER_WRAPPED(EXPORT_ONE)

#define STREAM(stream) (stream)
#define CONFIG(config) (config)
DRIVER_WRAPPED_TWICE(EXPORT_PLAIN)
#undef STREAM
#undef CONFIG

/* The driver's own variant gets what the caller has given. */
#define STREAM(stream) (is_taken ? per_thread(stream) : (stream))
#define CONFIG(config) \
    (is_taken ? per_thread_config(config, &(struct launch_config){.stream = NULL}) : (config))
DRIVER_WRAPPED_TWICE(EXPORT_PER_THREAD)

DRIVER_EXPORT CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize(void)
{
    return core_takes(CALLER(), false) ? on_cuCtxSynchronize() : real_calls()->cuCtxSynchronize();
}

/* One device per process: the first whose primary context the program gets. */

typedef CUresult (*retain_function)(CUcontext *, CUdevice);

DRIVER_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);

enum { NO_DEVICE = -1 };

static CUdevice first_device = NO_DEVICE; /* whose context was given; atomic: set once */

/* Whether the process has a device other than this one. */
static bool is_second(CUdevice chosen, CUdevice device)
{
    if (chosen == NO_DEVICE || chosen == device) {
        return false;
    }
    symbol_note_refusal("a second device");
    log_line("refused: device %d beside device %d; a program under a budget has one device", device,
             chosen);
    return true;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    retain_function retain = (retain_function)real_find("cuDevicePrimaryCtxRetain");
    enum caller caller = CALLER();
    CUdevice other = NO_DEVICE;
    CUresult result;

    if (retain == NULL) {
        return DRIVER_NO_DEVICE;
    }
    if (caller == CALLER_OWN || caller == CALLER_DRIVER) {
        return retain(context, device);
    }
    if (settings_get()->is_managed &&
        is_second(__atomic_load_n(&first_device, __ATOMIC_ACQUIRE), device)) {
        return DRIVER_NOT_SUPPORTED;
    }
    result = retain(context, device);
    if (result == DRIVER_SUCCESS &&
        !__atomic_compare_exchange_n(&first_device, &other, device, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        settings_get()->is_managed && is_second(other, device)) {
        return DRIVER_NOT_SUPPORTED;
    }
    return result;
}

/*
 * The functions that are exported under the names of cuBLAS. A program that is linked with the
 * library reaches these first, since this library is preloaded. Calls between cuBLAS and cuBLASLt
 * come here, too, and are left alone.
 */

#define EXPORT_BLAS(name, parameters, arguments)                                 \
    DRIVER_EXPORT cublasStatus_t name parameters;                                \
    cublasStatus_t name parameters                                               \
    {                                                                            \
        return core_takes(CALLER_PROGRAM, false) ? on_##name arguments           \
                                                 : blas_calls()->name arguments; \
    }

BLAS_WRAPPED(EXPORT_BLAS)

/*
 * The functions that are exported under the names of NCCL, in the same way: a communicator with
 * other ranks is refused. Its kernels wait for those of other processes and devices, and read
 * memory that their peers have mapped, which would have to stay where it is. A communicator of one
 * rank is left alone: its calls are copies, or nothing.
 */

static int refuse_ranks(const char *name, int ranks)
{
    symbol_note_refusal("NCCL with more than one rank");
    log_line("refused: %s with %d ranks, which programs cannot use under a budget "
             "(docs/unmodified.md)",
             name, ranks);
    return NCCL_INVALID_USAGE;
}

static int fail_without_nccl(void)
{
    log_line("the program calls a function of NCCL, and no library that has it is loaded");
    return NCCL_SYSTEM_ERROR;
}

#define EXPORT_NCCL(name, parameters, arguments, ranks)                               \
    DRIVER_EXPORT int name parameters;                                                \
    int name parameters                                                               \
    {                                                                                 \
        int(*function) parameters = (int(*) parameters)loader_next("libnccl", #name); \
                                                                                      \
        if ((ranks) > 1 && core_takes(CALLER_PROGRAM, false)) {                       \
            return refuse_ranks(#name, (ranks));                                      \
        }                                                                             \
        return function != NULL ? function arguments : fail_without_nccl();           \
    }
NCCL_CALLS(EXPORT_NCCL)
