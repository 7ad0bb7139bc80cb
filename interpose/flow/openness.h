/* Why a kernel is open: its reasons, one of each kind, with the first place where each was found.
 */
#ifndef CAPU_INTERPOSE_OPENNESS_H
#define CAPU_INTERPOSE_OPENNESS_H

#include "interpose/flow/roles.h"

/* The kernel is open for this reason. `instruction`: where; NULL: nowhere in particular. */
void openness_add(struct kernel *kernel, const struct ptx_instruction *instruction,
                  const char *text);

/* The same with a name: the one "%.*s" of `format`. */
void openness_name(struct kernel *kernel, const struct ptx_instruction *instruction,
                   const char *format, struct span name);

#endif
