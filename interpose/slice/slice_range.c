/*
 * The slice of ranges, see slice.h: each thread has the lowest and the highest address of each
 * report in registers, and adds them to the results at its end, if they are not there already. A
 * thread that gives up reports everything.
 */
#include "interpose/slice/slice_parts.h"

#include <inttypes.h>

static void write_start(const struct slice_writer *writer)
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

static void write_site(const struct slice_writer *writer, const struct slice_site *site)
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

static void write_end(const struct slice_writer *writer)
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

const struct slice_form slice_range_form = {"slice", write_start, write_site, write_end};
