/* What the files of the slices share. */
#ifndef CAPU_INTERPOSE_SLICE_PARTS_H
#define CAPU_INTERPOSE_SLICE_PARTS_H

#include "interpose/flow/flow.h"
#include "interpose/slice/slice.h"

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
    bool reads_variables;
    uint64_t data_words; /* only these are sought, by what other words lead to; 0: all, without */
    uint32_t not_known;  /* flow_flags of values that the slice cannot compute */
    uint32_t *variables; /* of each register: the variable whose address it is made from */
};

/* slice_part.c */

/* Which of not_known the register has where the instruction runs. */
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

/* The same file. */

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

/* slice_source.c */

/* The kernel's words that an address can come from, as bits. */
uint64_t slice_words_of(struct slicer *slicer, const struct access *access);
/* Finds slicer->variables. Errors: NO_HOST_MEMORY. */
capu_status slice_find_variables(struct slicer *slicer);
/* Whether an instruction has an operand that is made from the address of a variable, and whether it
   only passes that on, in a way that does not depend on where the variable lies. */
bool slice_has_variable(const struct slicer *slicer, const struct ptx_instruction *instruction);
bool slice_moves_variable(const struct slicer *slicer, const struct ptx_instruction *instruction);
/* Whether the slice may have a load that is not from the parameters. */
bool slice_can_load(struct slicer *slicer, const struct ptx_instruction *instruction);
/* Lists slice->sources, by slicer->all. Errors: NO_HOST_MEMORY. */
capu_status slice_list_sources(struct slicer *slicer);

/* What slice_text.c writes for sources; the last two return false, and write nothing, if the
   instruction is none of theirs. A load needs the label GIVE_UP. */
void slice_write_source_parameters(const struct slicer *slicer, FILE *out);
void slice_write_source_registers(const struct slicer *slicer, FILE *out);
bool slice_write_read(struct slicer *slicer, FILE *out, const struct ptx_instruction *instruction);
bool slice_write_move(const struct slicer *slicer, FILE *out,
                      const struct ptx_instruction *instruction);

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

/* slice_forms.c */

extern const struct slice_form slice_range_form;

/* Writes slice->cover, if there is something that it could find. Overwrites slicer->all. Pre: the
   reports are there. Errors: NO_HOST_MEMORY. */
capu_status slice_cover(struct slicer *slicer);

#endif
