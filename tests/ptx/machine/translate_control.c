/* The translator's branches, calls and ends of threads. */
#include "tests/ptx/machine/translator.h"

#include <inttypes.h>

/* The number of the label that an operand names; false: none. */
static bool find_label(struct translator *tr, const struct ptx_operand *operand, size_t *index)
{
    const struct ptx_label *label =
        operand == NULL ? NULL : ptx_label(tr->function, operand->name, tr->instruction->scope);

    if (label == NULL) {
        return refuse(tr, "a label is missing");
    }
    *index = (size_t)(label - tr->function->labels);
    return true;
}

bool translate_branch(struct translator *tr)
{
    size_t label;

    (void)take_part(tr, "uni");
    if (!is_taken(tr) || !find_label(tr, operand(tr, 0, 0), &label)) {
        return false;
    }
    fprintf(tr->out, "goto L%zu;", label);
    return true;
}

bool translate_branch_table(struct translator *tr)
{
    const char *index = value(tr, operand(tr, 0, 0), 32);
    const struct ptx_label *table;
    size_t label;

    (void)(take_part(tr, "idx") && take_part(tr, "uni"));
    if (index == NULL || !is_taken(tr) || !find_label(tr, operand(tr, 1, 0), &label)) {
        return false;
    }
    table = &tr->function->labels[label];
    if (table->target_count == 0) {
        return refuse(tr, "a table of labels is missing");
    }
    fprintf(tr->out, "switch (%s) { ", index);
    for (uint32_t i = 0; i < table->target_count; i++) {
        if (!find_label(tr, &tr->function->operands[table->target_first + i], &label)) {
            return false;
        }
        fprintf(tr->out, "case %" PRIu32 ": goto L%zu; ", i, label);
    }
    fprintf(tr->out,
            "default: t->block->calls->fail(t, %" PRIu32 ", \"a branch beyond its table\", 0); }",
            tr->instruction->line);
    return true;
}

/* The parameter variables at a position, as arguments. */
static bool write_arguments(struct translator *tr, unsigned position, unsigned expected)
{
    if (operands_at(tr, position) != expected) {
        return refuse(tr, "a call with the wrong number of arguments");
    }
    for (unsigned i = 0; i < expected; i++) {
        const struct ptx_operand *argument = operand(tr, position, i);

        if (argument->kind != OPERAND_LOCAL ||
            tr->function->locals[argument->index].space != SPACE_PARAM) {
            return refuse(tr, "arguments in registers are not supported");
        }
        fprintf(tr->out, ", l%" PRIu32, argument->index);
    }
    return true;
}

/* Whether the variable for the n-th operand has the size that the function expects. */
static bool is_sized(const struct translator *tr, unsigned position, unsigned n, uint64_t bytes)
{
    const struct ptx_operand *argument = operand(tr, position, n);

    return argument != NULL && argument->kind == OPERAND_LOCAL &&
           tr->function->locals[argument->index].bytes >= bytes;
}

/* Functions that the machine itself has: as prototypes without bodies in the module. */
static bool call_own(struct translator *tr, const struct ptx_operand *name, unsigned arguments)
{
    if (span_is(name->name, "vprintf") && is_sized(tr, arguments, 0, 8) &&
        is_sized(tr, arguments, 1, 8)) {
        fprintf(tr->out, "{ u32 count = print(t");
        if (!write_arguments(tr, arguments, 2)) {
            return false;
        }
        fprintf(tr->out, "); ");
        if (arguments == 2 && is_sized(tr, 0, 0, 4)) {
            fprintf(tr->out, "put_u32(l%" PRIu32 ", count); ", operand(tr, 0, 0)->index);
        }
        fprintf(tr->out, "}");
        return true;
    }
    if (span_is(name->name, "__assertfail") && is_sized(tr, arguments, 0, 8) &&
        is_sized(tr, arguments, 1, 8) && is_sized(tr, arguments, 2, 4) &&
        is_sized(tr, arguments, 3, 8)) {
        fprintf(tr->out, "assertion(t, %" PRIu32, tr->instruction->line);
        if (!write_arguments(tr, arguments, 5)) {
            return false;
        }
        fprintf(tr->out, ");");
        return true;
    }
    return refuse(tr, "a call of a function that is not in the module");
}

bool translate_call(struct translator *tr)
{
    uint32_t index = layout_callee(tr->module, tr->function, tr->instruction);
    const struct ptx_function *callee;
    unsigned position = 0;
    const struct ptx_operand *name;

    (void)take_part(tr, "uni");
    while (position < positions(tr) &&
           (operand(tr, position, 0) == NULL || operand(tr, position, 0)->is_list)) {
        position++;
    }
    name = operand(tr, position, 0);
    if (!is_taken(tr) || name == NULL || name->kind != OPERAND_NAME) {
        return refuse(tr, "a call that is not direct");
    }
    if (index == PTX_NONE) {
        return call_own(tr, name, position + 1);
    }
    callee = &tr->module->functions[index];
    if (callee->is_kernel) {
        return refuse(tr, "a call of a kernel");
    }
    for (size_t i = 0; i < callee->result_count; i++) {
        if (!is_sized(tr, 0, (unsigned)i, callee->locals[i].bytes)) {
            return refuse(tr, "a call with the wrong results");
        }
    }
    for (size_t i = 0; i < callee->parameter_count; i++) {
        if (!is_sized(tr, position + 1, (unsigned)i, callee->parameters[i].bytes)) {
            return refuse(tr, "a call with the wrong arguments");
        }
    }
    fprintf(tr->out, "f%" PRIu32 "(t", index);
    if ((callee->result_count > 0 && !write_arguments(tr, 0, (unsigned)callee->result_count)) ||
        !write_arguments(tr, position + 1, (unsigned)callee->parameter_count)) {
        return false;
    }
    fprintf(tr->out, ");");
    return true;
}

bool translate_exit(struct translator *tr)
{
    fprintf(tr->out, tr->function->is_kernel ? "return;" : "t->block->calls->exit(t);");
    return is_taken(tr);
}

bool translate_return(struct translator *tr)
{
    (void)take_part(tr, "uni");
    fprintf(tr->out, "return;");
    return is_taken(tr);
}

bool translate_trap(struct translator *tr)
{
    fprintf(tr->out, "t->block->calls->fail(t, %" PRIu32 ", \"a trap\", 0);",
            tr->instruction->line);
    return is_taken(tr);
}
