/*
 * The functions that are exported under the driver's names. Each decides by its caller whether the
 * call is taken (handlers.h) or goes to the real driver as it is.
 */
#include "interpose/shim/caller.h"
#include "interpose/shim/core.h"
#include "interpose/shim/handlers.h"
#include "interpose/shim/passed.h"
#include "interpose/shim/real_calls.h"

/* Whose calls are ours, see driver_calls.h. */
struct whose {
    bool is_program_only;
    size_t library_bytes; /* that a call of a library takes from the driver */
};
#define ALL ((struct whose){false, 0})
#define PROGRAM ((struct whose){true, 0})
#define PROGRAM_BYTES(bytes) ((struct whose){true, (bytes)})

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

#define EXPORT(symbol, name, takers, parameters, arguments)                                \
    DRIVER_EXPORT CUresult symbol parameters;                                              \
    CUresult symbol parameters                                                             \
    {                                                                                      \
        const struct whose who = takers;                                                   \
        enum caller caller = CALLER();                                                     \
        bool is_taken = core_takes(caller, who.is_program_only);                           \
        CUresult result;                                                                   \
                                                                                           \
        if (is_taken) {                                                                    \
            return on_##name arguments;                                                    \
        }                                                                                  \
        result = real_calls()->symbol arguments;                                           \
        return who.library_bytes != 0 && caller == CALLER_LIBRARY                          \
                   ? passed_note(result, #name " by libraries of CUDA", who.library_bytes) \
                   : result;                                                               \
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
