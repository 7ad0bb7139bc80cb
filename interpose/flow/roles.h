/*
 * What a kernel does with the memory that its parameters point to.
 *
 * A *word* is 8 bytes of the parameters that are used as an address: a pointer parameter, or one in
 * a structure that is passed by value. A kernel is *closed* if each access to global memory has an
 * address that is a word plus an offset (or is a variable of the module), no word that is used as
 * an address is itself stored to memory, and nothing is called or executed that is not understood.
 * Everything else is *open*, with reasons. The answer holds for the PTX; whether that is what runs,
 * depends on the binary (binary.h).
 *
 * The class of a word says what its slice needs, the part of the kernel that computes its addresses
 * and decides whether an access happens.
 */
#ifndef CAPU_INTERPOSE_ROLES_H
#define CAPU_INTERPOSE_ROLES_H

#include "interpose/flow/flow.h"

enum slice_class {
    SLICE_IDS,     /* parameters and ids */
    SLICE_DATA,    /* also data that the kernel loads */
    SLICE_UNKNOWN, /* something that is not known before the launch */
};

struct kernel_word {
    uint32_t parameter;
    uint32_t offset; /* in the parameter; PTX_NONE: computed, so any word of it */
    bool is_read;
    bool is_written;
    bool is_atomic;
    bool may_be_offset;   /* an address is the sum of this and another word */
    unsigned read_bytes;  /* of the widest access */
    unsigned write_bytes; /* of the narrowest store, or atomic */
    enum slice_class address;
    enum slice_class condition; /* whether its accesses happen */
    uint32_t unknown;           /* flow_flags */
};

struct kernel_parameter {
    uint32_t offset;
    uint32_t bytes;
    bool is_marked_pointer;
    bool is_in_slice; /* a part of it that is no word is needed by some slice */
    bool is_used;     /* some part of it is read */
};

enum { KERNEL_REASONS = 6, KERNEL_REASON_BYTES = 120 };

struct kernel {
    struct span name; /* in the module's text */
    uint32_t parameter_bytes;
    struct kernel_parameter *parameters;
    size_t parameter_count;
    struct kernel_word *words; /* by parameter and offset */
    size_t word_count, word_capacity;
    bool is_closed;
    unsigned reason_count; /* at most KERNEL_REASONS are kept, of different kinds */
    char reasons[KERNEL_REASONS][KERNEL_REASON_BYTES];
    bool reads_variables;
    bool writes_variables;
    bool has_atomics;      /* in any memory but its own registers */
    bool waits;            /* may wait for another thread, in a loop */
    bool waits_for_others; /* for what it does not store to itself: for another kernel, or the host
                            */
    bool is_repeatable; /* does the same again if memory is the same, see repeat_is_same, and uses
                           no variables */
};

struct kernels {
    struct kernel *kernels; /* in the order of the module */
    size_t count;
};

/*
 * Analyses all kernels of a module, which must outlive the result. A kernel that cannot be analysed
 * is open. On failure *kernels is empty. Errors: NO_HOST_MEMORY.
 */
capu_status roles_find(const struct ptx_module *module, struct kernels *kernels);
void roles_finish(struct kernels *kernels);

/* "read", "written", "updated" (read and written), "atomic" or "unused". */
const char *roles_name(const struct kernel_word *word);

/* What makes a value unknown, as words for a message; "" if nothing does. */
const char *roles_unknown(uint32_t flags);

#endif
