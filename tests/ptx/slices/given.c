/* See given.h. Accesses count for the allocation that they lie in, so pointers into one allocation
   are compared together. */
#include "tests/ptx/slices/given.h"

#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PARAMETERS_MOST = 4096, KINDS = 2 }; /* of accesses: loads; stores and atomics */

struct range {
    uint64_t lowest;
    uint64_t end; /* 0: empty */
};

/* Of one word. Words into the same allocation have the same ranges. */
struct reach {
    struct given_allocation allocation;
    struct range seen[KINDS];
};

struct given {
    const struct comparison *comparison;
    const struct kernel *kernel;
    const struct slice *slice;
    struct reach reach[SLICE_WORDS_MOST];
    struct slice_result results[4 * SLICE_WORDS_MOST];
};

static void widen(struct range *range, uint64_t lowest, uint64_t end)
{
    if (end != 0) {
        range->lowest = range->end == 0 || lowest < range->lowest ? lowest : range->lowest;
        range->end = end > range->end ? end : range->end;
    }
}

static void find_allocations(struct given *given, const struct machine_launch *call,
                             given_find find)
{
    for (size_t i = 0; i < given->kernel->word_count; i++) {
        const struct kernel_word *word = &given->kernel->words[i];
        uint64_t pointer;

        ck_assert_uint_ne(word->offset, PTX_NONE);
        memcpy(&pointer,
               (const char *)call->parameters + given->kernel->parameters[word->parameter].offset +
                   word->offset,
               sizeof(pointer));
        given->reach[i].allocation = find(pointer);
    }
}

/* Accesses to what no pointer leads to are refused, except to variables. */
static bool observe(void *context, const struct machine_access *access)
{
    struct given *given = context;
    bool is_known = false;

    for (size_t i = 0; i < given->kernel->word_count; i++) {
        struct reach *reach = &given->reach[i];

        if (access->address - reach->allocation.base < reach->allocation.bytes) {
            widen(&reach->seen[access->kind != MACHINE_READ], access->address,
                  access->address + access->bytes);
            is_known = true;
        }
    }
    return is_known || compare_is_variable(given->comparison, access->address);
}

static bool observe_slice(void *context, const struct machine_access *access)
{
    const struct given *given = context;
    uint64_t offset = access->address - (uint64_t)(uintptr_t)given->results;

    return offset < given->slice->report_count * sizeof(given->results[0]);
}

static void run(const struct machine_module *module, const struct kernel *kernel,
                const char *ending, const struct machine_launch *call)
{
    struct error_text problem = {""};
    const struct machine_function *function;
    char name[1024];

    (void)snprintf(name, sizeof(name), "%.*s%s", (int)kernel->name.length, kernel->name.text,
                   ending);
    function = machine_function_find(module, name);
    ck_assert_msg(function != NULL, "%s", name);
    ck_assert_msg(machine_run(function, call, &problem) == CAPU_OK, "%s", problem.text);
}

static void run_slice(struct given *given, struct machine_launch call)
{
    unsigned char parameters[PARAMETERS_MOST] = {0};
    uint64_t results = (uint64_t)(uintptr_t)given->results;

    ck_assert_uint_le(given->slice->parameter_bytes, sizeof(parameters));
    ck_assert_uint_le(given->slice->report_count,
                      sizeof(given->results) / sizeof(given->results[0]));
    for (size_t i = 0; i < given->slice->report_count; i++) {
        given->results[i] = (struct slice_result)SLICE_RESULT_NONE;
    }
    memcpy(parameters, call.parameters, given->kernel->parameter_bytes);
    memcpy(parameters + given->slice->results_offset, &results, sizeof(results));
    call.parameters = parameters;
    call.observer = observe_slice;
    call.observer_context = given;
    run(given->comparison->sliced, given->kernel, "_slice", &call);
}

/* The words whose reports or accesses have to be seen together with those of one word. */
static uint64_t group_of(const struct given *given, size_t word)
{
    uint64_t group = (uint64_t)1 << word;
    uint64_t before = 0;

    while (before != group) {
        before = group;
        for (size_t i = 0; i < given->slice->report_count; i++) {
            uint64_t words = given->slice->reports[i].words;

            group |= (words & group) != 0 ? words : 0;
        }
        for (size_t i = 0; i < given->kernel->word_count; i++) {
            for (size_t j = 0; j < given->kernel->word_count && (before >> i & 1) != 0; j++) {
                if (given->reach[i].allocation.base == given->reach[j].allocation.base) {
                    group |= (uint64_t)1 << j;
                }
            }
        }
    }
    return group;
}

static void compare(const struct given *given, size_t word, bool is_stored)
{
    const struct slice *slice = given->slice;
    uint64_t group = group_of(given, word);
    bool is_exact = true;
    struct range seen = {0, 0};
    struct range reported = {0, 0};

    if ((group & slice->whole) != 0) {
        return;
    }
    for (size_t i = 0; i < slice->report_count; i++) {
        if ((slice->reports[i].words & group) != 0 && slice->reports[i].is_stored == is_stored) {
            is_exact &= !slice->reports[i].is_may;
            widen(&reported, given->results[i].lowest, given->results[i].end);
        }
    }
    for (size_t i = 0; i < given->kernel->word_count; i++) {
        if ((group >> i & 1) != 0) {
            widen(&seen, given->reach[i].seen[is_stored].lowest,
                  given->reach[i].seen[is_stored].end);
        }
    }
    ck_assert_msg(
        is_exact ? seen.end == reported.end && (seen.end == 0 || seen.lowest == reported.lowest)
                 : seen.end == 0 || (reported.end != 0 && seen.end <= reported.end &&
                                     seen.lowest >= reported.lowest),
        "%.*s, %s of word %zu%s: accessed %" PRIx64 " to %" PRIx64 ", reported %" PRIx64
        " to %" PRIx64,
        (int)given->kernel->name.length, given->kernel->name.text, is_stored ? "stores" : "loads",
        word, is_exact ? "" : " (may)", seen.lowest, seen.end, reported.lowest, reported.end);
}

void given_launch(const struct comparison *comparison, size_t kernel,
                  const struct machine_launch *call, given_find find)
{
    struct given given = {.comparison = comparison,
                          .kernel = &comparison->kernels.kernels[kernel],
                          .slice = &comparison->slices[kernel]};
    struct machine_launch observed = *call;

    ck_assert_uint_le(given.kernel->word_count, SLICE_WORDS_MOST);
    find_allocations(&given, call, find);
    run_slice(&given, *call);
    observed.observer = observe;
    observed.observer_context = &given;
    run(comparison->full, given.kernel, "", &observed);
    for (size_t i = 0; i < given.kernel->word_count; i++) {
        compare(&given, i, false);
        compare(&given, i, true);
    }
}
