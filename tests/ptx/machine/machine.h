/*
 * The machine: executes PTX on the CPU, for tests. A module is translated to C, compiled with the C
 * compiler, and loaded; a launch runs its blocks one after the other, and the threads of a block as
 * fibers that switch at barriers and at exchanges within a warp.
 *
 * An instruction that the machine does not know fails at machine_open, never later and never with a
 * wrong result. Device memory is memory of the process: a global or generic address is a pointer,
 * and whoever launches decides what lies there. Addresses of shared and local memory are offsets
 * until they are converted to generic ones.
 *
 * Deterministic: blocks and threads always run in the same order, so mistakes that show only in
 * another order are not found. A kernel that waits in a loop for another block does not end, unless
 * that block has run before, or the launch is cooperative: then all blocks run in turn.
 *
 * Threads: launches of all modules run one at a time, under a lock of the process. A module is
 * used by one thread at a time otherwise. Not for TSan: it does not know about fibers.
 *
 * Compiled modules are kept as files, by a hash of text, prelude and compiler, in the folder that
 * PTX_CACHE names, else in capuchin-ptx-UID in $TMPDIR or /tmp, and found there by later processes;
 * several processes may share it. The compiler is $PTX_CC, else the one that built the
 * machine.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_MACHINE_H
#define CAPU_TESTS_PTX_MACHINE_MACHINE_H

#include "base/error_text.h"
#include "capuchin/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct machine_module;

/* One parameter of a kernel, in its parameter block. */
struct machine_parameter {
    uint32_t offset;
    uint32_t bytes;
};

/* A kernel (".entry"). Owned by its module. */
struct machine_function {
    struct machine_module *module;
    const char *name;
    const struct machine_parameter *parameters;
    size_t parameter_count;
    uint32_t parameter_bytes; /* of the whole block */
    uint32_t shared_bytes;    /* static */
    uint32_t local_bytes;     /* per thread */
    uint32_t threads_most;    /* per block: .maxntid or .reqntid, as a product; else 1024 */
    uint32_t architecture;    /* of the module's .target: 90 for sm_90 */
    uint32_t register_count;  /* declared in PTX, not what a GPU would use; at most 255 */
};

enum machine_space { MACHINE_GLOBAL, MACHINE_CONST };

/* A variable of the module. Owned by the module; aligned to at least 256 bytes. */
struct machine_variable {
    const char *name;
    enum machine_space space;
    void *address; /* initialised; the owner of the module may write to it between launches */
    uint64_t bytes;
};

/*
 * Opens a module. The text is copied, and need not be terminated. On failure *module is unchanged.
 *
 * Errors, each with the line in `problem`: FILE_FAILED: not PTX, or the compiler cannot be
 * run or fails; UNSUPPORTED: a directive or a variable that the machine does not know, by name, or
 * recursion; NO_HOST_MEMORY.
 */
capu_status machine_open(const char *text, size_t count, struct machine_module **module,
                         struct error_text *problem);

/* Gives all variables their first contents again. Pre: no launch is running. Errors: UNSUPPORTED,
   as machine_open. */
capu_status machine_reset(struct machine_module *module, struct error_text *problem);

/* Frees the module and its variables. Pre: no launch is running. NULL is fine. */
void machine_close(struct machine_module *module);

/* In the order of the text; NULL: there is none of that index or name. */
const struct machine_function *machine_function_at(const struct machine_module *module,
                                                   size_t index);
const struct machine_function *machine_function_find(const struct machine_module *module,
                                                     const char *name);
const struct machine_variable *machine_variable_at(const struct machine_module *module,
                                                   size_t index);
const struct machine_variable *machine_variable_find(const struct machine_module *module,
                                                     const char *name);

enum machine_access_kind { MACHINE_READ, MACHINE_WRITE, MACHINE_ATOMIC };

/* One access of one thread to global memory; a vector access is one. Accesses of shared, local,
   parameter and constant memory are not reported. */
struct machine_access {
    uint64_t address;
    uint32_t bytes;
    enum machine_access_kind kind;
    uint32_t line; /* of the instruction, in the PTX text, from 1 */
    uint32_t block[3];
    uint32_t thread[3];
    const struct machine_function *function;
};

/* Called before the access is carried out, on the stack of a fiber: do not use much of it, and do
   not jump out. False: the access is not carried out and the launch fails. */
typedef bool (*machine_observer)(void *context, const struct machine_access *access);

enum { MACHINE_THREADS_MOST = 16384 };

struct machine_launch {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;     /* dynamic */
    const void *parameters;    /* parameter_bytes of them, at the offsets of `parameters` */
    machine_observer observer; /* NULL: none */
    void *observer_context;
    bool is_cooperative; /* all blocks run at once, and can meet */
};

/*
 * Runs a kernel to its end.
 *
 * Errors, each with the kernel in `problem`: INVALID: an empty grid or block, more than
 * threads_most threads, more than 227 KiB of shared memory, more than MACHINE_THREADS_MOST threads
 * in a cooperative launch; NO_HOST_MEMORY; DEVICE_FAILED: the
 * kernel failed, and what it wrote until then stays: something in it, or in a function that it
 * calls, that is not supported; a trap, a failed assertion (with its text), a misaligned address,
 * shared memory beyond its end, an access that the observer refused (with line and address),
 * threads that wait for each other. An access to memory that is not mapped raises SIGSEGV in the
 * calling thread, on the stack of a fiber; machine_where() then says where.
 */
capu_status machine_run(const struct machine_function *function,
                        const struct machine_launch *launch, struct error_text *problem);

/* For a handler of SIGSEGV: the kernel that is running in this thread; NULL: none. */
const struct machine_function *machine_where(void);

#endif
