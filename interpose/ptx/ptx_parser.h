/*
 * What the files of the PTX parser share: its state, and steps over tokens.
 *
 * Module and function bodies are sequences of statements. Those that matter are parsed; all others
 * are skipped to their semicolon, or to the end of their line where PTX has none (.loc, .file). A
 * `failure` ends the parse; errors within an instruction do not.
 */
#ifndef CAPU_INTERPOSE_PTX_PARSER_H
#define CAPU_INTERPOSE_PTX_PARSER_H

#include "interpose/ptx/ptx.h"

/* More is no real parameter, register or instruction, and would only cost memory. Registers are
   declared by their number, "%r<1000>", so a short text could ask for any number of them: a module
   may have as many as its text has bytes, and REGISTERS_MOST besides. */
enum {
    COUNT_MOST = 1 << 22,
    REGISTERS_MOST = 1 << 16,
    PARAMETERS_MOST_BYTES = 1 << 20,
    DEPTH_MOST = 64
};

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
    bool is_extern;          /* of the declaration that comes next */
    uint64_t registers_most; /* that may still be declared in the module */
    /* Of the function being parsed. */
    struct ptx_function *function;
    struct declaration *declarations;
    size_t declaration_count, declaration_capacity;
    size_t visible[DEPTH_MOST]; /* declarations when the scope began */
    uint32_t scopes[DEPTH_MOST];
    unsigned depth;
    uint32_t pending_label; /* whose statement comes next; PTX_NONE: none */
};

/* Ends the parse as FILE_FAILED, with the line; false. */
bool parser_fail(struct parser *parser, const char *what);

/* Adds a zeroed element to an array; NULL: no memory, and the parse has failed. */
void *parser_add(struct parser *parser, void *array, size_t *count, size_t *capacity, size_t bytes);

#define PARSER_ADD(parser, owner, name)                                                      \
    parser_add(parser, &(owner)->name##s, &(owner)->name##_count, &(owner)->name##_capacity, \
               sizeof(*(owner)->name##s))

/* Skips to after the semicolon that ends a statement, or to a brace that ends a body. */
void parser_skip_statement(struct parser *parser);

static inline bool parser_is_end(const struct parser *parser)
{
    return parser->lex.token.kind == TOKEN_END || parser->failure != CAPU_OK;
}

static inline bool parser_is_word(const struct parser *parser, const char *word)
{
    return parser->lex.token.kind == TOKEN_WORD && span_is(parser->lex.token.span, word);
}

static inline bool parser_is_sign(const struct parser *parser, char sign)
{
    return ptx_lex_is(&parser->lex, sign);
}

static inline void parser_next(struct parser *parser)
{
    ptx_lex_next(&parser->lex);
}

/* Takes a sign if it is there. */
static inline bool parser_take(struct parser *parser, char sign)
{
    if (!parser_is_sign(parser, sign)) {
        return false;
    }
    parser_next(parser);
    return true;
}

/* Declarations. */

bool parser_find_variable(const struct ptx_module *module, struct span name, uint32_t *index);
/* The space that a directive names. */
bool parser_space_of(struct span word, enum ptx_space *space);
/* At the word that names the space; up to the semicolon. */
void parser_read_variables(struct parser *parser, enum ptx_space space);
/* After the parenthesis that opens them, to after the one that closes them. */
void parser_read_parameters(struct parser *parser, struct ptx_function *function);
void parser_read_registers(struct parser *parser);

#endif
