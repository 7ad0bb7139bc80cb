/*
 * What capuchin explain prints to stdout. The account of an iteration as text (explain_print.c):
 * where its time went, what memory it had, which ops waited longest, which tensors moved most; and
 * the reports of all ranks of a run together (explain_ranks.c).
 */
#ifndef CAPU_TOOLS_EXPLAIN_H
#define CAPU_TOOLS_EXPLAIN_H

#include "tools/report/account.h"

/* The iterations of the file by label and mode. */
void explain_kinds(const struct report_file *file);

/* Labels whose iterations leave their plans or change them. */
void explain_plans(const struct report_file *file);

void explain_account(const struct account *account);

/* `iteration`: as rank_reports_read. False: an error has been printed. */
bool explain_ranks(char *const *paths, size_t count, uint64_t iteration);

#endif
