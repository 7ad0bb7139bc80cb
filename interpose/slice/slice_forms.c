/* The two kinds of slices, see slice.h: what each does about the accesses of its kernel. */
#include "interpose/slice/slice_parts.h"

#include <inttypes.h>

/*
 * The slice of ranges: each thread has the lowest and the highest address of each report in
 * registers, and adds them to the results at its end, if they are not there already. A thread that
 * gives up reports everything.
 */

static void write_range_start(const struct slice_writer *writer)
{
    size_t count = writer->slicer->slice->report_count;

    fprintf(writer->out,
            "    .reg .pred %%better;\n    .reg .b64 %%at, %%by, %%seen;\n"
            "    .reg .b64 %%lowest<%zu>, %%end<%zu>;\n",
            count, count);
    for (size_t i = 0; i < count; i++) {
        fprintf(writer->out, "    mov.b64 %%lowest%zu, -1;\n    mov.b64 %%end%zu, 0;\n", i, i);
    }
}

/* Moves %at from the first byte of an access beyond the last. */
static void write_extent(const struct slice_writer *writer, const struct access *access)
{
    const struct ptx_operand *stride = access->stride;
    uint64_t bytes = access->is_tile ? access->line_bytes : access->bytes;
    unsigned apart = access->is_tile ? (access->line_count - 1) * access->bytes : 0;

    if (access->length != NULL && access->length->kind == OPERAND_NUMBER) {
        bytes = (uint32_t)access->length->number;
    } else if (access->length != NULL) {
        fprintf(writer->out,
                "    cvt.u64.u32 %%by, %%s%" PRIu32 ";\n    add.s64 %%at, %%at, %%by;\n",
                access->length->index);
        bytes = 0;
    } else if (access->is_tile && stride == NULL) {
        bytes *= access->line_count;
    } else if (access->is_tile && stride->kind == OPERAND_NUMBER) {
        bytes += (uint64_t)(uint32_t)stride->number * apart;
    } else if (access->is_tile) {
        fprintf(writer->out,
                "    mul.wide.u32 %%by, %%s%" PRIu32 ", %u;\n    add.s64 %%at, %%at, %%by;\n",
                stride->index, apart);
    }
    fprintf(writer->out, "    add.s64 %%at, %%at, %" PRIu64 ";\n    ", bytes);
}

static void write_range_site(const struct slice_writer *writer, const struct slice_site *site)
{
    const struct ptx_instruction *instruction = site->access.instruction;
    bool is_guarded = instruction->predicate != PTX_NONE &&
                      slice_unknown(writer->slicer, instruction, instruction->predicate) == 0;

    fprintf(writer->out, "    add.s64 %%at, %%s%" PRIu32 ", %" PRId64 ";\n    ",
            site->access.address->index, site->access.address->number);
    if (is_guarded) {
        slice_write_guard(writer, instruction);
    }
    fprintf(writer->out, "min.u64 %%lowest%" PRIu32 ", %%lowest%" PRIu32 ", %%at;\n", site->report,
            site->report);
    write_extent(writer, &site->access);
    if (is_guarded) {
        slice_write_guard(writer, instruction);
    }
    fprintf(writer->out, "max.u64 %%end%" PRIu32 ", %%end%" PRIu32 ", %%at;\n", site->report,
            site->report);
}

/* A value that no other thread has improved on yet goes to the results. */
static void write_result(const struct slice_writer *writer, size_t report, const char *name,
                         const char *better, const char *function, unsigned offset)
{
    fprintf(writer->out, "    ld.volatile.global.u64 %%seen, [%%at+%zu];\n", 16 * report + offset);
    fprintf(writer->out, "    setp.%s.u64 %%better, %%%s%zu, %%seen;\n", better, name, report);
    fprintf(writer->out, "    @%%better red.global.%s.u64 [%%at+%zu], %%%s%zu;\n", function,
            16 * report + offset, name, report);
}

static void write_range_end(const struct slice_writer *writer)
{
    fputs("    ld.param.u64 %at, [slice_results];\n    cvta.to.global.u64 %at, %at;\n",
          writer->out);
    for (size_t i = 0; i < writer->slicer->slice->report_count; i++) {
        write_result(writer, i, "lowest", "lt", "min", 0);
        write_result(writer, i, "end", "gt", "max", 8);
    }
    fputs("    ret;\n", writer->out);
    if (!writer->gives_up) {
        return;
    }
    fputs("GIVE_UP:\n", writer->out);
    for (size_t i = 0; i < writer->slicer->slice->report_count; i++) {
        fprintf(writer->out, "    mov.b64 %%lowest%zu, 0;\n    mov.b64 %%end%zu, -1;\n", i, i);
    }
    fprintf(writer->out, "    bra B%zu;\n", writer->slicer->flow.graph.block_count);
}

const struct slice_form slice_range_form = {"slice", write_range_start, write_range_site,
                                            write_range_end};

/*
 * The slice of coverage: the part of the kernel that its exact stores need, which sets a bit per
 * granule that is stored to. A store counts if it happens for certain: its address, its predicate
 * and all branches that decide about it are known, and no function that the kernel calls can end a
 * thread. So the slice takes no branch both ways.
 *
 * What else reaches the same bytes depends on the pointers' values, and is the caller's matter.
 */

enum {
    WINDOW_BYTES = sizeof(struct slice_window),
    STORE_BYTES_MOST = SLICE_WINDOW_ALIGNMENT, /* its granules lie in one word of the bitmap */
};

/* Whether a function that is called may end the thread; what would run after it does not, then. A
   trap is no matter: it fails the launch. */
static bool may_end_in_call(const struct slicer *slicer)
{
    const struct ptx_module *module = slicer->module;
    bool has_call = false;

    for (size_t i = 0; i < slicer->function->instruction_count; i++) {
        has_call |= slicer->function->instructions[i].effect == EFFECT_CALL;
    }
    for (size_t i = 0; has_call && i < module->function_count; i++) {
        const struct ptx_function *function = &module->functions[i];

        for (size_t j = 0; !function->is_kernel && j < function->instruction_count; j++) {
            if (span_is(function->instructions[j].opcode, "exit")) {
                return true;
            }
        }
    }
    return false;
}

/* Which bytes after its address a store writes, as bits: all, unless elements of a vector are left
   out ("_"). 0: not known. */
static uint64_t stored_bytes(const struct slicer *slicer, const struct slice_site *site)
{
    const struct ptx_instruction *instruction = site->access.instruction;
    const struct ptx_operand *operands = slicer->function->operands + instruction->operand_first;
    unsigned elements = ptx_opcode_elements(instruction->opcode);
    unsigned element_bytes = site->access.bytes / elements;
    uint64_t bytes = 0;
    unsigned element = 0;

    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].position == 1) {
            if (operands[i].kind == OPERAND_REGISTER || operands[i].kind == OPERAND_NUMBER) {
                bytes |= (((uint64_t)1 << element_bytes) - 1) << element * element_bytes;
            }
            element++;
        }
    }
    return element == elements ? bytes : 0;
}

/* Whether an access is a store that happens for certain. */
static bool is_counted(const struct slicer *slicer, const struct slice_site *site)
{
    return site->report != PTX_NONE && !slicer->slice->reports[site->report].is_atomic &&
           !site->is_may && site->access.instruction->effect == EFFECT_STORE &&
           site->access.bytes <= STORE_BYTES_MOST && (site->words & slicer->slice->whole) == 0 &&
           stored_bytes(slicer, site) != 0;
}

/* Finds the granule of each report. False: there is nothing to count. */
static bool find_granules(struct slicer *slicer)
{
    bool has_counted = false;

    for (size_t i = 0; i < slicer->site_count; i++) {
        struct slice_site *site = &slicer->sites[i];
        struct slice_report *report;
        unsigned bytes;

        site->is_counted = is_counted(slicer, site);
        if (!site->is_counted) {
            continue;
        }
        report = &slicer->slice->reports[site->report];
        bytes = site->access.bytes;
        if (stored_bytes(slicer, site) + 1 != (uint64_t)1 << bytes) {
            bytes /= ptx_opcode_elements(site->access.instruction->opcode);
        }
        if (report->granule_bytes == 0 || bytes < report->granule_bytes) {
            report->granule_bytes = bytes;
        }
        has_counted = true;
    }
    return has_counted;
}

/* The granules that a store writes, as bits. */
static uint32_t granules_of(const struct slicer *slicer, const struct slice_site *site)
{
    unsigned granule = slicer->slice->reports[site->report].granule_bytes;
    uint64_t bytes = stored_bytes(slicer, site);
    uint32_t granules = 0;

    for (unsigned i = 0; i < site->access.bytes / granule; i++) {
        granules |= (uint32_t)(bytes >> i * granule & 1) << i;
    }
    return granules;
}

static void write_cover_start(const struct slice_writer *writer)
{
    const struct slice *slice = writer->slicer->slice;

    fprintf(writer->out,
            "    .reg .pred %%counts;\n    .reg .b32 %%shift, %%mask, %%seen;\n"
            "    .reg .b64 %%at, %%low;\n    .reg .b64 %%base<%zu>, %%count<%zu>, %%bits<%zu>;\n"
            "    ld.param.u64 %%at, [slice_results];\n    cvta.to.global.u64 %%at, %%at;\n",
            slice->report_count, slice->report_count, slice->report_count);
    for (size_t i = 0; i < slice->report_count; i++) {
        if (slice->reports[i].granule_bytes != 0) {
            fprintf(writer->out,
                    "    ld.global.u64 %%base%zu, [%%at+%zu];\n"
                    "    ld.global.u64 %%count%zu, [%%at+%zu];\n"
                    "    ld.global.u64 %%bits%zu, [%%at+%zu];\n",
                    i, i * WINDOW_BYTES + offsetof(struct slice_window, base), i,
                    i * WINDOW_BYTES + offsetof(struct slice_window, count), i,
                    i * WINDOW_BYTES + offsetof(struct slice_window, bits));
            fprintf(writer->out, "    cvta.to.global.u64 %%bits%zu, %%bits%zu;\n", i, i);
        }
    }
}

/* Whether the store counts: in the window, by its own predicate, and aligned, as all are that the
   device carries out. Leaves its offset in %at. */
static void write_test(const struct slice_writer *writer, const struct slice_site *site)
{
    const struct ptx_instruction *instruction = site->access.instruction;
    unsigned granule = writer->slicer->slice->reports[site->report].granule_bytes;
    int shift = __builtin_ctz(granule);

    fprintf(writer->out,
            "    add.s64 %%at, %%s%" PRIu32 ", %" PRId64 ";\n"
            "    sub.s64 %%at, %%at, %%base%" PRIu32 ";\n"
            "    and.b64 %%low, %%at, %u;\n    shr.u64 %%at, %%at, %d;\n",
            site->access.address->index, site->access.address->number, site->report,
            site->access.bytes - 1, shift);
    if (instruction->predicate == PTX_NONE) {
        fputs("    setp.eq.u64 %counts, %low, 0;\n", writer->out);
    } else {
        fprintf(writer->out, "    setp.eq.and.u64 %%counts, %%low, 0, %s%%s%" PRIu32 ";\n",
                instruction->is_negated ? "!" : "", instruction->predicate);
    }
    fprintf(writer->out, "    setp.lt.and.u64 %%counts, %%at, %%count%" PRIu32 ", %%counts;\n",
            site->report);
}

/* Sets the bits, which lie in one word; not where they are set already, since an atomic is slower
   than a load. */
static void write_cover_site(const struct slice_writer *writer, const struct slice_site *site)
{
    if (!site->is_counted) {
        return;
    }
    write_test(writer, site);
    fprintf(writer->out,
            "    @!%%counts bra S%" PRIu32 ";\n"
            "    cvt.u32.u64 %%shift, %%at;\n    and.b32 %%shift, %%shift, 31;\n"
            "    mov.b32 %%mask, %" PRIu32 ";\n    shl.b32 %%mask, %%mask, %%shift;\n"
            "    shr.u64 %%at, %%at, 5;\n    shl.b64 %%at, %%at, 2;\n"
            "    add.s64 %%at, %%at, %%bits%" PRIu32 ";\n",
            site->instruction, granules_of(writer->slicer, site), site->report);
    fprintf(writer->out,
            "    ld.volatile.global.u32 %%seen, [%%at];\n    and.b32 %%seen, %%seen, %%mask;\n"
            "    setp.ne.u32 %%counts, %%seen, %%mask;\n"
            "    @%%counts red.global.or.b32 [%%at], %%mask;\nS%" PRIu32 ":\n",
            site->instruction);
}

static void write_cover_end(const struct slice_writer *writer)
{
    fputs(writer->gives_up ? "GIVE_UP:\n    ret;\n" : "    ret;\n", writer->out);
}

static const struct slice_form cover_form = {"cover", write_cover_start, write_cover_site,
                                             write_cover_end};

capu_status slice_cover(struct slicer *slicer)
{
    struct slice *slice = slicer->slice;

    if (slicer->data_words != 0 || may_end_in_call(slicer) || !find_granules(slicer)) {
        return CAPU_OK;
    }
    slice_clear_all(slicer);
    for (size_t i = 0; i < slicer->site_count; i++) {
        if (slicer->sites[i].is_counted) {
            slice_find_part(slicer, &slicer->sites[i]);
            slice_add_part(slicer);
        }
    }
    slice_list_registers(slicer);
    return slice_write(slicer, &cover_form, &slice->cover, &slice->cover_bytes);
}
