/*
 * Tokens of PTX. A word is a name, an opcode with all its modifiers
 * ("ld.global.L1::no_allocate.f32"), a directive (".param") or a special register ("%tid.x").
 * Comments and blanks vanish.
 */
#ifndef CAPU_INTERPOSE_PTX_LEX_H
#define CAPU_INTERPOSE_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of the module's text, not terminated. */
struct span {
    const char *text;
    uint32_t length;
};

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_SIGN };

enum number_form {
    NUMBER_INTEGER,
    NUMBER_F32, /* 0f3F800000: its bits */
    NUMBER_F64, /* 0d3FF0000000000000, or 1.5e3: its bits as a double */
};

struct token {
    enum token_kind kind;
    char sign; /* of a TOKEN_SIGN */
    struct span span;
    uint64_t number; /* of a TOKEN_NUMBER */
    enum number_form form;
};

struct ptx_lex {
    const char *at;
    const char *end;
    uint32_t line; /* of the token read last, from 1 */
    struct token token;
};

void ptx_lex_begin(struct ptx_lex *lex, const char *text, size_t count);

/* Reads the next token into lex->token. */
void ptx_lex_next(struct ptx_lex *lex);

/* Reads the first token of the next line. */
void ptx_lex_skip_line(struct ptx_lex *lex);

/* The number of a token, after a minus sign or not. */
int64_t ptx_number(struct token token, bool is_negative);

static inline bool ptx_lex_is(const struct ptx_lex *lex, char sign)
{
    return lex->token.kind == TOKEN_SIGN && lex->token.sign == sign;
}

bool span_is(struct span span, const char *text);
bool span_is_same(struct span one, struct span other);

/* Whether a word has this modifier between its dots: has_part("ld.global.f32", "global"). */
bool span_has_part(struct span word, const char *part);

#endif
