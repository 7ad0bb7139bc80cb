/* Texts of modules, see text.h. */
#include "tests/ptx/slices/text.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

size_t text_read(const char *path, char *text, size_t most)
{
    FILE *file = fopen(path, "r");
    size_t count;

    ck_assert_msg(file != NULL, "%s", path);
    count = fread(text, 1, most, file);
    ck_assert_uint_lt(count, most);
    ck_assert_int_eq(fclose(file), 0);
    return count;
}

void text_replace(char *text, const char *from, const char *to)
{
    ck_assert_uint_eq(strlen(from), strlen(to));
    ck_assert_ptr_nonnull(strstr(text, from));
    for (char *at = text; (at = strstr(at, from)) != NULL; at += strlen(to)) {
        memcpy(at, to, strlen(to));
    }
}
