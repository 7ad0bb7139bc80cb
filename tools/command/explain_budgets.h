/* What a trace adds to the explanation of an iteration: predictions for other budgets. */
#ifndef CAPU_TOOLS_EXPLAIN_BUDGETS_H
#define CAPU_TOOLS_EXPLAIN_BUDGETS_H

#include "tools/predict/subject.h"
#include "tools/report/account.h"

/*
 * Prints to stdout how busy the link was, what iterations would take at other budgets, by plans for
 * the trace, and whether another effort or a change to the program would help at this one. `trace`:
 * the name of the trace's file. `subject` was made of it.
 */
void explain_budgets(const char *trace, const struct account *account,
                     const struct subject *subject);

#endif
