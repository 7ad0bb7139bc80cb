/*
 * What a slice reads besides parameters, see slice.h: variables of the module, and data that
 * pointers lead to. Each load is bounded: if its address is outside of what the slice was given,
 * the thread gives up. So a slice never reads what is not there, whatever the indices are.
 *
 * A variable has no address in a module that has only slices. Its address comes as a parameter, for
 * a constant, too, which is read as global memory then.
 */
#define _GNU_SOURCE /* memrchr */
#include "interpose/slice/slice_parts.h"

#include "interpose/flow/flow_parts.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEVERAL (PTX_NONE - 1)

static const struct ptx_operand *operands_of(const struct slicer *slicer,
                                             const struct ptx_instruction *instruction)
{
    return slicer->function->operands + instruction->operand_first;
}

static bool is_opcode(const struct ptx_instruction *instruction, const char *name)
{
    size_t length = strlen(name);

    return flow_starts_with(instruction->opcode, name) &&
           (instruction->opcode.length == length || instruction->opcode.text[length] == '.');
}

/* Variables. */

/* The variable whose address an operand is made from; PTX_NONE: none. */
static uint32_t variable_of(const struct slicer *slicer, const struct ptx_operand *operand)
{
    return operand->kind == OPERAND_VARIABLE   ? operand->index
           : operand->kind == OPERAND_REGISTER ? slicer->variables[operand->index]
                                               : PTX_NONE;
}

static uint32_t join_variables(uint32_t one, uint32_t other)
{
    return one == PTX_NONE || one == other ? other : other == PTX_NONE ? one : SEVERAL;
}

/* Gives the results of an instruction the variables of its sources. True: something is new. */
static bool walk_variables(const struct slicer *slicer, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands = operands_of(slicer, instruction);
    uint32_t variable = PTX_NONE;
    bool has_grown = false;

    if (!flow_has_result(instruction->effect) || instruction->effect == EFFECT_LOAD) {
        return false;
    }
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].position > 0) {
            variable = join_variables(variable, variable_of(slicer, &operands[i]));
        }
    }
    for (uint32_t i = 0; i < instruction->operand_count && operands[i].position == 0; i++) {
        if (operands[i].kind == OPERAND_REGISTER) {
            uint32_t *own = &slicer->variables[operands[i].index];
            uint32_t joined = join_variables(*own, variable);

            has_grown |= joined != *own;
            *own = joined;
        }
    }
    return has_grown;
}

capu_status slice_find_variables(struct slicer *slicer)
{
    size_t count = slicer->function->register_count;
    bool has_grown = true;

    slicer->variables = malloc((count + 1) * sizeof(*slicer->variables));
    if (slicer->variables == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        slicer->variables[i] = PTX_NONE;
    }
    while (has_grown) {
        has_grown = false;
        for (size_t i = 0; i < slicer->function->instruction_count; i++) {
            has_grown |= walk_variables(slicer, &slicer->function->instructions[i]);
        }
    }
    return CAPU_OK;
}

static bool is_usable(const struct slicer *slicer, uint32_t variable)
{
    const struct ptx_variable *what;

    if (!slicer->reads_variables || variable == PTX_NONE || variable == SEVERAL) {
        return false;
    }
    what = &slicer->module->variables[variable];
    return (what->space == SPACE_GLOBAL || what->space == SPACE_CONST) && !what->is_extern &&
           !what->is_managed;
}

bool slice_has_variable(const struct slicer *slicer, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands = operands_of(slicer, instruction);

    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (variable_of(slicer, &operands[i]) != PTX_NONE) {
            return true;
        }
    }
    return false;
}

bool slice_moves_variable(const struct slicer *slicer, const struct ptx_instruction *instruction)
{
    static const char *const moves[] = {"mov.u64",    "mov.b64", "mov.s64",  "cvta",
                                        "add.s64",    "add.u64", "mad.wide", "mad.lo.s64",
                                        "mad.lo.u64", "sub.s64", "sub.u64"};
    const struct ptx_operand *operands = operands_of(slicer, instruction);
    bool is_move = false;

    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        is_move |= is_opcode(instruction, moves[i]);
    }
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        /* Only a "mov" takes the address itself. */
        is_move &= operands[i].kind != OPERAND_VARIABLE ||
                   (is_opcode(instruction, "mov") && operands[i].position == 1);
        is_move &= operands[i].position == i && !operands[i].is_list;
        is_move &= variable_of(slicer, &operands[i]) == PTX_NONE ||
                   is_usable(slicer, variable_of(slicer, &operands[i]));
    }
    return is_move;
}

/* Loads. */

uint64_t slice_words_of(struct slicer *slicer, const struct access *access)
{
    const struct flow *flow = &slicer->flow;
    const struct flow_value *address =
        flow_address(&slicer->flow, access->instruction, access->address);
    uint64_t words = 0;

    for (size_t i = 0; i < flow->slot_count; i++) {
        const struct flow_slot *slot = &flow->slots[i];
        uint32_t offset = slot->kind == FLOW_ANY ? PTX_NONE : slot->offset;

        for (size_t j = 0; j < slicer->kernel->word_count; j++) {
            const struct kernel_word *word = &slicer->kernel->words[j];

            if (slot->kind != FLOW_PLACE && flow_has(address->bases, i) &&
                word->parameter == slot->parameter && word->offset == offset) {
                words |= (uint64_t)1 << j;
            }
        }
    }
    return words;
}

/* What a load reads. False: a slice cannot read it. */
static bool find_read(struct slicer *slicer, const struct ptx_instruction *instruction,
                      struct access *access, uint32_t *variable, uint32_t *word)
{
    uint64_t words;
    uint32_t flags;

    *variable = *word = PTX_NONE;
    if (instruction->effect != EFFECT_LOAD || !access_of(slicer->function, instruction, access) ||
        access->address == NULL || access->bytes == 0 || access->space == SPACE_SHARED ||
        access->space == SPACE_LOCAL || access->space == SPACE_PARAM) {
        return false;
    }
    if (access->address->kind != OPERAND_VARIABLE &&
        (access->address->kind != OPERAND_REGISTER ||
         slicer->function->registers[access->address->index].bits != 64)) {
        return false;
    }
    words = slice_words_of(slicer, access);
    flags = flow_address(&slicer->flow, instruction, access->address)->flags & FLOW_AT;
    if (words == 0) {
        *variable = variable_of(slicer, access->address);
        return is_usable(slicer, *variable) && flags != 0 &&
               (flags & ~(uint32_t)(FLOW_AT_VARIABLE | FLOW_AT_CONST)) == 0;
    }
    *word = (uint32_t)__builtin_ctzll(words);
    return slicer->data_words != 0 && (words & (words - 1)) == 0 &&
           (slicer->data_words & words) == 0 && flags == 0 && access->space != SPACE_CONST &&
           slicer->kernel->words[*word].offset != PTX_NONE &&
           !slicer->kernel->words[*word].is_written && !slicer->kernel->words[*word].is_atomic;
}

bool slice_can_load(struct slicer *slicer, const struct ptx_instruction *instruction)
{
    struct access access;
    uint32_t variable, word;

    return find_read(slicer, instruction, &access, &variable, &word);
}

static struct span name_of(const struct slicer *slicer, uint32_t variable)
{
    return slicer->module->variables[variable].name;
}

/* The number of a source; that of sources if it is new. */
static size_t source_index(const struct slicer *slicer, uint32_t variable, uint32_t word)
{
    const struct slice *slice = slicer->slice;

    for (size_t i = 0; i < slice->source_count; i++) {
        const struct slice_source *source = &slice->sources[i];

        if (variable == PTX_NONE ? source->variable == NULL && source->word == word
                                 : source->variable != NULL &&
                                       span_is(name_of(slicer, variable), source->variable)) {
            return i;
        }
    }
    return slice->source_count;
}

static capu_status add_source(const struct slicer *slicer, uint32_t variable, uint32_t word)
{
    struct slice *slice = slicer->slice;
    struct slice_source source = {.word = word, .offset = slice->parameter_bytes};

    if (source_index(slicer, variable, word) < slice->source_count) {
        return CAPU_OK;
    }
    if (!array_reserve(&slice->sources, &slice->source_capacity, slice->source_count + 1,
                       sizeof(*slice->sources))) {
        return CAPU_NO_HOST_MEMORY;
    }
    if (variable != PTX_NONE) {
        struct span name = name_of(slicer, variable);

        source.is_constant = slicer->module->variables[variable].space == SPACE_CONST;
        source.variable = strndup(name.text, name.length);
        if (source.variable == NULL) {
            return CAPU_NO_HOST_MEMORY;
        }
    }
    slice->sources[slice->source_count++] = source;
    slice->parameter_bytes += 16;
    return CAPU_OK;
}

capu_status slice_list_sources(struct slicer *slicer)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < slicer->function->instruction_count && status == CAPU_OK; i++) {
        const struct ptx_instruction *instruction = &slicer->function->instructions[i];
        const struct ptx_operand *operands = operands_of(slicer, instruction);
        struct access access;
        uint32_t variable, word;

        if (!slicer->all.instructions[i]) {
            continue;
        }
        if (find_read(slicer, instruction, &access, &variable, &word)) {
            status = add_source(slicer, variable, word);
        } else if (instruction->operand_count == 2 && operands[1].kind == OPERAND_VARIABLE) {
            status = add_source(slicer, operands[1].index, PTX_NONE);
        }
    }
    return status;
}

/* Writing. */

void slice_write_source_parameters(const struct slicer *slicer, FILE *out)
{
    for (size_t i = 0; i < slicer->slice->source_count; i++) {
        fprintf(out, ",\n    .param .u64 slice_lowest%zu,\n    .param .u64 slice_end%zu", i, i);
    }
}

void slice_write_source_registers(const struct slicer *slicer, FILE *out)
{
    if (slicer->slice->source_count > 0) {
        fputs("    .reg .pred %is_out;\n    .reg .b64 %from, %bound;\n", out);
    }
}

static void write_guard(FILE *out, const struct ptx_instruction *instruction, bool is_negated)
{
    if (instruction->predicate != PTX_NONE) {
        fprintf(out, "@%s%%s%" PRIu32 " ", instruction->is_negated != is_negated ? "!" : "",
                instruction->predicate);
    }
}

/* Sets %from to the address of a load, or gives up. */
static void write_bounds(FILE *out, const struct access *access, size_t source)
{
    fprintf(out, "    ld.param.u64 %%bound, [slice_lowest%zu];\n", source);
    if (access->address->kind == OPERAND_REGISTER) {
        fprintf(out, "    add.s64 %%from, %%s%" PRIu32 ", %" PRId64 ";\n", access->address->index,
                access->address->number);
    } else {
        fprintf(out, "    add.s64 %%from, %%bound, %" PRId64 ";\n", access->address->number);
    }
    fprintf(out,
            "    setp.lt.u64 %%is_out, %%from, %%bound;\n    @%%is_out bra GIVE_UP;\n"
            "    ld.param.u64 %%bound, [slice_end%zu];\n"
            "    setp.ge.u64 %%is_out, %%from, %%bound;\n    @%%is_out bra GIVE_UP;\n"
            "    sub.s64 %%bound, %%bound, %%from;\n"
            "    setp.lt.u64 %%is_out, %%bound, %u;\n    @%%is_out bra GIVE_UP;\n",
            source, access->bytes);
}

static void write_load(const struct slicer *slicer, FILE *out,
                       const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands = operands_of(slicer, instruction);
    struct span opcode = instruction->opcode;
    const char *type = memrchr(opcode.text, '.', opcode.length);
    unsigned elements = ptx_opcode_elements(opcode);

    if (elements > 1) {
        fprintf(out, "    ld.global.v%u%.*s {", elements, (int)(opcode.text + opcode.length - type),
                type);
    } else {
        fprintf(out, "    ld.global%.*s ", (int)(opcode.text + opcode.length - type), type);
    }
    for (uint32_t i = 0; i < instruction->operand_count && operands[i].position == 0; i++) {
        fputs(i == 0 ? "" : ", ", out);
        if (operands[i].kind == OPERAND_REGISTER) {
            fprintf(out, "%%s%" PRIu32, operands[i].index);
        } else {
            fputs("_", out);
        }
    }
    fputs(elements > 1 ? "}, [%from];\n" : ", [%from];\n", out);
}

bool slice_write_read(struct slicer *slicer, FILE *out, const struct ptx_instruction *instruction)
{
    uint32_t index = (uint32_t)(instruction - slicer->function->instructions);
    struct access access;
    uint32_t variable, word;
    size_t source;

    if (!find_read(slicer, instruction, &access, &variable, &word)) {
        return false;
    }
    source = source_index(slicer, variable, word);
    if (instruction->predicate != PTX_NONE) {
        fputs("    ", out);
        write_guard(out, instruction, true);
        fprintf(out, "bra L%" PRIu32 ";\n", index);
    }
    write_bounds(out, &access, source);
    write_load(slicer, out, instruction);
    if (instruction->predicate != PTX_NONE) {
        fprintf(out, "L%" PRIu32 ":\n", index);
    }
    return true;
}

bool slice_write_move(const struct slicer *slicer, FILE *out,
                      const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands = operands_of(slicer, instruction);
    bool is_of_constant =
        is_opcode(instruction, "cvta.const") || is_opcode(instruction, "cvta.to.const");

    if (instruction->operand_count != 2 ||
        (operands[1].kind != OPERAND_VARIABLE && !is_of_constant)) {
        return false;
    }
    fputs("    ", out);
    if (operands[1].kind == OPERAND_VARIABLE) {
        write_guard(out, instruction, false);
        fprintf(out, "ld.param.u64 %%s%" PRIu32 ", [slice_lowest%zu];\n    ", operands[0].index,
                source_index(slicer, operands[1].index, PTX_NONE));
        write_guard(out, instruction, false);
        fprintf(out, "add.s64 %%s%" PRIu32 ", %%s%" PRIu32 ", %" PRId64 ";\n", operands[0].index,
                operands[0].index, operands[1].number);
    } else {
        write_guard(out, instruction, false);
        fprintf(out, "mov.b64 %%s%" PRIu32 ", %%s%" PRIu32 ";\n", operands[0].index,
                operands[1].index);
    }
    return true;
}
