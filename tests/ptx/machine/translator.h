/* What the files of the translator share. */
#ifndef CAPU_TESTS_PTX_MACHINE_TRANSLATOR_H
#define CAPU_TESTS_PTX_MACHINE_TRANSLATOR_H

#include "tests/ptx/machine/translate.h"

#include <stdio.h>

enum { PARTS_MOST = 20, EXPRESSIONS = 32, EXPRESSION_BYTES = 160 };

/* The parts of an opcode between its dots; `at` is the one to be read next. */
struct parts {
    struct span part[PARTS_MOST];
    unsigned count;
    unsigned at;
};

enum type_class { TYPE_BITS, TYPE_UNSIGNED, TYPE_SIGNED, TYPE_FLOAT, TYPE_PREDICATE };

struct type {
    enum type_class class;
    unsigned bits;
    struct span name; /* "f32", without its dot */
};

struct translator {
    const struct ptx_module *module;
    const struct layout *layout;
    struct error_text *problem;
    capu_status status;
    FILE *out;
    /* The function. */
    const struct ptx_function *function;
    const struct layout_function *placed;
    bool *is_used; /* registers */
    /* The instruction. */
    const struct ptx_instruction *instruction;
    const struct ptx_operand *operands;
    struct parts parts;
    char expressions[EXPRESSIONS][EXPRESSION_BYTES];
    unsigned expression_count;
};

/* translate_operand.c: C expressions, valid until EXPRESSIONS more have been made. */

/* "line 7: WHAT: OPCODE"; false. */
bool refuse(struct translator *tr, const char *what);
/* Of printf. */
const char *expression(struct translator *tr, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Takes the next part of the opcode if it is this one, or one of these, separated by blanks. */
bool take_part(struct translator *tr, const char *name);
bool take_one_of(struct translator *tr, const char *names);
/* Takes the next part as a type. False: it is none, and the instruction is refused. */
bool take_type(struct translator *tr, struct type *type);
/* True, if all parts have been taken; else the instruction is refused. */
bool is_taken(struct translator *tr);

/* The operand at a position, or the n-th there; NULL: there is none. */
const struct ptx_operand *operand(const struct translator *tr, unsigned position, unsigned n);
unsigned operands_at(const struct translator *tr, unsigned position);
/* How many positions there are. */
unsigned positions(const struct translator *tr);

/* The value of an operand as an unsigned integer of that width; NULL: it has none, and the
   instruction is refused. */
const char *value(struct translator *tr, const struct ptx_operand *operand, unsigned bits);
const char *value_of_type(struct translator *tr, const struct ptx_operand *operand,
                          const struct type *type);
/* Begins a statement that sets a register, to be followed by an expression of that width, in `bits`
   unsigned, and ";". False: the operand is no register. */
bool assign(struct translator *tr, const struct ptx_operand *operand, unsigned bits);
/* The same for a value that is extended to the width of the register. */
bool assign_extended(struct translator *tr, const struct ptx_operand *operand,
                     const struct type *type);
/* The address in brackets, 64 bits. */
const char *address(struct translator *tr, const struct ptx_operand *operand);
/* A copy in a variable of this name, so that a value survives assignments. */
bool keep(struct translator *tr, const char *name, const struct ptx_operand *operand,
          const struct type *type);

/* Translate the current instruction, whose first part has been taken. False: refused. */

bool translate_plain(struct translator *tr); /* translate_plain.c; takes the first part itself */
bool translate_move(struct translator *tr);  /* translate_memory.c */
bool translate_load(struct translator *tr);
bool translate_store(struct translator *tr);
bool translate_atomic(struct translator *tr, bool has_result);
bool translate_copy(struct translator *tr);
bool translate_cvta(struct translator *tr);
bool translate_isspacep(struct translator *tr);
bool translate_setp(struct translator *tr); /* translate_convert.c */
bool translate_set(struct translator *tr);
bool translate_slct(struct translator *tr);
/* A comparison's name: "eq". NULL: refused. */
const char *take_comparison(struct translator *tr);
bool translate_convert(struct translator *tr);
bool translate_carry(struct translator *tr);
bool translate_dp4a(struct translator *tr);
bool translate_setp_pair(struct translator *tr); /* translate_half.c */
bool translate_set_pair(struct translator *tr);
bool translate_convert_small(struct translator *tr);
bool translate_branch(struct translator *tr); /* translate_control.c */
bool translate_branch_table(struct translator *tr);
bool translate_call(struct translator *tr);
bool translate_exit(struct translator *tr);
bool translate_return(struct translator *tr);
bool translate_trap(struct translator *tr);
bool translate_barrier(struct translator *tr); /* translate_warp.c */
bool translate_shuffle(struct translator *tr);
bool translate_vote(struct translator *tr);
bool translate_match(struct translator *tr);
bool translate_redux(struct translator *tr);
bool translate_activemask(struct translator *tr);
bool translate_elect(struct translator *tr);
bool translate_load_tiles(struct translator *tr); /* translate_matrix.c */
bool translate_store_tiles(struct translator *tr);
bool translate_turn_tile(struct translator *tr);
bool translate_product(struct translator *tr);
bool translate_fragment(struct translator *tr);
bool translate_bulk_copy(struct translator *tr); /* translate_bulk.c; after "cp.async.bulk" */
bool translate_mbarrier(struct translator *tr);

#endif
