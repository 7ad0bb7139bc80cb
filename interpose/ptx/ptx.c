/*
 * The PTX parser, see ptx.h: modules and the heads of functions.
 */
#include "interpose/ptx/ptx_parser.h"

#include <stdlib.h>
#include <string.h>

/* ".maxntid 256, 1, 1" and other directives before a body. */
static void parse_limits(struct parser *parser, struct ptx_function *function)
{
    while (!parser_is_end(parser) && !parser_is_sign(parser, '{') && !parser_is_sign(parser, ';')) {
        bool is_limit = parser_is_word(parser, ".maxntid") || parser_is_word(parser, ".reqntid");
        uint64_t threads = 1;

        parser_next(parser);
        while (is_limit && parser->lex.token.kind == TOKEN_NUMBER) {
            threads *= parser->lex.token.number > 1024 ? 1024 : parser->lex.token.number;
            parser_next(parser);
            is_limit = parser_take(parser, ',');
            function->threads_most = threads > 1024 ? 1024 : (uint32_t)threads;
        }
    }
}

/* From ".entry" or ".func" to the end of the declaration or definition. */
static void parse_function(struct parser *parser)
{
    bool is_kernel = parser_is_word(parser, ".entry");
    struct ptx_function *function = PARSER_ADD(parser, parser->module, function);
    struct ptx_function unused = {0};

    if (function == NULL) {
        return;
    }
    function->is_kernel = is_kernel;
    parser_next(parser);
    if (parser_take(parser, '(')) { /* the result of a function: named, but not passed */
        parser_read_parameters(parser, &unused);
    }
    parser->function = function;
    for (size_t i = 0; i < unused.parameter_count; i++) {
        struct ptx_variable *local = PARSER_ADD(parser, function, local);

        if (local != NULL) {
            *local = (struct ptx_variable){.name = unused.parameters[i].name,
                                           .space = SPACE_PARAM,
                                           .alignment = unused.parameters[i].alignment,
                                           .element_bytes = 1,
                                           .bytes = unused.parameters[i].bytes};
            function->result_count++;
        }
    }
    free(unused.parameters);
    if (parser->lex.token.kind != TOKEN_WORD) {
        (void)parser_fail(parser, "a function without a name");
        return;
    }
    function->name = parser->lex.token.span;
    parser_next(parser);
    if (parser_take(parser, '(')) {
        parser_read_parameters(parser, function);
    }
    parse_limits(parser, function);
    if (parser_take(parser, '{')) {
        function->has_body = true;
        parser_read_body(parser);
    } else {
        (void)parser_take(parser, ';');
    }
    parser->function = NULL;
}

static void parse_target(struct parser *parser)
{
    parser_next(parser);
    do {
        struct span word = parser->lex.token.span;

        if (parser->lex.token.kind == TOKEN_WORD && word.length > 3 &&
            memcmp(word.text, "sm_", 3) == 0) {
            parser->module->architecture = 0;
            for (uint32_t i = 3; i < word.length && word.text[i] >= '0' && word.text[i] <= '9' &&
                                 parser->module->architecture < 100000;
                 i++) {
                parser->module->architecture =
                    parser->module->architecture * 10 + (unsigned)(word.text[i] - '0');
            }
        }
        parser_next(parser);
    } while (parser_take(parser, ','));
}

/* A statement of the module. */
static void parse_statement(struct parser *parser)
{
    enum ptx_space space;

    if (parser_is_word(parser, ".extern")) {
        parser->is_extern = true;
        parser_next(parser);
        return;
    }
    if (parser_is_word(parser, ".entry") || parser_is_word(parser, ".func")) {
        parse_function(parser);
    } else if (parser_is_word(parser, ".target")) {
        parse_target(parser);
    } else if (parser_is_word(parser, ".address_size")) {
        parser_next(parser);
        if (parser->lex.token.number != 64) {
            parser->failure = error_text_set(parser->problem, CAPU_UNSUPPORTED,
                                             "line %u: addresses of 32 bits", parser->lex.line);
        }
        parser_next(parser);
    } else if (parser_is_word(parser, ".visible") || parser_is_word(parser, ".weak") ||
               parser_is_word(parser, ".common")) {
        parser_next(parser);
    } else if (parser_is_word(parser, ".file") || parser_is_word(parser, ".loc")) {
        ptx_lex_skip_line(&parser->lex);
    } else if (parser_is_word(parser, ".section")) {
        while (!parser_is_end(parser) && !parser_is_sign(parser, '{')) {
            parser_next(parser);
        }
        while (!parser_is_end(parser) && !parser_is_sign(parser, '}')) {
            parser_next(parser);
        }
        (void)parser_take(parser, '}');
    } else if (parser->lex.token.kind == TOKEN_WORD &&
               parser_space_of(parser->lex.token.span, &space)) {
        parser_read_variables(parser, space);
    } else if (parser->lex.token.kind == TOKEN_WORD && parser->lex.token.span.text[0] == '.') {
        parser_skip_statement(parser);
    } else if (!parser_take(parser, ';')) {
        (void)parser_fail(parser, "a directive was expected");
    }
    parser->is_extern = false;
}

/* ".version 8.0" comes first; its number has a point, which the lexer does not keep. */
static bool parse_version(struct parser *parser)
{
    struct span span;
    unsigned digits[2] = {0, 0};
    unsigned part = 0;

    if (!parser_is_word(parser, ".version")) {
        return parser_fail(parser, "PTX begins with .version");
    }
    parser_next(parser);
    span = parser->lex.token.span;
    if (parser->lex.token.kind != TOKEN_NUMBER) {
        return parser_fail(parser, ".version without a number");
    }
    for (uint32_t i = 0; i < span.length && i < 8; i++) {
        if (span.text[i] == '.') {
            part = 1;
        } else {
            digits[part] = digits[part] * 10 + (unsigned)(span.text[i] - '0') % 10;
        }
    }
    parser->module->version = digits[0] * 10 + digits[1];
    parser_next(parser);
    return true;
}

capu_status ptx_parse(const char *text, size_t count, struct ptx_module *module,
                      struct error_text *problem)
{
    struct parser parser = {.module = module, .problem = problem};

    *module = (struct ptx_module){0};
    if (count > UINT32_MAX) {
        return error_text_set(problem, CAPU_UNSUPPORTED, "more than 4 GiB of PTX");
    }
    parser.registers_most = REGISTERS_MOST + count;
    ptx_lex_begin(&parser.lex, text, count);
    if (parse_version(&parser)) {
        while (!parser_is_end(&parser)) {
            parse_statement(&parser);
        }
    }
    free(parser.declarations);
    if (parser.failure != CAPU_OK) {
        ptx_finish(module);
    }
    return parser.failure;
}

static void finish_function(struct ptx_function *function)
{
    free(function->parameters);
    free(function->locals);
    free(function->registers);
    free(function->instructions);
    free(function->operands);
    free(function->labels);
    free(function->scope_parents);
}

void ptx_finish(struct ptx_module *module)
{
    for (size_t i = 0; i < module->function_count; i++) {
        finish_function(&module->functions[i]);
    }
    free(module->functions);
    free(module->variables);
    free(module->initials);
    table_finish(&module->names);
    *module = (struct ptx_module){0};
}

const struct ptx_function *ptx_find(const struct ptx_module *module, struct span name)
{
    for (size_t i = 0; i < module->function_count; i++) {
        if (module->functions[i].has_body && span_is_same(module->functions[i].name, name)) {
            return &module->functions[i];
        }
    }
    return NULL;
}

const struct ptx_label *ptx_label(const struct ptx_function *function, struct span name,
                                  uint32_t scope)
{
    if (name.length == 0) { /* of an operand that is a number */
        return NULL;
    }
    for (;;) {
        struct ptx_label key = {.name = name, .scope = scope};
        const struct ptx_label *label = function->label_count == 0
                                            ? NULL
                                            : bsearch(&key, function->labels, function->label_count,
                                                      sizeof(key), parser_label_order);

        if (label != NULL || scope == 0) {
            return label;
        }
        scope = function->scope_parents[scope];
    }
}
