/* Where the results of a subcommand go. */
#include "tools/output.h"

#include "tools/say.h"

#include <stddef.h>
#include <stdio.h>

bool output_write(const char *path, const struct string_buffer *text)
{
    FILE *file;
    bool is_fine;

    if (path == NULL) {
        (void)fwrite(text->data, 1, text->length, stdout); /* main checks the result at exit */
        return true;
    }
    file = fopen(path, "wb");
    is_fine = file != NULL && fwrite(text->data, 1, text->length, file) == text->length;
    if (file != NULL && fclose(file) != 0) {
        is_fine = false;
    }
    if (!is_fine) {
        say_unwritten(path);
    }
    return is_fine;
}
