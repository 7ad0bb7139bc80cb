/*
 * The context: one training loop's device, budget, streams and records.
 *
 * One thread calls into a context at a time; several contexts live side by side in one process.
 * Where a status is given back, NULL for a context is INVALID.
 * Nothing here is done at exit: destroy a context yourself, or leave it to the operating system.
 */
#ifndef CAPU_INCLUDE_CONTEXT_H
#define CAPU_INCLUDE_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "capuchin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct capu_context capu_context;

/* A stream of the device: a cudaStream_t on cuda, opaque on host and sim. */
typedef void *capu_stream;

typedef enum capu_mode {
    CAPU_MODE_DEFAULT = 0, /* passive */
    CAPU_MODE_OFF = 1,     /* an allocator: nothing is evicted, ops run as they come */
    CAPU_MODE_PASSIVE = 2, /* evict when memory runs out, bring back at the next access */
    CAPU_MODE_GUIDED = 3   /* measure, plan, carry out the plan; passive where there is none yet */
} capu_mode;

/* How long a planner may search: see docs/policy.md. */
typedef enum capu_effort {
    CAPU_EFFORT_UNSET = 0, /* default */
    CAPU_EFFORT_QUICK = 1,
    CAPU_EFFORT_DEFAULT = 2,
    CAPU_EFFORT_BEST = 3
} capu_effort;

/*
 * What a context is made with. Zero means "default" in every field. A field left at zero is taken
 * from its environment variable if that is set, else from the default given here; a field set by
 * the program wins over the environment. Strings are copied. A variable whose name begins with
 * CAPUCHIN_ and that no field has is refused, unless it is empty.
 *
 * Sizes in the environment are written as capu_parse_size reads them, switches as 0 or 1.
 */
typedef struct capu_config {
    size_t size; /* sizeof(capu_config), as the caller was compiled. Too small to hold `error`:
                    WRONG_STRUCT without a text */

    /* CAPUCHIN_DEVICE: "auto" (default: cuda where there is one, else host), "host", "sim", "cuda",
       "cuda:1" (the second of several). A program whose ops compute on the host says "host". */
    const char *device;
    /* CAPUCHIN_MODE: "off", "passive" (default), "guided"; here a capu_mode */
    uint32_t mode;
    /* CAPUCHIN_STRICT: 1 makes wrong declarations show (slow, waits on the host): memory is
       unmapped at eviction, poisoned with NaN when handed over and before every write, and on host
       an op that changed what it only reads is INVALID, though it has run */
    uint32_t strict;
    /* CAPUCHIN_CLEAR_FRESH: 1 makes fresh memory read as zeros, for programs that rely on luck */
    uint32_t clear_fresh;
    uint32_t reserved; /* 0 */

    /* CAPUCHIN_BUDGET: device bytes the library may hold, a hard limit. Default: all of the device
       (host: as much as the machine has; cuda: what is free, less a sixteenth or 512 MiB for the
       program's own needs) */
    uint64_t budget_bytes;
    /* CAPUCHIN_HOST_BUDGET: bytes of host memory for evicted tensors, a hard limit. Default: none
     */
    uint64_t host_budget_bytes;
    /* CAPUCHIN_PAGE: the unit of device memory, a power of two. Default: host 64 KiB, cuda and sim
       2 MiB, more where the budget would need too many of them */
    uint64_t page_bytes;
    /* CAPUCHIN_SLAB_THRESHOLD: smaller allocations share always-resident pages and are not managed.
       Default: half a page */
    uint64_t slab_threshold_bytes;

    /* CAPUCHIN_D2H, CAPUCHIN_H2D: link rates in bytes per second. On host a throttle (default:
       none), on sim the machine (default: 12 GB/s), on cuda what to plan with (default: measured
       when the context is created) */
    uint64_t d2h_bytes_per_s;
    uint64_t h2d_bytes_per_s;
    /* CAPUCHIN_COPY_LATENCY: fixed nanoseconds a copy. sim and cuda. Default: sim 10000, cuda
       measured with the rates */
    uint64_t copy_latency_ns;

    /* CAPUCHIN_REPORT: a file that receives a JSON line an iteration. Default: none */
    const char *report_path;
    /* CAPUCHIN_TRACE: a file that receives the trace of one iteration. Default: none */
    const char *trace_path;
    /* CAPUCHIN_TRACE_ITERATION: which one, counted from 1. Default: 2, the first without warm-up */
    uint64_t trace_iteration;

    /* The caller's own compute stream on cuda, a cudaStream_t, which must outlive the context;
       INVALID on host and sim. Default: one of the library's. No environment variable. */
    capu_stream stream;

    /* Where creating a context writes what went wrong, as text: there is no context to ask then.
       Owned by the caller. Default: nowhere. No environment variable. */
    char *error;
    size_t error_bytes;

    /* CAPUCHIN_PLANNER: who makes the plans of mode guided, see docs/policy.md. Default: "hybrid"
     */
    const char *planner;
    /* CAPUCHIN_EFFORT: "quick", "default", "best"; here a capu_effort */
    uint32_t effort;
    /* CAPUCHIN_WAIT_FOR_PLAN: 1 makes capu_iteration_begin wait for the plan of the iteration
       before, so that the second iteration is guided already; else training goes on meanwhile */
    uint32_t wait_for_plan;
    /* CAPUCHIN_PLAN: a file that receives each plan when it is made; the newest stays. Default:
     * none
     */
    const char *plan_path;
    /* CAPUCHIN_SAMPLE_EVERY: mode guided: in how many iterations of a steady plan one has its ops
       timed, and its report their times; 1: all. Default: 64 */
    uint64_t sample_every;
} capu_config;

#ifndef __cplusplus
#define CAPU_CONFIG_INIT            \
    {                               \
        .size = sizeof(capu_config) \
    }
#else
static inline capu_config capu_config_init(void)
{
    capu_config config = capu_config();
    config.size = sizeof(config);
    return config;
}
#define CAPU_CONFIG_INIT capu_config_init()
#endif

/*
 * Creates a context on its device. `config` NULL means all defaults and the environment. On failure
 * *context is untouched and nothing is held.
 *
 * Owner: the caller, until capu_context_destroy. Any thread.
 * Errors: INVALID (a field, a planner's name or an environment variable, named in the text),
 * WRONG_STRUCT, OVER_BUDGET (budget below one page, or above the device), NO_ADDRESS_SPACE (the
 * budget needs more pages than the machine has mappings), NO_HOST_MEMORY, NO_DEVICE, DEVICE_FAILED,
 * DEVICE_LOST, FILE_FAILED (report, trace or plan cannot be created).
 */
CAPU_API capu_status capu_context_create(const capu_config *config, capu_context **context);

/*
 * Waits for all work, writes what is left of reports and traces, frees everything the context
 * holds: every address of it becomes invalid. NULL is fine. Call capu_flush before to learn of file
 * errors.
 */
CAPU_API void capu_context_destroy(capu_context *context);

/* "host", "sim" or "cuda", whichever of several it is. A constant. */
CAPU_API const char *capu_context_device(const capu_context *context);

/* The compute stream, for launches between capu_access_begin and capu_access_end. Owned by the
   context, or by the caller if it came with the config. */
CAPU_API capu_stream capu_context_stream(const capu_context *context);

/* The config as it came to be: environment and defaults filled in. Strings belong to the context.
 */
CAPU_API const capu_config *capu_context_config(const capu_context *context);

/*
 * What the last failed call of this context was about, with the names of tensors and ops. An empty
 * string if none failed. Valid until the next failing call. Same thread as the context's calls.
 */
CAPU_API const char *capu_last_error(const capu_context *context);

/*
 * Waits until all work of the context has finished.
 * Errors: OP_FAILED, DEVICE_LOST (also from earlier asynchronous work).
 */
CAPU_API capu_status capu_synchronize(capu_context *context);

/*
 * Waits until everything due is in the report and trace files. Reports of iterations that are still
 * running are not due: call capu_synchronize before to have them all.
 * Errors: FILE_FAILED (a write failed since the context was created; training is not affected).
 */
CAPU_API capu_status capu_flush(capu_context *context);

/*
 * Reads a size: a number, with an optional fraction or exponent, and an optional unit: B, KB, MB,
 * GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024). "4GiB", "512MiB", "1.5GB", "4e9".
 * Any thread. Errors: INVALID (not a size), TOO_LARGE; *bytes is untouched then.
 */
CAPU_API capu_status capu_parse_size(const char *text, uint64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
