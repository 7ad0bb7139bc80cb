/* How an instruction accesses memory: what its opcode and operands say, whatever they point to. */
#ifndef CAPU_INTERPOSE_ACCESS_H
#define CAPU_INTERPOSE_ACCESS_H

#include "interpose/flow/flow.h"

/* An access by an instruction: what it is, and where. */
struct access {
    const struct ptx_instruction *instruction;
    const struct ptx_operand *address; /* NULL: the instruction has none */
    unsigned position;                 /* of the address among the operands */
    enum ptx_space space;              /* of the address */
    bool is_read;
    bool is_written;
    bool is_atomic;
    bool is_tile;    /* a warp's, of several items */
    bool may_be_cut; /* a copy of fewer bytes than `bytes`, or of none, as an operand says */
    unsigned bytes;
    /* A tile of wmma, as lines of neighbours: rows or columns. */
    unsigned line_count; /* 0: not known */
    unsigned line_bytes;
    const struct ptx_operand *stride; /* from line to line, in items; NULL: they follow directly */
    const struct ptx_operand *length; /* of a bulk copy; NULL: `bytes` */
};

/* The access of an instruction of this function. False: it has none. */
bool access_of(const struct ptx_function *function, const struct ptx_instruction *instruction,
               struct access *access);

/* The register that says how far the access reaches, if one does: the stride of a tile, the length
   of a bulk copy. NULL: none does. */
const struct ptx_operand *access_measure(const struct access *access);

#endif
