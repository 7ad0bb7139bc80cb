/* The context behind the shim, see core.h. */
#define _GNU_SOURCE /* dladdr */
#include "shim/core/core.h"

#include "shim/core/capture.h"
#include "shim/core/code.h"
#include "shim/core/cut.h"
#include "shim/core/floor.h"
#include "shim/core/iteration.h"
#include "shim/core/operands.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"

#include "base/environment.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guarded by the lock, but for what says otherwise. */
static struct {
    pthread_mutex_t lock;
    capu_context *context;
    bool has_failed; /* the context could not be created */
    bool is_host;    /* device; constant once the context is there */
    uint64_t full_budget;
    uint64_t undone; /* atomic */
    CUstream stream; /* atomic: is_open is set after it */
    bool is_open;    /* atomic */
    bool is_child;   /* atomic: of the process that created the context */
    void (*begun)(const char *name, const capu_operand *operands, size_t count);
    void (*ended)(void); /* both constant once there is a context */
    bool (*make_room)(void);
} core = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local unsigned guard_depth;
static _Thread_local bool is_inside; /* this thread has the lock */

static void note_child(void)
{
    __atomic_store_n(&core.is_child, true, __ATOMIC_RELEASE);
}

bool core_is_parent(void)
{
    return !__atomic_load_n(&core.is_child, __ATOMIC_ACQUIRE);
}

bool core_takes(enum caller caller, bool is_program_only)
{
    return settings_get()->is_managed &&
           (caller == CALLER_PROGRAM || (caller == CALLER_LIBRARY && !is_program_only)) &&
           guard_depth == 0 && core_is_parent();
}

CUstream core_stream(CUstream stream)
{
    return __atomic_load_n(&core.is_open, __ATOMIC_ACQUIRE)
               ? __atomic_load_n(&core.stream, __ATOMIC_ACQUIRE)
               : stream;
}

void core_on_lack(bool (*make_room)(void))
{
    core.make_room = make_room;
}

void core_guard_begin(void)
{
    guard_depth++;
}

void core_guard_end(void)
{
    guard_depth--;
}

/* The plug-in with the cuda device is in the folder above this library's. */
static void find_plugin(char folder[PATH_MAX])
{
    Dl_info info;
    char *slash;

    folder[0] = '\0';
    if (environment_path("CAPUCHIN_PLUGIN_FOLDER") == NULL && dladdr(&core, &info) != 0 &&
        info.dli_fname != NULL && strlen(info.dli_fname) < PATH_MAX - 4) {
        strcpy(folder, info.dli_fname);
        slash = strrchr(folder, '/');
        strcpy(slash != NULL ? slash : folder, slash != NULL ? "/.." : "..");
    }
}

static uint64_t budget_of(const struct settings *settings, CUdevice device)
{
    size_t total = 0;

    if (settings->budget_share > 0.0 &&
        real_calls()->cuDeviceTotalMem_v2(&total, device) == DRIVER_SUCCESS) {
        return (uint64_t)((double)total * settings->budget_share);
    }
    return settings->budget_bytes;
}

static capu_status create_context(CUdevice device)
{
    const struct settings *settings = settings_get();
    char error[512] = "";
    char folder[PATH_MAX];
    char name[32];
    capu_config config = CAPU_CONFIG_INIT;
    capu_status status;

    snprintf(name, sizeof(name), "cuda:%d", device);
    find_plugin(folder);
    config.device = getenv("CAPUCHIN_DEVICE") == NULL ? name : NULL;
    (void)capu_config_set(&config, "plugin_folder", folder);
    config.mode = settings->mode;
    config.strict = settings->is_strict;
    /* Programs read memory that they never wrote. */
    (void)capu_config_set(&config, "clear_fresh", "1");
    /* Iterations are guessed: what one does not read another one may. */
    (void)capu_config_set(&config, "keep_contents", "1");
    config.report_path = settings->iterations_path;
    config.budget_bytes = budget_of(settings, device);
    config.host_budget_bytes = settings->host_bytes;
    config.error = error;
    config.error_bytes = sizeof(error);
    status = capu_context_create(&config, &core.context);
    if (status != CAPU_OK) {
        log_line("the program cannot be put under a budget: %s: %s", capu_status_text(status),
                 error);
    }
    return status;
}

CUresult core_need_device(void)
{
    const struct real_calls *real = real_calls();
    CUcontext context = NULL;
    CUresult result = real->cuInit(0);

    if (result == DRIVER_SUCCESS) {
        result = real->cuCtxGetCurrent(&context);
    }
    if (result != DRIVER_SUCCESS || context != NULL) {
        return result;
    }
    result = real->cuDevicePrimaryCtxRetain(&context, 0);
    return result == DRIVER_SUCCESS ? real->cuCtxSetCurrent(context) : result;
}

unsigned core_architecture(CUdevice device)
{
    const struct real_calls *real = real_calls();
    int major = 0;
    int minor = 0;

    (void)real->cuDeviceGetAttribute(&major, DRIVER_CAPABILITY_MAJOR, device);
    (void)real->cuDeviceGetAttribute(&minor, DRIVER_CAPABILITY_MINOR, device);
    return (unsigned)(10 * major + minor);
}

static CUresult open_core(void)
{
    const struct real_calls *real = real_calls();
    CUstream stream;
    CUdevice device = 0;
    CUresult result = real->cuCtxGetDevice(&device);

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    /* What was enqueued before goes first. */
    result = real->cuCtxSynchronize();
    if (result != DRIVER_SUCCESS) {
        return result;
    }
    if (settings_get()->is_wrong || create_context(device) != CAPU_OK) {
        core.has_failed = true;
        return DRIVER_NOT_SUPPORTED;
    }
    (void)pthread_atfork(NULL, NULL, note_child);
    code_settle(core_architecture(device));
    core.full_budget = capu_context_config(core.context)->budget_bytes;
    core.is_host = strcmp(capu_context_device(core.context), "cuda") != 0;
    stream = core.is_host ? NULL : (CUstream)capu_context_stream(core.context);
    if (core.is_host) {
        result = real->cuStreamCreate(&stream, STREAM_NON_BLOCKING);
    }
    if (result != DRIVER_SUCCESS) {
        core.has_failed = true;
        return result;
    }
    __atomic_store_n(&core.stream, stream, __ATOMIC_RELEASE);
    __atomic_store_n(&core.is_open, true, __ATOMIC_RELEASE);
    return DRIVER_SUCCESS;
}

CUresult core_enter(void)
{
    CUresult result = DRIVER_SUCCESS;

    (void)pthread_mutex_lock(&core.lock);
    capture_relax();
    if (core.context == NULL) {
        result = core.has_failed ? DRIVER_NOT_SUPPORTED : open_core();
    }
    if (result != DRIVER_SUCCESS) {
        core_leave();
    }
    is_inside = result == DRIVER_SUCCESS;
    return result;
}

bool core_is_inside(void)
{
    return is_inside;
}

void core_leave(void)
{
    is_inside = false;
    capture_restore();
    (void)pthread_mutex_unlock(&core.lock);
}

void core_lock(void)
{
    (void)pthread_mutex_lock(&core.lock);
}

bool core_is_open(void)
{
    return __atomic_load_n(&core.is_open, __ATOMIC_ACQUIRE);
}

bool core_try_lock(void)
{
    return pthread_mutex_trylock(&core.lock) == 0;
}

void core_unlock(void)
{
    (void)pthread_mutex_unlock(&core.lock);
}

capu_context *core_context(void)
{
    return core.context;
}

bool core_is_host(void)
{
    return core.is_host;
}

uint64_t core_full_budget(void)
{
    return core.full_budget;
}

/* Of the budget, by memory that is not the context's. */
static uint64_t taken_bytes(void)
{
    return core.full_budget - capu_context_config(core.context)->budget_bytes;
}

/* Names of kernels can be long, and the context's errors name what was issued. */
static void report_failure(capu_status status, const char *what)
{
    const char *error = capu_last_error(core.context);
    bool is_named = strstr(error, what) != NULL;
    char taken[128] = "";

    if (status == CAPU_OVER_BUDGET && taken_bytes() > 0) {
        snprintf(taken, sizeof(taken),
                 " (--budget is %" PRIu64 ", of which %" PRIu64 " are taken by others)",
                 core.full_budget, taken_bytes());
    }
    log_line("%s%s%s: %s%s", is_named ? "" : what, is_named ? "" : ": ", capu_status_text(status),
             error, taken);
}

CUresult core_result(capu_status status, const char *what)
{
    if (status == CAPU_OK) {
        return DRIVER_SUCCESS;
    }
    report_failure(status, what);
    switch (status) {
    case CAPU_OVER_BUDGET:
    case CAPU_NO_HOST_MEMORY:
    case CAPU_HOST_OVER_BUDGET:
    case CAPU_SYSTEM_LIMIT:
        return DRIVER_OUT_OF_MEMORY;
    case CAPU_DEVICE_LOST:
    case CAPU_OP_FAILED:
        return DRIVER_LAUNCH_FAILED;
    case CAPU_INVALID:
    case CAPU_WRONG_ADDRESS:
    case CAPU_TOO_LARGE:
        return DRIVER_INVALID_VALUE;
    default:
        return DRIVER_UNKNOWN;
    }
}

void core_watch(void (*begun)(const char *name, const capu_operand *operands, size_t count),
                void (*ended)(void))
{
    core.begun = begun;
    core.ended = ended;
}

/* Begins or runs an op with these operands. */
static capu_status issue_op(const struct operands *operands, capu_op *op,
                            capu_status (*call)(capu_context *, const capu_op *))
{
    capu_status status;

    op->size = sizeof(*op);
    op->operands = operands->list;
    op->operand_count = operands->count;
    floor_note(core.context, operands->list, operands->count);
    cut_note(core.context, operands->list, operands->count);
    status = call(core.context, op);
    if (status == CAPU_OVER_BUDGET && cut_operands(core.context, operands->list, operands->count)) {
        status = call(core.context, op);
    }
    if (status == CAPU_OVER_BUDGET && core.make_room != NULL && core.make_room()) {
        status = call(core.context, op);
    }
    return status;
}

bool core_make_room(void)
{
    return cut_noted(core.context) || (core.make_room != NULL && core.make_room());
}

void core_note_undone(void)
{
    (void)__atomic_fetch_add(&core.undone, 1, __ATOMIC_RELAXED);
}

uint64_t core_undone(void)
{
    return __atomic_load_n(&core.undone, __ATOMIC_RELAXED);
}

/* The result of an access, which the program may not look at. What is wrong with its addresses
   would be wrong without a budget, too. */
static CUresult note_result(capu_status status, const char *name)
{
    CUresult result = core_result(status, name);

    if (result != DRIVER_SUCCESS && result != DRIVER_INVALID_VALUE) {
        core_note_undone();
    }
    return result;
}

CUresult core_begin(const struct operands *operands, const char *name)
{
    capu_op op = {.name = name};
    capu_status status;

    if (operands->has_failed) {
        return DRIVER_OUT_OF_MEMORY;
    }
    status = issue_op(operands, &op, capu_access_begin);
    if (status == CAPU_OK && core.begun != NULL) {
        core.begun(name, operands->list, operands->count);
    }
    return note_result(status, name);
}

CUresult core_run(const struct operands *operands, capu_op *op)
{
    capu_status status = issue_op(operands, op, capu_run);

    if (status == CAPU_OK && core.is_host) {
        status = capu_synchronize(core.context);
    }
    return note_result(status, op->name);
}

CUresult core_end(CUresult result, const char *name)
{
    capu_status status;

    if (core.is_host && result == DRIVER_SUCCESS) {
        result = real_calls()->cuStreamSynchronize(core.stream);
    }
    if (core.ended != NULL) {
        core.ended();
    }
    status = capu_access_end(core.context);
    return result != DRIVER_SUCCESS ? result : core_result(status, name);
}

CUresult core_settle(CUresult result)
{
    return result == DRIVER_SUCCESS && core.is_host
               ? core_result(capu_synchronize(core.context), "waiting")
               : result;
}

CUresult core_wait(void)
{
    uint64_t begun = iteration_wait_begin();
    CUresult result = real_calls()->cuStreamSynchronize(core_stream(NULL));

    iteration_wait_end(begun);
    return result;
}
