/* The PTX parser, see ptx.h: declarations of variables, parameters and registers. */
#include "interpose/ptx_parser.h"

#include <string.h>

static uint64_t hash_of(struct span name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (uint32_t i = 0; i < name.length; i++) {
        hash = (hash ^ (unsigned char)name.text[i]) * 0x100000001b3u;
    }
    return hash == TABLE_NO_KEY ? 0 : hash;
}

static uint64_t next_hash(uint64_t hash)
{
    return hash + 1 == TABLE_NO_KEY ? 0 : hash + 1;
}

bool parser_find_variable(const struct ptx_module *module, struct span name, uint32_t *index)
{
    uint64_t hash = hash_of(name);
    uint64_t value;

    while (table_get(&module->names, hash, &value)) {
        if (span_is_same(module->variables[value].name, name)) {
            *index = (uint32_t)value;
            return true;
        }
        hash = next_hash(hash);
    }
    return false;
}

static void add_variable(struct parser *parser, struct span name, enum ptx_space space)
{
    struct ptx_module *module = parser->module;
    struct ptx_variable *variable;
    uint64_t hash = hash_of(name);
    uint64_t value;
    uint32_t known;

    if (parser_find_variable(module, name, &known)) { /* declared, then defined */
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
    *variable = (struct ptx_variable){name, space};
    while (table_get(&module->names, hash, &value)) {
        hash = next_hash(hash);
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

/* A declaration of variables: ".shared .align 4 .b8 name[16], other;". At the word that names the
   space. Initialisers are skipped. */
void parser_read_variables(struct parser *parser, enum ptx_space space)
{
    bool is_initialiser = false;
    unsigned depth = 0;

    parser_next(parser);
    while (!parser_is_end(parser) && !(parser_is_sign(parser, ';') && depth == 0)) {
        if (parser_is_sign(parser, '{') || parser_is_sign(parser, '[') ||
            parser_is_sign(parser, '(')) {
            depth++;
        } else if (parser_is_sign(parser, '}') || parser_is_sign(parser, ']') ||
                   parser_is_sign(parser, ')')) {
            if (depth == 0) {
                return;
            }
            depth--;
        } else if (parser_is_sign(parser, '=')) {
            is_initialiser = true;
        } else if (parser_is_sign(parser, ',') && depth == 0) {
            is_initialiser = false;
        } else if (parser->lex.token.kind == TOKEN_WORD && depth == 0 && !is_initialiser &&
                   parser->lex.token.span.text[0] != '.') {
            if (parser->function == NULL) {
                add_variable(parser, parser->lex.token.span, space);
            } else {
                struct ptx_variable *local = PARSER_ADD(parser, parser->function, local);

                if (local != NULL) {
                    *local = (struct ptx_variable){parser->lex.token.span, space};
                }
            }
        }
        parser_next(parser);
    }
    (void)parser_take(parser, ';');
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

        if (parser_is_word(parser, ".ptr")) {
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
            declaration->count = parser->lex.token.number > COUNT_MOST
                                     ? COUNT_MOST
                                     : (uint32_t)parser->lex.token.number;
            parser_next(parser);
            (void)parser_take(parser, '>');
        }
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
