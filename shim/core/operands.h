/*
 * The operands of an access, in terms of the program's allocations. A call of the program collects
 * them in a struct operands, which it hands to core_begin or core_run. For the thread that has
 * entered the core.
 */
#ifndef CAPU_SHIM_OPERANDS_H
#define CAPU_SHIM_OPERANDS_H

#include "capuchin/capuchin.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: none. */
struct operands {
    capu_operand *list;
    size_t count, capacity;
    uint64_t bytes;    /* of all that was added */
    uint64_t pointers; /* the hash of the call's pointers, for iteration_event */
    bool has_failed;   /* no host memory: some are missing */

    /* Of a launch. */
    uint64_t written_bytes; /* of tensors that it writes as a whole */
    bool has_others;        /* it may access other memory than these: the driver's own */
    bool stores_elsewhere;  /* it may store to variables of modules */
};

/* Frees the list. */
void operands_finish(struct operands *operands);

/* In guided mode, the hash of a call's pointers (iteration.h) and one more: of a copy, or of a call
   of a library. */
uint64_t operands_note_pointer(uint64_t pointers, uint64_t address);

/* The hash of the pointers of an event, and one more; for guided mode. */
uint64_t operands_mix_event(uint64_t pointers, uint64_t address);

/* The hash of pointers, and one more, wherever it lies. */
uint64_t operands_mix_pointer(uint64_t pointers, uint64_t address);

/* Counts the bytes of what the list has now, and notes which allocations it stores to. */
void operands_note_list(struct operands *operands);

/* The bytes of what the list has now. */
uint64_t operands_sum(const struct operands *operands);

/* Widens a range within one allocation to the tensors that it meets. */
void operands_widen(uint64_t *address, uint64_t *bytes);

/* Whether an address is in data of which it does not count where a pointer lies. */
bool operands_is_data(uint64_t address);

/* The bytes of these tensors. */
uint64_t operands_tensor_bytes(uint64_t address, uint64_t bytes);

/* Widens what is read of data to tensors, so that steps that read different parts have the same
   operands. Not if the tensors of the access take more than half the budget: where it does not fit,
   they are cut at the borders of operands. */
void operands_loosen(struct operands *operands);

/* A range within one allocation, as it is, of which nothing is noted. */
void operands_put(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role);

/* The same. What is not only read is noted as stored to. */
void operands_add(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role);

/* Several ranges, of which nothing is noted. */
void operands_add_list(struct operands *operands, const capu_operand *list, size_t count);

/* Puts operands in order, and makes one of those that overlap or are equal, or, if `joins`, touch:
   a read if all are, else an update, since it is not known which comes first. operands->bytes
   counts each byte once then. */
void operands_merge(struct operands *operands, bool joins);

/* All allocations, updated: for work of which nothing is known. */
void operands_add_all(struct operands *operands);

/* The whole allocation that an address is in, or at whose end it is. Nothing for an address that is
   not ours. */
void operands_add_allocation(struct operands *operands, uint64_t address, capu_role role);

/* A range. Reads that reach beyond the end of the allocation are cut there: libraries read whole
   vectors. Nothing for an address that is not ours. */
void operands_add_range(struct operands *operands, uint64_t address, uint64_t bytes,
                        capu_role role);

/*
 * The list of accesses and their operands that --operands asks for, see operands.c. Without it,
 * nothing happens.
 */

/* What it says of operands; to be freed. NULL: nothing is listed, or no host memory. For the
   thread that has entered the core. */
char *operands_text(const capu_operand *operands, size_t count);

/* Adds the line of an access or op that begins, with such a text, and the line of its end. Between
   the two, none begins. Thread: any, entered or not. */
void operands_write_begin(const char *name, const char *text);
void operands_write_end(void);

#endif
