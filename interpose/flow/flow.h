/*
 * Data flow of a function: for each register, what its value can be made of. Two questions at once:
 *
 * - Provenance: which words of the parameters, or variables, can be the address that the value was
 *   computed from by adding and choosing. A multiplied or truncated address has none.
 * - Dependence: which parameter words its bits depend on otherwise, and whether also on ids, on
 *   loaded data, or on something that cannot be known before the launch.
 *
 * A register is the union over all its definitions, wherever they are, so the order of instructions
 * does not matter. Where it has several, the branches that choose between them count, too. A branch
 * that is passed at most once counts only where both of its ways lead: an access on one of them
 * knows how it was decided. The union can only be too large, which makes answers less precise,
 * never wrong.
 *
 * Memory of a thread or block is one value each for everything in shared and in local memory.
 */
#ifndef CAPU_INTERPOSE_FLOW_H
#define CAPU_INTERPOSE_FLOW_H

#include "interpose/ptx/ptx_graph.h"

enum flow_flags {
    /* What the value depends on. */
    FLOW_ID = 1 << 0,       /* thread and block numbers, sizes of grid and blocks */
    FLOW_DATA = 1 << 1,     /* loaded from memory that a parameter points to */
    FLOW_VARIABLE = 1 << 2, /* loaded from a variable of the module */
    /* The same, if it cannot be known: why. */
    FLOW_SHARED = 1 << 3,   /* loaded from shared memory */
    FLOW_LOCAL = 1 << 4,    /* loaded from local memory */
    FLOW_ATOMIC = 1 << 5,   /* the result of an atomic, or of a volatile or acquiring load */
    FLOW_CLOCK = 1 << 6,    /* clocks, numbers of multiprocessors and warps */
    FLOW_EXCHANGE = 1 << 7, /* votes, shuffles, matrix products */
    FLOW_UNSET = 1 << 8,    /* a register that may not be set */
    FLOW_INEXACT = 1 << 9,  /* floating point that may be rounded otherwise in another kernel */
    FLOW_CALL = 1 << 10,    /* the result of a function */
    FLOW_OPCODE = 1 << 11,  /* the result of an unknown instruction */
    FLOW_GRID = 1 << 21,    /* where the driver keeps the barrier of a cooperative launch */
    FLOW_UNKNOWN = FLOW_SHARED | FLOW_LOCAL | FLOW_ATOMIC | FLOW_CLOCK | FLOW_EXCHANGE |
                   FLOW_UNSET | FLOW_INEXACT | FLOW_CALL | FLOW_OPCODE | FLOW_GRID,
    FLOW_DEPENDENCE = FLOW_ID | FLOW_DATA | FLOW_VARIABLE | FLOW_UNKNOWN,
    /* Whose address it can be, besides those of parameter words. */
    FLOW_AT_VARIABLE = 1 << 12, /* .global */
    FLOW_AT_CONST = 1 << 13,
    FLOW_AT_SHARED = 1 << 14,
    FLOW_AT_LOCAL = 1 << 15,
    FLOW_AT_PARAMETER = 1 << 16,
    FLOW_AT = FLOW_AT_VARIABLE | FLOW_AT_CONST | FLOW_AT_SHARED | FLOW_AT_LOCAL | FLOW_AT_PARAMETER,
    FLOW_BASELESS = 1 << 17, /* can also have no provenance at all */
    FLOW_SUM = 1 << 18,      /* the sum of two that both have one, of which one is an offset */
    FLOW_PART = 1 << 19,     /* bits of an address */
    FLOW_DEFINED = 1 << 20,  /* some definition has been seen */
};

/* A piece of the parameters that is read, or whose address is taken. */
enum flow_slot_kind {
    FLOW_WORD,  /* bytes at a fixed offset */
    FLOW_ANY,   /* any 8 bytes of the parameter: the offset is computed */
    FLOW_PLACE, /* not its value, but its place in the parameter block */
};

struct flow_slot {
    enum flow_slot_kind kind;
    uint32_t parameter;
    uint32_t offset; /* in the parameter */
    uint32_t bytes;
};

/* Sets of slots, as bits. */
struct flow_value {
    uint32_t flags;
    uint64_t *bases;   /* whose value can be the address it was computed from */
    uint64_t *uses;    /* on whose value it depends otherwise */
    uint64_t *choices; /* not slots: branches, by number, on whose outcome it depends */
};

/* Where in the parameters a register points, if that is the same in all threads. */
struct flow_place {
    uint32_t parameter; /* PTX_NONE: it is not known to point there */
    int64_t offset;
};

struct flow {
    const struct ptx_module *module;
    const struct ptx_function *function;
    struct ptx_graph graph;
    struct flow_slot *slots;
    size_t slot_count, slot_capacity;
    size_t set_words;          /* of 64 bits, per set */
    struct flow_value *values; /* registers, then the values below */
    size_t value_count;
    uint64_t *sets;
    struct flow_place *places; /* of registers */
    uint32_t *halved;          /* of each register: the instruction that gets it as one half of a
                                  register of 64 bits, and nothing else does; PTX_NONE: none */
    /* Of registers with several definitions: the branches that choose between them, as blocks. */
    uint32_t *chooser_first; /* of each register, among `choosers`; one more at the end */
    uint32_t *choosers;
    size_t chooser_count, chooser_capacity;
    /* Branches that are passed at most once. */
    uint32_t *branch_numbers; /* of each block's; PTX_NONE: it has none */
    uint32_t *branches;       /* blocks, by number */
    size_t branch_count;
    uint64_t *reached; /* per branch, the set of blocks that can run after it */
    size_t reached_words;
    size_t choice_words; /* of 64 bits, per set of branches */
    uint64_t *deciding;  /* per block, the set of ways out that decide whether it runs */
    size_t deciding_words;
    uint8_t *definitions; /* of each register: 0, 1, or 2 for more */
    bool has_lost_shared; /* parts of addresses may lie in shared memory */
    bool has_lost_local;
};

/* Values that are no registers: index register_count + this; then one per block: what decides
   whether it runs. */
enum { FLOW_MEMORY_SHARED, FLOW_MEMORY_LOCAL, FLOW_CARRY, FLOW_SCRATCH, FLOW_BLOCKS };

/* Analyses a function. Pre: it has a body, and outlives the flow. On failure *flow is empty.
   Errors: NO_HOST_MEMORY; TOO_LARGE. */
capu_status flow_build(const struct ptx_module *module, const struct ptx_function *function,
                       struct flow *flow);
void flow_finish(struct flow *flow);

/* What decides whether an instruction runs, its predicate included. Overwritten by the next call of
   this or the next two. */
const struct flow_value *flow_condition(struct flow *flow,
                                        const struct ptx_instruction *instruction);

/* The value of an operand, without what branches add to it. */
const struct flow_value *flow_operand(struct flow *flow, const struct ptx_operand *operand);

/* The address in an operand, if its instruction runs. */
const struct flow_value *flow_address(struct flow *flow, const struct ptx_instruction *instruction,
                                      const struct ptx_operand *operand);

/* The space that a load, store or atomic names; SPACE_GENERIC if none. */
enum ptx_space flow_space(struct span opcode);

static inline bool flow_has(const uint64_t *set, size_t slot)
{
    return (set[slot / 64] >> slot % 64 & 1) != 0;
}

bool flow_is_empty(const struct flow *flow, const uint64_t *set);

/* Whether an address is one in the barrier of a cooperative launch, which is memory of the driver:
   it is computed from the place of that and from ids, and from nothing else. */
bool flow_is_grid(const struct flow *flow, const struct flow_value *address);

/* access.c */

/* An access by an instruction: what it is and where, as its opcode and operands say, whatever they
   point to. */
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

/* waits.c */

/*
 * Waiting: a loop that is left when memory has changed, which another thread has to do. A part of
 * the kernel that computes addresses would hang in it.
 *
 * The other thread may be one of the same launch: threads take a lock, meet at a barrier, or pass
 * sums from block to block. It is taken to be if the kernel itself stores to all memory that the
 * awaited access may reach, before it waits or by that access. Otherwise another kernel or the host
 * is awaited.
 */
struct waits {
    bool has_some;
    const struct ptx_instruction *for_others; /* waits for another kernel; NULL: none does */
};

/* Errors: NO_HOST_MEMORY. */
capu_status waits_find(struct flow *flow, struct waits *waits);

/* repeat.c */

/*
 * Whether the instructions of a function do the same each time that it runs with the same
 * parameters on the same memory. They do not if they read clocks, or where and when threads run;
 * if they use atomics, or accesses that are meant for memory that other threads change meanwhile;
 * if they call something, which may print or stop; or if they name variables of the module, which
 * have other contents later. What is not known for certain counts as different.
 *
 * Not decided here: whether the memory is the same, and whether threads of the function race.
 */
bool repeat_is_same(const struct ptx_module *module, const struct ptx_function *function);

#endif
