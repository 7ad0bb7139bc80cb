/* See compare.h. */
#define _GNU_SOURCE
#include "tests/ptx/slices/compare.h"

#include "base/array.h"
#include "base/random.h"
#include "tests/ptx/slices/coverage.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Memory of one pointer, which points to about the middle. No power of two: a number in the upper
   half of a word must not lead from one middle to another. */
#define REGION_BYTES ((uint64_t)69 << 30)
#define REACH_BYTES ((uint64_t)1 << 30) /* farther from the middle is a wrong number */
enum {
    REGIONS = 16,
    KINDS = 2, /* of accesses: loads; stores and atomics */
    FILLED_BYTES = 1 << 14,
    ACCESSES_MOST = 300000, /* of a launch; a loop whose bound is a wrong number ends there */
    SHARED_BYTES = 48 << 10,
};

struct range {
    uint64_t lowest;
    uint64_t end; /* 0: empty */
};

/* One launch of a kernel, and what is seen of it. */
struct launch {
    const struct comparison *comparison;
    const struct kernel *kernel;
    const struct slice *slice;
    unsigned char *memory;
    unsigned char parameters[4096];
    uint32_t grid[3];
    uint32_t block[3];
    struct range seen[KINDS][REGIONS];
    uint64_t accesses;
    struct coverage_store *stores; /* those among them */
    size_t store_count, store_capacity;
    struct slice_result results[4 * SLICE_WORDS_MOST];
};

static void widen(struct range *range, uint64_t lowest, uint64_t end)
{
    if (end != 0) {
        range->lowest = range->end == 0 || lowest < range->lowest ? lowest : range->lowest;
        range->end = end > range->end ? end : range->end;
    }
}

/* Modules. */

char *compare_slices(const struct comparison *comparison, bool is_cover)
{
    char head[128];
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    ck_assert_ptr_nonnull(out);
    slice_head(&comparison->module, head, sizeof(head));
    fputs(head, out);
    for (size_t i = 0; i < comparison->kernels.count; i++) {
        const struct slice *slice = &comparison->slices[i];
        const char *own = is_cover ? slice->cover : slice->text;

        fputs(own != NULL ? own : "", out);
    }
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

static struct machine_module *open_slices(const struct comparison *comparison, bool is_cover,
                                          compare_edit edit)
{
    char *text = compare_slices(comparison, is_cover);
    struct machine_module *module = NULL;
    struct error_text problem = {""};

    if (edit != NULL) {
        edit(text);
    }
    ck_assert_msg(machine_open(text, strlen(text), &module, &problem) == CAPU_OK, "%s\n%s",
                  problem.text, text);
    free(text);
    return module;
}

void compare_open(const char *text, size_t count, const struct compare_edits *edits,
                  struct comparison *comparison)
{
    struct error_text problem = {""};

    *comparison = (struct comparison){0};
    ck_assert_msg(ptx_parse(text, count, &comparison->module, &problem) == CAPU_OK, "%s",
                  problem.text);
    ck_assert_int_eq(roles_find(&comparison->module, &comparison->kernels), CAPU_OK);
    comparison->slices = calloc(comparison->kernels.count, sizeof(*comparison->slices));
    comparison->refusals = calloc(comparison->kernels.count, sizeof(*comparison->refusals));
    ck_assert(comparison->slices != NULL && comparison->refusals != NULL);
    for (size_t i = 0; i < comparison->kernels.count; i++) {
        capu_status status = slice_emit(&comparison->module, &comparison->kernels.kernels[i],
                                        &comparison->slices[i], &comparison->refusals[i]);

        ck_assert(status == CAPU_OK || status == CAPU_UNSUPPORTED);
    }
    ck_assert_msg(machine_open(text, count, &comparison->full, &problem) == CAPU_OK, "%s",
                  problem.text);
    comparison->sliced = open_slices(comparison, false, edits != NULL ? edits->slices : NULL);
    comparison->covered = open_slices(comparison, true, edits != NULL ? edits->covers : NULL);
}

void compare_close(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->kernels.count; i++) {
        slice_finish(&comparison->slices[i]);
    }
    free(comparison->slices);
    free(comparison->refusals);
    machine_close(comparison->full);
    machine_close(comparison->sliced);
    machine_close(comparison->covered);
    roles_finish(&comparison->kernels);
    ptx_finish(&comparison->module);
}

/* Random launches. */

static uint64_t pick(uint64_t *random, uint64_t count)
{
    return random_next(random) % count;
}

static uint32_t small_number(uint64_t *random)
{
    static const uint32_t numbers[] = {0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 64};

    return numbers[pick(random, sizeof(numbers) / sizeof(numbers[0]))];
}

/* Small integers, as an index has them, or floats; they decide where that depends on data. */
static void fill(unsigned char *memory, uint64_t *random)
{
    static const float floats[] = {0.0f, 0.5f, 1.5f, -2.0f};
    bool is_float = pick(random, 2) != 0;

    for (size_t i = 0; i < FILLED_BYTES; i += 4) {
        uint32_t number = (uint32_t)pick(random, 16);

        memcpy(memory + i, is_float ? (const void *)&floats[number % 4] : &number, 4);
    }
}

static void make_numbers(struct launch *launch, uint64_t *random)
{
    memset(launch->parameters, 0, sizeof(launch->parameters));
    for (size_t i = 0; i < launch->kernel->parameter_count; i++) {
        const struct kernel_parameter *parameter = &launch->kernel->parameters[i];
        /* A structure's fields could be of either size. */
        uint32_t step = parameter->bytes > 8 ? 4u << pick(random, 2) : 8;

        for (uint32_t at = 0; at < parameter->bytes; at += step) {
            uint64_t number = small_number(random);

            memcpy(launch->parameters + parameter->offset + at, &number,
                   parameter->bytes - at < 8 ? parameter->bytes - at : 8);
        }
    }
}

/* The words of a parameter of which any can be chosen by a computed offset get one region. */
static void make_pointers(struct launch *launch, uint64_t *random)
{
    for (size_t i = 0; i < launch->kernel->word_count; i++) {
        const struct kernel_word *word = &launch->kernel->words[i];
        const struct kernel_parameter *parameter = &launch->kernel->parameters[word->parameter];
        unsigned char *middle = launch->memory + i * REGION_BYTES + REGION_BYTES / 2;
        uint64_t pointer = (uint64_t)(uintptr_t)(middle + 64 * pick(random, 16));
        bool is_any = word->offset == PTX_NONE;
        uint32_t first = is_any ? 0 : word->offset;
        uint32_t last = is_any ? parameter->bytes - 8 : word->offset;

        fill(middle, random);
        pointer = pick(random, 12) == 0 ? 0 : pointer;
        for (uint32_t at = first; at <= last; at += 8) {
            memcpy(launch->parameters + parameter->offset + at, &pointer, 8);
        }
    }
}

static void make_shape(struct launch *launch, uint32_t threads_most, uint64_t *random)
{
    static const uint32_t blocks[][3] = {{1, 1, 1},   {32, 1, 1}, {64, 1, 1},  {96, 1, 1},
                                         {128, 1, 1}, {13, 1, 1}, {256, 1, 1}, {16, 16, 1},
                                         {32, 8, 1},  {8, 8, 2},  {5, 3, 2},   {512, 1, 1}};
    const uint32_t *block;

    do {
        block = blocks[pick(random, sizeof(blocks) / sizeof(blocks[0]))];
    } while (block[0] * block[1] * block[2] > threads_most);
    memcpy(launch->block, block, sizeof(launch->block));
    launch->grid[0] = 1 + (uint32_t)pick(random, 4);
    launch->grid[1] = 1 + (uint32_t)pick(random, 3);
    launch->grid[2] = 1 + (uint32_t)pick(random, 2);
}

/* Both runs. */

bool compare_is_variable(const struct comparison *comparison, uint64_t address)
{
    const struct machine_variable *variable;

    for (size_t i = 0; (variable = machine_variable_at(comparison->full, i)) != NULL; i++) {
        uint64_t start = (uint64_t)(uintptr_t)variable->address;

        if (address >= start && address - start < variable->bytes) {
            return true;
        }
    }
    return false;
}

static bool observe_full(void *context, const struct machine_access *access)
{
    struct launch *launch = context;
    uint64_t offset = access->address - (uint64_t)(uintptr_t)launch->memory;

    if (compare_is_variable(launch->comparison, access->address)) {
        return true;
    }
    if (offset >= REGIONS * REGION_BYTES ||
        offset % REGION_BYTES - (REGION_BYTES / 2 - REACH_BYTES) >= 2 * REACH_BYTES ||
        ++launch->accesses > ACCESSES_MOST) {
        return false;
    }
    widen(&launch->seen[access->kind != MACHINE_READ][offset / REGION_BYTES], access->address,
          access->address + access->bytes);
    if (access->kind == MACHINE_WRITE) {
        if (!array_reserve(&launch->stores, &launch->store_capacity, launch->store_count + 1,
                           sizeof(*launch->stores))) {
            return false;
        }
        launch->stores[launch->store_count++] =
            (struct coverage_store){access->address, access->bytes};
    }
    return true;
}

/* A slice accesses nothing but its results. */
static bool observe_slice(void *context, const struct machine_access *access)
{
    const struct launch *launch = context;
    uint64_t offset = access->address - (uint64_t)(uintptr_t)launch->results;

    return offset < launch->slice->report_count * sizeof(launch->results[0]);
}

static capu_status run(struct launch *launch, const struct machine_function *function,
                       machine_observer observer, struct error_text *problem)
{
    struct machine_launch call = {.shared_bytes = SHARED_BYTES,
                                  .parameters = launch->parameters,
                                  .observer = observer,
                                  .observer_context = launch};

    memcpy(call.grid, launch->grid, sizeof(call.grid));
    memcpy(call.block, launch->block, sizeof(call.block));
    return machine_run(function, &call, problem);
}

/* A kernel, or with an ending to its name a slice. */
static const struct machine_function *
kernel_of(const struct launch *launch, const struct machine_module *module, const char *ending)
{
    char name[1024];

    (void)snprintf(name, sizeof(name), "%.*s%s", (int)launch->kernel->name.length,
                   launch->kernel->name.text, ending);
    return machine_function_find(module, name);
}

static const struct machine_function *full_kernel(const struct launch *launch)
{
    return kernel_of(launch, launch->comparison->full, "");
}

static void run_slice(struct launch *launch, struct error_text *problem)
{
    uint64_t results = (uint64_t)(uintptr_t)launch->results;

    for (size_t i = 0; i < launch->slice->report_count; i++) {
        launch->results[i] = (struct slice_result)SLICE_RESULT_NONE;
    }
    memcpy(launch->parameters + launch->slice->results_offset, &results, sizeof(results));
    if (run(launch, kernel_of(launch, launch->comparison->sliced, "_slice"), observe_slice,
            problem) == CAPU_OK) {
        problem->text[0] = '\0';
    }
}

/* The words whose reports have to be seen together with those of one word. */
static uint64_t group_of(const struct slice *slice, size_t word)
{
    uint64_t group = (uint64_t)1 << word;
    uint64_t before = 0;

    while (before != group) {
        before = group;
        for (size_t i = 0; i < slice->report_count; i++) {
            group |= (slice->reports[i].words & group) != 0 ? slice->reports[i].words : 0;
        }
    }
    return group;
}

static bool is_different(const struct range *seen, const struct range *reported, bool is_exact)
{
    if (seen->end == 0) {
        return is_exact && reported->end != 0;
    }
    return is_exact
               ? seen->lowest != reported->lowest || seen->end != reported->end
               : reported->end == 0 || seen->lowest < reported->lowest || seen->end > reported->end;
}

/* Compares loads, or what is no load. */
static void compare_word(const struct launch *launch, size_t word, bool is_stored,
                         struct compared *compared)
{
    const struct slice *slice = launch->slice;
    uint64_t group = group_of(slice, word);
    bool is_exact = (group & slice->whole) == 0;
    struct range seen = {0, 0};
    struct range reported = {0, 0};

    for (size_t i = 0; i < slice->report_count; i++) {
        if ((slice->reports[i].words & group) != 0 && slice->reports[i].is_stored == is_stored) {
            is_exact &= !slice->reports[i].is_may;
            widen(&reported, launch->results[i].lowest, launch->results[i].end);
        }
    }
    for (size_t i = 0; i < launch->kernel->word_count; i++) {
        if (i == word || (is_exact && (group >> i & 1) != 0)) {
            widen(&seen, launch->seen[is_stored][i].lowest, launch->seen[is_stored][i].end);
        }
    }
    if (is_different(&seen, &reported, is_exact) && compared->difference[0] == '\0') {
        (void)snprintf(compared->difference, sizeof(compared->difference),
                       "%.*s, grid %ux%ux%u, block %ux%ux%u, %s of word %zu%s: accessed %" PRIx64
                       " to %" PRIx64 ", reported %" PRIx64 " to %" PRIx64,
                       (int)launch->kernel->name.length, launch->kernel->name.text, launch->grid[0],
                       launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
                       launch->block[2], is_stored ? "stores" : "loads", word,
                       is_exact ? "" : " (may)", seen.lowest, seen.end, reported.lowest,
                       reported.end);
    }
}

/* Compares the bytes that are stored to. */
static void compare_coverage(struct launch *launch, uint64_t *random, struct compared *compared)
{
    struct coverage_launch own = {.slice = launch->slice,
                                  .results = launch->results,
                                  .stores = launch->stores,
                                  .store_count = launch->store_count,
                                  .call = {.shared_bytes = SHARED_BYTES},
                                  .parameters = launch->parameters};
    char difference[256] = "";

    if (launch->slice->cover == NULL) {
        return;
    }
    own.function = kernel_of(launch, launch->comparison->covered, "_cover");
    memcpy(own.call.grid, launch->grid, sizeof(own.call.grid));
    memcpy(own.call.block, launch->block, sizeof(own.call.block));
    compared->covered += coverage_compare(&own, random, difference, sizeof(difference));
    if (difference[0] != '\0' && compared->difference[0] == '\0') {
        (void)snprintf(compared->difference, sizeof(compared->difference),
                       "%.*s, grid %ux%ux%u, block %ux%ux%u: %s", (int)launch->kernel->name.length,
                       launch->kernel->name.text, launch->grid[0], launch->grid[1], launch->grid[2],
                       launch->block[0], launch->block[1], launch->block[2], difference);
    }
}

static void compare_launch(struct launch *launch, uint64_t *random, struct compared *compared)
{
    struct error_text problem = {""};

    memset(launch->seen, 0, sizeof(launch->seen));
    launch->accesses = 0;
    launch->store_count = 0;
    /* A failed launch may have been cut short. */
    if (run(launch, full_kernel(launch), observe_full, &problem) != CAPU_OK) {
        compared->left_out++;
        return;
    }
    compared->launches++;
    compared->accesses += launch->accesses;
    run_slice(launch, &problem);
    if (problem.text[0] != '\0' && compared->difference[0] == '\0') {
        (void)snprintf(compared->difference, sizeof(compared->difference), "the slice: %s",
                       problem.text);
    }
    for (size_t i = 0; i < launch->kernel->word_count; i++) {
        if ((launch->slice->whole >> i & 1) == 0) {
            compare_word(launch, i, false, compared);
            compare_word(launch, i, true, compared);
        }
    }
    compare_coverage(launch, random, compared);
}

struct compared compare_kernel(const struct comparison *comparison, size_t kernel,
                               unsigned launches, uint64_t seed)
{
    struct launch *launch = calloc(1, sizeof(*launch));
    struct compared compared = {0};
    uint64_t random = seed;
    uint64_t coverage_random = seed;

    ck_assert_ptr_nonnull(launch);
    launch->comparison = comparison;
    launch->kernel = &comparison->kernels.kernels[kernel];
    launch->slice = &comparison->slices[kernel];
    ck_assert_uint_le(launch->kernel->word_count, REGIONS);
    ck_assert_uint_le(launch->slice->report_count, 4 * SLICE_WORDS_MOST);
    launch->memory = mmap(NULL, REGIONS * REGION_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(launch->memory, MAP_FAILED);
    for (unsigned i = 0; i < 8 * launches && compared.launches < launches; i++) {
        make_numbers(launch, &random);
        make_pointers(launch, &random);
        make_shape(launch, full_kernel(launch)->threads_most, &random);
        compare_launch(launch, &coverage_random, &compared);
    }
    ck_assert_int_eq(munmap(launch->memory, REGIONS * REGION_BYTES), 0);
    free(launch->stores);
    free(launch);
    return compared;
}
