/*
 * Remedies for what made a reported iteration slow. A remedy is suggested only if what it can save
 * is worth it, and only from what the report proves: slow ops are compared with the median of
 * iterations of the same label and mode, waits with what the plan had predicted.
 */
#ifndef CAPU_TOOLS_REMEDIES_H
#define CAPU_TOOLS_REMEDIES_H

#include <stdio.h>

#include "tools/report/account.h"

/* Prints a list: each remedy begins with "  - ", the most important first. If there is none, a
   line without it says so. `trace` NULL: none is given. Fit for a terminal. */
void remedies_print(FILE *stream, const struct account *account, const struct report_file *file,
                    const char *trace);

#endif
