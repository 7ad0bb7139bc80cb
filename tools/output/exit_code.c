/* From the status of a planner to an exit code. */
#include "tools/output/exit_code.h"

#include "tools/output/say.h"

int exit_code_of_plan(capu_status status, const struct error_text *error)
{
    if (status == CAPU_OK) {
        return EXIT_FINE;
    }
    say_error(error);
    return status == CAPU_OVER_BUDGET   ? EXIT_NO_PLAN
           : status == CAPU_UNSUPPORTED ? EXIT_NONE_FOUND
                                        : EXIT_USAGE;
}
