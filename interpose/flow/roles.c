/*
 * Roles and closedness, see roles.h.
 *
 * Functions that kernels call are analysed first, as if they were kernels. One that accesses
 * nothing but its own memory and variables of the module, and calls only such functions, is
 * harmless: its result is unknown, and that is all. Any other makes its callers open.
 */
#include "interpose/flow/roles.h"

#include "base/array.h"
#include "interpose/flow/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Why a kernel is open: its reasons, one of each kind, with the first place where each was found.
 */

/* The same with a name: the one "%.*s" of `format`. */
static void openness_name(struct kernel *kernel, const struct ptx_instruction *instruction,
                          const char *format, struct span name)
{
    char text[KERNEL_REASON_BYTES];
    size_t length;
    int written;

    kernel->is_closed = false;
    written = snprintf(text, sizeof(text), format, (int)name.length, name.text);
    if (written < 0) {
        return;
    }
    length = strlen(text);
    /* One of each kind. */
    for (unsigned i = 0; i < kernel->reason_count; i++) {
        if (strncmp(kernel->reasons[i], text, length) == 0) {
            return;
        }
    }
    if (kernel->reason_count == KERNEL_REASONS) {
        return;
    }
    memcpy(kernel->reasons[kernel->reason_count], text, length + 1);
    if (instruction != NULL && length + 20 < sizeof(text)) {
        (void)snprintf(kernel->reasons[kernel->reason_count] + length, sizeof(text) - length,
                       " (PTX line %u)", instruction->line);
    }
    kernel->reason_count++;
}

/* The kernel is open for this reason. `instruction`: where; NULL: nowhere in particular. */
static void openness_add(struct kernel *kernel, const struct ptx_instruction *instruction,
                         const char *text)
{
    openness_name(kernel, instruction, "%.*s", (struct span){text, (uint32_t)strlen(text)});
}

const char *roles_name(const struct kernel_word *word)
{
    return word->is_atomic                     ? "atomic"
           : word->is_read && word->is_written ? "updated"
           : word->is_written                  ? "written"
           : word->is_read                     ? "read"
                                               : "unused";
}

const char *roles_unknown(uint32_t flags)
{
    static const struct {
        uint32_t flag;
        const char *text;
    } texts[] = {{FLOW_OPCODE, "an unknown instruction"},
                 {FLOW_CALL, "the result of a function"},
                 {FLOW_ATOMIC, "the result of an atomic"},
                 {FLOW_SHARED, "shared memory"},
                 {FLOW_LOCAL, "local memory"},
                 {FLOW_EXCHANGE, "an exchange between threads"},
                 {FLOW_CLOCK, "a clock or a multiprocessor's number"},
                 {FLOW_GRID, "the barrier of a cooperative launch"},
                 {FLOW_INEXACT, "floating point that may be rounded otherwise"},
                 {FLOW_UNSET, "a register that may not be set"}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if ((flags & texts[i].flag) != 0) {
            return texts[i].text;
        }
    }
    return "";
}

/* A function during the analysis. */
struct analysis {
    struct flow flow;
    struct kernel *kernel;
    const bool *is_harmless; /* of each function of the module */
    bool has_no_memory;
    bool accesses_parameters; /* memory that its parameters point to */
    uint64_t *in_slice;       /* slots */
};

static struct kernel_word *word_at(struct analysis *analysis, const struct flow_slot *slot)
{
    struct kernel *kernel = analysis->kernel;
    uint32_t offset = slot->kind == FLOW_ANY ? PTX_NONE : slot->offset;
    size_t at = 0;

    while (at < kernel->word_count && (kernel->words[at].parameter < slot->parameter ||
                                       (kernel->words[at].parameter == slot->parameter &&
                                        kernel->words[at].offset < offset))) {
        at++;
    }
    if (at < kernel->word_count && kernel->words[at].parameter == slot->parameter &&
        kernel->words[at].offset == offset) {
        return &kernel->words[at];
    }
    if (!array_reserve(&kernel->words, &kernel->word_capacity, kernel->word_count + 1,
                       sizeof(*kernel->words))) {
        analysis->has_no_memory = true;
        return NULL;
    }
    memmove(&kernel->words[at + 1], &kernel->words[at],
            (kernel->word_count - at) * sizeof(*kernel->words));
    kernel->word_count++;
    kernel->words[at] = (struct kernel_word){.parameter = slot->parameter, .offset = offset};
    return &kernel->words[at];
}

static enum slice_class class_of(const struct analysis *analysis, uint32_t flags)
{
    if ((flags & FLOW_UNKNOWN) != 0) {
        return SLICE_UNKNOWN;
    }
    /* A variable is known before the launch, unless the kernel itself may change it. */
    if ((flags & FLOW_DATA) != 0 ||
        ((flags & FLOW_VARIABLE) != 0 && analysis->kernel->writes_variables)) {
        return SLICE_DATA;
    }
    return SLICE_IDS;
}

static void note_word(struct analysis *analysis, const struct access *access,
                      struct kernel_word *word, uint32_t address, uint32_t condition)
{
    enum slice_class address_class = class_of(analysis, address);
    enum slice_class condition_class = class_of(analysis, condition);

    word->is_read |= access->is_read;
    word->is_written |= access->is_written;
    word->is_atomic |= access->is_atomic;
    word->may_be_offset |= (address & FLOW_SUM) != 0;
    if (access->is_read && word->read_bytes < access->bytes) {
        word->read_bytes = access->bytes;
    }
    if ((access->is_written || access->is_atomic) &&
        (word->write_bytes == 0 || word->write_bytes > access->bytes)) {
        word->write_bytes = access->bytes;
    }
    word->address = word->address < address_class ? address_class : word->address;
    word->condition = word->condition < condition_class ? condition_class : word->condition;
    word->unknown |= (address | condition) & FLOW_UNKNOWN;
}

static void unknown_address(struct analysis *analysis, const struct access *access, uint32_t flags)
{
    const char *from = roles_unknown(flags);

    if ((flags & FLOW_DATA) != 0) {
        openness_add(analysis->kernel, access->instruction,
                     "an address that no parameter gives: loaded from memory");
    } else if ((flags & FLOW_VARIABLE) != 0) {
        openness_add(analysis->kernel, access->instruction,
                     "an address that no parameter gives: loaded from a variable");
    } else if ((flags & FLOW_UNKNOWN) != 0) {
        openness_name(analysis->kernel, access->instruction,
                      "an address that no parameter gives: it depends on %.*s",
                      (struct span){from, (uint32_t)strlen(from)});
    } else {
        openness_add(analysis->kernel, access->instruction,
                     "an address that no parameter gives: computed");
    }
}

/* What the extent of an access depends on; 0: it is always the same. */
static uint32_t extent_flags(struct analysis *analysis, const struct access *access)
{
    const struct flow_value *measure;

    if (access->is_tile && access->line_bytes == 0) {
        return FLOW_EXCHANGE;
    }
    if (access_measure(access) == NULL) {
        return 0;
    }
    measure = flow_operand(&analysis->flow, access_measure(access));
    for (size_t i = 0; i < analysis->flow.set_words; i++) {
        analysis->in_slice[i] |= measure->uses[i] | measure->bases[i];
    }
    return measure->flags & FLOW_DEPENDENCE;
}

/* An access to memory that is or may be global. */
static void note_global(struct analysis *analysis, const struct access *access)
{
    struct flow *flow = &analysis->flow;
    uint32_t condition = flow_condition(flow, access->instruction)->flags;
    const struct flow_value *address;
    uint32_t flags, extent;
    bool has_word = false;

    for (size_t i = 0; i < flow->set_words; i++) {
        analysis->in_slice[i] |= flow_condition(flow, access->instruction)->uses[i];
    }
    extent = extent_flags(analysis, access);
    address = flow_address(flow, access->instruction, access->address);
    if (flow_is_grid(flow, address)) {
        return;
    }
    flags = address->flags | extent;
    for (size_t i = 0; i < flow->slot_count; i++) {
        if (flow->slots[i].kind != FLOW_PLACE && flow_has(address->bases, i)) {
            struct kernel_word *word = word_at(analysis, &flow->slots[i]);

            has_word = true;
            if (word != NULL) {
                note_word(analysis, access, word, flags, condition);
            }
        }
    }
    analysis->accesses_parameters |= has_word;
    for (size_t i = 0; i < flow->set_words; i++) {
        analysis->in_slice[i] |= address->uses[i];
    }
    if ((!has_word && (flags & FLOW_AT) == 0) || (flags & FLOW_BASELESS) != 0) {
        unknown_address(analysis, access, flags);
    }
}

/* Whether the access may reach global memory that is no variable of the module; notes variables. */
static bool may_be_global(struct analysis *analysis, const struct access *access)
{
    uint32_t flags;

    if (access->space != SPACE_GENERIC && access->space != SPACE_GLOBAL) {
        return false;
    }
    flags = flow_operand(&analysis->flow, access->address)->flags;
    if ((flags & FLOW_AT_VARIABLE) != 0) {
        analysis->kernel->reads_variables |= access->is_read;
        analysis->kernel->writes_variables |= access->is_written || access->is_atomic;
    }
    return true;
}

/* Whether the operands after the address of a store or atomic contain an address. */
static void note_escape(struct analysis *analysis, const struct access *access)
{
    struct flow *flow = &analysis->flow;
    const struct ptx_instruction *instruction = access->instruction;
    const struct ptx_operand *operands = flow->function->operands + instruction->operand_first;

    for (uint32_t i = 0; i < instruction->operand_count; i++) {
        const struct flow_value *value;

        if (operands[i].position <= access->position || operands[i].kind != OPERAND_REGISTER) {
            continue;
        }
        value = flow_operand(flow, &operands[i]);
        for (size_t j = 0; j < flow->slot_count; j++) {
            const struct flow_slot *slot = &flow->slots[j];
            bool is_word = false;

            if (slot->kind == FLOW_PLACE || !flow_has(value->bases, j)) {
                continue;
            }
            for (size_t k = 0; k < analysis->kernel->word_count; k++) {
                const struct kernel_word *word = &analysis->kernel->words[k];

                is_word |= word->parameter == slot->parameter &&
                           (slot->kind == FLOW_ANY || word->offset == slot->offset ||
                            word->offset == PTX_NONE);
            }
            if (is_word || flow->function->parameters[slot->parameter].is_marked_pointer) {
                openness_name(analysis->kernel, instruction,
                              "a pointer is stored to memory: parameter %.*s",
                              flow->function->parameters[slot->parameter].name);
            }
        }
    }
}

static void note_call(struct analysis *analysis, const struct ptx_instruction *instruction)
{
    static const char *const known[] = {"vprintf", "__assertfail"};
    const struct ptx_module *module = analysis->flow.module;
    const struct ptx_function *function = analysis->flow.function;
    const struct ptx_operand *callee = NULL;

    for (uint32_t i = 0; i < instruction->operand_count && callee == NULL; i++) {
        const struct ptx_operand *operand = &function->operands[instruction->operand_first + i];

        callee = operand->is_list ? NULL : operand;
    }
    if (callee == NULL || callee->kind == OPERAND_REGISTER) {
        openness_add(analysis->kernel, instruction, "a call through a pointer");
        return;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (span_is(callee->name, known[i])) {
            return;
        }
    }
    for (size_t i = 0; i < module->function_count; i++) {
        if (analysis->is_harmless[i] && span_is_same(module->functions[i].name, callee->name)) {
            return;
        }
    }
    openness_name(analysis->kernel, instruction, "it calls %.*s", callee->name);
}

/* What makes a kernel open, whatever its addresses. */
static void note_instruction(struct analysis *analysis, const struct ptx_instruction *instruction)
{
    switch (instruction->effect) {
    case EFFECT_UNKNOWN:
        openness_name(analysis->kernel, instruction, "an unknown instruction, %.*s",
                      instruction->opcode);
        break;
    case EFFECT_CALL:
        note_call(analysis, instruction);
        break;
    case EFFECT_TEXTURE:
        openness_add(analysis->kernel, instruction, "textures or surfaces");
        break;
    case EFFECT_BULK_COPY:
        openness_add(analysis->kernel, instruction, "bulk copies or tensor maps");
        break;
    case EFFECT_MULTIMEM:
        openness_add(analysis->kernel, instruction, "memory of several devices");
        break;
    default:
        break;
    }
    analysis->kernel->has_atomics |=
        instruction->effect == EFFECT_ATOMIC || instruction->effect == EFFECT_REDUCE;
}

/* Visits each access; the first pass finds out which variables are written. */
static void visit_accesses(struct analysis *analysis,
                           void (*visit)(struct analysis *, const struct access *))
{
    const struct ptx_function *function = analysis->flow.function;

    for (size_t i = 0; i < function->instruction_count; i++) {
        struct access access;

        if (!access_of(function, &function->instructions[i], &access)) {
            continue;
        }
        if (access.address == NULL) {
            openness_add(analysis->kernel, access.instruction, "an access without an address");
        } else if (may_be_global(analysis, &access)) {
            visit(analysis, &access);
        }
    }
}

static void visit_nothing(struct analysis *analysis, const struct access *access)
{
    (void)analysis;
    (void)access;
}

static void visit_stored(struct analysis *analysis, const struct access *access)
{
    if (access->is_written) {
        note_escape(analysis, access);
    }
}

static void check_waits(struct analysis *analysis)
{
    struct waits waits;

    if (waits_find(&analysis->flow, &waits) != CAPU_OK) {
        analysis->has_no_memory = true;
        return;
    }
    analysis->kernel->waits = waits.has_some;
    analysis->kernel->waits_for_others = waits.for_others != NULL;
    if (waits.for_others != NULL) {
        openness_add(analysis->kernel, waits.for_others, "it may wait for another kernel");
    }
}

static capu_status list_parameters(struct analysis *analysis)
{
    const struct ptx_function *function = analysis->flow.function;
    const struct flow *flow = &analysis->flow;
    struct kernel *kernel = analysis->kernel;

    for (size_t i = 0; i < flow->slot_count; i++) {
        const struct flow_slot *slot = &flow->slots[i];
        bool is_word = false;

        if (slot->parameter >= function->parameter_count) {
            continue;
        }
        for (size_t j = 0; j < kernel->word_count; j++) {
            is_word |= kernel->words[j].parameter == slot->parameter &&
                       kernel->words[j].offset == slot->offset && slot->bytes == 8;
        }
        kernel->parameters[slot->parameter].is_used = true;
        kernel->parameters[slot->parameter].is_in_slice |=
            !is_word && flow_has(analysis->in_slice, i);
    }
    return CAPU_OK;
}

static void analyse_flow(struct analysis *analysis)
{
    const struct ptx_function *function = analysis->flow.function;
    const struct ptx_graph *graph = &analysis->flow.graph;

    if (graph->has_lost_branch) {
        openness_add(analysis->kernel, NULL, "a branch whose targets are not known");
    }
    if (graph->has_endless_loop) {
        openness_add(analysis->kernel, NULL, "a loop that nothing leaves");
    }
    for (size_t i = 0; i < function->instruction_count; i++) {
        note_instruction(analysis, &function->instructions[i]);
    }
    visit_accesses(analysis, visit_nothing);
    visit_accesses(analysis, note_global);
    visit_accesses(analysis, visit_stored);
    check_waits(analysis);
    (void)list_parameters(analysis);
    analysis->kernel->is_repeatable = !analysis->kernel->has_atomics && !analysis->kernel->waits &&
                                      !analysis->kernel->reads_variables &&
                                      !analysis->kernel->writes_variables &&
                                      repeat_is_same(analysis->flow.module, function);
}

/* Analyses one function into *kernel. Only a lack of memory is a failure. */
static capu_status analyse_function(const struct ptx_module *module,
                                    const struct ptx_function *function, const bool *is_harmless,
                                    struct kernel *kernel, bool *accesses_parameters)
{
    struct analysis analysis = {.kernel = kernel, .is_harmless = is_harmless};
    capu_status status;

    *kernel = (struct kernel){.name = function->name,
                              .parameter_bytes = function->parameter_bytes,
                              .parameter_count = function->parameter_count,
                              .is_closed = true};
    kernel->parameters = calloc(function->parameter_count + 1, sizeof(*kernel->parameters));
    if (kernel->parameters == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < function->parameter_count; i++) {
        kernel->parameters[i].offset = function->parameters[i].offset;
        kernel->parameters[i].bytes = function->parameters[i].bytes;
        kernel->parameters[i].is_marked_pointer = function->parameters[i].is_marked_pointer;
    }
    status = flow_build(module, function, &analysis.flow);
    if (status == CAPU_TOO_LARGE) {
        openness_add(kernel, NULL, "it is too large to analyse");
        return CAPU_OK;
    }
    if (status != CAPU_OK) {
        return status;
    }
    analysis.in_slice = calloc(analysis.flow.set_words, sizeof(*analysis.in_slice));
    if (analysis.in_slice == NULL) {
        status = CAPU_NO_HOST_MEMORY;
        goto finish_flow;
    }
    analyse_flow(&analysis);
    *accesses_parameters = analysis.accesses_parameters;
    status = analysis.has_no_memory ? CAPU_NO_HOST_MEMORY : CAPU_OK;
    free(analysis.in_slice);

finish_flow:
    flow_finish(&analysis.flow);
    return status;
}

static void finish_kernel(struct kernel *kernel)
{
    free(kernel->parameters);
    free(kernel->words);
}

/* Which functions are harmless. Grows from those that call nothing, so recursion never is. */
static capu_status find_harmless(const struct ptx_module *module, bool *is_harmless)
{
    bool has_grown = true;

    while (has_grown) {
        has_grown = false;
        for (size_t i = 0; i < module->function_count; i++) {
            const struct ptx_function *function = &module->functions[i];
            struct kernel kernel = {.is_closed = false};
            bool accesses_parameters = false;
            capu_status status;

            if (is_harmless[i] || function->is_kernel || !function->has_body) {
                continue;
            }
            status = analyse_function(module, function, is_harmless, &kernel, &accesses_parameters);
            is_harmless[i] = status == CAPU_OK && kernel.is_closed && !accesses_parameters &&
                             !kernel.writes_variables;
            has_grown |= is_harmless[i];
            finish_kernel(&kernel);
            if (status != CAPU_OK) {
                return status;
            }
        }
    }
    return CAPU_OK;
}

capu_status roles_find(const struct ptx_module *module, struct kernels *kernels)
{
    bool *is_harmless = calloc(module->function_count + 1, sizeof(*is_harmless));
    capu_status status = CAPU_NO_HOST_MEMORY;

    *kernels =
        (struct kernels){.kernels = calloc(module->function_count + 1, sizeof(*kernels->kernels))};
    if (is_harmless != NULL && kernels->kernels != NULL) {
        status = find_harmless(module, is_harmless);
    }
    for (size_t i = 0; i < module->function_count && status == CAPU_OK; i++) {
        const struct ptx_function *function = &module->functions[i];
        bool unused;

        if (function->is_kernel && function->has_body) {
            status = analyse_function(module, function, is_harmless,
                                      &kernels->kernels[kernels->count++], &unused);
        }
    }
    free(is_harmless);
    if (status != CAPU_OK) {
        roles_finish(kernels);
    }
    return status;
}

void roles_finish(struct kernels *kernels)
{
    for (size_t i = 0; i < kernels->count; i++) {
        finish_kernel(&kernels->kernels[i]);
    }
    free(kernels->kernels);
    *kernels = (struct kernels){0};
}
