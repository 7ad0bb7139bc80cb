/*
 * The account of an iteration as text, which capuchin explain prints to stdout: where its time
 * went, what memory it had, which ops waited longest, which tensors moved most.
 */
#ifndef CAPU_TOOLS_EXPLAIN_PRINT_H
#define CAPU_TOOLS_EXPLAIN_PRINT_H

#include "tools/report/account.h"

/* The iterations of the file by label and mode. */
void explain_kinds(const struct report_file *file);

/* Labels whose iterations leave their plans or change them. */
void explain_plans(const struct report_file *file);

void explain_account(const struct account *account);

#endif
