/*
 * The functions of CUDA's libraries that the shim exports under the same names: finding the
 * libraries' own.
 */
#ifndef CAPU_SHIM_NEXT_H
#define CAPU_SHIM_NEXT_H

/* The function that a program would reach without the shim. `library` is how the name of its file
   begins, such as "libcublas": a library that was loaded for one plug-in only is found by that.
   NULL: there is none. Thread: any. */
void *next_find(const char *library, const char *name);

#endif
