/*
 * Whether the instructions of a function do the same each time that it runs with the same
 * parameters on the same memory. They do not if they read clocks, or where and when threads run;
 * if they use atomics, or accesses that are meant for memory that other threads change meanwhile;
 * if they call something, which may print or stop; or if they name variables of the module, which
 * have other contents later. What is not known for certain counts as different.
 *
 * Not decided here: whether the memory is the same, and whether threads of the function race.
 */
#ifndef CAPU_INTERPOSE_REPEAT_H
#define CAPU_INTERPOSE_REPEAT_H

#include "interpose/ptx/ptx.h"

bool repeat_is_same(const struct ptx_module *module, const struct ptx_function *function);

#endif
