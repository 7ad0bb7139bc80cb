/*
 * The functions that are exported under the driver's names. Each decides by its caller whether the
 * call is taken (handlers.h) or goes to the real driver as it is.
 */
#include "interpose/shim/caller.h"
#include "interpose/shim/core.h"
#include "interpose/shim/handlers.h"
#include "interpose/shim/real_calls.h"

enum { ALL = 0, PROGRAM = 1 }; /* takers, see driver_calls.h */

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

#define EXPORT(symbol, name, takers, parameters, arguments) \
    DRIVER_EXPORT CUresult symbol parameters;               \
    CUresult symbol parameters                              \
    {                                                       \
        bool is_taken = core_takes(CALLER(), takers);       \
                                                            \
        if (!is_taken) {                                    \
            return real_calls()->symbol arguments;          \
        }                                                   \
        return on_##name arguments;                         \
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
    return core_takes(CALLER(), ALL) ? on_cuCtxSynchronize() : real_calls()->cuCtxSynchronize();
}
