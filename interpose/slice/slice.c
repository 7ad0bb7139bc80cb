/*
 * Slices, see slice.h: which accesses can be reported, by which reports. An access that cannot be
 * makes the pointers that its address comes from reach over their whole allocations; then other
 * accesses from them need not be reported either, and what is no longer needed may lift a limit
 * from what is left. So that is repeated until nothing changes.
 */
#include "interpose/slice/slice_parts.h"

#include "base/array.h"

#include <stdlib.h>

enum { PARAMETER_BYTES_MOST = 4096 }; /* for all architectures and versions of PTX */

/* Lists the accesses that are or may be to memory of the parameters. */
static capu_status list_sites(struct slicer *slicer)
{
    for (uint32_t i = 0; i < slicer->function->instruction_count; i++) {
        struct slice_site site = {.instruction = i, .report = PTX_NONE};

        if (!access_of(slicer->function, &slicer->function->instructions[i], &site.access) ||
            (site.access.space != SPACE_GENERIC && site.access.space != SPACE_GLOBAL)) {
            continue;
        }
        site.words = slice_words_of(slicer, &site.access);
        if (site.words == 0 ||
            (slicer->data_words != 0 && (site.words & slicer->data_words) == 0)) {
            continue;
        }
        if (!array_reserve(&slicer->sites, &slicer->site_capacity, slicer->site_count + 1,
                           sizeof(*slicer->sites))) {
            return CAPU_NO_HOST_MEMORY;
        }
        slicer->sites[slicer->site_count++] = site;
    }
    return CAPU_OK;
}

/* Which of not_known decides where each branch goes. */
static void find_branch_flags(struct slicer *slicer)
{
    const struct ptx_graph *graph = &slicer->flow.graph;

    for (size_t i = 0; i < graph->block_count; i++) {
        const struct ptx_instruction *last =
            &slicer->function->instructions[graph->blocks[i].end - 1];
        const struct ptx_operand *first = slicer->function->operands + last->operand_first;

        if (graph->blocks[i].successor_count < 2) {
            continue;
        }
        if (last->predicate != PTX_NONE) {
            slicer->branch_flags[i] |= slice_unknown(slicer, last, last->predicate);
        }
        if (last->effect == EFFECT_BRANCH_TABLE) {
            slicer->branch_flags[i] |= first->kind == OPERAND_REGISTER
                                           ? slice_unknown(slicer, last, first->index)
                                           : (uint32_t)FLOW_OPCODE;
        }
    }
}

static void note_whole(struct slicer *slicer, const struct slice_site *site)
{
    for (unsigned i = 0; i < slicer->kernel->word_count; i++) {
        if ((site->words >> i & 1) != 0 && (slicer->slice->whole >> i & 1) == 0) {
            slicer->slice->whole |= (uint64_t)1 << i;
            slicer->slice->reasons[i] = site->reason;
        }
    }
}

/* Finds what all accesses need whose pointers are not whole already. True: nothing has changed. */
static bool find_parts(struct slicer *slicer)
{
    uint64_t whole = slicer->slice->whole;

    slice_clear_all(slicer);
    for (size_t i = 0; i < slicer->site_count; i++) {
        struct slice_site *site = &slicer->sites[i];

        if ((site->words & ~whole) == 0) {
            continue;
        }
        slice_find_part(slicer, site);
        if (site->reason != NULL) {
            note_whole(slicer, site);
        } else {
            slice_add_part(slicer);
        }
    }
    return !slice_bar_bridges(slicer) && slicer->slice->whole == whole;
}

/* Whether a report is for the accesses that a site is one of. */
static bool is_report_of(const struct slice_report *report, const struct slice_site *site)
{
    return report->words == site->words && report->is_may == site->is_may &&
           report->is_stored == (site->access.is_written || site->access.is_atomic);
}

/* Gives each site that needs one a report. */
static capu_status assign_reports(struct slicer *slicer)
{
    struct slice *slice = slicer->slice;

    for (size_t i = 0; i < slicer->site_count; i++) {
        struct slice_site *site = &slicer->sites[i];
        uint32_t index = 0;

        if ((site->words & ~slice->whole) == 0) {
            continue;
        }
        while (index < slice->report_count && !is_report_of(&slice->reports[index], site)) {
            index++;
        }
        if (index == slice->report_count) {
            if (!array_reserve(&slice->reports, &slice->report_capacity, index + 1,
                               sizeof(*slice->reports))) {
                return CAPU_NO_HOST_MEMORY;
            }
            slice->reports[slice->report_count++] = (struct slice_report){
                .words = site->words,
                .is_may = site->is_may,
                .is_stored = site->access.is_written || site->access.is_atomic};
        }
        slice->reports[index].is_atomic |= site->access.is_atomic;
        site->report = index;
    }
    return CAPU_OK;
}

static bool make_part(const struct slicer *slicer, struct slice_part *part)
{
    size_t blocks = slicer->flow.graph.block_count + 1;

    part->registers = calloc(slicer->function->register_count + 1, sizeof(*part->registers));
    part->instructions =
        calloc(slicer->function->instruction_count + 1, sizeof(*part->instructions));
    part->blocks = calloc(blocks, sizeof(*part->blocks));
    part->branches = calloc(blocks, sizeof(*part->branches));
    return part->registers != NULL && part->instructions != NULL && part->blocks != NULL &&
           part->branches != NULL;
}

static void free_part(const struct slice_part *part)
{
    free(part->registers);
    free(part->instructions);
    free(part->blocks);
    free(part->branches);
}

static capu_status make_slicer(struct slicer *slicer)
{
    size_t blocks;
    capu_status status = flow_build(slicer->module, slicer->function, &slicer->flow);

    if (status != CAPU_OK) {
        return status;
    }
    blocks = slicer->flow.graph.block_count + 1;
    slicer->branch_flags = calloc(blocks, sizeof(*slicer->branch_flags));
    slicer->is_barred = calloc(blocks, sizeof(*slicer->is_barred));
    if (slicer->branch_flags == NULL || slicer->is_barred == NULL ||
        !make_part(slicer, &slicer->all) || !make_part(slicer, &slicer->one)) {
        return CAPU_NO_HOST_MEMORY;
    }
    status = slice_find_variables(slicer);
    if (status != CAPU_OK) {
        return status;
    }
    find_branch_flags(slicer);
    status = slice_find_bridges(slicer);
    return status == CAPU_OK ? list_sites(slicer) : status;
}

static void finish_slicer(struct slicer *slicer)
{
    for (size_t i = 0; i < slicer->bridge_count; i++) {
        free(slicer->bridges[i].sides);
    }
    free(slicer->bridges);
    free(slicer->sites);
    free(slicer->branch_flags);
    free(slicer->is_barred);
    free(slicer->variables);
    free_part(&slicer->all);
    free_part(&slicer->one);
    flow_finish(&slicer->flow);
}

static capu_status refuse_size(const struct kernel *kernel, struct error_text *problem)
{
    return error_text_set(problem, CAPU_UNSUPPORTED,
                          "%.*s has no slice: it has more than %d pointers, or no room for a "
                          "parameter",
                          (int)kernel->name.length, kernel->name.text, SLICE_WORDS_MOST);
}

static capu_status make_slice(struct slicer *slicer, struct error_text *problem)
{
    struct slice *slice = slicer->slice;
    struct span name = slicer->kernel->name;
    capu_status status = make_slicer(slicer);

    if (status != CAPU_OK) {
        return error_text_set(problem, status, "the slice of %.*s: no memory", (int)name.length,
                              name.text);
    }
    while (!find_parts(slicer)) {
    }
    status = assign_reports(slicer);
    if (status == CAPU_OK && slice->report_count == 0) {
        const char *reason = "it accesses nothing through a pointer";

        for (size_t i = SLICE_WORDS_MOST; i > 0; i--) {
            reason = slice->reasons[i - 1] != NULL ? slice->reasons[i - 1] : reason;
        }
        return error_text_set(problem, CAPU_UNSUPPORTED, "%.*s has no slice: %s", (int)name.length,
                              name.text, reason);
    }
    slice_list_registers(slicer);
    status = status == CAPU_OK ? slice_list_sources(slicer) : status;
    if (status == CAPU_OK && slice->parameter_bytes > PARAMETER_BYTES_MOST) {
        return refuse_size(slicer->kernel, problem);
    }
    status = status == CAPU_OK ? slice_find_inputs(slicer) : status;
    if (status == CAPU_OK) {
        status = slice_write(slicer, &slice_range_form, &slice->text, &slice->text_bytes);
    }
    return status == CAPU_OK ? slice_cover(slicer) : status;
}

capu_status slice_emit(const struct ptx_module *module, const struct kernel *kernel,
                       struct slice *slice, struct error_text *problem)
{
    static const struct slice_wish nothing = {.variables = false};

    return slice_emit_with(module, kernel, &nothing, slice, problem);
}

capu_status slice_emit_with(const struct ptx_module *module, const struct kernel *kernel,
                            const struct slice_wish *wish, struct slice *slice,
                            struct error_text *problem)
{
    struct slicer slicer = {.module = module,
                            .function = ptx_find(module, kernel->name),
                            .kernel = kernel,
                            .slice = slice,
                            .reads_variables = wish->variables && !kernel->writes_variables,
                            .data_words = kernel->waits ? 0 : wish->data_words, /* it could hang */
                            .not_known = FLOW_UNKNOWN};
    int length = (int)kernel->name.length;
    capu_status status;

    *slice = (struct slice){0};
    slicer.not_known |= slicer.reads_variables ? 0 : FLOW_VARIABLE;
    slicer.not_known |= slicer.data_words != 0 ? 0 : FLOW_DATA;
    if (!kernel->is_closed || slicer.function == NULL) {
        return error_text_set(problem, CAPU_UNSUPPORTED, "%.*s has no slice: it is open", length,
                              kernel->name.text);
    }
    slice->results_offset = (kernel->parameter_bytes + 7) / 8 * 8;
    slice->parameter_bytes = slice->results_offset + 8;
    if (kernel->word_count > SLICE_WORDS_MOST || slice->parameter_bytes > PARAMETER_BYTES_MOST) {
        return refuse_size(kernel, problem);
    }
    status = make_slice(&slicer, problem);
    finish_slicer(&slicer);
    if (status != CAPU_OK) {
        slice_finish(slice);
    }
    return status;
}

void slice_finish(struct slice *slice)
{
    free(slice->text);
    free(slice->cover);
    free(slice->reports);
    free(slice->inputs);
    for (size_t i = 0; i < slice->source_count; i++) {
        free(slice->sources[i].variable);
    }
    free(slice->sources);
    *slice = (struct slice){0};
}
