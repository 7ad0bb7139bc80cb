/*
 * Errors in libcapuchin-interpose, each of which a test has to find. The library is linked once
 * more with some of its functions wrapped (ld --wrap); SHIM_ERROR names the error that is made. If
 * it is not set, the library is as it always is.
 */
#include "shim/core/core.h"
#include "shim/core/iteration.h"
#include "shim/core/operands.h"
#include "shim/launch/launch.h"
#include "shim/launch/reach_parts.h"
#include "shim/libraries/blas.h"

#include "interpose/flow/flow.h"
#include "interpose/period/period.h"

#include <stdlib.h>
#include <string.h>

static bool is_error(const char *name)
{
    const char *made = getenv("SHIM_ERROR");

    return made != NULL && strcmp(made, name) == 0;
}

/* Operands that are missing, too short, or have the wrong role; for all that is done with them. */
CUresult __real_core_begin(const struct operands *operands, const char *name);
CUresult __wrap_core_begin(const struct operands *operands, const char *name);
CUresult __wrap_core_begin(const struct operands *operands, const char *name)
{
    struct operands *changed = (struct operands *)operands;
    size_t count = 0;

    for (size_t i = 0; i < operands->count; i++) {
        capu_operand operand = operands->list[i];
        bool is_update = operand.role == CAPU_UPDATE;

        if (is_error("missed_read") && operand.role == CAPU_READ) {
            continue;
        }
        operand.role = is_update && is_error("missed_store")  ? CAPU_READ
                       : is_update && is_error("whole_write") ? CAPU_WRITE
                                                              : operand.role;
        operand.bytes /= operand.bytes > 8 && is_error("short_half") ? 2 : 1;
        operand.bytes -= operand.bytes > 4 && is_error("short_word") ? 4 : 0;
        changed->list[count++] = operand;
    }
    changed->count = count;
    return __real_core_begin(operands, name);
}

/* As if beta were 0. */
void __real_blas_add_written(struct operands *operands, const struct blas_matrix *matrix,
                             bool keeps);
void __wrap_blas_add_written(struct operands *operands, const struct blas_matrix *matrix,
                             bool keeps);
void __wrap_blas_add_written(struct operands *operands, const struct blas_matrix *matrix,
                             bool keeps)
{
    __real_blas_add_written(operands, matrix, keeps && !is_error("beta_missed"));
}

/* As on a device that cannot watch accesses, if SHIM_UNWATCHED is set. */
bool __real_core_is_host(void);
bool __wrap_core_is_host(void);
bool __wrap_core_is_host(void)
{
    return getenv("SHIM_UNWATCHED") == NULL && __real_core_is_host();
}

/* Plans give up what they do not expect to be read. */
capu_status __real_capu_context_create(const capu_config *config, capu_context **out);
capu_status __wrap_capu_context_create(const capu_config *config, capu_context **out);
capu_status __wrap_capu_context_create(const capu_config *config, capu_context **out)
{
    capu_config other = *config;

    if (is_error("kept_nothing")) {
        (void)capu_config_set(&other, "keep_contents", "0");
    }
    other.strict = config->strict && getenv("SHIM_UNWATCHED") == NULL;
    return __real_capu_context_create(&other, out);
}

/* Iterations that free different memory look the same. */
void __real_iteration_free(capu_context *context, uint64_t ordinal, uint64_t born);
void __wrap_iteration_free(capu_context *context, uint64_t ordinal, uint64_t born);
void __wrap_iteration_free(capu_context *context, uint64_t ordinal, uint64_t born)
{
    if (!is_error("silent_free")) {
        __real_iteration_free(context, ordinal, born);
    }
}

/* Iterations of all lengths, whatever the program does. */
enum period_step __real_period_next(struct period *period, const struct period_event *event);
enum period_step __wrap_period_next(struct period *period, const struct period_event *event);
enum period_step __wrap_period_next(struct period *period, const struct period_event *event)
{
    enum { SHORT = 11, LONG = 17, END = 29 };
    static unsigned events;
    enum period_step found = __real_period_next(period, event);

    if (!is_error("wrong_period")) {
        return found;
    }
    events++;
    return events % SHORT == 0 || events % LONG == 0 ? PERIOD_BEGINS
           : events % END == 0                       ? PERIOD_ENDS
                                                     : PERIOD_GOES_ON;
}

/* What a slice has found is taken for launches that differ in a parameter, or in their shape; and
   operands for launches whose pointers differ. */
void __real_reach_find_key(const struct code_kernel *kernel, const struct launch *launch,
                           const unsigned char *block, struct reach_key *key);
void __wrap_reach_find_key(const struct code_kernel *kernel, const struct launch *launch,
                           const unsigned char *block, struct reach_key *key);
void __wrap_reach_find_key(const struct code_kernel *kernel, const struct launch *launch,
                           const unsigned char *block, struct reach_key *key)
{
    struct launch other = *launch;
    unsigned char *row;

    if (is_error("stale_shape")) {
        memset(other.grid, 0, sizeof(other.grid));
        memset(other.block, 0, sizeof(other.block));
    }
    __real_reach_find_key(kernel, &other, block, key);
    row = key->key + key->results_bytes - kernel->reach->row_bytes;
    for (size_t i = 0; i < kernel->reach->slice.input_count; i++) {
        const struct slice_input *input = &kernel->reach->slice.inputs[i];
        bool is_number = input->kind == SLICE_INPUT_VALUE && input->bytes < 8;
        size_t bytes = input->kind == SLICE_INPUT_VALUE  ? input->bytes
                       : input->kind == SLICE_INPUT_NULL ? 1
                                                         : sizeof(input->mask);

        if (is_error(is_number ? "stale_number" : "stale_pointer")) {
            memset(row, 0, bytes);
        }
        row += bytes;
    }
    if (is_error("stale_pointer")) {
        memset(key->key + key->results_bytes, 0, key->bytes - key->results_bytes);
    }
}

/* As if no variable had changed. */
uint64_t __real_code_version(void);
uint64_t __wrap_code_version(void);
uint64_t __wrap_code_version(void)
{
    return is_error("stale_variable") ? 1 : __real_code_version();
}

/* As if no index had changed. */
uint64_t __real_reach_read_data(const struct code_kernel *kernel, const struct launch *launch,
                                const unsigned char *block, const struct operands *list,
                                const struct reach_result *results, struct reach_result *read,
                                bool *widens);
uint64_t __wrap_reach_read_data(const struct code_kernel *kernel, const struct launch *launch,
                                const unsigned char *block, const struct operands *list,
                                const struct reach_result *results, struct reach_result *read,
                                bool *widens);
uint64_t __wrap_reach_read_data(const struct code_kernel *kernel, const struct launch *launch,
                                const unsigned char *block, const struct operands *list,
                                const struct reach_result *results, struct reach_result *read,
                                bool *widens)
{
    static struct reach_result kept[REACH_REPORTS_MOST];
    static const struct code_kernel *of;
    static uint64_t known;

    if (is_error("stale_index") && kernel == of) {
        memcpy(read, kept, sizeof(kept));
        return known;
    }
    known = __real_reach_read_data(kernel, launch, block, list, results, read, widens);
    memcpy(kept, read, sizeof(kept));
    of = kernel;
    return known;
}

/* As if all of what a store's pointer reaches were stored to. */
void __real_cover_add_bits(struct cover *cover, const uint32_t *words, uint64_t count,
                           uint64_t base, uint32_t granule_bytes);
void __wrap_cover_add_bits(struct cover *cover, const uint32_t *words, uint64_t count,
                           uint64_t base, uint32_t granule_bytes);
void __wrap_cover_add_bits(struct cover *cover, const uint32_t *words, uint64_t count,
                           uint64_t base, uint32_t granule_bytes)
{
    if (is_error("gaps_missed")) {
        cover_add(cover, base, base + count * granule_bytes);
    } else {
        __real_cover_add_bits(cover, words, count, base, granule_bytes);
    }
}

/* As if nothing were read that is stored to. */
uint64_t __real_reach_find_writes(struct operands *list, const struct operands *reads,
                                  struct operands *covered);
uint64_t __wrap_reach_find_writes(struct operands *list, const struct operands *reads,
                                  struct operands *covered);
uint64_t __wrap_reach_find_writes(struct operands *list, const struct operands *reads,
                                  struct operands *covered)
{
    static const struct operands none;

    return __real_reach_find_writes(list, is_error("reads_missed") ? &none : reads, covered);
}

/* As if all instructions did the same each time. */
bool __real_repeat_is_same(const struct ptx_module *module, const struct ptx_function *function);
bool __wrap_repeat_is_same(const struct ptx_module *module, const struct ptx_function *function);
bool __wrap_repeat_is_same(const struct ptx_module *module, const struct ptx_function *function)
{
    return is_error("constant_missed") || __real_repeat_is_same(module, function);
}

/* As if launches loaded from the program's allocations only. */
bool __real_recompute_takes(const struct code_kernel *kernel, const struct launch *launch,
                            const struct operands *operands);
bool __wrap_recompute_takes(const struct code_kernel *kernel, const struct launch *launch,
                            const struct operands *operands);
bool __wrap_recompute_takes(const struct code_kernel *kernel, const struct launch *launch,
                            const struct operands *operands)
{
    struct operands other = *operands;

    other.has_others &= !is_error("pinned_missed");
    return __real_recompute_takes(kernel, launch, &other);
}
