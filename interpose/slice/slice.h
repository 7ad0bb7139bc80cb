/*
 * Address slices. The slice of a closed kernel is a second kernel, the part that computes addresses
 * and decides whether an access happens. Each access of the kernel to global memory becomes a
 * report of its address. So a launch of the slice, with the grid, the block and the parameters that
 * the kernel will get, finds how far the kernel reaches from each pointer, before what the pointers
 * point to is there: a slice accesses nothing but its own results, and what it is allowed to read
 * (slice_emit_with).
 *
 * A *report* is for all accesses whose address comes from the same pointers; loads have others than
 * stores and atomics. Its result is the lowest address and the end of the highest, of 8 bytes each:
 *
 * - It is exact if `is_may` is false: the lowest and highest bytes are accessed.
 * - Otherwise more may be reported than is accessed, beyond the allocation, too, and never less:
 *   whether an access happens depends on what is not known before the launch. Both ways of a branch
 *   are taken then.
 * - `end` is UINT64_MAX if some thread has given up, after too many rounds of a loop that the
 * kernel may not come to. Then all pointers reach over their whole allocations.
 * - Where one of several pointers is chosen, the result includes all that lies between them. Unless
 *   it lies in one allocation, the caller has to take the whole allocations of all of them.
 *
 * For stores there can be a *coverage slice*, too, a kernel of its own with the same parameters. It
 * sets bits for the bytes that are stored to for certain, if the launch does not fail. They may be
 * too few, never too many. So if all bytes of some memory are set, and nothing else in the launch
 * reads that memory, what was there before does not matter.
 *
 * What a slice cannot know it leaves out: the pointer is in `whole`, which means its whole
 * allocation. Values are known if they are computed from parameters, ids and what the slice reads
 * by operations that have one result.
 */
#ifndef CAPU_INTERPOSE_SLICE_H
#define CAPU_INTERPOSE_SLICE_H

#include "interpose/flow/roles.h"

enum { SLICE_WORDS_MOST = 64, SLICE_WINDOW_ALIGNMENT = 32 };

struct slice_report {
    uint64_t words; /* bit i: an address comes from words[i] of the kernel */
    bool is_may;
    bool is_stored; /* by stores and atomics; else loaded */
    bool is_atomic; /* some of its accesses are */
    /* What a bit of the bitmap stands for: the bytes of the narrowest store that counts. 0: there
       is no bitmap, since nothing is stored for certain, or some accesses are atomic. */
    uint32_t granule_bytes;
};

/* What a launch writes per report. Begins as SLICE_RESULT_NONE; `end` is 0 if nothing is accessed.
 */
struct slice_result {
    uint64_t lowest;
    uint64_t end;
};

#define SLICE_RESULT_NONE               \
    {                                   \
        .lowest = UINT64_MAX, .end = 0, \
    }

/* Memory whose coverage is sought for a report: granules of its size from `base` on. Bit i of the
   bitmap, counted from the lowest of each 32-bit word, is set if all bytes of granule i are
   stored to; other bits stay as they are. Bits beyond `count`, in its last word, may be set. */
struct slice_window {
    uint64_t base;  /* a multiple of SLICE_WINDOW_ALIGNMENT */
    uint64_t count; /* of granules; 0: the report has no bitmap, or none is wanted */
    uint64_t bits;  /* the address of whole words, `count` bits in all */
};

/* What a slice reads besides parameters, within bounds that the launch gives it. A thread that
   would read outside of them gives up. */
struct slice_source {
    char *variable;   /* of the module; NULL: what a pointer leads to */
    bool is_constant; /* the variable is, and the slice reads it as global memory */
    uint32_t word;    /* of the kernel, if it is no variable */
    uint32_t offset;  /* in the parameter block, of two addresses: where it begins and ends */
};

/* What a slice may read. */
struct slice_wish {
    /* Variables of the module, unless the kernel may store to some: they are known then. No
       other work may store to them between a launch of the slice and that of the kernel. */
    bool variables;
    /* bit i: find out how far words[i] reach by the data that words[j] lead to, bit j being 0, and
       nothing else: `whole` and the reports are about these words. No launch may be able to store
       to that data until the kernel has read it, the kernel's own included. 0: read no data. */
    uint64_t data_words;
};

/* What of the parameter block the results depend on. Where pointers lead does not matter, and what
   is in no input neither. */
enum slice_input_kind {
    SLICE_INPUT_VALUE,    /* all bytes */
    SLICE_INPUT_NULL,     /* of a pointer, whether it is null */
    SLICE_INPUT_LOW_BITS, /* of a pointer, the bits of `mask` */
};

struct slice_input {
    enum slice_input_kind kind;
    uint32_t offset; /* in the parameter block */
    uint32_t bytes;
    uint64_t mask;
};

struct slice {
    char *text; /* the kernel, NAME_slice, without the head of its module */
    size_t text_bytes;
    char *cover; /* the same of the coverage slice, NAME_cover; NULL: no report has a bitmap */
    size_t cover_bytes;
    /* In the parameter block, where a pointer is added: to the results, or to the windows of the
       coverage slice, one of each per report. */
    uint32_t results_offset;
    uint32_t parameter_bytes;
    struct slice_report *reports; /* no word is in two of them for loads, or for stores, unless it
                                     is with others in one, or one of them may */
    size_t report_count, report_capacity;
    struct slice_source *sources;
    size_t source_count, source_capacity;
    struct slice_input *inputs; /* may overlap; what is read from sources comes in addition */
    size_t input_count, input_capacity;
    uint64_t whole;                        /* bit i: words[i] reaches over its allocation */
    const char *reasons[SLICE_WORDS_MOST]; /* why, static; NULL: it is not in `whole` */
};

/* What a module of slices starts with: version, target and address size, as the kernels' module
   has. `text` is terminated, and cut to `bytes`. */
void slice_head(const struct ptx_module *module, char *text, size_t bytes);

/*
 * Makes the slice of a kernel. Pre: `kernel` is what roles_find() says of it; the module outlives
 * the call only. On failure *slice is empty.
 *
 * Errors, with the kernel and the reason in `problem`: UNSUPPORTED: the kernel is open, nothing of
 * it can be sliced, or it has too many pointers or parameters; NO_HOST_MEMORY.
 */
capu_status slice_emit(const struct ptx_module *module, const struct kernel *kernel,
                       struct slice *slice, struct error_text *problem);

/* The same for a slice that reads more than parameters. */
capu_status slice_emit_with(const struct ptx_module *module, const struct kernel *kernel,
                            const struct slice_wish *wish, struct slice *slice,
                            struct error_text *problem);
void slice_finish(struct slice *slice);

/*
 * The inputs of a slice as one row of bytes. Launches with the same grid, block and row have the
 * same results relative to slice_base(), as far as slice_is_relative() says.
 */
size_t slice_key_bytes(const struct slice *slice);
/* Pre: `parameters` is the whole block, `key` has slice_key_bytes(). */
void slice_key(const struct slice *slice, const unsigned char *parameters, unsigned char *key);

/* What the results of a report are relative to: the pointer that its addresses come from, or 0 if
   that may be one of several. */
uint64_t slice_base(const struct kernel *kernel, const struct slice_report *report,
                    const unsigned char *parameters);

/* Whether a result holds for other launches with the same key, and other pointers. Not if a thread
   has given up, or if an address has wrapped around, as one below a null pointer does. */
bool slice_is_relative(const struct slice_result *result);

#endif
