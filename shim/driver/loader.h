/* Where the loader would find a library, were there not one of that name loaded already. */
#ifndef CAPU_SHIM_LOADER_H
#define CAPU_SHIM_LOADER_H

#include <stdbool.h>

/* Offers the files to `take`, in the loader's order, until it takes one: those in the folders of
   the program's run path and of LD_LIBRARY_PATH, those in the loader's cache, and those in its
   default folders. Returns whether it has taken one. */
bool loader_find(const char *library, bool (*take)(const char *path));

/* The same of a cache alone: the file that ldconfig writes, of glibc 2.2 and later. */
bool loader_find_cached(const char *cache, const char *library, bool (*take)(const char *path));

/* The function of one of CUDA's libraries that a program would reach without the shim, which
   exports it under the same name. `library` is how the name of its file begins, such as
   "libcublas": a library that was loaded for one plug-in only is found by that. NULL: there is
   none. Thread: any. */
void *loader_next(const char *library, const char *name);

#endif
