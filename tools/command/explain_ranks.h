/* Explains the reports of all ranks of a run together. */
#ifndef CAPU_TOOLS_EXPLAIN_RANKS_H
#define CAPU_TOOLS_EXPLAIN_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `iteration`: as rank_reports_read. False: an error has been printed. */
bool explain_ranks(char *const *paths, size_t count, uint64_t iteration);

#endif
