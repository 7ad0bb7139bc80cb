/*
 * The PTX parser, see ptx.h.
 *
 * Module and function bodies are sequences of statements. Those that matter are parsed; all others
 * are skipped to their semicolon, or to the end of their line where PTX has none (.loc, .file). A
 * `failure` ends the parse; errors within an instruction do not.
 */
#include "interpose/ptx.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* More is no real parameter, register or instruction, and would only cost memory. */
enum { COUNT_MOST = 1 << 24, PARAMETERS_MOST_BYTES = 1 << 20, DEPTH_MOST = 64 };

/* Declared names of registers that are visible: "%r<5>" declares %r0 to %r4. */
struct declaration {
    struct span name;
    bool is_range;
    uint32_t count;
    uint32_t first; /* register */
};

struct parser {
    struct ptx_lex lex;
    struct ptx_module *module;
    struct error_text *problem;
    capu_status failure;
    /* Of the function being parsed. */
    struct ptx_function *function;
    struct declaration *declarations;
    size_t declaration_count, declaration_capacity;
    size_t visible[DEPTH_MOST]; /* declarations when the scope began */
    uint32_t scopes[DEPTH_MOST];
    unsigned depth;
    uint32_t pending_label; /* whose statement comes next; PTX_NONE: none */
};

static bool fail(struct parser *parser, const char *what)
{
    if (parser->failure == CAPU_OK) {
        parser->failure =
            error_text_set(parser->problem, CAPU_BAD_FILE, "line %u: %s", parser->lex.line, what);
    }
    return false;
}

/* Adds a zeroed element to an array; NULL: no memory. */
static void *add(struct parser *parser, void *array, size_t *count, size_t *capacity, size_t bytes)
{
    void *element;

    if (*count >= COUNT_MOST || !array_reserve(array, capacity, *count + 1, bytes)) {
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

#define ADD(parser, owner, name)                                                      \
    add(parser, &(owner)->name##s, &(owner)->name##_count, &(owner)->name##_capacity, \
        sizeof(*(owner)->name##s))

static bool is_end(const struct parser *parser)
{
    return parser->lex.token.kind == TOKEN_END || parser->failure != CAPU_OK;
}

static bool is_word(const struct parser *parser, const char *word)
{
    return parser->lex.token.kind == TOKEN_WORD && span_is(parser->lex.token.span, word);
}

static bool is_sign(const struct parser *parser, char sign)
{
    return ptx_lex_is(&parser->lex, sign);
}

static void next(struct parser *parser)
{
    ptx_lex_next(&parser->lex);
}

/* Takes a sign if it is there. */
static bool take(struct parser *parser, char sign)
{
    if (!is_sign(parser, sign)) {
        return false;
    }
    next(parser);
    return true;
}

/* Skips to after the semicolon that ends a statement, or to a brace that ends a body. */
static void skip_statement(struct parser *parser)
{
    unsigned depth = 0;

    while (!is_end(parser)) {
        if (is_sign(parser, '{')) {
            depth++;
        } else if (is_sign(parser, '}')) {
            if (depth == 0) {
                return;
            }
            depth--;
        } else if (is_sign(parser, ';') && depth == 0) {
            next(parser);
            return;
        }
        next(parser);
    }
}

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

static bool find_variable(const struct ptx_module *module, struct span name, uint32_t *index)
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

    if (find_variable(module, name, &known)) { /* declared, then defined */
        return;
    }
    if (!table_reserve(&module->names, module->names.count + 1)) {
        parser->failure =
            error_text_set(parser->problem, CAPU_NO_HOST_MEMORY, "no memory to parse it");
        return;
    }
    variable = ADD(parser, module, variable);
    if (variable == NULL) {
        return;
    }
    *variable = (struct ptx_variable){name, space};
    while (table_get(&module->names, hash, &value)) {
        hash = next_hash(hash);
    }
    table_put(&module->names, hash, module->variable_count - 1);
}

static bool space_of(struct span word, enum ptx_space *space)
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
static void parse_variables(struct parser *parser, enum ptx_space space)
{
    bool is_initialiser = false;
    unsigned depth = 0;

    next(parser);
    while (!is_end(parser) && !(is_sign(parser, ';') && depth == 0)) {
        if (is_sign(parser, '{') || is_sign(parser, '[') || is_sign(parser, '(')) {
            depth++;
        } else if (is_sign(parser, '}') || is_sign(parser, ']') || is_sign(parser, ')')) {
            if (depth == 0) {
                return;
            }
            depth--;
        } else if (is_sign(parser, '=')) {
            is_initialiser = true;
        } else if (is_sign(parser, ',') && depth == 0) {
            is_initialiser = false;
        } else if (parser->lex.token.kind == TOKEN_WORD && depth == 0 && !is_initialiser &&
                   parser->lex.token.span.text[0] != '.') {
            if (parser->function == NULL) {
                add_variable(parser, parser->lex.token.span, space);
            } else {
                struct ptx_variable *local = ADD(parser, parser->function, local);

                if (local != NULL) {
                    *local = (struct ptx_variable){parser->lex.token.span, space};
                }
            }
        }
        next(parser);
    }
    (void)take(parser, ';');
}

/* One parameter: ".param .align 8 .b8 name[24]", ".param .u64 .ptr .align 1 name". */
static void parse_parameter(struct parser *parser, struct ptx_function *function)
{
    struct ptx_parameter parameter = {.bytes = 0};
    struct ptx_parameter *added;
    uint32_t alignment = 0;
    uint64_t count = 1;

    while (!is_end(parser) && !is_sign(parser, ',') && !is_sign(parser, ')')) {
        struct span word = parser->lex.token.span;

        if (is_word(parser, ".ptr")) {
            parameter.is_marked_pointer = true;
        } else if (is_word(parser, ".align")) {
            next(parser);
            /* The alignment after .ptr is that of what it points to. */
            if (!parameter.is_marked_pointer) {
                alignment = (uint32_t)parser->lex.token.number;
            }
        } else if (is_sign(parser, '[')) {
            next(parser);
            count = parser->lex.token.kind == TOKEN_NUMBER ? parser->lex.token.number : 0;
        } else if (parser->lex.token.kind == TOKEN_WORD && word.text[0] == '.') {
            unsigned bits = ptx_opcode_bits(word);

            parameter.bytes = bits >= 8 ? bits / 8 : parameter.bytes;
        } else if (parser->lex.token.kind == TOKEN_WORD) {
            parameter.name = word;
        }
        next(parser);
    }
    if (parameter.bytes == 0) { /* textures and samplers are handles */
        parameter.bytes = 8;
    }
    if (parameter.name.length == 0 || count > PARAMETERS_MOST_BYTES) {
        (void)fail(parser, "a parameter that cannot be read");
        return;
    }
    alignment = alignment == 0 ? parameter.bytes : alignment;
    if (alignment > 4096 || (alignment & (alignment - 1)) != 0) {
        (void)fail(parser, "a parameter with a wrong alignment");
        return;
    }
    parameter.bytes *= (uint32_t)count;
    parameter.offset = (function->parameter_bytes + alignment - 1) / alignment * alignment;
    if (parameter.offset + parameter.bytes > PARAMETERS_MOST_BYTES) {
        (void)fail(parser, "too many parameters");
        return;
    }
    function->parameter_bytes = parameter.offset + parameter.bytes;
    added = ADD(parser, function, parameter);
    if (added != NULL) {
        *added = parameter;
    }
}

static void parse_parameters(struct parser *parser, struct ptx_function *function)
{
    while (!is_end(parser) && !is_sign(parser, ')')) {
        parse_parameter(parser, function);
        (void)take(parser, ',');
    }
    (void)take(parser, ')');
}

static void parse_registers(struct parser *parser)
{
    struct ptx_function *function = parser->function;
    unsigned bits = 0;

    next(parser);
    while (!is_end(parser) && !is_sign(parser, ';')) {
        struct span word = parser->lex.token.span;
        struct declaration *declaration;
        bool is_name = parser->lex.token.kind == TOKEN_WORD && word.text[0] != '.';

        if (parser->lex.token.kind == TOKEN_WORD && !is_name) {
            bits = span_is(word, ".v2") || span_is(word, ".v4") ? bits : ptx_opcode_bits(word);
        }
        next(parser);
        if (!is_name) {
            continue;
        }
        declaration = ADD(parser, parser, declaration);
        if (declaration == NULL) {
            return;
        }
        *declaration = (struct declaration){word, false, 1, (uint32_t)function->register_count};
        if (take(parser, '<')) {
            declaration->is_range = true;
            declaration->count = parser->lex.token.number > COUNT_MOST
                                     ? COUNT_MOST
                                     : (uint32_t)parser->lex.token.number;
            next(parser);
            (void)take(parser, '>');
        }
        for (uint32_t i = 0; i < declaration->count; i++) {
            struct ptx_register *added = ADD(parser, function, register);

            if (added == NULL) {
                return;
            }
            *added = (struct ptx_register){word, (uint16_t)bits};
        }
    }
    (void)take(parser, ';');
}

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
static void resolve(const struct parser *parser, struct span word, struct ptx_operand *operand)
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
    if (find_variable(parser->module, word, &operand->index)) {
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

    (void)take(parser, '!');
    is_negative = take(parser, '-');
    if (parser->lex.token.kind == TOKEN_NUMBER) {
        operand.number = (int64_t)parser->lex.token.number;
        operand.number = is_negative ? (int64_t)(0 - (uint64_t)operand.number) : operand.number;
    } else if (parser->lex.token.kind == TOKEN_WORD && !is_negative) {
        resolve(parser, parser->lex.token.span, &operand);
    } else {
        return false;
    }
    next(parser);
    if (is_sign(parser, '+') || is_sign(parser, '-')) {
        is_negative = take(parser, '-');
        (void)take(parser, '+');
        is_negative ^= take(parser, '-');
        if (parser->lex.token.kind != TOKEN_NUMBER) {
            return false;
        }
        operand.number =
            (int64_t)(is_negative ? 0 - parser->lex.token.number : parser->lex.token.number);
        next(parser);
    }
    added = ADD(parser, parser->function, operand);
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
        if (is_sign(parser, '{') || is_sign(parser, '[') || is_sign(parser, '(')) {
            if (depth == DEPTH_MOST) {
                return false;
            }
            closing[depth++] = is_sign(parser, '{') ? '}' : is_sign(parser, '[') ? ']' : ')';
            next(parser);
        } else if (is_sign(parser, closing[depth - 1])) {
            depth--;
            next(parser);
        } else if (!take(parser, ',') &&
                   !parse_term(parser, position, depth == 1 && closing[0] == ']',
                               depth > 1 || closing[0] != ']')) {
            return false;
        }
    } while (depth > 0 && !is_end(parser));
    return !is_end(parser);
}

static bool parse_operand(struct parser *parser, unsigned position)
{
    struct ptx_function *function = parser->function;
    size_t first = function->operand_count;

    if (is_sign(parser, '{') || is_sign(parser, '[') || is_sign(parser, '(')) {
        if (!parse_group(parser, position)) {
            return false;
        }
    } else if (!parse_term(parser, position, false, false)) {
        return false;
    }
    if (take(parser, '|')) {
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

    if (take(parser, '@')) {
        instruction.is_negated = take(parser, '!');
        is_read = parser->lex.token.kind == TOKEN_WORD &&
                  find_register(parser, parser->lex.token.span, &instruction.predicate);
        next(parser);
    }
    instruction.opcode = parser->lex.token.span;
    if (parser->lex.token.kind != TOKEN_WORD) {
        (void)fail(parser, "an instruction was expected");
        return;
    }
    next(parser);
    while (is_read && !is_end(parser) && !is_sign(parser, ';')) {
        is_read = parse_operand(parser, position++);
        if (is_read && !take(parser, ',')) {
            is_read = is_sign(parser, ';');
        }
    }
    if (is_read) {
        instruction.effect = ptx_opcode_effect(instruction.opcode);
    } else {
        function->operand_count = instruction.operand_first;
        instruction.effect = EFFECT_UNKNOWN;
    }
    instruction.operand_count = (uint32_t)function->operand_count - instruction.operand_first;
    skip_statement(parser);
    added = ADD(parser, function, instruction);
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
        (void)fail(parser, "braces nested too deeply");
        return;
    }
    added = add(parser, &function->scope_parents, &function->scope_count, &function->scope_capacity,
                sizeof(*added));
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

    next(parser);
    while (!is_end(parser) && parser->lex.token.kind == TOKEN_WORD) {
        if (!parse_term(parser, 0, false, true)) {
            break;
        }
        (void)take(parser, ',');
    }
    if (label != NULL) {
        label->target_first = first;
        label->target_count = (uint32_t)function->operand_count - first;
    }
    skip_statement(parser);
}

/* A statement that begins with a word: a directive, a label or an instruction. */
static void parse_word(struct parser *parser)
{
    struct span word = parser->lex.token.span;
    enum ptx_space space;

    if (word.text[0] != '.') {
        struct ptx_lex saved = parser->lex;
        struct ptx_label *label;

        next(parser);
        if (!is_sign(parser, ':')) {
            parser->lex = saved;
            parse_instruction(parser);
            return;
        }
        next(parser);
        label = ADD(parser, parser->function, label);
        if (label != NULL) {
            *label =
                (struct ptx_label){.name = word,
                                   .scope = parser->scopes[parser->depth],
                                   .instruction = (uint32_t)parser->function->instruction_count};
            parser->pending_label = (uint32_t)(parser->function->label_count - 1);
        }
        return;
    }
    if (is_word(parser, ".reg")) {
        parse_registers(parser);
    } else if (is_word(parser, ".loc") || is_word(parser, ".file")) {
        ptx_lex_skip_line(&parser->lex);
    } else if (is_word(parser, ".branchtargets")) {
        parse_targets(parser);
    } else if (space_of(word, &space)) {
        parse_variables(parser, space);
    } else {
        skip_statement(parser);
    }
}

static int by_name(const void *left, const void *right)
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

/* The body of a function, after its opening brace. */
static void parse_body(struct parser *parser)
{
    struct ptx_function *function = parser->function;
    uint32_t *root = add(parser, &function->scope_parents, &function->scope_count,
                         &function->scope_capacity, sizeof(*root));

    if (root == NULL) {
        return;
    }
    parser->depth = 0;
    parser->scopes[0] = 0;
    parser->declaration_count = 0;
    parser->pending_label = PTX_NONE;
    while (!is_end(parser)) {
        uint32_t label = parser->pending_label;

        if (is_sign(parser, '}') && parser->depth == 0) {
            break;
        }
        if (take(parser, '{')) {
            begin_scope(parser);
        } else if (take(parser, '}')) {
            end_scope(parser);
        } else if (take(parser, ';')) {
            continue;
        } else if (parser->lex.token.kind == TOKEN_WORD) {
            parse_word(parser);
        } else if (is_sign(parser, '@')) {
            parse_instruction(parser);
        } else {
            (void)fail(parser, "a statement was expected");
        }
        if (parser->pending_label == label) {
            parser->pending_label = PTX_NONE;
        }
    }
    if (!take(parser, '}')) {
        (void)fail(parser, "the function does not end");
    }
    if (function->label_count > 0) {
        qsort(function->labels, function->label_count, sizeof(*function->labels), by_name);
    }
}

/* From ".entry" or ".func" to the end of the declaration or definition. */
static void parse_function(struct parser *parser)
{
    bool is_kernel = is_word(parser, ".entry");
    struct ptx_function *function = ADD(parser, parser->module, function);
    struct ptx_function unused = {0};

    if (function == NULL) {
        return;
    }
    function->is_kernel = is_kernel;
    next(parser);
    if (take(parser, '(')) { /* the result of a function: named, but not passed */
        parse_parameters(parser, &unused);
    }
    parser->function = function;
    for (size_t i = 0; i < unused.parameter_count; i++) {
        struct ptx_variable *local = ADD(parser, function, local);

        if (local != NULL) {
            *local = (struct ptx_variable){unused.parameters[i].name, SPACE_PARAM};
        }
    }
    free(unused.parameters);
    if (parser->lex.token.kind != TOKEN_WORD) {
        (void)fail(parser, "a function without a name");
        return;
    }
    function->name = parser->lex.token.span;
    next(parser);
    if (take(parser, '(')) {
        parse_parameters(parser, function);
    }
    while (!is_end(parser) && !is_sign(parser, '{') && !is_sign(parser, ';')) {
        next(parser); /* .maxntid and others */
    }
    if (take(parser, '{')) {
        function->has_body = true;
        parse_body(parser);
    } else {
        (void)take(parser, ';');
    }
    parser->function = NULL;
}

static void parse_target(struct parser *parser)
{
    next(parser);
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
        next(parser);
    } while (take(parser, ','));
}

/* A statement of the module. */
static void parse_statement(struct parser *parser)
{
    enum ptx_space space;

    if (is_word(parser, ".entry") || is_word(parser, ".func")) {
        parse_function(parser);
    } else if (is_word(parser, ".target")) {
        parse_target(parser);
    } else if (is_word(parser, ".address_size")) {
        next(parser);
        if (parser->lex.token.number != 64) {
            parser->failure = error_text_set(parser->problem, CAPU_UNSUPPORTED,
                                             "line %u: addresses of 32 bits", parser->lex.line);
        }
        next(parser);
    } else if (is_word(parser, ".visible") || is_word(parser, ".extern") ||
               is_word(parser, ".weak") || is_word(parser, ".common")) {
        next(parser);
    } else if (is_word(parser, ".file") || is_word(parser, ".loc")) {
        ptx_lex_skip_line(&parser->lex);
    } else if (is_word(parser, ".section")) {
        while (!is_end(parser) && !is_sign(parser, '{')) {
            next(parser);
        }
        while (!is_end(parser) && !is_sign(parser, '}')) {
            next(parser);
        }
        (void)take(parser, '}');
    } else if (parser->lex.token.kind == TOKEN_WORD && space_of(parser->lex.token.span, &space)) {
        parse_variables(parser, space);
    } else if (parser->lex.token.kind == TOKEN_WORD && parser->lex.token.span.text[0] == '.') {
        skip_statement(parser);
    } else if (!take(parser, ';')) {
        (void)fail(parser, "a directive was expected");
    }
}

/* ".version 8.0" comes first; its number has a point, which the lexer does not keep. */
static bool parse_version(struct parser *parser)
{
    struct span span;
    unsigned digits[2] = {0, 0};
    unsigned part = 0;

    if (!is_word(parser, ".version")) {
        return fail(parser, "PTX begins with .version");
    }
    next(parser);
    span = parser->lex.token.span;
    if (parser->lex.token.kind != TOKEN_NUMBER) {
        return fail(parser, ".version without a number");
    }
    for (uint32_t i = 0; i < span.length && i < 8; i++) {
        if (span.text[i] == '.') {
            part = 1;
        } else {
            digits[part] = digits[part] * 10 + (unsigned)(span.text[i] - '0') % 10;
        }
    }
    parser->module->version = digits[0] * 10 + digits[1];
    next(parser);
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
    ptx_lex_begin(&parser.lex, text, count);
    if (parse_version(&parser)) {
        while (!is_end(&parser)) {
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
    for (;;) {
        struct ptx_label key = {.name = name, .scope = scope};
        const struct ptx_label *label =
            function->label_count == 0
                ? NULL
                : bsearch(&key, function->labels, function->label_count, sizeof(key), by_name);

        if (label != NULL || scope == 0) {
            return label;
        }
        scope = function->scope_parents[scope];
    }
}
