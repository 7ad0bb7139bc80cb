/* See coverage.h. */
#include "tests/ptx/slices/coverage.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_GRANULES = 1 << 16, /* at most; elsewhere only random windows are compared */
    SMALL_GRANULES = 2000,     /* of random windows */
    WORDS = WINDOW_GRANULES / 32,
};

struct run {
    const struct coverage_launch *launch;
    const struct slice_window *windows;
};

static bool is_in(uint64_t address, uint64_t start, uint64_t bytes)
{
    return address >= start && address - start < bytes;
}

static bool observe(void *context, const struct machine_access *access)
{
    const struct run *run = context;
    size_t count = run->launch->slice->report_count;

    if (is_in(access->address, (uint64_t)(uintptr_t)run->windows, count * sizeof(*run->windows))) {
        return access->kind == MACHINE_READ;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_in(access->address, run->windows[i].bits, (run->windows[i].count + 31) / 32 * 4)) {
            return true;
        }
    }
    return false;
}

bool coverage_run(const struct coverage_launch *launch, const struct slice_window *windows,
                  struct error_text *problem)
{
    struct run run = {launch, windows};
    struct machine_launch call = launch->call;
    uint64_t address = (uint64_t)(uintptr_t)windows;

    memcpy(launch->parameters + launch->slice->results_offset, &address, sizeof(address));
    call.parameters = launch->parameters;
    call.observer = observe;
    call.observer_context = &run;
    return machine_run(launch->function, &call, problem) == CAPU_OK;
}

bool coverage_is_complete(const struct slice *slice, size_t report)
{
    uint64_t words = slice->reports[report].words;

    for (size_t i = 0; i < slice->report_count; i++) {
        if (i != report && slice->reports[i].is_stored && (slice->reports[i].words & words) != 0) {
            return false;
        }
    }
    return (slice->whole & words) == 0;
}

/* An address that the kernel has stored to and a report reaches; its lowest if there is none. */
static uint64_t choose_store(const struct coverage_launch *launch, size_t report, uint64_t *random)
{
    const struct slice_result *result = &launch->results[report];
    size_t first = launch->store_count > 0 ? random_next(random) % launch->store_count : 0;

    for (size_t i = 0; i < launch->store_count; i++) {
        uint64_t address = launch->stores[(first + i) % launch->store_count].address;

        if (is_in(address, result->lowest, result->end - result->lowest)) {
            return address;
        }
    }
    return result->lowest;
}

/* The start of what a report reaches, or somewhere around one of the stores. */
static struct slice_window choose_window(const struct coverage_launch *launch, size_t report,
                                         bool is_random, uint64_t *random)
{
    const struct slice_result *result = &launch->results[report];
    uint64_t granule = launch->slice->reports[report].granule_bytes;
    struct slice_window window = {.base = result->lowest};

    if (granule == 0 || result->end == 0) {
        return (struct slice_window){0};
    }
    if (is_random) {
        window.base = choose_store(launch, report, random) - random_next(random) % 512;
    }
    window.base -= window.base % SLICE_WINDOW_ALIGNMENT;
    window.count = (result->end - window.base + granule - 1) / granule;
    if (is_random) {
        window.count = 1 + random_next(random) % SMALL_GRANULES;
    } else if (window.count > WINDOW_GRANULES) {
        window.count = WINDOW_GRANULES;
    }
    return window;
}

/* Marks the bytes of a window that the kernel stores to. */
static void mark_stores(const struct coverage_launch *launch, const struct slice_window *window,
                        uint64_t bytes, unsigned char *is_stored)
{
    memset(is_stored, 0, bytes);
    for (size_t i = 0; i < launch->store_count; i++) {
        for (uint64_t j = 0; j < launch->stores[i].bytes; j++) {
            uint64_t at = launch->stores[i].address + j - window->base;

            if (at < bytes) {
                is_stored[at] = 1;
            }
        }
    }
}

/* Compares the bitmap of one report; returns how many bits are set. */
static uint64_t compare_bits(const struct coverage_launch *launch, size_t report,
                             const struct slice_window *window, char *difference, size_t bytes)
{
    static unsigned char is_stored[WINDOW_GRANULES * SLICE_WINDOW_ALIGNMENT];
    const uint32_t *words = (const void *)(uintptr_t)window->bits;
    uint64_t granule = launch->slice->reports[report].granule_bytes;
    bool is_complete = coverage_is_complete(launch->slice, report);
    uint64_t set = 0;

    mark_stores(launch, window, window->count * granule, is_stored);
    for (uint64_t i = 0; i < window->count; i++) {
        bool is_whole = memchr(is_stored + i * granule, 0, granule) == NULL;
        bool is_set = coverage_bit(words, i);

        set += is_set;
        if ((is_set && !is_whole) || (is_complete && !is_set && is_whole)) {
            if (difference[0] == '\0') {
                (void)snprintf(difference, bytes,
                               "report %zu, window %" PRIx64 ", %" PRIu64 " bytes at %" PRIx64
                               ": %s, but %s",
                               report, window->base, granule, window->base + i * granule,
                               is_set ? "set" : "not set", is_whole ? "stored" : "not stored");
            }
            return set;
        }
    }
    return set;
}

uint64_t coverage_compare(const struct coverage_launch *launch, uint64_t *random, char *difference,
                          size_t bytes)
{
    size_t count = launch->slice->report_count;
    struct slice_window *windows = calloc(count, sizeof(*windows));
    uint32_t *words = malloc(count * WORDS * sizeof(*words));
    struct error_text problem = {""};
    uint64_t set = 0;

    ck_assert(windows != NULL && words != NULL);
    for (unsigned i = 0; i < 2; i++) {
        memset(words, 0, count * WORDS * sizeof(*words));
        for (size_t j = 0; j < count; j++) {
            windows[j] = choose_window(launch, j, i == 1, random);
            windows[j].bits = (uint64_t)(uintptr_t)(words + j * WORDS);
        }
        if (!coverage_run(launch, windows, &problem) && difference[0] == '\0') {
            (void)snprintf(difference, bytes, "the coverage slice: %s", problem.text);
        }
        for (size_t j = 0; j < count; j++) {
            set += compare_bits(launch, j, &windows[j], difference, bytes);
        }
    }
    free(windows);
    free(words);
    return set;
}
