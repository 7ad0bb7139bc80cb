/*
 * NCCL at its own interface: a communicator with other ranks is refused. Its kernels wait for those
 * of other processes and devices, and read memory that their peers have mapped, which would have to
 * stay where it is. A communicator of one rank is left alone: its calls are copies, or nothing.
 *
 * The functions are exported under the names of NCCL, as those of cuBLAS are: a program that is
 * linked with the library reaches these first.
 */
#include "shim/core/core.h"
#include "shim/driver/loader.h"
#include "shim/driver/log.h"
#include "shim/driver/symbol.h"
#include "shim/libraries/library_calls.h"

static int refuse(const char *name, int ranks)
{
    symbol_note_refusal("NCCL with more than one rank");
    log_line("refused: %s with %d ranks, which programs cannot use under a budget "
             "(docs/unmodified.md)",
             name, ranks);
    return NCCL_INVALID_USAGE;
}

static int fail_missing(void)
{
    log_line("the program calls a function of NCCL, and no library that has it is loaded");
    return NCCL_SYSTEM_ERROR;
}

#define EXPORT(name, parameters, arguments, ranks)                                    \
    DRIVER_EXPORT int name parameters;                                                \
    int name parameters                                                               \
    {                                                                                 \
        int(*function) parameters = (int(*) parameters)loader_next("libnccl", #name); \
                                                                                      \
        if ((ranks) > 1 && core_takes(CALLER_PROGRAM, false)) {                       \
            return refuse(#name, (ranks));                                            \
        }                                                                             \
        return function != NULL ? function arguments : fail_missing();                \
    }
NCCL_CALLS(EXPORT)
