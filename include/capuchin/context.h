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
 *   capu_tensor_query, capu_tensor_next, capu_memory_print, capu_budget_set and the functions that
 *   cannot fail are allowed.
 * - WRONG_ORDER: the call comes from a child that was forked from the process that created the
 *   context. The context's threads and tensors do not exist there; functions that return no status
 *   leave their outputs untouched, and capu_context_destroy does nothing. The child may create a
 *   context of its own on host and sim; CUDA does not work after a fork.
 * - DEVICE_LOST, OP_FAILED: once a call has returned one of them, so does every later call. Then
 *   only capu_context_destroy is useful.
 *
 * Comments list the other statuses, without the prefix CAPU_. A function that fails leaves its
 * outputs untouched. Pointer parameters are borrowed for the call, unless a comment says otherwise.
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

/*
 * The configuration of a context: the fields that programs set, and capu_config_set for everything
 * else. Zero means "default" in every field. A field left at zero takes the value of its
 * environment variable if that is set and not empty, else the default given here. What the program
 * sets wins over the environment. A non-empty variable whose name begins with CAPUCHIN_ but belongs
 * to no setting is rejected, so that a misspelt name is noticed.
 *
 * Strings are borrowed until the context has been created, which copies them.
 *
 * A program with rights that its caller does not have (set-user-ID, for example) takes no file and
 * no folder from the environment: see docs/configuration.md, which lists all settings.
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
    /* CAPUCHIN_WAIT_FOR_PLAN: 1 makes capu_iteration_begin wait for the plan of the previous
       iteration, so that the second iteration is already guided. 0: training continues in passive
       mode while the plan is made */
    uint32_t wait_for_plan;
    /* CAPUCHIN_STRICT: 1 exposes wrong declarations (slow, waits on the host). Memory is unmapped
       at eviction and filled with NaN when it changes hands and before every write. On the host
       device, an op that did not write all that it says it writes, read it first, or changed what
       it says it only reads, returns INVALID after it has run; one that touched a tensor it does
       not name returns OP_FAILED, and the context is lost. The error names op, tensor and offset.
       For this a handler for SIGSEGV is installed while the context exists; see docs/strict.md */
    uint32_t strict;
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

    /* CAPUCHIN_REPORT: a file that receives one JSON line per iteration. The first line replaces
       the file. Default: none */
    const char *report_path;
    /* CAPUCHIN_TRACE: a file that the trace of one iteration replaces. Default: none */
    const char *trace_path;

    /* cuda: a cudaStream_t of the caller to use as the compute stream. It must outlive the context.
       Rejected on host and sim. Default: the library creates one. No environment variable */
    capu_stream stream;

    /* Buffer for the error text of capu_context_create and capu_config_set, since there is no
       context to ask if they fail. Owned by the caller, written only during these calls. Default:
       no text. No environment variable */
    char *error;
    size_t error_bytes; /* of the buffer */

    uint64_t given;        /* bit i: setting i is set. Only the library uses these two */
    uint64_t settings[32]; /* by capu_config_set */
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
 * Sets one setting of a config by its name: that of its environment variable in lower case, without
 * CAPUCHIN_ ("effort", "sample_every"). The value is a text of the same form as there. NULL or ""
 * takes the setting back, so that it comes from the environment again. The settings that have
 * fields are set, too: "budget" sets `budget_bytes`. docs/configuration.md lists all of them.
 *
 *     capu_config_set(&config, "planner", "recompute");
 *
 * The value is read at once, except texts, which are borrowed until the context has been created.
 * Thread: any. Errors, with the text in config->error: INVALID (there is no such setting, or the
 * value does not suit it; `config` or `name` is NULL), WRONG_STRUCT.
 */
CAPU_API capu_status capu_config_set(capu_config *config, const char *name, const char *value);

/*
 * Writes the value that a setting has in a config as a text, as capu_config_set takes it; "" if it
 * is not set. In the config of a context (capu_context_config) every setting has the value in use;
 * 0 leaves it to the device. Thread: any. Errors: INVALID (there is no such setting, or a pointer
 * is NULL), WRONG_STRUCT, TOO_LARGE (the value has `bytes` bytes or more, with its end).
 */
CAPU_API capu_status capu_config_get(const capu_config *config, const char *name, char *value,
                                     size_t bytes);

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
 * involved; an empty string if none failed. Without a context it says that. A call from a run
 * function leaves no text. Valid until the next failing call. Thread: the context's.
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
