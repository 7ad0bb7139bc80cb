/*
 * A PTX module, parsed: its variables, and its functions with their parameters, registers, labels
 * and instructions. The text is kept by the caller and must outlive the module; spans point into
 * it, so that an instruction can be written out again as it was.
 *
 * The parser accepts what nvcc emits, and is not a checker: what is not valid PTX may pass. An
 * instruction that it cannot read is kept with no operands and the effect EFFECT_UNKNOWN. Names are
 * resolved by scope, since braces in inline assembly may declare registers and labels of their own.
 */
#ifndef CAPU_INTERPOSE_PTX_H
#define CAPU_INTERPOSE_PTX_H

#include "base/error_text.h"
#include "base/table.h"
#include "capuchin/status.h"
#include "interpose/ptx/ptx_opcode.h"

#define PTX_NONE UINT32_MAX

enum ptx_space {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_CONST,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_PARAM,
};

struct ptx_variable {
    struct span name;
    enum ptx_space space;
    bool is_extern;  /* declared only: sized by the launch if it is shared */
    bool is_managed; /* the host may store to it at any time */
    bool is_unread;  /* has an initialiser or a form that the parser does not understand */
    uint32_t alignment;
    uint32_t element_bytes;
    uint64_t bytes;                        /* 0: not known, as in "name[]" */
    uint32_t initial_first, initial_count; /* among the module's; what has none is zero */
};

/* One element of an initialiser. */
struct ptx_initial {
    uint64_t offset; /* in the variable */
    uint32_t bytes;
    enum number_form form; /* of the number */
    struct span name;      /* of a variable whose address it is, plus the number; empty: none */
    int64_t number;
};

struct ptx_parameter {
    struct span name;
    uint32_t offset; /* in the parameter block, in bytes */
    uint32_t bytes;
    uint32_t alignment;
    bool is_register;       /* ".reg": passed by value, not in memory */
    bool is_marked_pointer; /* by .ptr, which CUDA 12.8 and later write for some architectures */
};

enum ptx_operand_kind {
    OPERAND_REGISTER,  /* index: of the register */
    OPERAND_NUMBER,    /* number */
    OPERAND_PARAMETER, /* index: of the kernel's parameter; number: bytes added to its place */
    OPERAND_LOCAL,     /* index: of a variable of the function; number as above */
    OPERAND_VARIABLE,  /* index: of a variable of the module; number as above */
    OPERAND_SPECIAL,   /* a special register: name */
    OPERAND_NAME,      /* anything else: a function, a label, an undeclared register */
};

struct ptx_operand {
    enum ptx_operand_kind kind;
    uint16_t position; /* among the operands, from 0; elements of a list share one */
    bool is_address;   /* in brackets; number: bytes added to it */
    bool is_list;      /* in braces or parentheses, or one of a pair a|b */
    bool is_negated;   /* "!p" */
    enum number_form form;
    uint32_t index;
    int64_t number;
    struct span name;
};

struct ptx_instruction {
    struct span opcode;
    enum effect effect;
    uint32_t predicate; /* a register; PTX_NONE: unconditional */
    bool is_negated;    /* runs if the predicate is false */
    uint32_t operand_first;
    uint32_t operand_count;
    uint32_t scope;
    uint32_t line;
};

struct ptx_label {
    struct span name;
    uint32_t scope;
    uint32_t instruction;  /* that follows it; the number of instructions at the end */
    uint32_t target_first; /* of ".branchtargets", among the function's operands */
    uint32_t target_count;
};

struct ptx_register {
    struct span name;
    uint16_t bits; /* 1: a predicate */
};

struct ptx_function {
    struct span name;
    bool is_kernel;
    bool has_body;
    uint32_t parameter_bytes;
    uint32_t threads_most; /* by .maxntid or .reqntid; 0: not given */
    uint32_t result_count; /* of a function that is called: its first locals */
    struct ptx_parameter *parameters;
    size_t parameter_count, parameter_capacity;
    struct ptx_variable *locals; /* shared and local variables, and the .param ones of calls */
    size_t local_count, local_capacity;
    struct ptx_register *registers;
    size_t register_count, register_capacity;
    struct ptx_instruction *instructions;
    size_t instruction_count, instruction_capacity;
    struct ptx_operand *operands;
    size_t operand_count, operand_capacity;
    struct ptx_label *labels; /* by name */
    size_t label_count, label_capacity;
    uint32_t *scope_parents; /* scope 0 is the body, and its own parent */
    size_t scope_count, scope_capacity;
};

struct ptx_module {
    unsigned architecture; /* 80: .target sm_80 */
    unsigned version;      /* 75: .version 7.5 */
    struct ptx_variable *variables;
    size_t variable_count, variable_capacity;
    struct ptx_initial *initials;
    size_t initial_count, initial_capacity;
    struct ptx_function *functions;
    size_t function_count, function_capacity;
    struct table names; /* hash of a name, or a number after it if that is taken, to variable */
};

/*
 * Parses a module. On failure *module is empty.
 *
 * Errors: FILE_FAILED: not PTX, or cut short, with the line in `problem`; UNSUPPORTED: addresses of
 * 32 bits; NO_HOST_MEMORY.
 */
capu_status ptx_parse(const char *text, size_t count, struct ptx_module *module,
                      struct error_text *problem);
void ptx_finish(struct ptx_module *module);

/* The function with that name and a body; NULL: there is none. */
const struct ptx_function *ptx_find(const struct ptx_module *module, struct span name);

/* The label that a name means in a scope; NULL: there is none. */
const struct ptx_label *ptx_label(const struct ptx_function *function, struct span name,
                                  uint32_t scope);

#endif
