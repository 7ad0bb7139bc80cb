/*
 * The context: the device, budget, streams and records of one training loop.
 *
 * Rules for every function that takes a context, unless its comment says otherwise:
 *
 * - Threads: one thread at a time calls into a context; the context does not lock. Contexts are
 *   independent of each other.
 * - NULL stands for the thread's current context (capu_context_make_current). INVALID: there is
 *   none.
 * - WRONG_ORDER: the call comes from inside a run function, or between capu_access_begin and
 *   capu_access_end. In between, only capu_flush, capu_report_get, capu_traffic_get,
 *   capu_tensor_query, capu_tensor_next and the functions that cannot fail are allowed.
 * - WRONG_ORDER: the call comes from a child that was forked from the process that created the
 *   context. The context's threads and tensors do not exist there; functions that return no status
 *   leave their outputs untouched, and capu_context_destroy does nothing. The child may create a
 *   context of its own on host and sim; CUDA does not work after a fork.
 * - DEVICE_LOST, OP_FAILED: once a call has returned one of them, so does every later call. Then
 *   only capu_context_destroy is useful.
 *
 * Comments list the other statuses, without the prefix CAPU_. A function that fails leaves its
 * outputs untouched. Pointer parameters are borrowed for the call.
 *
 * The library does nothing at exit: destroy a context yourself, or leave it to the operating
 * system.
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
    CAPU_MODE_OFF = 1,     /* allocate and run only; nothing is ever evicted */
    CAPU_MODE_PASSIVE = 2, /* evict when memory runs out, bring back at the next access */
    CAPU_MODE_GUIDED = 3   /* measure an iteration, plan it, follow the plan; passive until then */
} capu_mode;

/* How long a planner may search, see docs/policy.md. */
typedef enum capu_effort {
    CAPU_EFFORT_UNSET = 0, /* CAPU_EFFORT_DEFAULT */
    CAPU_EFFORT_QUICK = 1,
    CAPU_EFFORT_DEFAULT = 2,
    CAPU_EFFORT_BEST = 3
} capu_effort;

/*
 * The configuration of a context. Zero means "default" in every field. A field left at zero takes
 * the value of its environment variable if that is set and not empty, else the default given here.
 * A field set by the program wins over the environment. Strings are copied. A non-empty variable
 * whose name begins with CAPUCHIN_ but belongs to no field is rejected, so that a misspelt name is
 * noticed.
 *
 * A program with rights that its caller does not have (set-user-ID, for example) takes no file and
 * no folder from the environment: see docs/configuration.md.
 *
 * In the environment, sizes have the format of capu_parse_size and switches are 0 or 1.
 */
typedef struct capu_config {
    size_t size; /* sizeof(capu_config), as the caller was compiled. If it is too small to
                    include `error_bytes`, no error text is written */

    /* CAPUCHIN_DEVICE: "auto" (default: the first GPU if there is one, else host), "host", "sim",
       "cuda", "cuda:1" (the second GPU). A program whose ops compute on the host must say "host".
     */
    const char *device;
    /* CAPUCHIN_MODE: "off", "passive" (default), "guided"; here a capu_mode */
    uint32_t mode;
    /* CAPUCHIN_STRICT: 1 exposes wrong declarations (slow, waits on the host). Memory is unmapped
       at eviction and filled with NaN when it changes hands and before every write. On the host
       device, an op that did not write all that it says it writes, read it first, or changed what
       it says it only reads, returns INVALID after it has run; one that touched a tensor it does
       not name returns OP_FAILED, and the context is lost. The error names op, tensor and offset.
       For this a handler for SIGSEGV is installed while the context exists; see docs/strict.md */
    uint32_t strict;
    /* CAPUCHIN_CLEAR_FRESH: 1 makes newly allocated memory read as zeros, for programs that assume
       it does */
    uint32_t clear_fresh;
    uint32_t reserved; /* 0 */

    /* CAPUCHIN_BUDGET: device bytes that the library may hold, a hard limit. Default: the whole
       device (host: the machine's memory; cuda: what is free, minus a sixteenth of it or 1 GiB,
       whichever is less, for the program itself) */
    uint64_t budget_bytes;
    /* CAPUCHIN_HOST_BUDGET: bytes of pinned host memory for evicted tensors, a hard limit. Default:
       40 % of the memory that is available when the context is created (MemAvailable, or the limit
       of the control group if that is less), since pinned memory cannot be swapped out; sim: no
       limit. UINT64_MAX (here only): no limit */
    uint64_t host_budget_bytes;
    /* CAPUCHIN_PAGE: page size, the unit of device memory; a power of two. Default: host the
       machine's page, cuda and sim 2 MiB, larger if the budget would need too many pages */
    uint64_t page_bytes;
    /* CAPUCHIN_SLAB_THRESHOLD: allocations below this size share always-resident pages and are
       never evicted. At most half a page. Default: half a page */
    uint64_t slab_threshold_bytes;

    /* CAPUCHIN_D2H, CAPUCHIN_H2D: rates of the link from and to the device, in bytes per second.
       On host they throttle copies (default: no throttle), on sim they define the machine
       (default: 12 GB/s), on cuda they are the rates to plan with (default: measured when the
       context is created) */
    uint64_t d2h_bytes_per_s;
    uint64_t h2d_bytes_per_s;
    /* CAPUCHIN_COPY_LATENCY: fixed cost of a copy in nanoseconds, on sim and cuda. Default: sim
       10000, cuda measured together with the rates */
    uint64_t copy_latency_ns;

    /* CAPUCHIN_REPORT: a file that receives one JSON line per iteration. The first line replaces
       the file. Default: none */
    const char *report_path;
    /* CAPUCHIN_TRACE: a file that the trace of one iteration replaces. Default: none */
    const char *trace_path;
    /* CAPUCHIN_TRACE_ITERATION: which iteration to trace, counted from 1. Default: 2, the first one
       without warm-up */
    uint64_t trace_iteration;

    /* cuda: a cudaStream_t of the caller to use as the compute stream. It must outlive the context.
       Rejected on host and sim. Default: the library creates one. No environment variable */
    capu_stream stream;

    /* Buffer for the error text of capu_context_create, since there is no context to ask if it
       fails. Owned by the caller, written only during that call. Default: no text. No environment
       variable */
    char *error;
    size_t error_bytes; /* of the buffer */

    /* CAPUCHIN_PLANNER: the planner that guided mode uses, see docs/policy.md. Default: "hybrid" */
    const char *planner;
    /* CAPUCHIN_EFFORT: "quick", "default", "best"; here a capu_effort */
    uint32_t effort;
    /* CAPUCHIN_WAIT_FOR_PLAN: 1 makes capu_iteration_begin wait for the plan of the previous
       iteration, so that the second iteration is already guided. 0: training continues in passive
       mode while the plan is made */
    uint32_t wait_for_plan;
    /* CAPUCHIN_PLAN: a file that each new plan replaces. Default: none */
    const char *plan_path;
    /* CAPUCHIN_SAMPLE_EVERY: guided mode: under a steady plan, one iteration in this many has its
       ops timed and reports their times. 1: all of them. Default: 64 */
    uint64_t sample_every;
    /* CAPUCHIN_PLAN_MEMORY: guided mode: bytes of host memory for plans that are kept, over all
       labels. If there are more plans, those least recently used are discarded, and made again
       when they are needed; the newest plan and the active one are kept even if they take more.
       The host memory of evicted tensors does not count. Default: 64 MiB */
    uint64_t plan_memory_bytes;
    /* CAPUCHIN_KEEP_CONTENTS: guided mode: 1 makes plans copy out what they would discard and what
       could not be recomputed, so that iterations that differ from their plan can read it. 0: plans
       for a label do so once an iteration under it has failed with CONTENTS_LOST */
    uint32_t keep_contents;
    /* CAPUCHIN_TOP: 1 offers the counters of finished iterations to `capuchin top`, on a local
       socket that only the same user can use: PID.sock in the folder "capuchin" of
       $XDG_RUNTIME_DIR, or in /tmp/capuchin-UID. One thread per process serves it. See docs/top.md
     */
    uint32_t top;
    /* CAPUCHIN_TIMELINE: 1 adds a line to the report file for each iteration whose ops are timed
       (sample_every): when each op and each copy began and ended, and which tensors took memory and
       gave it up, see docs/report.md. Needs report_path. Each copy of such an iteration costs two
       timed events. Default: 0 */
    uint32_t timeline;
    /* CAPUCHIN_PLUGIN_FOLDER: cuda: the folder of the plug-in libcapuchin-cuda13.so, which is then
       looked for nowhere else. Default: the folder of the library, the folder `lib` next to that
       one, and where the loader looks for libraries. See docs/cuda.md */
    const char *plugin_folder;
    /* CAPUCHIN_PEER_ACCESS: cuda: 1 lets the machine's other GPUs touch the memory of this context,
       where the machine allows it, as NCCL needs within a process. Each mapping then takes longer.
       Default: 0 */
    uint32_t peer_access;
    /* CAPUCHIN_EXPORTABLE: cuda: 1 makes pages that the program can export to other processes, as
       file descriptors (cuMemRetainAllocationHandle, cuMemExportToShareableHandle). Default: 0 */
    uint32_t exportable;

    /* Processes that train together, one context each (docs/parallel.md); capu_parallel_config of
       libcapuchin-mpi fills these in. In the names of report, trace and plan files `%r` stands for
       `rank` and `%%` for a percent sign. */
    /* CAPUCHIN_RANK: which of them this one is, counted from 0 */
    uint64_t rank;
    /* CAPUCHIN_RANKS: how many there are. With more than one, the names of files need `%r`.
       Default: 0, there are no others */
    uint64_t rank_count;
    /* CAPUCHIN_LOCAL_RANKS: how many of them share this machine; the default of host_budget_bytes
       is divided by it. Default: 1 */
    uint64_t local_rank_count;
    /* CAPUCHIN_LINK_D2H, CAPUCHIN_LINK_H2D: rates of the link to plan with, in bytes per second,
       which capu_link_measure fills in. Unlike d2h_bytes_per_s and h2d_bytes_per_s they do not
       throttle copies, and do not count where those are set. Default: measured in guided mode when
       the context is created */
    uint64_t link_d2h_bytes_per_s;
    uint64_t link_h2d_bytes_per_s;
    /* CAPUCHIN_D2H_DUPLEX, CAPUCHIN_H2D_DUPLEX: rates of a direction while the other one is busy,
       too, in bytes per second. On sim they slow copies down; on cuda they are planned with where
       the other rates are given, on host where link_d2h_bytes_per_s and link_h2d_bytes_per_s are.
       Default: sim as fast as one direction alone; measured unless the other rates are given */
    uint64_t d2h_duplex_bytes_per_s;
    uint64_t h2d_duplex_bytes_per_s;
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
 * Creates a context on its device. `config` NULL means the environment and the defaults. On failure
 * nothing is held. On cuda, and in guided mode, the link may be measured, which takes tens of
 * milliseconds.
 *
 * Report, trace and plan files are checked now and replaced only when there is something to write:
 * the paths must lead to different files, each in a folder in which files can be created. The new
 * contents of a regular file go into a new file next to it, which is renamed when it is complete,
 * so a failed write leaves the old file. Permissions and symbolic links stay. Devices and pipes are
 * written directly.
 *
 * Owner: the caller, until capu_context_destroy. Thread: any.
 * Errors: INVALID (a field, a planner's name or an environment variable, or two that name the same
 * file, named in the text; or `context` is NULL), WRONG_STRUCT, OVER_BUDGET (the budget is below
 * one page or above the device), NO_HOST_MEMORY, SYSTEM_LIMIT (the budget needs more pages than the
 * machine has mappings, there are no more threads or descriptors, or the host
 * device's memory is larger than a file may be; training needs no more of them, except to write
 * files), NO_DEVICE, UNSUPPORTED (the CUDA plug-in does not fit the library), DEVICE_FAILED,
 * DEVICE_LOST, FILE_FAILED (a report, trace or plan file cannot be created or replaced, or the
 * socket for `top` not be created).
 */
CAPU_API capu_status capu_context_create(const capu_config *config, capu_context **context);

/*
 * Waits for all work, writes the remaining reports and traces, and frees everything that the
 * context holds. Every address, string and report from it becomes invalid. NULL does nothing. Works
 * after any failure. Does nothing in a child of the context's process. Call capu_flush first to
 * learn of file errors.
 */
CAPU_API void capu_context_destroy(capu_context *context);

/* Makes a context current on the calling thread, for calls with a NULL context; NULL makes none
   current. It stays so until it is destroyed on this thread or another is made current; another
   thread must not destroy it meanwhile. Thread: any. */
CAPU_API void capu_context_make_current(capu_context *context);

/* The calling thread's current context, or NULL. Thread: any. */
CAPU_API capu_context *capu_context_current(void);

/* The device's kind: "host", "sim" or "cuda" (also for "cuda:1"). A constant; "" if there is no
   context. */
CAPU_API const char *capu_context_device(const capu_context *context);

/* The compute stream, for launches between capu_access_begin and capu_access_end. Owned by the
   context, or by the caller if it came with the config. NULL if there is no context. */
CAPU_API capu_stream capu_context_stream(const capu_context *context);

/* The config in use, with environment and defaults filled in; `device` names the one that was
   opened, also for "auto". It and its strings belong to the context; `error` is NULL. NULL if there
   is no context. */
CAPU_API const capu_config *capu_context_config(const capu_context *context);

/*
 * A text about the last failed call of this context, with the names of the tensors and ops
 * involved; an empty string if none failed. A call from a run function leaves no text. Valid until
 * the next failing call. Thread: the context's.
 */
CAPU_API const char *capu_last_error(const capu_context *context);

/*
 * For libraries on top of this one: makes `text`, which is copied and cut where it is too long, the
 * context's last error, as if a call of the context had failed. Nothing else changes: the context
 * stays usable. Returns `status`, so that a function can end with this call. Does nothing if
 * there is no context or the text is NULL, in a child of fork and in a run function. Thread: the
 * context's.
 */
CAPU_API capu_status capu_explain(capu_context *context, capu_status status, const char *text);

/*
 * Waits until all work of the context has finished, on the compute stream and both copy streams,
 * and completes the reports of all ended iterations.
 * Errors: OP_FAILED, DEVICE_LOST (also from earlier asynchronous work), DEVICE_FAILED,
 * NO_HOST_MEMORY.
 */
CAPU_API capu_status capu_synchronize(capu_context *context);

/*
 * Waits until all complete reports, traces and plans are in their files. Reports of iterations that
 * are still running are not complete: call capu_synchronize first to have them all.
 * Errors: FILE_FAILED (a report, trace or plan could not be written at some time since the context
 * was created; training is not affected).
 */
CAPU_API capu_status capu_flush(capu_context *context);

/*
 * Measures the link of the device that the config names, as creating a context in guided mode does,
 * and fills in link_d2h_bytes_per_s, link_h2d_bytes_per_s, the duplex rates and copy_latency_ns
 * where they are 0. Processes that will copy at the same time should measure at the same time.
 * Nothing changes if d2h_bytes_per_s and h2d_bytes_per_s are given, here or in the environment, and
 * on sim. Opens the device and closes it again; takes tens of milliseconds. Thread: any. Errors,
 * with the text in config->error: INVALID (also: `config` is NULL) and the others of
 * capu_context_create, except SYSTEM_LIMIT and FILE_FAILED.
 */
CAPU_API capu_status capu_link_measure(capu_config *config);

/*
 * The default of host_budget_bytes on host and cuda for each of `processes` processes that share
 * this machine (0 counts as 1), by the memory that is available now; UINT64_MAX (no limit) if that
 * is not known. Thread: any.
 */
CAPU_API uint64_t capu_host_budget_default(uint64_t processes);

/*
 * Parses a size: a number with an optional fraction or exponent, then, after blanks if you like, an
 * optional unit in upper or lower case. K, M, G and T are powers of 1024, and so are Ki and KiB to
 * Ti and TiB; KB, MB, GB and TB are powers of 1000; B is a byte. "4G", "4 GiB", "512m", "1.5GB",
 * "4e9". The decimal point is a dot in every locale. *bytes is rounded to the nearest byte.
 * Thread: any. Errors: INVALID (not a size, or a NULL pointer), TOO_LARGE (2^63 bytes or more).
 */
CAPU_API capu_status capu_parse_size(const char *text, uint64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
