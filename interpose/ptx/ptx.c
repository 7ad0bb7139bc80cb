/* The PTX parser, see ptx.h: modules, functions and their bodies. */
#include "interpose/ptx/ptx_parser.h"

#include <stdlib.h>
#include <string.h>

/* Of labels, for sorting and searching: by name, then by scope. */
static int label_order(const void *left, const void *right)
{
    const struct ptx_label *one = left;
    const struct ptx_label *other = right;
    uint32_t length = one->name.length < other->name.length ? one->name.length : other->name.length;
    int order = memcmp(one->name.text, other->name.text, length);

    if (order == 0) {
        order = (one->name.length > other->name.length) - (one->name.length < other->name.length);
    }
    return order != 0 ? order : (one->scope > other->scope) - (one->scope < other->scope);
}

/* Bodies of functions: instructions, labels and scopes. */

/* The register that a name means here, the innermost declaration first. */
static bool find_register(const struct parser *parser, struct span name, uint32_t *index)
{
    uint32_t digits = 0;
    uint64_t number = 0;

    while (digits < name.length && digits < 9 && name.text[name.length - 1 - digits] >= '0' &&
           name.text[name.length - 1 - digits] <= '9') {
        digits++;
    }
    for (uint32_t i = name.length - digits; i < name.length; i++) {
        number = number * 10 + (uint64_t)(name.text[i] - '0');
    }
    for (size_t i = parser->declaration_count; i > 0; i--) {
        const struct declaration *declaration = &parser->declarations[i - 1];

        if (!declaration->is_range && span_is_same(declaration->name, name)) {
            *index = declaration->first;
            return true;
        }
        /* "%r1<5>" declares %r10 to %r14, so the split into name and number is not always here. */
        if (declaration->is_range && declaration->name.length < name.length &&
            declaration->name.length >= name.length - digits &&
            memcmp(declaration->name.text, name.text, declaration->name.length) == 0) {
            uint64_t rest = number;

            if (declaration->name.length > name.length - digits) {
                rest = 0;
                for (uint32_t j = declaration->name.length; j < name.length; j++) {
                    rest = rest * 10 + (uint64_t)(name.text[j] - '0');
                }
            }
            if (rest < declaration->count) {
                *index = declaration->first + (uint32_t)rest;
                return true;
            }
        }
    }
    return false;
}

/* What a word means as an operand. */
static void resolve_operand(const struct parser *parser, struct span word,
                            struct ptx_operand *operand)
{
    const struct ptx_function *function = parser->function;

    operand->name = word;
    if (find_register(parser, word, &operand->index)) {
        operand->kind = OPERAND_REGISTER;
        return;
    }
    for (size_t i = function->local_count; i > 0; i--) {
        if (span_is_same(function->locals[i - 1].name, word)) {
            operand->kind = OPERAND_LOCAL;
            operand->index = (uint32_t)(i - 1);
            return;
        }
    }
    for (size_t i = 0; i < function->parameter_count; i++) {
        if (span_is_same(function->parameters[i].name, word)) {
            operand->kind = OPERAND_PARAMETER;
            operand->index = (uint32_t)i;
            return;
        }
    }
    if (parser_find_variable(parser->module, word, &operand->index)) {
        operand->kind = OPERAND_VARIABLE;
        return;
    }
    operand->kind =
        word.text[0] == '%' || span_is(word, "WARP_SZ") ? OPERAND_SPECIAL : OPERAND_NAME;
}

/* A register, a number, or a name, each with what is added to it. False: none of these. */
static bool parse_term(struct parser *parser, unsigned position, bool is_address, bool is_list)
{
    struct ptx_operand operand = {.kind = OPERAND_NUMBER,
                                  .position = (uint16_t)position,
                                  .is_address = is_address,
                                  .is_list = is_list};
    struct ptx_operand *added;
    bool is_negative;

    operand.is_negated = parser_take(parser, '!');
    is_negative = parser_take(parser, '-');
    if (parser->lex.token.kind == TOKEN_NUMBER) {
        operand.number = ptx_number(parser->lex.token, is_negative);
        operand.form = parser->lex.token.form;
    } else if (parser->lex.token.kind == TOKEN_WORD && !is_negative) {
        resolve_operand(parser, parser->lex.token.span, &operand);
    } else {
        return false;
    }
    parser_next(parser);
    if (parser_is_sign(parser, '+') || parser_is_sign(parser, '-')) {
        is_negative = parser_take(parser, '-');
        (void)parser_take(parser, '+');
        is_negative ^= parser_take(parser, '-');
        if (parser->lex.token.kind != TOKEN_NUMBER) {
            return false;
        }
        operand.number =
            (int64_t)(is_negative ? 0 - parser->lex.token.number : parser->lex.token.number);
        parser_next(parser);
    }
    added = PARSER_ADD(parser, parser->function, operand);
    if (added != NULL) {
        *added = operand;
    }
    return added != NULL;
}

/* Terms in brackets of some kind, which may be nested: "{a, b}", "[base+4, {x, y}]", "(a, b)". */
static bool parse_group(struct parser *parser, unsigned position)
{
    char closing[DEPTH_MOST];
    unsigned depth = 0;

    do {
        if (parser_is_sign(parser, '{') || parser_is_sign(parser, '[') ||
            parser_is_sign(parser, '(')) {
            if (depth == DEPTH_MOST) {
                return false;
            }
            closing[depth++] = parser_is_sign(parser, '{')   ? '}'
                               : parser_is_sign(parser, '[') ? ']'
                                                             : ')';
            parser_next(parser);
        } else if (parser_is_sign(parser, closing[depth - 1])) {
            depth--;
            parser_next(parser);
        } else if (!parser_take(parser, ',') &&
                   !parse_term(parser, position, depth == 1 && closing[0] == ']',
                               depth > 1 || closing[0] != ']')) {
            return false;
        }
    } while (depth > 0 && !parser_is_end(parser));
    return !parser_is_end(parser);
}

static bool parse_operand(struct parser *parser, unsigned position)
{
    struct ptx_function *function = parser->function;
    size_t first = function->operand_count;

    if (parser_is_sign(parser, '{') || parser_is_sign(parser, '[') || parser_is_sign(parser, '(')) {
        if (!parse_group(parser, position)) {
            return false;
        }
    } else if (!parse_term(parser, position, false, false)) {
        return false;
    }
    if (parser_take(parser, '|')) {
        if (!parse_term(parser, position, false, true) || function->operand_count <= first) {
            return false;
        }
        function->operands[first].is_list = true;
    }
    return true;
}

/* An instruction, up to its semicolon. */
static void parse_instruction(struct parser *parser)
{
    struct ptx_function *function = parser->function;
    struct ptx_instruction instruction = {.predicate = PTX_NONE,
                                          .scope = parser->scopes[parser->depth],
                                          .line = parser->lex.line,
                                          .operand_first = (uint32_t)function->operand_count};
    struct ptx_instruction *added;
    bool is_read = true;
    unsigned position = 0;

    if (parser_take(parser, '@')) {
        instruction.is_negated = parser_take(parser, '!');
        is_read = parser->lex.token.kind == TOKEN_WORD &&
                  find_register(parser, parser->lex.token.span, &instruction.predicate);
        parser_next(parser);
    }
    instruction.opcode = parser->lex.token.span;
    if (parser->lex.token.kind != TOKEN_WORD) {
        (void)parser_fail(parser, "an instruction was expected");
        return;
    }
    parser_next(parser);
    while (is_read && !parser_is_end(parser) && !parser_is_sign(parser, ';')) {
        is_read = parse_operand(parser, position++);
        if (is_read && !parser_take(parser, ',')) {
            is_read = parser_is_sign(parser, ';');
        }
    }
    if (is_read) {
        instruction.effect = ptx_opcode_effect(instruction.opcode);
    } else {
        function->operand_count = instruction.operand_first;
        instruction.effect = EFFECT_UNKNOWN;
    }
    instruction.operand_count = (uint32_t)function->operand_count - instruction.operand_first;
    parser_skip_statement(parser);
    added = PARSER_ADD(parser, function, instruction);
    if (added != NULL) {
        *added = instruction;
    }
}

static void begin_scope(struct parser *parser)
{
    struct ptx_function *function = parser->function;
    uint32_t parent = parser->scopes[parser->depth];
    uint32_t *added;

    if (parser->depth + 1 == DEPTH_MOST) {
        (void)parser_fail(parser, "braces nested too deeply");
        return;
    }
    added = parser_add(parser, &function->scope_parents, &function->scope_count,
                       &function->scope_capacity, sizeof(*added));
    if (added == NULL) {
        return;
    }
    *added = parent;
    parser->depth++;
    parser->scopes[parser->depth] = (uint32_t)(function->scope_count - 1);
    parser->visible[parser->depth] = parser->declaration_count;
}

static void end_scope(struct parser *parser)
{
    parser->declaration_count = parser->visible[parser->depth];
    parser->depth--;
}

/* ".branchtargets a, b;" after its label. */
static void parse_targets(struct parser *parser)
{
    struct ptx_function *function = parser->function;
    struct ptx_label *label =
        parser->pending_label == PTX_NONE ? NULL : &function->labels[parser->pending_label];
    uint32_t first = (uint32_t)function->operand_count;

    parser_next(parser);
    while (!parser_is_end(parser) && parser->lex.token.kind == TOKEN_WORD) {
        if (!parse_term(parser, 0, false, true)) {
            break;
        }
        (void)parser_take(parser, ',');
    }
    if (label != NULL) {
        label->target_first = first;
        label->target_count = (uint32_t)function->operand_count - first;
    }
    parser_skip_statement(parser);
}

/* A statement that begins with a word: a directive, a label or an instruction. */
static void parse_word(struct parser *parser)
{
    struct span word = parser->lex.token.span;
    enum ptx_space space;

    if (word.text[0] != '.') {
        struct ptx_lex saved = parser->lex;
        struct ptx_label *label;

        parser_next(parser);
        if (!parser_is_sign(parser, ':')) {
            parser->lex = saved;
            parse_instruction(parser);
            return;
        }
        parser_next(parser);
        label = PARSER_ADD(parser, parser->function, label);
        if (label != NULL) {
            *label =
                (struct ptx_label){.name = word,
                                   .scope = parser->scopes[parser->depth],
                                   .instruction = (uint32_t)parser->function->instruction_count};
            parser->pending_label = (uint32_t)(parser->function->label_count - 1);
        }
        return;
    }
    if (parser_is_word(parser, ".reg")) {
        parser_read_registers(parser);
    } else if (parser_is_word(parser, ".loc") || parser_is_word(parser, ".file")) {
        ptx_lex_skip_line(&parser->lex);
    } else if (parser_is_word(parser, ".branchtargets")) {
        parse_targets(parser);
    } else if (parser_space_of(word, &space)) {
        parser_read_variables(parser, space);
    } else {
        parser_skip_statement(parser);
    }
}

/* The body of a function, after its opening brace. */
/* The body of a function, after its opening brace. */
static void parse_body(struct parser *parser)
{
    struct ptx_function *function = parser->function;
    uint32_t *root = parser_add(parser, &function->scope_parents, &function->scope_count,
                                &function->scope_capacity, sizeof(*root));

    if (root == NULL) {
        return;
    }
    parser->depth = 0;
    parser->scopes[0] = 0;
    parser->declaration_count = 0;
    parser->pending_label = PTX_NONE;
    while (!parser_is_end(parser)) {
        uint32_t label = parser->pending_label;

        if (parser_is_sign(parser, '}') && parser->depth == 0) {
            break;
        }
        if (parser_take(parser, '{')) {
            begin_scope(parser);
        } else if (parser_take(parser, '}')) {
            end_scope(parser);
        } else if (parser_take(parser, ';')) {
            continue;
        } else if (parser->lex.token.kind == TOKEN_WORD) {
            parse_word(parser);
        } else if (parser_is_sign(parser, '@')) {
            parse_instruction(parser);
        } else {
            (void)parser_fail(parser, "a statement was expected");
        }
        if (parser->pending_label == label) {
            parser->pending_label = PTX_NONE;
        }
    }
    if (!parser_take(parser, '}')) {
        (void)parser_fail(parser, "the function does not end");
    }
    if (function->label_count > 0) {
        qsort(function->labels, function->label_count, sizeof(*function->labels), label_order);
    }
}

/* Modules and the heads of functions. */

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
        parse_body(parser);
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
        const struct ptx_label *label =
            function->label_count == 0
                ? NULL
                : bsearch(&key, function->labels, function->label_count, sizeof(key), label_order);

        if (label != NULL || scope == 0) {
            return label;
        }
        scope = function->scope_parents[scope];
    }
}
