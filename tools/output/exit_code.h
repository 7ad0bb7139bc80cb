/* Exit codes of the command. */
#ifndef CAPU_TOOLS_EXIT_CODE_H
#define CAPU_TOOLS_EXIT_CODE_H

#include "base/error_text.h"
#include "capuchin/status.h"

enum exit_code { EXIT_FINE = 0, EXIT_USAGE = 2, EXIT_NO_PLAN = 3, EXIT_NONE_FOUND = 4 };

/* The exit code for a planner's status. Reports the error on standard error. */
int exit_code_of_plan(capu_status status, const struct error_text *error);

#endif
