/* What ranks do together before they have a group. Any thread that may call MPI. */
#ifndef CAPU_PARALLEL_STARTUP_H
#define CAPU_PARALLEL_STARTUP_H

#include "capuchin/status.h"

#include <mpi.h>
#include <stddef.h>

/* Whether MPI is there, with what the library needs: WRONG_ORDER, UNSUPPORTED. */
capu_status startup_check(char *text, size_t text_bytes);

/* Collective: OK if `own` is OK on all ranks. Else `own` where that is an error, and OP_FAILED,
   with a text that names the first such rank, on the others. */
capu_status startup_agree(MPI_Comm comm, capu_status own, char *text, size_t text_bytes);

#endif
