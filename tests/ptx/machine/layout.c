/* The layout of a module, see layout.h. */
#include "tests/ptx/machine/layout.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t bytes_most = UINT64_C(1) << 34;

static uint64_t aligned(uint64_t offset, uint64_t alignment)
{
    return (offset + alignment - 1) / alignment * alignment;
}

static capu_status refuse(struct error_text *problem, const char *what, struct span name)
{
    return error_text_set(problem, CAPU_UNSUPPORTED, "%s: %.*s", what, (int)name.length, name.text);
}

static capu_status place_variables(const struct ptx_module *module, struct layout *layout,
                                   struct error_text *problem)
{
    uint64_t shared = 0;

    for (size_t i = 0; i < module->variable_count; i++) {
        const struct ptx_variable *variable = &module->variables[i];

        if (variable->space == SPACE_SHARED) {
            if (variable->bytes > 0) {
                shared = aligned(shared, variable->alignment);
                layout->variable_offsets[i] = shared;
                shared += variable->bytes;
            }
            continue;
        }
        if (variable->is_unread || variable->is_extern || variable->element_bytes == 0 ||
            (variable->space != SPACE_GLOBAL && variable->space != SPACE_CONST)) {
            return refuse(problem, "a variable of this form is not supported", variable->name);
        }
        if (variable->bytes > bytes_most) {
            return refuse(problem, "a variable is too large", variable->name);
        }
        layout->variable_bytes = aligned(layout->variable_bytes, LAYOUT_VARIABLE_ALIGNMENT);
        layout->variable_offsets[i] = layout->variable_bytes;
        layout->variable_bytes += variable->bytes;
    }
    if (shared > UINT32_MAX / 2) {
        return error_text_set(problem, CAPU_UNSUPPORTED, "too much shared memory");
    }
    layout->shared_bytes = (uint32_t)shared;
    return CAPU_OK;
}

static capu_status place_locals(const struct ptx_module *module, struct layout *layout,
                                size_t index, struct error_text *problem)
{
    const struct ptx_function *function = &module->functions[index];
    struct layout_function *placed = &layout->functions[index];
    uint64_t shared = layout->shared_bytes;
    uint64_t local = layout->local_bytes;

    placed->local_offsets = calloc(function->local_count + 1, sizeof(*placed->local_offsets));
    if (placed->local_offsets == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < function->local_count; i++) {
        const struct ptx_variable *variable = &function->locals[i];
        uint64_t *end = variable->space == SPACE_SHARED  ? &shared
                        : variable->space == SPACE_LOCAL ? &local
                                                         : NULL;

        if (end != NULL) {
            *end = aligned(*end, variable->alignment);
            placed->local_offsets[i] = (uint32_t)*end;
            *end += variable->bytes;
        } else if (variable->space != SPACE_PARAM) {
            return refuse(problem, "a variable in a function is not supported", variable->name);
        }
        if (variable->is_unread || shared > UINT32_MAX / 2 || local > UINT32_MAX / 2) {
            return refuse(problem, "a variable of this form is not supported", variable->name);
        }
    }
    placed->shared_bytes = (uint32_t)shared - layout->shared_bytes;
    placed->local_bytes = (uint32_t)local - layout->local_bytes;
    layout->shared_bytes = (uint32_t)shared;
    layout->local_bytes = (uint32_t)aligned(local, 16);
    return CAPU_OK;
}

uint32_t layout_callee(const struct ptx_module *module, const struct ptx_function *function,
                       const struct ptx_instruction *call)
{
    for (uint32_t i = 0; i < call->operand_count; i++) {
        const struct ptx_operand *operand = &function->operands[call->operand_first + i];

        if (operand->kind == OPERAND_NAME && !operand->is_list) {
            const struct ptx_function *callee = ptx_find(module, operand->name);

            return callee == NULL ? PTX_NONE : (uint32_t)(callee - module->functions);
        }
    }
    return PTX_NONE;
}

static bool starts_with(struct span word, const char *text)
{
    return word.length >= strlen(text) && memcmp(word.text, text, strlen(text)) == 0;
}

static bool is_waiting(const struct ptx_function *function,
                       const struct ptx_instruction *instruction)
{
    struct span opcode = instruction->opcode;

    return instruction->effect == EFFECT_EXCHANGE || starts_with(opcode, "bar") ||
           starts_with(opcode, "ldmatrix") || starts_with(opcode, "stmatrix") ||
           starts_with(opcode, "wmma") || starts_with(opcode, "mbarrier") ||
           (!function->is_kernel && span_is(opcode, "exit"));
}

static capu_status find_calls(const struct ptx_module *module, struct layout *layout, size_t index)
{
    const struct ptx_function *function = &module->functions[index];
    struct layout_function *found = &layout->functions[index];

    for (size_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        uint32_t callee = PTX_NONE;

        found->waits |= is_waiting(function, instruction);
        if (instruction->effect == EFFECT_CALL) {
            callee = layout_callee(module, function, instruction);
        }
        if (callee != PTX_NONE) {
            if (!array_reserve(&found->calls, &found->call_capacity, found->call_count + 1,
                               sizeof(*found->calls))) {
                return CAPU_NO_HOST_MEMORY;
            }
            found->calls[found->call_count++] = callee;
        }
    }
    return CAPU_OK;
}

/* What is found on the way through the calls of one kernel. */
struct walk {
    const struct ptx_module *module;
    struct layout *layout;
    unsigned char *states; /* per function: 0, 1: on the way, 2: done */
    bool *has_variable;
    struct error_text *problem;
};

/* As deep as the chain of calls, which has no function twice. */
static capu_status visit(struct walk *walk, uint32_t index, struct layout_function *sum)
{
    const struct ptx_function *function = &walk->module->functions[index];
    const struct layout_function *found = &walk->layout->functions[index];

    if (walk->states[index] == 1) {
        return refuse(walk->problem, "recursion is not supported", function->name);
    }
    if (walk->states[index] == 2) {
        return CAPU_OK;
    }
    walk->states[index] = 1;
    sum->waits |= found->waits;
    sum->shared_bytes += found->shared_bytes;
    sum->local_bytes += found->local_bytes;
    for (size_t i = 0; i < function->operand_count; i++) {
        const struct ptx_operand *operand = &function->operands[i];

        if (operand->kind == OPERAND_VARIABLE &&
            walk->module->variables[operand->index].space == SPACE_SHARED &&
            !walk->has_variable[operand->index]) {
            walk->has_variable[operand->index] = true;
            sum->shared_bytes += (uint32_t)walk->module->variables[operand->index].bytes;
        }
    }
    for (size_t i = 0; i < found->call_count; i++) {
        capu_status status = visit(walk, found->calls[i], sum);

        if (status != CAPU_OK) {
            return status;
        }
    }
    walk->states[index] = 2;
    return CAPU_OK;
}

/* Replaces what each kernel needs itself by what it needs with all it calls. */
static capu_status add_up(struct walk *walk)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < walk->module->function_count && status == CAPU_OK; i++) {
        struct layout_function sum = {0};

        if (!walk->module->functions[i].is_kernel) {
            continue;
        }
        memset(walk->states, 0, walk->module->function_count);
        memset(walk->has_variable, 0, walk->module->variable_count * sizeof(bool));
        status = visit(walk, i, &sum);
        walk->layout->functions[i].waits = sum.waits;
        walk->layout->functions[i].shared_bytes = sum.shared_bytes;
        walk->layout->functions[i].local_bytes = sum.local_bytes;
    }
    return status;
}

static capu_status make(const struct ptx_module *module, struct layout *layout,
                        struct error_text *problem)
{
    struct walk walk = {.module = module, .layout = layout, .problem = problem};
    capu_status status = place_variables(module, layout, problem);

    for (size_t i = 0; i < module->function_count && status == CAPU_OK; i++) {
        status = place_locals(module, layout, i, problem);
        if (status == CAPU_OK) {
            status = find_calls(module, layout, i);
        }
    }
    layout->shared_bytes = (uint32_t)aligned(layout->shared_bytes, LAYOUT_SHARED_ALIGNMENT);
    for (size_t i = 0; i < module->variable_count; i++) {
        if (module->variables[i].space == SPACE_SHARED && module->variables[i].bytes == 0) {
            layout->variable_offsets[i] = layout->shared_bytes;
        }
    }
    if (status != CAPU_OK) {
        return status;
    }
    walk.states = calloc(module->function_count + 1, 1);
    walk.has_variable = calloc(module->variable_count + 1, sizeof(bool));
    status = walk.states == NULL || walk.has_variable == NULL ? CAPU_NO_HOST_MEMORY : add_up(&walk);
    free(walk.states);
    free(walk.has_variable);
    return status;
}

capu_status layout_make(const struct ptx_module *module, struct layout *layout,
                        struct error_text *problem)
{
    capu_status status;

    *layout = (struct layout){.function_count = module->function_count};
    layout->variable_offsets =
        calloc(module->variable_count + 1, sizeof(*layout->variable_offsets));
    layout->functions = calloc(module->function_count + 1, sizeof(*layout->functions));
    status = layout->variable_offsets == NULL || layout->functions == NULL
                 ? CAPU_NO_HOST_MEMORY
                 : make(module, layout, problem);
    if (status != CAPU_OK) {
        if (status == CAPU_NO_HOST_MEMORY) {
            (void)error_text_set(problem, status, "no memory for the module");
        }
        layout_finish(layout);
    }
    return status;
}

void layout_finish(struct layout *layout)
{
    for (size_t i = 0; layout->functions != NULL && i < layout->function_count; i++) {
        free(layout->functions[i].local_offsets);
        free(layout->functions[i].calls);
    }
    free(layout->functions);
    free(layout->variable_offsets);
    *layout = (struct layout){0};
}

static const struct ptx_variable *find(const struct ptx_module *module, struct span name,
                                       size_t *index)
{
    for (size_t i = 0; i < module->variable_count; i++) {
        if (span_is_same(module->variables[i].name, name)) {
            *index = i;
            return &module->variables[i];
        }
    }
    return NULL;
}

/* The bits of an element, as its type has them. */
static bool element_bits(const struct ptx_module *module, const struct layout *layout,
                         const struct ptx_initial *initial, unsigned char *memory, uint64_t *bits)
{
    uint64_t number = (uint64_t)initial->number;
    size_t index;

    if (initial->name.length > 0) {
        const struct ptx_variable *named = find(module, initial->name, &index);

        if (named == NULL || named->space == SPACE_SHARED || initial->bytes != 8) {
            return false;
        }
        *bits = (uint64_t)(uintptr_t)(memory + layout->variable_offsets[index]) + number;
        return true;
    }
    if (initial->form == NUMBER_F64 && initial->bytes == 4) {
        double wide;
        float value;
        uint32_t narrow;

        memcpy(&wide, &number, sizeof(wide));
        value = (float)wide;
        memcpy(&narrow, &value, sizeof(narrow));
        number = narrow;
    } else if ((initial->form == NUMBER_F32 && initial->bytes != 4) ||
               (initial->form == NUMBER_F64 && initial->bytes != 8)) {
        return false;
    }
    *bits = number;
    return initial->bytes <= 8;
}

capu_status layout_initialise(const struct ptx_module *module, const struct layout *layout,
                              unsigned char *memory, struct error_text *problem)
{
    for (size_t i = 0; i < module->variable_count; i++) {
        const struct ptx_variable *variable = &module->variables[i];
        unsigned char *at = memory + layout->variable_offsets[i];

        if (variable->space == SPACE_SHARED) {
            continue;
        }
        for (uint32_t j = 0; j < variable->initial_count; j++) {
            const struct ptx_initial *initial = &module->initials[variable->initial_first + j];
            uint64_t bits;

            if (initial->offset + initial->bytes > variable->bytes ||
                !element_bits(module, layout, initial, memory, &bits)) {
                return refuse(problem, "an initialiser is not supported", variable->name);
            }
            memcpy(at + initial->offset, &bits, initial->bytes);
        }
    }
    return CAPU_OK;
}
