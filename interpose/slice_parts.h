/* What the files of the slices share. */
#ifndef CAPU_INTERPOSE_SLICE_PARTS_H
#define CAPU_INTERPOSE_SLICE_PARTS_H

#include "interpose/access.h"
#include "interpose/slice.h"

#include <stdio.h>

/* An access that a slice reports. */
struct slice_site {
    struct access access;
    uint32_t instruction;
    uint32_t report;
    uint64_t words;
    const char *reason; /* why it cannot be reported; NULL: it can */
    bool is_may;
    bool is_counted; /* its bytes are set in the bitmap */
};

enum slice_branch {
    SLICE_BRANCH_DROPPED, /* nothing in the slice depends on it */
    SLICE_BRANCH_KEPT,
    SLICE_BRANCH_MAY, /* both ways are taken, one after the other */
};

enum slice_side { SLICE_OUTSIDE, SLICE_FIRST, SLICE_SECOND };

/* A branch of which both ways can be taken: first the blocks of one side, then those of the other.
   A side without blocks begins where the ways meet. */
struct slice_bridge {
    uint32_t branch;
    uint32_t first, second; /* blocks */
    uint32_t meeting;
    size_t size;    /* blocks of the first side */
    uint8_t *sides; /* of each block: enum slice_side */
};

/* What a slice, or the part of it that one access needs, consists of. */
struct slice_part {
    bool *registers;    /* whose values are needed */
    bool *instructions; /* that are in it, branches excepted */
    bool *blocks;       /* whose execution has to be decided */
    uint8_t *branches;  /* of each block's: enum slice_branch */
};

struct slicer {
    const struct ptx_module *module;
    const struct ptx_function *function;
    const struct kernel *kernel;
    struct slice *slice;
    struct flow flow;
    struct slice_site *sites;
    size_t site_count, site_capacity;
    uint32_t *branch_flags; /* of each block's branch: what makes its outcome unknown */
    struct slice_bridge *bridges;
    size_t bridge_count, bridge_capacity;
    bool *is_barred; /* of each block's branch: both ways cannot be taken */
    struct slice_part all;
    struct slice_part one;
};

/* Flags of values that a slice cannot compute. */
#define SLICE_NOT_KNOWN ((uint32_t)(FLOW_UNKNOWN | FLOW_DATA | FLOW_VARIABLE))

/* slice_part.c */

/* Which of SLICE_NOT_KNOWN the register has where the instruction runs. */
uint32_t slice_unknown(struct slicer *slicer, const struct ptx_instruction *instruction,
                       uint32_t index);
const char *slice_reason(uint32_t flags);
/* Finds what a site needs, in slicer->one; sets its reason if that is not possible. */
void slice_find_part(struct slicer *slicer, struct slice_site *site);
/* Adds slicer->one to slicer->all. */
void slice_add_part(struct slicer *slicer);
/* Empties slicer->all. */
void slice_clear_all(const struct slicer *slicer);
/* Lists the registers of slicer->all, results included. */
void slice_list_registers(const struct slicer *slicer);

/* slice_bridge.c */

/* Finds the bridges of all branches whose outcome is unknown; bars the others. Errors:
   NO_HOST_MEMORY. */
capu_status slice_find_bridges(struct slicer *slicer);
/* Bars those that slicer->all must not have. True: there were some. */
bool slice_bar_bridges(struct slicer *slicer);
/* Where the slice goes from a block instead of to its successor `to`. */
uint32_t slice_next_block(const struct slicer *slicer, uint32_t block, uint32_t to);
/* Whether the slice may come to a block where the kernel would not. */
bool slice_is_bridged(const struct slicer *slicer, uint32_t block);
const struct slice_bridge *slice_bridge_at(const struct slicer *slicer, uint32_t block);

/* slice_input.c: lists slice->inputs. Pre: the slice is complete but for its text. Errors:
   NO_HOST_MEMORY. */
capu_status slice_find_inputs(struct slicer *slicer);

/* slice_text.c */

/* A slice that is being written. */
struct slice_writer {
    struct slicer *slicer;
    const struct slice_form *form;
    FILE *out;
    bool gives_up; /* threads may go to the label GIVE_UP, which write_end has to write then */
};

/* What a slice does about the accesses of its kernel. */
struct slice_form {
    const char *name;                                       /* the end of the slice's name */
    void (*write_start)(const struct slice_writer *writer); /* declares and sets its registers */
    void (*write_site)(const struct slice_writer *writer, const struct slice_site *site);
    void (*write_end)(const struct slice_writer *writer); /* of a thread */
};

/* Writes what slicer->all has. The caller frees the text, also after failure. Errors:
   NO_HOST_MEMORY. */
capu_status slice_write(struct slicer *slicer, const struct slice_form *form, char **text,
                        size_t *bytes);
/* The predicate of an instruction. */
void slice_write_guard(const struct slice_writer *writer,
                       const struct ptx_instruction *instruction);

/* slice_range.c */

extern const struct slice_form slice_range_form;

/* slice_cover.c */

/* Writes slice->cover, if there is something that it could find. Overwrites slicer->all. Pre: the
   reports are there. Errors: NO_HOST_MEMORY. */
capu_status slice_cover(struct slicer *slicer);

#endif
