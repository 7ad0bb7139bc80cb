/* The names of host functions, also of static ones, by which kernels are found in PTX. */
#ifndef CAPU_TESTS_PTX_STAND_IN_NAMES_H
#define CAPU_TESTS_PTX_STAND_IN_NAMES_H

/*
 * The name that nvcc gives the kernel whose host function is at the address: that of the symbol, as
 * if it were not static. NULL: no symbol table has one; the file must not be stripped. Valid until
 * the process ends. Threads: one at a time.
 */
const char *names_of_kernel(const void *function);

#endif
