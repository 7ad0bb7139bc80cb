/* Steps that the files of the PTX parser share, see ptx_parser.h. */
#include "interpose/ptx/ptx_parser.h"

#include "base/array.h"

#include <string.h>

bool parser_fail(struct parser *parser, const char *what)
{
    if (parser->failure == CAPU_OK) {
        parser->failure =
            error_text_set(parser->problem, CAPU_BAD_FILE, "line %u: %s", parser->lex.line, what);
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

int parser_label_order(const void *left, const void *right)
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
