/* Compiles C to a shared object and loads it, or finds it among those compiled before. */
#ifndef CAPU_TESTS_PTX_MACHINE_COMPILE_H
#define CAPU_TESTS_PTX_MACHINE_COMPILE_H

#include "base/error_text.h"
#include "capuchin/status.h"

/* The handle is of dlopen. Errors: FILE_FAILED: the folder, the compiler or what it made cannot be
   used; NO_HOST_MEMORY. */
capu_status compile_load(const char *text, void **handle, struct error_text *problem);

#endif
