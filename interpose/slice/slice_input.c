/*
 * What of the parameters a slice's results depend on, see slice.h. Each register is followed that
 * holds a word of the kernel, plus something that does not depend on this word: an address relative
 * to it. Whatever else is done with such a register, other than to test it for null or to take its
 * low bits, makes the word enter as it is. So does an address that may come from several words, or
 * from none. All other parameters that the slice reads enter as they are.
 */
#include "base/array.h"
#include "interpose/flow/flow_parts.h"
#include "interpose/slice/slice.h"
#include "interpose/slice/slice_parts.h"

#include <stdlib.h>
#include <string.h>

enum { MASK_MOST = 65535 };

/* What a register can hold. A register of 32 bits holds the lower half. */
struct relation {
    uint64_t words;  /* it can be relative to these words of the kernel */
    uint64_t offset; /* not only the word itself, but also a sum with it */
    bool is_plain;   /* it can be something that is relative to none */
};

struct search {
    struct slicer *slicer;
    struct relation *relations; /* of registers */
    bool *is_used;              /* registers that something in the slice reads */
    bool has_grown;
    bool has_failed; /* no memory */
};

/* Inputs. */

static void add_input(struct search *search, struct slice_input input)
{
    struct slice *slice = search->slicer->slice;

    for (size_t i = 0; i < slice->input_count; i++) {
        struct slice_input *other = &slice->inputs[i];

        if (other->kind == input.kind && other->offset == input.offset &&
            other->bytes == input.bytes) {
            other->mask |= input.mask;
            return;
        }
    }
    if (!array_reserve(&slice->inputs, &slice->input_capacity, slice->input_count + 1,
                       sizeof(*slice->inputs))) {
        search->has_failed = true;
        return;
    }
    slice->inputs[slice->input_count++] = input;
}

/* Bytes of the parameter block; those after its end are none. */
static void add_value(struct search *search, uint64_t offset, uint64_t bytes)
{
    uint64_t end = search->slicer->kernel->parameter_bytes;

    if (offset < end) {
        bytes = bytes < end - offset ? bytes : end - offset;
        add_input(search, (struct slice_input){.kind = SLICE_INPUT_VALUE,
                                               .offset = (uint32_t)offset,
                                               .bytes = (uint32_t)bytes});
    }
}

static void add_words(struct search *search, uint64_t words, enum slice_input_kind kind,
                      uint64_t mask)
{
    const struct kernel *kernel = search->slicer->kernel;

    for (size_t i = 0; i < kernel->word_count; i++) {
        const struct kernel_word *word = &kernel->words[i];
        const struct kernel_parameter *parameter = &kernel->parameters[word->parameter];
        bool is_any = word->offset == PTX_NONE;

        if ((words >> i & 1) == 0) {
            continue;
        }
        if (kind == SLICE_INPUT_VALUE || is_any) {
            add_value(search, (uint64_t)parameter->offset + (is_any ? 0 : word->offset),
                      is_any ? parameter->bytes : 8);
        } else {
            add_input(search, (struct slice_input){.kind = kind,
                                                   .offset = parameter->offset + word->offset,
                                                   .bytes = 8,
                                                   .mask = mask});
        }
    }
}

/* Parameters. */

/* The word of the kernel that is a slot; 0: none. */
static uint64_t word_of(const struct search *search, const struct flow_slot *slot)
{
    const struct kernel *kernel = search->slicer->kernel;

    for (size_t i = 0; i < kernel->word_count; i++) {
        if (kernel->words[i].parameter == slot->parameter &&
            kernel->words[i].offset == slot->offset && slot->bytes == 8) {
            return (uint64_t)1 << i;
        }
    }
    return 0;
}

static uint64_t parameter_offset(const struct search *search, uint32_t parameter)
{
    return search->slicer->function->parameters[parameter].offset;
}

/* A load from a place that is computed: of all parameters that it can lie in. */
static void load_any(struct search *search, const struct ptx_operand *address)
{
    const struct flow *flow = &search->slicer->flow;
    bool has_place = false;

    for (size_t i = 0; address->kind == OPERAND_REGISTER && i < flow->slot_count; i++) {
        const struct flow_slot *slot = &flow->slots[i];

        if (slot->kind == FLOW_PLACE && flow_has(flow->values[address->index].bases, i)) {
            has_place = true;
            add_value(search, parameter_offset(search, slot->parameter),
                      search->slicer->function->parameters[slot->parameter].bytes);
        }
    }
    if (!has_place) {
        add_value(search, 0, search->slicer->kernel->parameter_bytes);
    }
}

/* What element `element` of a load from the parameters holds. */
static struct relation load_parameter(struct search *search,
                                      const struct ptx_instruction *instruction, unsigned element)
{
    const struct ptx_operand *address = search->slicer->function->operands +
                                        instruction->operand_first + instruction->operand_count - 1;
    struct flow_place place = flow_place_of(&search->slicer->flow, address);
    struct relation relation = {.is_plain = true};
    struct flow_slot slot;
    uint64_t word;

    if (place.parameter == PTX_NONE) {
        load_any(search, address);
        return relation;
    }
    slot = flow_word_of(instruction, place, element);
    word = word_of(search, &slot);
    if (word != 0) {
        return (struct relation){.words = word};
    }
    add_value(search, parameter_offset(search, slot.parameter) + slot.offset, slot.bytes);
    return relation;
}

/* Other instructions. */

static struct relation relation_of(const struct search *search, const struct ptx_operand *operand)
{
    return operand->kind == OPERAND_REGISTER ? search->relations[operand->index]
                                             : (struct relation){.is_plain = true};
}

static unsigned bits_of(const struct search *search, const struct ptx_operand *operand)
{
    return operand->kind == OPERAND_REGISTER
               ? search->slicer->function->registers[operand->index].bits
               : 0;
}

static bool is_opcode(const struct ptx_instruction *instruction, const char *name)
{
    size_t length = strlen(name);

    return flow_starts_with(instruction->opcode, name) &&
           (instruction->opcode.length == length || instruction->opcode.text[length] == '.');
}

/* All words that the sources are relative to, as they are. */
static struct relation use_up(struct search *search, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands =
        search->slicer->function->operands + instruction->operand_first;

    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].position > 0) {
            add_words(search, relation_of(search, &operands[i]).words, SLICE_INPUT_VALUE, 0);
        }
    }
    return (struct relation){.is_plain = true};
}

/* The bits up to the highest one: a sum's bits depend on all lower ones. */
static uint64_t filled(uint64_t mask)
{
    for (unsigned shift = 1; shift < 64; shift *= 2) {
        mask |= mask >> shift;
    }
    return mask;
}

/* "and" with a small mask, which leaves low bits, or with one that clears low bits. */
static struct relation mask_low(struct search *search, const struct ptx_instruction *instruction,
                                const struct ptx_operand *operands)
{
    struct relation relation = relation_of(search, &operands[1]);
    int64_t mask = operands[2].number;
    bool is_number = operands[2].kind == OPERAND_NUMBER && operands[2].form == NUMBER_INTEGER;
    uint64_t bits = (uint64_t)(mask < 0 ? ~mask : mask);
    bool is_low = is_number && mask >= 0 && bits <= MASK_MOST;
    bool is_high = is_number && mask < 0 && bits <= MASK_MOST && (bits & (bits + 1)) == 0;

    if (!is_low && !is_high) {
        return use_up(search, instruction);
    }
    bits = relation.offset != 0 || is_high ? filled(bits) : bits;
    add_words(search, relation.words, SLICE_INPUT_LOW_BITS, bits);
    if (is_low) {
        return (struct relation){.is_plain = true};
    }
    relation.offset = relation.words;
    return relation;
}

/* A sum or difference of which one part may be relative to a word: `base` is its position. */
static struct relation add_up(struct search *search, const struct ptx_instruction *instruction,
                              const struct ptx_operand *operands, uint32_t base)
{
    struct relation relation = relation_of(search, &operands[base]);

    for (uint32_t i = 1; i < instruction->operand_count; i++) {
        struct relation source = relation_of(search, &operands[i]);

        if (source.words == 0 && !source.is_plain) {
            return source; /* its definition comes later */
        }
        if (i != base && source.words != 0) {
            return use_up(search, instruction);
        }
    }
    relation.offset = relation.words;
    return relation;
}

/* One of the sources at positions 1 to `last`, whole. */
static struct relation choose_source(struct search *search,
                                     const struct ptx_instruction *instruction,
                                     const struct ptx_operand *operands, uint32_t last)
{
    struct relation relation = {0};

    for (uint32_t i = 1; i < instruction->operand_count; i++) {
        struct relation source = relation_of(search, &operands[i]);

        if (i > last && source.words != 0) {
            return use_up(search, instruction);
        }
        if (i <= last) {
            relation.words |= source.words;
            relation.offset |= source.offset;
            relation.is_plain |= source.is_plain;
        }
    }
    return relation;
}

/* Whether an instruction tests for null what is a word itself, or nothing that depends on one. */
static bool is_null_test(const struct search *search, const struct ptx_instruction *instruction,
                         const struct ptx_operand *operands)
{
    bool is_wide = ptx_opcode_bits(instruction->opcode) == 64;

    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].position > 2 && relation_of(search, &operands[i]).words != 0) {
            return false;
        }
    }
    return is_wide && (is_opcode(instruction, "setp.eq") || is_opcode(instruction, "setp.ne")) &&
           instruction->operand_count >= 3 && operands[1].position == 1 &&
           operands[2].position == 2 && operands[2].kind == OPERAND_NUMBER &&
           operands[2].number == 0 && relation_of(search, &operands[1]).offset == 0;
}

/* Whether the operands are single, and the relative ones as wide as the result, or twice as wide
   for a conversion: then the result is the lower half. */
static bool is_plain_form(const struct search *search, const struct ptx_instruction *instruction,
                          const struct ptx_operand *operands)
{
    unsigned bits = bits_of(search, &operands[0]);
    bool is_cut = instruction->effect == EFFECT_CONVERT && bits == 32 &&
                  ptx_opcode_bits(instruction->opcode) == 64;
    bool is_filled =
        instruction->effect == EFFECT_CONVERT && bits == 64 &&
        (span_has_part(instruction->opcode, "u32") || span_has_part(instruction->opcode, "s32"));

    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        unsigned own = bits_of(search, &operands[i]);

        if (operands[i].position != i || operands[i].is_list ||
            (relation_of(search, &operands[i]).words != 0 && i > 0 && own != bits &&
             !(is_cut && own == 64))) {
            return false;
        }
    }
    return (bits == 64 && !is_filled) || bits == 32;
}

/* Whether an instruction gives its source, or the lower half of it. */
static bool is_copy(const struct ptx_instruction *instruction)
{
    static const char *const conversions[] = {"cvt.u64.u64", "cvt.s64.s64", "cvt.u64.s64",
                                              "cvt.s64.u64", "cvt.u32.u64", "cvt.s32.s64",
                                              "cvt.u32.s64", "cvt.s32.u64"};

    for (size_t i = 0; i < sizeof(conversions) / sizeof(conversions[0]); i++) {
        if (span_is(instruction->opcode, conversions[i])) {
            return true;
        }
    }
    return is_opcode(instruction, "mov") || is_opcode(instruction, "cvta");
}

static struct relation compute(struct search *search, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands =
        search->slicer->function->operands + instruction->operand_first;
    uint32_t count = instruction->operand_count;

    if (count >= 2 && is_null_test(search, instruction, operands)) {
        add_words(search, relation_of(search, &operands[1]).words, SLICE_INPUT_NULL, 0);
        return (struct relation){.is_plain = true};
    }
    if (!is_plain_form(search, instruction, operands)) {
        return use_up(search, instruction);
    }
    if (count == 2 && is_copy(instruction)) {
        return choose_source(search, instruction, operands, 1);
    }
    if (count == 4 && is_opcode(instruction, "selp")) {
        return choose_source(search, instruction, operands, 2);
    }
    if (count == 3 && is_opcode(instruction, "and")) {
        return mask_low(search, instruction, operands);
    }
    if (span_has_part(instruction->opcode, "sat")) {
        return use_up(search, instruction);
    }
    if (count == 3 && is_opcode(instruction, "add")) {
        return add_up(search, instruction, operands,
                      relation_of(search, &operands[1]).words != 0 ? 1 : 2);
    }
    if (count == 3 && is_opcode(instruction, "sub")) {
        return add_up(search, instruction, operands, 1);
    }
    if (count == 4 && is_opcode(instruction, "mad") && !span_has_part(instruction->opcode, "hi")) {
        return add_up(search, instruction, operands, 3);
    }
    return use_up(search, instruction);
}

/* The walk. */

static void join_relation(struct search *search, uint32_t index, struct relation from)
{
    struct relation *to = &search->relations[index];

    search->has_grown |= (from.words & ~to->words) != 0 || (from.offset & ~to->offset) != 0 ||
                         (from.is_plain && !to->is_plain);
    to->words |= from.words;
    to->offset |= from.offset;
    to->is_plain |= from.is_plain;
}

static void walk_instruction(struct search *search, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operands =
        search->slicer->function->operands + instruction->operand_first;
    bool is_parameter =
        instruction->effect == EFFECT_LOAD && flow_space(instruction->opcode) == SPACE_PARAM;
    struct relation relation = {.is_plain = true};
    unsigned element = 0;

    /* What a load from memory gives is relative to nothing, and how its address is used does not
       matter: the same bytes are read, wherever they are. */
    if (instruction->effect != EFFECT_LOAD && instruction->operand_count > 0) {
        relation = compute(search, instruction);
    }
    for (uint32_t i = 0; i < instruction->operand_count && operands[i].position == 0; i++) {
        if (operands[i].kind == OPERAND_REGISTER && search->is_used[operands[i].index]) {
            join_relation(search, operands[i].index,
                          is_parameter ? load_parameter(search, instruction, element) : relation);
        }
        element++;
    }
}

/* Addresses that are reported. They are relative to a word only if they always come from it. */
static void walk_sites(struct search *search)
{
    const struct slicer *slicer = search->slicer;

    for (size_t i = 0; i < slicer->site_count; i++) {
        const struct slice_site *site = &slicer->sites[i];
        struct relation relation;

        if (site->report == PTX_NONE) {
            continue;
        }
        if (access_measure(&site->access) != NULL) {
            add_words(search, relation_of(search, access_measure(&site->access)).words,
                      SLICE_INPUT_VALUE, 0);
        }
        relation = relation_of(search, site->access.address);
        if ((site->words & (site->words - 1)) != 0 || relation.words != site->words ||
            relation.is_plain) {
            add_words(search, site->words | relation.words, SLICE_INPUT_VALUE, 0);
        }
    }
}

/* Tables of branches; predicates have used up what they depend on. */
static void walk_branches(struct search *search)
{
    const struct slicer *slicer = search->slicer;

    for (size_t i = 0; i < slicer->flow.graph.block_count; i++) {
        const struct ptx_instruction *branch =
            &slicer->function->instructions[slicer->flow.graph.blocks[i].end - 1];

        if (slicer->all.branches[i] == SLICE_BRANCH_KEPT && branch->operand_count > 0) {
            add_words(search,
                      relation_of(search, slicer->function->operands + branch->operand_first).words,
                      SLICE_INPUT_VALUE, 0);
        }
    }
}

static void use_register(struct search *search, uint32_t index)
{
    if (index != PTX_NONE) {
        search->is_used[index] = true;
    }
}

static void use_operands(struct search *search, const struct ptx_instruction *instruction,
                         bool has_result)
{
    const struct ptx_operand *operands =
        search->slicer->function->operands + instruction->operand_first;

    use_register(search, instruction->predicate);
    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        if (operands[i].kind == OPERAND_REGISTER &&
            (operands[i].position > 0 || operands[i].is_address || !has_result)) {
            use_register(search, operands[i].index);
        }
    }
}

/* Of a vector, a slice may need some elements only. */
static void find_used(struct search *search)
{
    const struct slicer *slicer = search->slicer;

    for (size_t i = 0; i < slicer->function->instruction_count; i++) {
        if (slicer->all.instructions[i]) {
            use_operands(search, &slicer->function->instructions[i], true);
        }
    }
    for (size_t i = 0; i < slicer->flow.graph.block_count; i++) {
        if (slicer->all.branches[i] == SLICE_BRANCH_KEPT) {
            use_operands(search,
                         &slicer->function->instructions[slicer->flow.graph.blocks[i].end - 1],
                         false);
        }
    }
    for (size_t i = 0; i < slicer->site_count; i++) {
        if (slicer->sites[i].report != PTX_NONE) {
            const struct access *access = &slicer->sites[i].access;
            const struct ptx_operand *measure = access_measure(access);

            use_register(search, access->address->index);
            use_register(search, access->instruction->predicate);
            use_register(search, measure == NULL ? PTX_NONE : measure->index);
        }
    }
}

capu_status slice_find_inputs(struct slicer *slicer)
{
    size_t count = slicer->function->register_count + 1;
    struct search search = {.slicer = slicer,
                            .relations = calloc(count, sizeof(*search.relations)),
                            .is_used = calloc(count, sizeof(*search.is_used)),
                            .has_grown = true};

    search.has_failed = search.relations == NULL || search.is_used == NULL;
    if (!search.has_failed) {
        find_used(&search);
    }
    while (!search.has_failed && search.has_grown) {
        search.has_grown = false;
        for (size_t i = 0; i < slicer->function->instruction_count; i++) {
            if (slicer->all.instructions[i]) {
                walk_instruction(&search, &slicer->function->instructions[i]);
            }
        }
    }
    if (!search.has_failed) {
        walk_sites(&search);
        walk_branches(&search);
    }
    free(search.relations);
    free(search.is_used);
    return search.has_failed ? CAPU_NO_HOST_MEMORY : CAPU_OK;
}

static size_t bytes_of(const struct slice_input *input)
{
    switch (input->kind) {
    case SLICE_INPUT_NULL:
        return 1;
    case SLICE_INPUT_LOW_BITS:
        return sizeof(input->mask);
    case SLICE_INPUT_VALUE:
        break;
    }
    return input->bytes;
}

size_t slice_key_bytes(const struct slice *slice)
{
    size_t bytes = 0;

    for (size_t i = 0; i < slice->input_count; i++) {
        bytes += bytes_of(&slice->inputs[i]);
    }
    return bytes;
}

void slice_key(const struct slice *slice, const unsigned char *parameters, unsigned char *key)
{
    for (size_t i = 0; i < slice->input_count; i++) {
        const struct slice_input *input = &slice->inputs[i];
        uint64_t word = 0;

        if (input->kind == SLICE_INPUT_VALUE) {
            memcpy(key, parameters + input->offset, input->bytes);
        } else {
            memcpy(&word, parameters + input->offset, sizeof(word));
        }
        if (input->kind == SLICE_INPUT_NULL) {
            *key = word == 0;
        } else if (input->kind == SLICE_INPUT_LOW_BITS) {
            word &= input->mask;
            memcpy(key, &word, sizeof(word));
        }
        key += bytes_of(input);
    }
}

uint64_t slice_base(const struct kernel *kernel, const struct slice_report *report,
                    const unsigned char *parameters)
{
    uint64_t address = 0;

    for (size_t i = 0; i < kernel->word_count; i++) {
        const struct kernel_word *word = &kernel->words[i];

        if (report->words == (uint64_t)1 << i && word->offset != PTX_NONE) {
            memcpy(&address, parameters + kernel->parameters[word->parameter].offset + word->offset,
                   sizeof(address));
        }
    }
    return address;
}

bool slice_is_relative(const struct slice_result *result)
{
    bool is_none = result->lowest == UINT64_MAX && result->end == 0;

    return is_none || (result->lowest < result->end && result->end <= INT64_MAX);
}
