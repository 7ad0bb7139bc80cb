/* How far launches reach, see reach.h. */
#include "interpose/shim/reach_parts.h"

#include "interpose/shim/core.h"
#include "interpose/shim/reach_cache.h"
#include "interpose/shim/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Some hundred bytes per launch that differs from all others. */
enum { CACHE_BYTES = 32 << 20 };

static struct reach_cache cache = {.bytes_most = CACHE_BYTES}; /* guarded by the core's lock */

bool reach_is_due(const struct code_kernel *kernel)
{
    return kernel->reason == NULL && settings_get()->mode != CAPU_MODE_OFF &&
           __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE) == NULL;
}

static capu_status make(const struct code_kernel *kernel, struct reach *reach)
{
    capu_status status = slice_emit(kernel->module, kernel->roles, &reach->slice, &reach->problem);
    CUresult result;

    if (status == CAPU_OK && reach->slice.report_count > REACH_REPORTS_MOST) {
        return error_text_set(&reach->problem, CAPU_TOO_LARGE, "its slice has too many reports");
    }
    status = status == CAPU_OK ? reach_find_inputs(kernel->roles, reach) : status;
    if (status != CAPU_OK) {
        return status;
    }
    result = reach_load(kernel->module, kernel->roles, reach);
    if (result != DRIVER_SUCCESS) {
        reach->function = NULL;
        return error_text_set(&reach->problem, CAPU_DEVICE_FAILED,
                              "the driver does not load its slice: error %d", result);
    }
    return CAPU_OK;
}

void reach_prepare(struct code_kernel *kernel)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct reach *reach;

    (void)pthread_mutex_lock(&lock);
    if (__atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE) == NULL &&
        (reach = calloc(1, sizeof(*reach))) != NULL) {
        uint64_t reported = 0;

        if (make(kernel, reach) != CAPU_OK && reach->problem.text[0] == '\0') {
            (void)error_text_set(&reach->problem, CAPU_NO_HOST_MEMORY, "no memory for its slice");
        }
        for (size_t i = 0; i < reach->slice.report_count; i++) {
            reported |= reach->slice.reports[i].words;
        }
        reach->whole = reach->slice.whole | ~reported;
        __atomic_store_n(&kernel->reach, reach, __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&lock);
}

/* The result of each report, relative to its pointer. False: parameters are missing. */
static bool make_relative(const struct code_kernel *kernel, const struct launch *launch,
                          const struct slice_result *from, struct reach_result *to)
{
    const struct slice *slice = &kernel->reach->slice;

    for (size_t i = 0; i < slice->report_count; i++) {
        size_t word = (size_t)__builtin_ctzll(slice->reports[i].words);
        uint32_t offset = 0;
        uint64_t pointer;

        if (!parameters_next(&launch->parameters, kernel->roles, &kernel->roles->words[word],
                             &offset, &pointer)) {
            return false;
        }
        to[i] = (struct reach_result){0, 0};
        if (from[i].end == UINT64_MAX) {
            to[i].bytes = UINT64_MAX;
        } else if (from[i].end > from[i].lowest) {
            to[i].lowest = from[i].lowest - pointer;
            to[i].bytes = from[i].end - from[i].lowest;
        }
    }
    return true;
}

/* The results for a launch, from the cache or by the slice. NULL: there are none. Valid until the
   next call. */
static const struct reach_result *find(struct code_kernel *kernel, const struct launch *launch)
{
    static struct slice_result results[REACH_REPORTS_MOST]; /* guarded by the core's lock */
    unsigned char key[REACH_KEY_BYTES_MOST];
    struct reach *reach = kernel->reach;
    size_t key_bytes = reach_key(kernel, launch, key);
    struct reach_result *found;

    if (key_bytes == 0) {
        return NULL;
    }
    found = reach_cache_get(&cache, key, key_bytes);
    if (found != NULL) {
        reach->repeat_count++;
        return found;
    }
    reach->run_count++;
    if (reach_run(reach, kernel->roles, launch, results) != DRIVER_SUCCESS) {
        return NULL;
    }
    found = reach_cache_put(&cache, key, key_bytes, reach->slice.report_count * sizeof(*found));
    return found != NULL && make_relative(kernel, launch, results, found) ? found : NULL;
}

/* Whether all words of a launch can be read. */
static bool has_words(const struct code_kernel *kernel, const struct launch *launch)
{
    for (size_t i = 0; i < kernel->roles->word_count; i++) {
        uint32_t offset = 0;
        uint64_t pointer;

        if (!parameters_next(&launch->parameters, kernel->roles, &kernel->roles->words[i], &offset,
                             &pointer)) {
            return false;
        }
    }
    return true;
}

CUresult reach_add(struct code_kernel *kernel, const struct launch *launch,
                   struct operands *operands)
{
    struct reach *reach = __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE);
    const struct reach_result *results = NULL;

    if (!has_words(kernel, launch)) {
        return DRIVER_INVALID_VALUE;
    }
    if (reach != NULL && reach->function != NULL) {
        results = find(kernel, launch);
        reach->whole_count += results == NULL;
    }
    return reach_add_results(kernel, launch, results, operands);
}

bool reach_summarise(const struct code_kernel *kernel, struct reach_summary *summary)
{
    const struct reach *reach = __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE);

    if (reach == NULL) {
        return false;
    }
    *summary = (struct reach_summary){
        .run_count = reach->run_count,
        .repeat_count = reach->repeat_count,
        .whole_count = reach->whole_count,
        .reason = reach->function != NULL ? NULL : reach->problem.text,
    };
    return true;
}

const char *reach_whole_reason(const struct code_kernel *kernel, size_t word)
{
    const struct reach *reach = __atomic_load_n(&kernel->reach, __ATOMIC_ACQUIRE);

    return reach != NULL && word < SLICE_WORDS_MOST ? reach->slice.reasons[word] : NULL;
}
