/*
 * PTX to C. A module becomes one translation unit: a function per kernel and device function, with
 * a variable per register and a statement per instruction. See prelude.h for what statements call.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_TRANSLATE_H
#define CAPU_TESTS_PTX_MACHINE_TRANSLATE_H

#include "tests/ptx/machine/layout.h"

/* The C text, to be freed by the caller. A function with an instruction that is not supported fails
   when it is called. Errors: NO_HOST_MEMORY. */
capu_status translate(const struct ptx_module *module, const struct layout *layout, char **text,
                      struct error_text *problem);

#endif
