/* How an instruction accesses memory: what its opcode and operands say, whatever they point to. */
#ifndef CAPU_INTERPOSE_ACCESS_H
#define CAPU_INTERPOSE_ACCESS_H

#include "interpose/flow.h"

/* An access by an instruction: what it is, and where. */
struct access {
    const struct ptx_instruction *instruction;
    const struct ptx_operand *address; /* NULL: the instruction has none */
    unsigned position;                 /* of the address among the operands */
    enum ptx_space space;              /* of the address */
    bool is_read;
    bool is_written;
    bool is_atomic;
    bool is_tile;    /* a warp's, whose extent is not the address's */
    bool may_be_cut; /* a copy of fewer bytes than `bytes`, or of none, as an operand says */
    unsigned bytes;
};

/* The access of an instruction of this function. False: it has none. */
bool access_of(const struct ptx_function *function, const struct ptx_instruction *instruction,
               struct access *access);

#endif
