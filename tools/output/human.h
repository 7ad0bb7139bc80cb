/* Numbers in the units that people use: 12.34 GiB, 567.8 ms. `buffer` has 32 bytes. */
#ifndef CAPU_TOOLS_HUMAN_H
#define CAPU_TOOLS_HUMAN_H

#include <stdint.h>

const char *human_bytes(uint64_t bytes, char *buffer);
const char *human_ns(uint64_t ns, char *buffer);

#endif
