/*
 * What a library in front of this driver says that launches touch, and the comparison with what
 * they do touch. PTX_DRIVER_OPERANDS names the file that `capuchin run --operands` writes meanwhile
 * (its lines: shim/core/declare.c); it must not exist before. Without it nothing is compared.
 *
 * Work belongs to the access that is under way when it is issued: begun, and not yet done. It may
 * load what the access reads or updates, and store to what it writes or updates. What it writes
 * may not be loaded, unless an earlier piece of the same access has stored it, and must have been
 * stored to the last byte when the access is done. Everything else that work touches must be memory
 * of this driver: blocks, variables, pinned memory. That holds also for work outside accesses.
 *
 * The kernel capuchin_checksum, by which the library looks at memory, may touch anything.
 *
 * Loads from the page in which an allocation ends are allowed if it is declared to its end, since
 * programs read whole vectors.
 *
 * Any difference is printed and fails the work, or the next call; at exit it ends the process.
 */
#ifndef CAPU_TESTS_PTX_DRIVER_DECLARED_H
#define CAPU_TESTS_PTX_DRIVER_DECLARED_H

#include "tests/ptx/driver/driver.h"
#include "tests/ptx/machine/machine.h"

/* A range without borders of operands inside. */
struct declared_part {
    uint64_t address;
    uint64_t end;
    bool can_load;
    bool can_store;
    /* Of parts to be written, a bit per byte: stored by this piece of work, and by all before. */
    unsigned char *stored;
    unsigned char *stored_before;
};

struct declared {
    uint64_t number;
    char *name;
    struct declared_part *parts; /* by address */
    size_t part_count;
    unsigned pending; /* pieces of work that were issued and have not ended */
    bool is_done;
    bool has_failed; /* its work has not ended as it should */
};

/* Whether anything is compared. */
bool declared_is_on(void);

/* The access under way, for one piece of work, which has to be released; NULL: none. Thread: any.
   Errors: LAUNCH_FAILED: an earlier access was not what it was declared to be. */
CUresult declared_take(struct declared **access);
void declared_release(struct declared *access);

/* No call succeeds from now on, nor the process. */
void declared_note_difference(void);

/* Around a piece of work, in the thread that carries it out. The end returns what the work has
   returned, or LAUNCH_FAILED for an access that was not declared. */
void compare_begin(struct declared *access);
CUresult compare_end(CUresult result);

/* For the machine. */
bool compare_observe(void *unused, const struct machine_access *access);

/* A copy or a fill reads or writes a range; host memory that is not declared is fine. */
void compare_moved(uint64_t address, uint64_t bytes, bool is_written);

#endif
