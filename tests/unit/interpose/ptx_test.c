/* What the PTX parser keeps of declarations: sizes, alignment, initialisers, limits. */
#include "interpose/ptx/ptx.h"
#include "interpose/ptx/ptx_graph.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static struct ptx_module parsed(const char *text)
{
    struct ptx_module module;
    struct error_text problem;

    ck_assert_msg(ptx_parse(text, strlen(text), &module, &problem) == CAPU_OK, "%s", problem.text);
    return module;
}

static const struct ptx_variable *find(const struct ptx_module *module, const char *name)
{
    for (size_t i = 0; i < module->variable_count; i++) {
        if (span_is(module->variables[i].name, name)) {
            return &module->variables[i];
        }
    }
    ck_abort_msg("no variable %s", name);
}

static const struct {
    const char *text;
    enum ptx_space space;
    uint32_t alignment;
    uint32_t element_bytes;
    uint64_t bytes;
    uint32_t initial_count;
    bool is_extern;
    bool is_unread;
} variables[] = {
    {".global .align 4 .u32 x;", SPACE_GLOBAL, 4, 4, 4, 0, false, false},
    {".visible .global .u64 x = 5;", SPACE_GLOBAL, 8, 8, 8, 1, false, false},
    {".const .align 16 .b8 x[12] = {1, 2, 3};", SPACE_CONST, 16, 1, 12, 3, false, false},
    {".global .f32 x[2][3];", SPACE_GLOBAL, 4, 4, 24, 0, false, false},
    {".global .align 16 .v4 .f32 x;", SPACE_GLOBAL, 16, 16, 16, 0, false, false},
    {".global .attribute(.managed) .align 4 .u32 x;", SPACE_GLOBAL, 4, 4, 4, 0, false, false},
    {".extern .shared .align 16 .b8 x[];", SPACE_SHARED, 16, 1, 0, 0, true, false},
    {".extern .global .u32 x; .visible .global .u32 x = 1;", SPACE_GLOBAL, 4, 4, 4, 1, false,
     false},
    {".global .u64 y; .global .u64 x[2] = {generic(y)+8, y};", SPACE_GLOBAL, 8, 8, 16, 2, false,
     false},
    {".global .u64 y; .global .b8 x[8] = {0xff(y), 0xff00(y)};", SPACE_GLOBAL, 1, 1, 8, 0, false,
     true},
    {".global .u32 y, x[4], z;", SPACE_GLOBAL, 4, 4, 16, 0, false, false},
};

START_TEST(variables_keep_their_declaration)
{
    char text[512];
    struct ptx_module module;
    const struct ptx_variable *variable;

    snprintf(text, sizeof(text), HEAD "%s\n.entry k() { ret; }", variables[_i].text);
    module = parsed(text);
    variable = find(&module, "x");
    ck_assert_int_eq(variable->space, variables[_i].space);
    ck_assert_uint_eq(variable->alignment, variables[_i].alignment);
    ck_assert_uint_eq(variable->element_bytes, variables[_i].element_bytes);
    ck_assert_uint_eq(variable->bytes, variables[_i].bytes);
    ck_assert_int_eq(variable->is_extern, variables[_i].is_extern);
    ck_assert_int_eq(variable->is_unread, variables[_i].is_unread);
    if (!variable->is_unread) {
        ck_assert_uint_eq(variable->initial_count, variables[_i].initial_count);
    }
    ck_assert(ptx_find(&module, (struct span){"k", 1}) != NULL);
    ptx_finish(&module);
}
END_TEST

static const struct {
    const char *text;
    enum number_form form;
    int64_t number;
} numbers[] = {
    {"17", NUMBER_INTEGER, 17},
    {"-17", NUMBER_INTEGER, -17},
    {"0x1F", NUMBER_INTEGER, 31},
    {"0b101", NUMBER_INTEGER, 5},
    {"017", NUMBER_INTEGER, 15},
    {"5U", NUMBER_INTEGER, 5},
    {"0f3F800000", NUMBER_F32, 0x3f800000},
    {"-0f3F800000", NUMBER_F32, 0xbf800000},
    {"0d3FF8000000000000", NUMBER_F64, 0x3ff8000000000000},
    {"1.5", NUMBER_F64, 0x3ff8000000000000},
    {"1.5e0", NUMBER_F64, 0x3ff8000000000000},
    {"15e-1", NUMBER_F64, 0x3ff8000000000000},
    {"-1.5", NUMBER_F64, (int64_t)0xbff8000000000000},
};

/* The same as an initialiser and as an operand. */
START_TEST(numbers_keep_their_value)
{
    char text[512];
    struct ptx_module module;
    const struct ptx_function *kernel;

    snprintf(text, sizeof(text),
             HEAD ".global .f64 x = %s;\n.entry k() { .reg .f64 %%a; mov.f64 %%a, %s; ret; }",
             numbers[_i].text, numbers[_i].text);
    module = parsed(text);
    kernel = ptx_find(&module, (struct span){"k", 1});
    ck_assert_uint_eq(module.initial_count, 1);
    ck_assert_int_eq(module.initials[0].form, numbers[_i].form);
    ck_assert_int_eq(module.initials[0].number, numbers[_i].number);
    ck_assert_uint_eq(kernel->operand_count, 2);
    ck_assert_int_eq(kernel->operands[1].form, numbers[_i].form);
    ck_assert_int_eq(kernel->operands[1].number, numbers[_i].number);
    ptx_finish(&module);
}
END_TEST

START_TEST(initialisers_keep_names_and_offsets)
{
    struct ptx_module module = parsed(HEAD ".global .u64 y;\n"
                                           ".global .u64 x[3] = {generic(y)+8, 7, y-8};\n");

    ck_assert_uint_eq(module.initial_count, 3);
    ck_assert(span_is(module.initials[0].name, "y"));
    ck_assert_int_eq(module.initials[0].number, 8);
    ck_assert_uint_eq(module.initials[1].name.length, 0);
    ck_assert_uint_eq(module.initials[1].offset, 8);
    ck_assert_int_eq(module.initials[1].number, 7);
    ck_assert_int_eq(module.initials[2].number, -8);
    ck_assert_uint_eq(module.initials[2].offset, 16);
    ptx_finish(&module);
}
END_TEST

static const struct {
    const char *text;
    uint32_t threads;
} limits[] = {
    {"", 0},
    {".maxntid 256, 2, 1", 512},
    {".reqntid 96", 96},
    {".minnctapersm 2 .maxntid 128", 128},
    {".maxntid 2000, 2000", 1024},
};

START_TEST(functions_keep_their_limits)
{
    char text[512];
    struct ptx_module module;

    snprintf(text, sizeof(text), HEAD ".entry k()\n%s\n{ ret; }", limits[_i].text);
    module = parsed(text);
    ck_assert_uint_eq(module.functions[0].threads_most, limits[_i].threads);
    ptx_finish(&module);
}
END_TEST

START_TEST(functions_keep_locals_and_results)
{
    struct ptx_module module =
        parsed(HEAD ".func (.param .b32 result) f(.param .align 8 .b8 a[24], .param .b32 b)\n"
                    "{ .local .align 16 .b8 depot[48]; .reg .pred %p<3>;\n"
                    "and.pred %p1, %p2, !%p0; ret; }\n");
    const struct ptx_function *function = &module.functions[0];

    ck_assert_uint_eq(function->result_count, 1);
    ck_assert_uint_eq(function->local_count, 2);
    ck_assert_uint_eq(function->locals[0].bytes, 4);
    ck_assert_int_eq(function->locals[1].space, SPACE_LOCAL);
    ck_assert_uint_eq(function->locals[1].bytes, 48);
    ck_assert_uint_eq(function->locals[1].alignment, 16);
    ck_assert_uint_eq(function->parameters[0].alignment, 8);
    ck_assert_uint_eq(function->parameters[0].bytes, 24);
    ck_assert(!function->operands[1].is_negated);
    ck_assert(function->operands[2].is_negated);
    ptx_finish(&module);
}
END_TEST

/* A branch to a number, or to a label that is none, is lost; the graph says where. UBSan sees a
   comparison with the name that a number does not have. */
START_TEST(branches_without_a_label_are_lost)
{
    struct ptx_module module = parsed(HEAD ".visible .entry k()\n"
                                           "{ .reg .pred %p<2>;\n"
                                           "@%p1 bra $nowhere, 3;\n"
                                           "$here: ret; }\n");
    struct ptx_graph graph;

    ck_assert_int_eq(ptx_graph_build(&module.functions[0], &graph), CAPU_OK);
    ck_assert(graph.has_lost_branch);
    ck_assert_uint_eq(graph.lost_line, 6);
    ptx_graph_finish(&graph);
    ptx_finish(&module);
}
END_TEST

/* A short text could ask for any number of registers. */
static const char *const excessive[] = {
    ".reg .b32 %r<4000000000>;",
    ".reg .b32 %r<18446744073709551615>;",
    ".reg .b32 %r<60000>; .reg .b32 %s<60000>;",
    ".reg .b32 %r<60000>; ret; } .entry l() { .reg .b32 %r<60000>;",
};

START_TEST(registers_beyond_what_a_text_can_use_are_rejected)
{
    char text[512];
    struct ptx_module module;
    struct error_text problem;

    snprintf(text, sizeof(text), HEAD ".entry k()\n{ %s ret; }", excessive[_i]);
    ck_assert_int_eq(ptx_parse(text, strlen(text), &module, &problem), CAPU_FILE_FAILED);
    ck_assert_str_eq(problem.text, "line 5: far more registers than the text can use");
    ck_assert_uint_eq(module.function_count, 0);
}
END_TEST

START_TEST(many_registers_are_kept)
{
    struct ptx_module module = parsed(HEAD ".entry k()\n{ .reg .b32 %r<60000>; ret; }");

    ck_assert_uint_eq(module.functions[0].register_count, 60000);
    ptx_finish(&module);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interpose_ptx");
    TCase *declarations = tcase_create("declarations");

    tcase_add_loop_test(declarations, variables_keep_their_declaration, 0,
                        sizeof(variables) / sizeof(variables[0]));
    tcase_add_loop_test(declarations, numbers_keep_their_value, 0,
                        sizeof(numbers) / sizeof(numbers[0]));
    tcase_add_test(declarations, initialisers_keep_names_and_offsets);
    tcase_add_loop_test(declarations, functions_keep_their_limits, 0,
                        sizeof(limits) / sizeof(limits[0]));
    tcase_add_test(declarations, functions_keep_locals_and_results);
    tcase_add_test(declarations, branches_without_a_label_are_lost);
    tcase_add_loop_test(declarations, registers_beyond_what_a_text_can_use_are_rejected, 0,
                        sizeof(excessive) / sizeof(excessive[0]));
    tcase_add_test(declarations, many_registers_are_kept);
    suite_add_tcase(suite, declarations);
    return suite_run(suite);
}
