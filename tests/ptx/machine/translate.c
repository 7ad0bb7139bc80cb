/* The translator, see translate.h: modules, functions, and which instruction is whose. */
#define _GNU_SOURCE /* asprintf */
#include "tests/ptx/machine/translator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool load(struct translator *tr)
{
    return translate_load(tr);
}

static bool atomic(struct translator *tr)
{
    return translate_atomic(tr, true);
}

static bool reduction(struct translator *tr)
{
    return translate_atomic(tr, false);
}

/* One thread runs at a time, and what it writes is seen at once. */
static bool nothing(struct translator *tr)
{
    fprintf(tr->out, ";");
    return true;
}

/* createpolicy: a value that only cache hints read. */
static bool policy(struct translator *tr)
{
    if (!assign(tr, operand(tr, 0, 0), 64)) {
        return false;
    }
    fprintf(tr->out, "0;");
    return true;
}

/* By the first part of the opcode; what is not here is in the table of translate_plain. */
static const struct {
    const char *name;
    bool (*translate)(struct translator *tr);
} instructions[] = {
    {"mov", translate_move},
    {"ld", load},
    {"ldu", load},
    {"st", translate_store},
    {"atom", atomic},
    {"red", reduction},
    {"cp", translate_copy},
    {"cvta", translate_cvta},
    {"isspacep", translate_isspacep},
    {"setp", translate_setp},
    {"set", translate_set},
    {"slct", translate_slct},
    {"cvt", translate_convert},
    {"addc", translate_carry},
    {"subc", translate_carry},
    {"madc", translate_carry},
    {"dp4a", translate_dp4a},
    {"bra", translate_branch},
    {"brx", translate_branch_table},
    {"call", translate_call},
    {"exit", translate_exit},
    {"ret", translate_return},
    {"trap", translate_trap},
    {"bar", translate_barrier},
    {"barrier", translate_barrier},
    {"shfl", translate_shuffle},
    {"vote", translate_vote},
    {"match", translate_match},
    {"redux", translate_redux},
    {"activemask", translate_activemask},
    {"elect", translate_elect},
    {"ldmatrix", translate_load_tiles},
    {"stmatrix", translate_store_tiles},
    {"movmatrix", translate_turn_tile},
    {"mma", translate_product},
    {"wmma", translate_fragment},
    {"mbarrier", translate_mbarrier},
    {"membar", nothing},
    {"fence", nothing},
    {"nanosleep", nothing},
    {"prefetch", nothing},
    {"prefetchu", nothing},
    {"applypriority", nothing},
    {"discard", nothing},
    {"pmevent", nothing},
    {"griddepcontrol", nothing},
    {"createpolicy", policy},
};

static void split(struct translator *tr)
{
    struct span opcode = tr->instruction->opcode;
    const char *at = opcode.text;
    const char *end = at + opcode.length;

    tr->parts.count = 0;
    tr->parts.at = 0;
    while (at < end && tr->parts.count < PARTS_MOST) {
        const char *dot = memchr(at, '.', (size_t)(end - at));

        dot = dot == NULL ? end : dot;
        tr->parts.part[tr->parts.count++] = (struct span){at, (uint32_t)(dot - at)};
        at = dot + 1;
    }
}

static bool translate_one(struct translator *tr)
{
    split(tr);
    if (span_has_part(tr->instruction->opcode, "cc")) {
        return translate_carry(tr);
    }
    for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
        if (span_is(tr->parts.part[0], instructions[i].name)) {
            bool is_carry = instructions[i].translate == translate_carry;

            tr->parts.at = is_carry ? 0 : 1;
            return instructions[i].translate(tr);
        }
    }
    return translate_plain(tr);
}

static bool translate_instruction(struct translator *tr, uint32_t index)
{
    const struct ptx_function *function = tr->function;

    tr->instruction = &function->instructions[index];
    tr->operands = function->operands + tr->instruction->operand_first;
    if (tr->instruction->effect == EFFECT_UNKNOWN) {
        return refuse(tr, "the instruction is not supported");
    }
    if (tr->instruction->predicate != PTX_NONE) {
        tr->is_used[tr->instruction->predicate] = true;
        fprintf(tr->out, "    if (%sr%" PRIu32 ") { ", tr->instruction->is_negated ? "!" : "",
                tr->instruction->predicate);
    } else {
        fprintf(tr->out, "    ");
    }
    if (!translate_one(tr) || tr->status != CAPU_OK) {
        return false;
    }
    fprintf(tr->out, tr->instruction->predicate != PTX_NONE ? " }\n" : "\n");
    return true;
}

static void write_labels(struct translator *tr, uint32_t instruction)
{
    for (size_t i = 0; i < tr->function->label_count; i++) {
        if (tr->function->labels[i].instruction == instruction) {
            fprintf(tr->out, "L%zu:;\n", i);
        }
    }
}

/* Where labels are, since a function can have many. */
static bool *find_labelled(const struct ptx_function *function)
{
    bool *is_labelled = calloc(function->instruction_count + 1, sizeof(*is_labelled));

    for (size_t i = 0; is_labelled != NULL && i < function->label_count; i++) {
        is_labelled[function->labels[i].instruction] = true;
    }
    return is_labelled;
}

static bool translate_body(struct translator *tr)
{
    const struct ptx_function *function = tr->function;
    bool *is_labelled = find_labelled(function);
    bool is_done = is_labelled != NULL;

    if (is_labelled == NULL) {
        tr->status = CAPU_NO_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < function->instruction_count && is_done; i++) {
        if (is_labelled[i]) {
            write_labels(tr, i);
        }
        is_done = translate_instruction(tr, i);
    }
    if (is_done && is_labelled[function->instruction_count]) {
        write_labels(tr, (uint32_t)function->instruction_count);
    }
    free(is_labelled);
    return is_done;
}

/* "static void f3(struct ptx_thread *t, unsigned char *l0, unsigned char *p0)": results are the
   first of the locals. */
static void write_head(struct translator *tr, size_t index)
{
    const struct ptx_function *function = &tr->module->functions[index];

    fprintf(tr->out, "static void f%zu(struct ptx_thread *t", index);
    for (uint32_t i = 0; !function->is_kernel && i < function->result_count; i++) {
        fprintf(tr->out, ", unsigned char *l%" PRIu32, i);
    }
    for (size_t i = 0; !function->is_kernel && i < function->parameter_count; i++) {
        fprintf(tr->out, ", unsigned char *p%zu", i);
    }
    fprintf(tr->out, ")");
}

/* Everything starts as zero, so that a run does not depend on what was there. */
static void write_variables(struct translator *tr)
{
    const struct ptx_function *function = tr->function;

    for (uint32_t i = function->result_count; i < function->local_count; i++) {
        const struct ptx_variable *local = &function->locals[i];

        if (local->space == SPACE_PARAM) {
            fprintf(tr->out,
                    "    unsigned char l%" PRIu32 "[%" PRIu64 "] __attribute__((aligned(%" PRIu32
                    "))) = {0};\n",
                    i, local->bytes == 0 ? 1 : local->bytes,
                    local->alignment < 8 ? 8 : local->alignment);
        }
    }
    for (size_t i = 0; i < function->register_count; i++) {
        if (tr->is_used[i]) {
            unsigned bits = function->registers[i].bits;

            fprintf(tr->out, "    u%u r%zu = 0;\n", bits == 1 ? 8 : bits, i);
        }
    }
    fprintf(tr->out, "    u8 carry = 0;\n");
}

/* A function with something that is not supported fails where it is called: a program may have
   kernels that it never launches. */
static void replace_body(struct translator *tr, char **body)
{
    free(*body);
    *body = NULL;
    tr->status = CAPU_OK;
    memset(tr->is_used, 0, tr->function->register_count * sizeof(*tr->is_used));
    if (asprintf(body, "    t->block->calls->fail(t, %" PRIu32 ", \"%s\", 0);\n",
                 tr->instruction->line, tr->problem->text) < 0) {
        *body = NULL;
        tr->status = CAPU_NO_HOST_MEMORY;
    }
    tr->problem->text[0] = '\0';
}

static void translate_function(struct translator *tr, size_t index)
{
    FILE *out = tr->out;
    char *body = NULL;
    size_t bytes = 0;

    tr->function = &tr->module->functions[index];
    tr->placed = &tr->layout->functions[index];
    tr->is_used = calloc(tr->function->register_count + 1, sizeof(*tr->is_used));
    tr->out = open_memstream(&body, &bytes);
    if (tr->is_used == NULL || tr->out == NULL) {
        tr->status = CAPU_NO_HOST_MEMORY;
    } else {
        (void)translate_body(tr);
    }
    if (tr->out != NULL && fclose(tr->out) != 0 && tr->status == CAPU_OK) {
        tr->status = CAPU_NO_HOST_MEMORY;
    }
    tr->out = out;
    if (tr->status == CAPU_UNSUPPORTED) {
        replace_body(tr, &body);
    }
    if (tr->status == CAPU_OK) {
        write_head(tr, index);
        fprintf(out, "\n{\n");
        write_variables(tr);
        fprintf(out, "%s}\n\n", body);
    }
    free(body);
    free(tr->is_used);
    tr->is_used = NULL;
}

static void translate_module(struct translator *tr)
{
    const struct ptx_module *module = tr->module;

    fprintf(tr->out, "#include \"tests/ptx/machine/prelude_calls.h\"\n\n");
    for (size_t i = 0; i < module->function_count; i++) {
        if (module->functions[i].has_body) {
            write_head(tr, i);
            fprintf(tr->out, ";\n");
        }
    }
    fprintf(tr->out, "\n");
    for (size_t i = 0; i < module->function_count && tr->status == CAPU_OK; i++) {
        if (module->functions[i].has_body) {
            translate_function(tr, i);
        }
    }
    fprintf(tr->out, "const ptx_entry ptx_entries[] = {");
    for (size_t i = 0; i < module->function_count; i++) {
        if (module->functions[i].has_body && module->functions[i].is_kernel) {
            fprintf(tr->out, "f%zu, ", i);
        }
    }
    fprintf(tr->out, "0};\n");
}

capu_status translate(const struct ptx_module *module, const struct layout *layout, char **text,
                      struct error_text *problem)
{
    struct translator tr = {.module = module, .layout = layout, .problem = problem};
    char *written = NULL;
    size_t bytes = 0;

    tr.out = open_memstream(&written, &bytes);
    if (tr.out == NULL) {
        return error_text_set(problem, CAPU_NO_HOST_MEMORY, "no memory to translate it");
    }
    translate_module(&tr);
    if (fclose(tr.out) != 0 && tr.status == CAPU_OK) {
        tr.status = CAPU_NO_HOST_MEMORY;
    }
    if (tr.status == CAPU_NO_HOST_MEMORY) {
        (void)error_text_set(problem, tr.status, "no memory to translate it");
    }
    if (tr.status != CAPU_OK) {
        free(written);
        return tr.status;
    }
    *text = written;
    return CAPU_OK;
}
