/*
 * The PTX parser, see ptx_parser.h: steps that its files share, and declarations of variables,
 * parameters and registers.
 */
#include "interpose/ptx/ptx_parser.h"

#include "base/array.h"
#include "base/hash.h"

#include <string.h>

bool parser_fail(struct parser *parser, const char *what)
{
    if (parser->failure == CAPU_OK) {
        parser->failure = error_text_set(parser->problem, CAPU_FILE_FAILED, "line %u: %s",
                                         parser->lex.line, what);
    }
    return false;
}

void *parser_add(struct parser *parser, void *array, size_t *count, size_t *capacity, size_t bytes)
{
    void *element;

    if (*count >= COUNT_MOST) {
        (void)parser_fail(parser, "more parts of one kind than the parser takes");
        return NULL;
    }
    if (!array_reserve(array, capacity, *count + 1, bytes)) {
        if (parser->failure == CAPU_OK) {
            parser->failure =
                error_text_set(parser->problem, CAPU_NO_HOST_MEMORY, "no memory to parse it");
        }
        return NULL;
    }
    element = *(char **)array + *count * bytes;
    memset(element, 0, bytes);
    ++*count;
    return element;
}

void parser_skip_statement(struct parser *parser)
{
    unsigned depth = 0;

    while (!parser_is_end(parser)) {
        if (parser_is_sign(parser, '{')) {
            depth++;
        } else if (parser_is_sign(parser, '}')) {
            if (depth == 0) {
                return;
            }
            depth--;
        } else if (parser_is_sign(parser, ';') && depth == 0) {
            parser_next(parser);
            return;
        }
        parser_next(parser);
    }
}

/* Declarations. */

bool parser_find_variable(const struct ptx_module *module, struct span name, uint32_t *index)
{
    uint64_t hash = hash_bytes(name.text, name.length);
    uint64_t value;

    for (; table_get(&module->names, hash, &value); hash++) {
        if (span_is_same(module->variables[value].name, name)) {
            *index = (uint32_t)value;
            return true;
        }
    }
    return false;
}

/* Declared first and defined later, a variable is what the definition says. */
static void add_variable(struct parser *parser, const struct ptx_variable *added)
{
    struct ptx_module *module = parser->module;
    struct ptx_variable *variable;
    uint64_t hash = hash_bytes(added->name.text, added->name.length);
    uint64_t value;
    uint32_t known;

    if (parser_find_variable(module, added->name, &known)) {
        if (module->variables[known].is_extern) {
            module->variables[known] = *added;
        }
        return;
    }
    if (!table_reserve(&module->names, module->names.count + 1)) {
        parser->failure =
            error_text_set(parser->problem, CAPU_NO_HOST_MEMORY, "no memory to parse it");
        return;
    }
    variable = PARSER_ADD(parser, module, variable);
    if (variable == NULL) {
        return;
    }
    *variable = *added;
    while (table_get(&module->names, hash, &value)) {
        hash++;
    }
    table_put(&module->names, hash, module->variable_count - 1);
}

bool parser_space_of(struct span word, enum ptx_space *space)
{
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {{".global", SPACE_GLOBAL}, {".const", SPACE_CONST}, {".shared", SPACE_SHARED},
                  {".local", SPACE_LOCAL},   {".param", SPACE_PARAM}, {".tex", SPACE_GLOBAL}};

    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (span_is(word, spaces[i].name)) {
            *space = spaces[i].space;
            return true;
        }
    }
    return false;
}

/* The number in brackets after a name; 0: it has none. A product, if there are several. */
static uint64_t read_dimensions(struct parser *parser)
{
    uint64_t count = 1;

    while (parser_take(parser, '[')) {
        uint64_t number = 0;

        if (parser->lex.token.kind == TOKEN_NUMBER) {
            number = parser->lex.token.number;
            parser_next(parser);
        }
        count = number > COUNT_MOST || count > COUNT_MOST ? (uint64_t)COUNT_MOST * COUNT_MOST
                                                          : count * number;
        (void)parser_take(parser, ']');
    }
    return count;
}

/* What the parser does not understand of an initialiser makes it unread, and is skipped; `depth`
   braces are open. */
static void skip_initialiser(struct parser *parser, struct ptx_variable *variable, unsigned depth)
{
    variable->is_unread = true;
    while (!parser_is_end(parser)) {
        if (depth == 0 && (parser_is_sign(parser, ',') || parser_is_sign(parser, ';'))) {
            return;
        }
        if (parser_is_sign(parser, '{') || parser_is_sign(parser, '(')) {
            depth++;
        } else if (parser_is_sign(parser, '}') || parser_is_sign(parser, ')')) {
            if (depth == 0) {
                return;
            }
            depth--;
        }
        parser_next(parser);
    }
}

/* "12", "-1", "0f3F800000", "name+4", "generic(name)". False: something else. */
static bool read_initial(struct parser *parser, struct ptx_initial *initial)
{
    bool is_negative = parser_take(parser, '-');
    bool is_generic = parser_is_word(parser, "generic");

    if (is_generic) {
        parser_next(parser);
        if (!parser_take(parser, '(')) {
            return false;
        }
    }
    if (parser->lex.token.kind == TOKEN_WORD && !is_negative) {
        initial->name = parser->lex.token.span;
    } else if (parser->lex.token.kind == TOKEN_NUMBER) {
        initial->number = ptx_number(parser->lex.token, is_negative);
        initial->form = parser->lex.token.form;
    } else {
        return false;
    }
    parser_next(parser);
    if (is_generic && !parser_take(parser, ')')) {
        return false;
    }
    if (initial->name.length > 0 && (parser_is_sign(parser, '+') || parser_is_sign(parser, '-'))) {
        is_negative = parser_is_sign(parser, '-');
        parser_next(parser);
        initial->number = ptx_number(parser->lex.token, is_negative);
        parser_next(parser);
    }
    return true;
}

/* After the "=". */
static void read_initialiser(struct parser *parser, struct ptx_variable *variable)
{
    struct ptx_module *module = parser->module;
    bool is_list = parser_take(parser, '{');
    uint64_t offset = 0;

    variable->initial_first = (uint32_t)module->initial_count;
    do {
        struct ptx_initial initial = {.offset = offset, .bytes = variable->element_bytes};
        struct ptx_initial *added;

        if (is_list && parser_is_sign(parser, '}')) {
            break;
        }
        if (!read_initial(parser, &initial)) {
            skip_initialiser(parser, variable, is_list);
            return;
        }
        added = PARSER_ADD(parser, module, initial);
        if (added == NULL) {
            return;
        }
        *added = initial;
        offset += variable->element_bytes;
    } while (is_list && parser_take(parser, ','));
    if (is_list && !parser_take(parser, '}')) {
        skip_initialiser(parser, variable, is_list);
    }
    variable->initial_count = (uint32_t)module->initial_count - variable->initial_first;
}

/* What comes before the names: ".align 4 .b8". */
static void read_qualifiers(struct parser *parser, struct ptx_variable *variable)
{
    unsigned elements = 1;

    while (parser->lex.token.kind == TOKEN_WORD && parser->lex.token.span.text[0] == '.' &&
           !parser_is_end(parser)) {
        struct span word = parser->lex.token.span;

        parser_next(parser);
        if (span_is(word, ".align")) {
            variable->alignment = (uint32_t)parser->lex.token.number;
            parser_next(parser);
        } else if (span_is(word, ".attribute")) {
            while (!parser_is_end(parser) && !parser_take(parser, ')')) {
                variable->is_managed |= span_is(parser->lex.token.span, ".managed");
                parser_next(parser);
            }
        } else if (ptx_opcode_elements(word) > 1) {
            elements = ptx_opcode_elements(word);
        } else {
            variable->element_bytes = ptx_opcode_bits(word) / 8;
        }
    }
    variable->element_bytes *= elements;
    if (variable->alignment == 0 || variable->alignment > 4096 ||
        (variable->alignment & (variable->alignment - 1)) != 0) {
        variable->alignment = variable->element_bytes == 0 ? 1 : variable->element_bytes;
    }
}

/* A declaration of variables: ".shared .align 4 .b8 name[16], other;". At the word that names the
   space. */
void parser_read_variables(struct parser *parser, enum ptx_space space)
{
    struct ptx_variable declared = {.space = space, .is_extern = parser->is_extern};

    parser_next(parser);
    read_qualifiers(parser, &declared);
    do {
        struct ptx_variable variable = declared;

        if (parser->lex.token.kind != TOKEN_WORD) {
            break;
        }
        variable.name = parser->lex.token.span;
        parser_next(parser);
        if (parser_take(parser, '<')) { /* ".local .b32 name<4>": four of them, which nvcc never
                                           emits */
            variable.is_unread = true;
            parser_next(parser);
            (void)parser_take(parser, '>');
        }
        variable.bytes = read_dimensions(parser) * variable.element_bytes;
        if (parser_take(parser, '=')) {
            read_initialiser(parser, &variable);
        }
        if (parser->function == NULL) {
            add_variable(parser, &variable);
        } else {
            struct ptx_variable *local = PARSER_ADD(parser, parser->function, local);

            if (local != NULL) {
                *local = variable;
            }
        }
    } while (parser_take(parser, ','));
    parser_skip_statement(parser);
}

/* One parameter: ".param .align 8 .b8 name[24]", ".param .u64 .ptr .align 1 name". */
static void parse_parameter(struct parser *parser, struct ptx_function *function)
{
    struct ptx_parameter parameter = {.bytes = 0};
    struct ptx_parameter *added;
    uint32_t alignment = 0;
    uint64_t count = 1;

    while (!parser_is_end(parser) && !parser_is_sign(parser, ',') && !parser_is_sign(parser, ')')) {
        struct span word = parser->lex.token.span;

        if (parser_is_word(parser, ".reg")) {
            parameter.is_register = true;
        } else if (parser_is_word(parser, ".ptr")) {
            parameter.is_marked_pointer = true;
        } else if (parser_is_word(parser, ".align")) {
            parser_next(parser);
            /* The alignment after .ptr is that of what it points to. */
            if (!parameter.is_marked_pointer) {
                alignment = (uint32_t)parser->lex.token.number;
            }
        } else if (parser_is_sign(parser, '[')) {
            parser_next(parser);
            count = parser->lex.token.kind == TOKEN_NUMBER ? parser->lex.token.number : 0;
        } else if (parser->lex.token.kind == TOKEN_WORD && word.text[0] == '.') {
            unsigned bits = ptx_opcode_bits(word);

            parameter.bytes = bits >= 8 ? bits / 8 : parameter.bytes;
        } else if (parser->lex.token.kind == TOKEN_WORD) {
            parameter.name = word;
        }
        parser_next(parser);
    }
    if (parameter.bytes == 0) { /* textures and samplers are handles */
        parameter.bytes = 8;
    }
    if (parameter.name.length == 0 || count > PARAMETERS_MOST_BYTES) {
        (void)parser_fail(parser, "a parameter that cannot be read");
        return;
    }
    alignment = alignment == 0 ? parameter.bytes : alignment;
    if (alignment > 4096 || (alignment & (alignment - 1)) != 0) {
        (void)parser_fail(parser, "a parameter with a wrong alignment");
        return;
    }
    parameter.alignment = alignment;
    parameter.bytes *= (uint32_t)count;
    parameter.offset = (function->parameter_bytes + alignment - 1) / alignment * alignment;
    if (parameter.offset + parameter.bytes > PARAMETERS_MOST_BYTES) {
        (void)parser_fail(parser, "too many parameters");
        return;
    }
    function->parameter_bytes = parameter.offset + parameter.bytes;
    added = PARSER_ADD(parser, function, parameter);
    if (added != NULL) {
        *added = parameter;
    }
}

void parser_read_parameters(struct parser *parser, struct ptx_function *function)
{
    while (!parser_is_end(parser) && !parser_is_sign(parser, ')')) {
        parse_parameter(parser, function);
        (void)parser_take(parser, ',');
    }
    (void)parser_take(parser, ')');
}

void parser_read_registers(struct parser *parser)
{
    struct ptx_function *function = parser->function;
    unsigned bits = 0;

    parser_next(parser);
    while (!parser_is_end(parser) && !parser_is_sign(parser, ';')) {
        struct span word = parser->lex.token.span;
        struct declaration *declaration;
        bool is_name = parser->lex.token.kind == TOKEN_WORD && word.text[0] != '.';
        uint64_t count = 1;

        if (parser->lex.token.kind == TOKEN_WORD && !is_name) {
            bits = span_is(word, ".v2") || span_is(word, ".v4") ? bits : ptx_opcode_bits(word);
        }
        parser_next(parser);
        if (!is_name) {
            continue;
        }
        declaration = PARSER_ADD(parser, parser, declaration);
        if (declaration == NULL) {
            return;
        }
        *declaration = (struct declaration){word, false, 1, (uint32_t)function->register_count};
        if (parser_take(parser, '<')) {
            declaration->is_range = true;
            count = parser->lex.token.number;
            parser_next(parser);
            (void)parser_take(parser, '>');
        }
        if (count > parser->registers_most) {
            (void)parser_fail(parser, "far more registers than the text can use");
            return;
        }
        parser->registers_most -= count;
        declaration->count = (uint32_t)count;
        for (uint32_t i = 0; i < declaration->count; i++) {
            struct ptx_register *added = PARSER_ADD(parser, function, register);

            if (added == NULL) {
                return;
            }
            *added = (struct ptx_register){word, (uint16_t)bits};
        }
    }
    (void)parser_take(parser, ';');
}
