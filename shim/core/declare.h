/* The list of accesses and their operands, see declare.c. Without --operands, nothing happens. */
#ifndef CAPU_SHIM_DECLARE_H
#define CAPU_SHIM_DECLARE_H

#include "capuchin/capuchin.h"

#include <stdbool.h>

/* What the list says of operands; to be freed. NULL: nothing is listed, or no host memory. For the
   thread that has entered the core. */
char *declare_text(const capu_operand *operands, size_t count);

/* Adds the line of an access or op that begins, with such a text, and the line of its end. Between
   the two, none begins. Thread: any, entered or not. */
void declare_begin(const char *name, const char *text);
void declare_end(void);

#endif
