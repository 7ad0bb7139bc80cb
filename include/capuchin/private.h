/*
 * What other parts of this project need of the library beside the public functions, and no program
 * does. This header is not installed. What it declares is exported for libcapuchin-mpi, which comes
 * from the same build, and may change in any version.
 */
#ifndef CAPU_INCLUDE_PRIVATE_H
#define CAPU_INCLUDE_PRIVATE_H

#include "capuchin/capuchin.h"

#include <stdio.h>

/* capu_config_set of a setting that is a number; 0 leaves it to the environment. */
static inline void config_set_number(capu_config *config, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    (void)capu_config_set(config, name, number != 0 ? text : NULL);
}

/*
 * Measures the link of the device that the config names, as creating a context in guided mode does,
 * and sets link_d2h, link_h2d, the duplex rates and copy_latency where neither the program nor the
 * environment has set them. Processes that will copy at the same time should measure at the same
 * time. Nothing changes if d2h and h2d are given, here or in the environment, and on sim. Opens the
 * device and closes it again; takes tens of milliseconds. Thread: any. Errors, with the text in
 * config->error: INVALID (also: `config` is NULL) and the others of capu_context_create, except
 * SYSTEM_LIMIT and FILE_FAILED.
 */
CAPU_API capu_status capuchin_link_measure(capu_config *config);

/*
 * The default of host_budget_bytes on host and cuda for each of `processes` processes that share
 * this machine (0 counts as 1), by the memory that is available now; UINT64_MAX (no limit) if that
 * is not known. Thread: any.
 */
CAPU_API uint64_t capuchin_host_budget_default(uint64_t processes);

/*
 * From inside a run function: it exchanged `bytes` of its tensors with other processes, which took
 * `ns` nanoseconds beside what it waited (capu_run_waited). What it says adds up over the call.
 * Reported as exchanged_bytes and exchange_ns; the time is part of the op's own, so plans count on
 * it. Errors: as capu_run_waited.
 */
CAPU_API capu_status capuchin_run_exchanged(uint64_t bytes, uint64_t ns);

#endif
