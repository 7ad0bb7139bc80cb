/* The driver's calls, found as NVIDIA's libraries find them: dlopen("libcuda.so.1"), then
   cuGetProcAddress for each by version and variant. */
#ifndef CAPU_TESTS_PTX_DRIVER_TABLE_H
#define CAPU_TESTS_PTX_DRIVER_TABLE_H

#include "tests/ptx/include/driver_types.h"

struct driver_table {
#define DRIVER_ENTRY(name, suffix, since, parameters) CUresult(*name) parameters;
    DRIVER_PLAIN_CALLS(DRIVER_ENTRY)
    DRIVER_CODE_CALLS(DRIVER_ENTRY)
#undef DRIVER_ENTRY
#define DRIVER_ENTRY(name, suffix, since, since_pt, suffix_pt, parameters, arguments) \
    CUresult(*name) parameters;
    DRIVER_STREAM_CALLS(DRIVER_ENTRY)
    DRIVER_LAUNCH_CALLS(DRIVER_ENTRY)
#undef DRIVER_ENTRY
};

enum driver_table_state { DRIVER_TABLE_OPEN, DRIVER_TABLE_NO_DRIVER, DRIVER_TABLE_INCOMPLETE };

/* Fills two tables: of the calls for the legacy and for the per-thread default stream. */
enum driver_table_state driver_table_open(struct driver_table *legacy,
                                          struct driver_table *per_thread);

#endif
