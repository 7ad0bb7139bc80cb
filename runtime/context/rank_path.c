/* Names of files with a rank in them, see rank_path.h. */
#include "runtime/context/rank_path.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NUMBER_BYTES = 24 };

/* Devices and pipes have no contents that another rank could replace. */
static bool is_shareable(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

/* Writes the name. False: it has a percent sign that means nothing. */
static bool expand(const char *from, uint64_t rank, char *to, bool *has_rank)
{
    while (*from != '\0') {
        if (*from != '%') {
            *to++ = *from++;
            continue;
        }
        if (from[1] == 'r') {
            to += snprintf(to, NUMBER_BYTES, "%" PRIu64, rank);
            *has_rank = true;
        } else if (from[1] == '%') {
            *to++ = '%';
        } else {
            return false;
        }
        from += 2;
    }
    *to = '\0';
    return true;
}

capu_status rank_path_expand(char **path, uint64_t rank, uint64_t rank_count, char *text,
                             size_t text_bytes)
{
    bool has_rank = false;
    size_t marks = 0;
    char *made;

    for (const char *at = strchr(*path, '%'); at != NULL; at = strchr(at + 1, '%')) {
        marks++;
    }
    made = malloc(strlen(*path) + marks * NUMBER_BYTES + 1);
    if (made == NULL) {
        snprintf(text, text_bytes, "no memory for the name of a file");
        return CAPU_NO_HOST_MEMORY;
    }
    if (!expand(*path, rank, made, &has_rank)) {
        snprintf(
            text, text_bytes,
            "'%s': in the name of a file %%r is the rank and %%%% a percent sign; nothing else "
            "may follow one",
            *path);
        free(made);
        return CAPU_INVALID;
    }
    if (rank_count > 1 && !has_rank && !is_shareable(made)) {
        snprintf(text, text_bytes,
                 "'%s': %" PRIu64 " ranks would write this file; put %%r, which is the rank, into "
                 "its name",
                 *path, rank_count);
        free(made);
        return CAPU_INVALID;
    }
    free(*path);
    *path = made;
    return CAPU_OK;
}
