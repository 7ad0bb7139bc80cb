/*
 * The names of files in a program of several processes: each writes its own, so the name says which
 * process it is. Stateless; any thread.
 */
#ifndef CAPU_RUNTIME_RANK_PATH_H
#define CAPU_RUNTIME_RANK_PATH_H

#include "capuchin/status.h"

#include <stddef.h>
#include <stdint.h>

/* Replaces `%r` in the malloc'd *path by the rank and `%%` by a percent sign. After an error *path
   is unchanged, and `text` names it: INVALID (another character follows a percent sign; there are
   several ranks, and a file rather than a device would have the same name for all),
   NO_HOST_MEMORY. */
capu_status rank_path_expand(char **path, uint64_t rank, uint64_t rank_count, char *text,
                             size_t text_bytes);

#endif
