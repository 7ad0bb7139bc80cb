/* Tokens of PTX, see ptx_lex.h. */
#include "interpose/ptx/ptx_lex.h"

#include <stdlib.h>
#include <string.h>

void ptx_lex_begin(struct ptx_lex *lex, const char *text, size_t count)
{
    *lex = (struct ptx_lex){.at = text, .end = text + count, .line = 1};
    ptx_lex_next(lex);
}

bool span_is(struct span span, const char *text)
{
    return strlen(text) == span.length && memcmp(span.text, text, span.length) == 0;
}

bool span_is_same(struct span one, struct span other)
{
    return one.length == other.length &&
           (one.length == 0 || memcmp(one.text, other.text, one.length) == 0);
}

bool span_has_part(struct span word, const char *part)
{
    size_t length = strlen(part);
    const char *at = word.text;
    const char *end = word.text + word.length;

    while (at < end) {
        const char *dot = memchr(at, '.', (size_t)(end - at));

        dot = dot == NULL ? end : dot;
        if ((size_t)(dot - at) == length && memcmp(at, part, length) == 0) {
            return true;
        }
        at = dot + 1;
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static void skip_blanks(struct ptx_lex *lex)
{
    while (lex->at < lex->end) {
        char c = *lex->at;

        if (c == '\n') {
            lex->line++;
            lex->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\0') {
            lex->at++;
        } else if (c == '/' && lex->end - lex->at > 1 && lex->at[1] == '/') {
            while (lex->at < lex->end && *lex->at != '\n') {
                lex->at++;
            }
        } else if (c == '/' && lex->end - lex->at > 1 && lex->at[1] == '*') {
            lex->at += 2;
            while (lex->at < lex->end &&
                   !(*lex->at == '*' && lex->end - lex->at > 1 && lex->at[1] == '/')) {
                lex->line += *lex->at == '\n';
                lex->at++;
            }
            lex->at += lex->end - lex->at > 1 ? 2 : lex->end - lex->at;
        } else {
            return;
        }
    }
}

/* An opcode with its parts is one word; directives and types are one each, also where nothing is
   between them: ".reg.b16". */
static void read_word(struct ptx_lex *lex)
{
    const char *at = lex->at;
    bool is_directive = *at == '.';

    while (at < lex->end) {
        if (is_letter(*at) || is_digit(*at) || (*at == '.' && (at == lex->at || !is_directive))) {
            at++;
        } else if (*at == ':' && lex->end - at > 1 && at[1] == ':') {
            at += 2;
        } else {
            break;
        }
    }
    lex->at = at;
}

static unsigned digit_of(char c)
{
    return is_digit(c)              ? (unsigned)(c - '0')
           : (c >= 'a' && c <= 'f') ? (unsigned)(c - 'a' + 10)
           : (c >= 'A' && c <= 'F') ? (unsigned)(c - 'A' + 10)
                                    : 99;
}

/* "1.5e-3", after its digits have been found to be no integer. */
static uint64_t read_decimal(struct ptx_lex *lex, const char *start)
{
    char copy[64];
    size_t length = 0;
    double value;
    uint64_t bits;

    while (start + length < lex->end && length + 1 < sizeof(copy)) {
        char c = start[length];
        bool is_sign = (c == '-' || c == '+') && length > 0 &&
                       (copy[length - 1] == 'e' || copy[length - 1] == 'E');

        if (!is_digit(c) && c != '.' && c != 'e' && c != 'E' && !is_sign) {
            break;
        }
        copy[length++] = c;
    }
    copy[length] = '\0';
    lex->at = start + length;
    value = strtod(copy, NULL);
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Integers in any base, and floating-point numbers as 0f3F800000, 0d3FF0000000000000 or 1.5e3. */
static void read_number(struct ptx_lex *lex, struct token *token)
{
    const char *start = lex->at;
    const char *at = start;
    unsigned base = 10;

    if (*at == '0' && lex->end - at > 1) {
        char c = at[1];

        if (c == 'x' || c == 'X') {
            base = 16;
            at += 2;
        } else if (c == 'f' || c == 'F' || c == 'd' || c == 'D') {
            base = 16;
            token->form = c == 'f' || c == 'F' ? NUMBER_F32 : NUMBER_F64;
            at += 2;
        } else if (c == 'b' || c == 'B') {
            base = 2;
            at += 2;
        } else if (is_digit(c)) {
            base = 8;
            at++;
        }
    }
    for (; at < lex->end; at++) {
        unsigned digit = digit_of(*at);

        if (digit < base) {
            token->number = token->number * base + digit;
        } else if (base == 10 && (*at == '.' || *at == 'e' || *at == 'E')) {
            token->form = NUMBER_F64;
            token->number = read_decimal(lex, start);
            return;
        } else if (*at != 'U') {
            break;
        }
    }
    lex->at = at;
}

int64_t ptx_number(struct token token, bool is_negative)
{
    if (!is_negative) {
        return (int64_t)token.number;
    }
    switch (token.form) {
    case NUMBER_F32:
        return (int64_t)(token.number ^ UINT32_C(0x80000000));
    case NUMBER_F64:
        return (int64_t)(token.number ^ UINT64_C(0x8000000000000000));
    case NUMBER_INTEGER:
        break;
    }
    return (int64_t)(0 - token.number);
}

static void read_string(struct ptx_lex *lex)
{
    lex->at++;
    while (lex->at < lex->end && *lex->at != '"' && *lex->at != '\n') {
        lex->at += *lex->at == '\\' && lex->end - lex->at > 1 ? 2 : 1;
    }
    lex->at += lex->at < lex->end && *lex->at == '"';
}

void ptx_lex_next(struct ptx_lex *lex)
{
    const char *start;

    skip_blanks(lex);
    start = lex->at;
    lex->token = (struct token){.kind = TOKEN_END};
    if (lex->at == lex->end) {
        return;
    }
    if (is_digit(*start)) {
        lex->token.kind = TOKEN_NUMBER;
        read_number(lex, &lex->token);
    } else if (is_letter(*start) || *start == '.') {
        lex->token.kind = TOKEN_WORD;
        read_word(lex);
    } else if (*start == '"') {
        lex->token.kind = TOKEN_STRING;
        read_string(lex);
    } else {
        lex->token.kind = TOKEN_SIGN;
        lex->token.sign = *start;
        lex->at++;
    }
    lex->token.span = (struct span){start, (uint32_t)(lex->at - start)};
}

void ptx_lex_skip_line(struct ptx_lex *lex)
{
    uint32_t line = lex->line;

    while (lex->token.kind != TOKEN_END && lex->line == line) {
        ptx_lex_next(lex);
    }
}
