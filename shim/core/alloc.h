/* The program's allocations. For the thread that has entered the core. */
#ifndef CAPU_SHIM_ALLOC_H
#define CAPU_SHIM_ALLOC_H

#include "capuchin/capuchin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allocation {
    uint64_t address; /* as the program knows it */
    uint64_t bytes;
    void *block;          /* what the library has given; the address is in it */
    uint64_t id;          /* no other allocation has it */
    uint64_t ordinal;     /* the lowest number that no other one has now */
    uint64_t born;        /* as iteration_allocate says */
    uint64_t place;       /* to which a pointer has led last, from its start */
    uint32_t place_count; /* pointers that have led to another place than the one before */
    bool is_stored;       /* a launch or a call of a library has stored to it */
};

/* All of them, by address. Valid until the next allocation or free. */
const struct allocation *alloc_list(size_t *count);

/* The one that an address is in; NULL: it is not ours. */
const struct allocation *alloc_find(uint64_t address);

/* The same for a pointer, which may also be at the end of its allocation. */
const struct allocation *alloc_find_pointer(uint64_t pointer);

/* The first one that begins above an address, or NULL; the next ones follow it in memory, up
   to the end of the list. */
const struct allocation *alloc_above(uint64_t address);

/* A launch or a call of a library stores to the allocation that an address is in. */
void alloc_note_stored(uint64_t address);

/* Notes where an event's pointer leads. Its allocation; NULL: it is not ours. */
const struct allocation *alloc_note_place(uint64_t address);

/* The allocation of an address, if it looks like data: pointers lead to many places in it, and
   nothing stores to it but copies. NULL: it does not. */
const struct allocation *alloc_find_data(uint64_t address);

/* Whether there is any. */
bool alloc_has_data(void);

/* Changes with each allocation and free. */
uint64_t alloc_generation(void);

/* Of all of them: now, and at most since the start. */
uint64_t alloc_bytes(void);
uint64_t alloc_peak_bytes(void);

/*
 * What was copied of each allocation of the program, for the report. Allocations that have had the
 * same number one after the other are counted together. At exit it is guarded by nothing, as all of
 * the report.
 */
struct moved {
    uint64_t ordinal;
    uint64_t count;   /* allocations that have had it */
    uint64_t address; /* of the last one */
    uint64_t bytes;   /* of the largest one */
    uint64_t out_bytes, back_bytes;
};

/* Notes what was copied of an allocation, if there will be a report. Once for each: before it is
   freed, or at the end. */
void alloc_note_moved(capu_context *context, const struct allocation *allocation);

/* Sorts all that were noted by what was copied of them, the most first, and returns how many have
   been copied at all. For the end: no more can be noted. */
size_t alloc_sort_moved(const struct moved **list);

#endif
