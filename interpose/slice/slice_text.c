/*
 * Slices as PTX, see slice.h. Blocks keep their order, and get a label each. Registers are declared
 * by size, and named by number, so that scopes do not matter. What happens at an access, and at the
 * end of a thread, is the matter of the form: slice_forms.c.
 *
 * Where a slice takes both ways of a branch, it counts the rounds of loops. After ROUNDS_MOST of
 * them the thread gives up.
 */
#define _GNU_SOURCE /* open_memstream */
#include "interpose/slice/slice_parts.h"

#include "interpose/flow/flow_parts.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    ROUNDS_MOST = 1 << 20,
    THREADS_MOST = 1024, /* of a block, if the kernel has no bounds of its own */
};

void slice_head(const struct ptx_module *module, char *text, size_t bytes)
{
    (void)snprintf(text, bytes, ".version %u.%u\n.target sm_%u\n.address_size 64\n",
                   module->version / 10, module->version % 10, module->architecture);
}

static void write_span(const struct slice_writer *writer, struct span span)
{
    (void)fwrite(span.text, 1, span.length, writer->out);
}

/* Operands. */

static void write_number(const struct slice_writer *writer, const struct ptx_operand *operand)
{
    if (operand->form == NUMBER_F32) {
        fprintf(writer->out, "0f%08" PRIX32, (uint32_t)operand->number);
    } else if (operand->form == NUMBER_F64) {
        fprintf(writer->out, "0d%016" PRIX64, (uint64_t)operand->number);
    } else {
        fprintf(writer->out, "%" PRId64, operand->number);
    }
}

static void write_operand(const struct slice_writer *writer, const struct ptx_operand *operand)
{
    fputs(operand->is_address ? "[" : "", writer->out);
    fputs(operand->is_negated ? "!" : "", writer->out);
    if (operand->kind == OPERAND_NUMBER) {
        write_number(writer, operand);
    } else if (operand->kind == OPERAND_REGISTER) {
        fprintf(writer->out, "%%s%" PRIu32, operand->index);
    } else {
        write_span(writer, operand->name);
    }
    if (operand->kind != OPERAND_NUMBER && operand->number != 0) {
        fprintf(writer->out, "+%" PRId64, operand->number);
    }
    fputs(operand->is_address ? "]" : "", writer->out);
}

/* The signs around and between the elements of a list: "{a, b}" or "a|b". */
struct list_signs {
    const char *begin, *between, *end;
};

static struct list_signs signs_of(const struct ptx_instruction *instruction, unsigned position)
{
    bool is_pair = position == 0 && (flow_starts_with(instruction->opcode, "setp") ||
                                     flow_starts_with(instruction->opcode, "lop3"));

    return is_pair ? (struct list_signs){"", "|", ""} : (struct list_signs){"{", ", ", "}"};
}

void slice_write_guard(const struct slice_writer *writer, const struct ptx_instruction *instruction)
{
    if (instruction->predicate != PTX_NONE) {
        fprintf(writer->out, "@%s%%s%" PRIu32 " ", instruction->is_negated ? "!" : "",
                instruction->predicate);
    }
}

static void write_instruction(const struct slice_writer *writer,
                              const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands =
        writer->slicer->function->operands + instruction->operand_first;

    fputs("    ", writer->out);
    slice_write_guard(writer, instruction);
    write_span(writer, instruction->opcode);
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        struct list_signs signs = signs_of(instruction, operands[i].position);
        bool is_first = i == 0 || operands[i].position != operands[i - 1].position;
        bool is_last =
            i + 1 == instruction->operand_count || operands[i].position != operands[i + 1].position;

        fputs(i == 0 ? " " : is_first ? ", " : signs.between, writer->out);
        fputs(operands[i].is_list && is_first ? signs.begin : "", writer->out);
        write_operand(writer, &operands[i]);
        fputs(operands[i].is_list && is_last ? signs.end : "", writer->out);
    }
    fputs(";\n", writer->out);
}

/* Control flow. */

static void write_jump(const struct slice_writer *writer, uint32_t block, uint32_t to)
{
    fprintf(writer->out, "    bra B%" PRIu32 ";\n", slice_next_block(writer->slicer, block, to));
}

static void write_table(const struct slice_writer *writer, uint32_t index,
                        const struct ptx_instruction *branch)
{
    const struct ptx_graph *graph = &writer->slicer->flow.graph;
    const struct ptx_block *block = &graph->blocks[index];
    const struct ptx_operand *first = &writer->slicer->function->operands[branch->operand_first];
    uint32_t count = block->successor_count - (branch->predicate != PTX_NONE);

    fprintf(writer->out, "T%" PRIu32 ": .branchtargets ", index);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(
            writer->out, "%sB%" PRIu32, i == 0 ? "" : ", ",
            slice_next_block(writer->slicer, index, graph->successors[block->successor_first + i]));
    }
    fputs(";\n    ", writer->out);
    slice_write_guard(writer, branch);
    fprintf(writer->out, "brx.idx %%s%" PRIu32 ", T%" PRIu32 ";\n", first->index, index);
}

/* Before a branch that is kept. */
static void write_count(struct slice_writer *writer, uint32_t block)
{
    if (writer->slicer->flow.graph.blocks[block].loop != PTX_NONE &&
        slice_is_bridged(writer->slicer, block)) {
        fputs("    add.u32 %rounds, %rounds, 1;\n", writer->out);
        fprintf(writer->out, "    setp.ge.u32 %%is_done, %%rounds, %d;\n", ROUNDS_MOST);
        fputs("    @%is_done bra GIVE_UP;\n", writer->out);
        writer->gives_up = true;
    }
}

/* How a block ends. */
static void write_ways(struct slice_writer *writer, uint32_t index)
{
    const struct slicer *slicer = writer->slicer;
    const struct ptx_block *block = &slicer->flow.graph.blocks[index];
    const struct ptx_instruction *last = &slicer->function->instructions[block->end - 1];
    const uint32_t *ways = slicer->flow.graph.successors + block->successor_first;

    if (block->successor_count == 1) {
        write_jump(writer, index, ways[0]);
    } else if (slicer->all.branches[index] == SLICE_BRANCH_DROPPED) {
        write_jump(writer, index, block->meeting);
    } else if (slicer->all.branches[index] == SLICE_BRANCH_MAY) {
        fprintf(writer->out, "    bra B%" PRIu32 ";\n", slice_bridge_at(slicer, index)->first);
    } else if (last->effect == EFFECT_BRANCH_TABLE) {
        write_count(writer, index);
        write_table(writer, index, last);
        if (last->predicate != PTX_NONE) {
            write_jump(writer, index, ways[block->successor_count - 1]);
        }
    } else {
        write_count(writer, index);
        fputs("    ", writer->out);
        slice_write_guard(writer, last);
        fprintf(writer->out, "bra B%" PRIu32 ";\n", slice_next_block(slicer, index, ways[0]));
        write_jump(writer, index, ways[1]);
    }
}

static void write_any(struct slice_writer *writer, const struct ptx_instruction *instruction)
{
    if (slice_write_read(writer->slicer, writer->out, instruction)) {
        writer->gives_up = true;
    } else if (!slice_write_move(writer->slicer, writer->out, instruction)) {
        write_instruction(writer, instruction);
    }
}

static void write_body(struct slice_writer *writer)
{
    const struct slicer *slicer = writer->slicer;
    size_t site = 0;

    for (uint32_t i = 0; i < slicer->flow.graph.block_count; i++) {
        const struct ptx_block *block = &slicer->flow.graph.blocks[i];

        fprintf(writer->out, "B%" PRIu32 ":\n", i);
        for (uint32_t j = block->first; j < block->end; j++) {
            if (slicer->all.instructions[j]) {
                write_any(writer, &slicer->function->instructions[j]);
            }
            for (; site < slicer->site_count && slicer->sites[site].instruction == j; site++) {
                if (slicer->sites[site].report != PTX_NONE) {
                    writer->form->write_site(writer, &slicer->sites[site]);
                }
            }
        }
        write_ways(writer, i);
    }
}

/* Declarations. */

static void write_parameters(const struct slice_writer *writer)
{
    const struct ptx_function *function = writer->slicer->function;

    fputs(".visible .entry ", writer->out);
    write_span(writer, function->name);
    fprintf(writer->out, "_%s(\n", writer->form->name);
    for (size_t i = 0; i < function->parameter_count; i++) {
        const struct ptx_parameter *parameter = &function->parameters[i];

        fprintf(writer->out, "    .param .align %" PRIu32 " .b8 ", parameter->alignment);
        write_span(writer, parameter->name);
        fprintf(writer->out, "[%" PRIu32 "],\n", parameter->bytes);
    }
    fputs("    .param .u64 slice_results", writer->out);
    slice_write_source_parameters(writer->slicer, writer->out);
    /* With too many registers, it could not be launched with the blocks of its kernel. */
    fprintf(writer->out, ")\n.maxntid %" PRIu32 "\n{\n",
            function->threads_most != 0 ? function->threads_most : THREADS_MOST);
}

/* Declares the registers of the slice's instructions. */
static void write_registers(const struct slice_writer *writer)
{
    const struct slicer *slicer = writer->slicer;

    for (uint32_t i = 0; i < slicer->function->register_count; i++) {
        unsigned bits = slicer->function->registers[i].bits;

        if (!slicer->all.registers[i]) {
            continue;
        }
        if (bits == 1) {
            fprintf(writer->out, "    .reg .pred %%s%" PRIu32 ";\n", i);
        } else {
            fprintf(writer->out, "    .reg .b%u %%s%" PRIu32 ";\n", bits, i);
        }
    }
    fputs("    .reg .pred %is_done;\n    .reg .b32 %rounds;\n    mov.b32 %rounds, 0;\n",
          writer->out);
    slice_write_source_registers(slicer, writer->out);
}

capu_status slice_write(struct slicer *slicer, const struct slice_form *form, char **text,
                        size_t *bytes)
{
    struct slice_writer writer = {.slicer = slicer, .form = form};
    bool has_failed;

    writer.out = open_memstream(text, bytes);
    if (writer.out == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    write_parameters(&writer);
    write_registers(&writer);
    form->write_start(&writer);
    write_body(&writer);
    fprintf(writer.out, "B%zu:\n", slicer->flow.graph.block_count);
    form->write_end(&writer);
    fputs("}\n", writer.out);
    has_failed = ferror(writer.out) != 0;
    has_failed |= fclose(writer.out) != 0;
    return has_failed ? CAPU_NO_HOST_MEMORY : CAPU_OK;
}
