/* printf of device code. */
#ifndef CAPU_TESTS_PTX_MACHINE_PRINT_H
#define CAPU_TESTS_PTX_MACHINE_PRINT_H

#include <stdint.h>

/* Prints to the standard output. The arguments lie one after the other, each aligned to its size:
   integers of 4 or 8 bytes, doubles, addresses. Returns how many there were; ~0: the format has a
   conversion that is not known, and what comes from there on is not printed. */
uint32_t print_formatted(const char *format, const unsigned char *arguments);

#endif
