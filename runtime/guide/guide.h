/*
 * A guide: a plan compiled so that the runtime can carry it out without searching.
 *
 * A plan (policy/format/plan.h) says what is done before and after which op of a recorded
 * iteration, and which pages each tensor has while it is resident. Carrying it out must cost no
 * more than a few hundred nanoseconds per op, so the guide has flat arrays indexed by op: what the
 * op was, so that the op of the next iteration can be compared with it; what is done before and
 * after it; and for each tensor that takes pages, which tensors had these pages before, because
 * their last work must be waited for on the device. The plan of an unplaced guide has no pages for
 * its tensors.
 *
 * A guide says nothing of live tensors and pages of the device: tensors and pages are numbers in
 * it. So it outlives what is freed, and it never changes once it is compiled. What it is bound to
 * while it is active is in guided.h, what its iterations took in feedback.h, and what an iteration
 * that leaves it recomputes in recovery.h.
 *
 * Made on the context's thread (guide_create), copied and compiled on any one (guide_copy,
 * guide_compile), read-only from then on.
 */
#ifndef CAPU_RUNTIME_GUIDE_H
#define CAPU_RUNTIME_GUIDE_H

#include "policy/format/plan.h"
#include "policy/model/hints.h"
#include "runtime/iteration/record.h"

struct program;

/* A stretch of one of the guide's arrays. */
struct guide_part {
    uint32_t first;
    uint32_t count;
};

/* What accesses a tensor next, in the same iteration. Contents that are dropped before an op that
   overwrites them, or before zeros are filled in, were dead. */
enum next_access {
    NEXT_OP,     /* an op that overwrites it, or nothing */
    NEXT_REPLAY, /* a replay that makes it again */
    NEXT_FILL,   /* known zeros are filled in */
    NEXT_PART,   /* an op that writes a part of it; it has no contents */
};

struct guide_item {
    uint32_t kind;              /* enum action_kind: all but an op and a recompute */
    uint32_t subject;           /* tensor; of a replay, op */
    uint8_t next;               /* a drop: enum next_access */
    bool is_older;              /* a drop: of what was there before the iteration */
    struct guide_part previous; /* tensors that had the pages it takes before */
};

struct guide_access {
    uint32_t tensor;
    uint32_t role;       /* as recorded: CAPU_READ, CAPU_WRITE or CAPU_UPDATE */
    bool needs_contents; /* an update of a tensor without contents does not */
    bool is_partial;     /* a part is written */
    bool is_managed;     /* its tensor has pages */
    bool is_let_die;     /* its tensor is, if it is transient: see guide_tensor.is_kept */
};

struct guide_op {
    struct call call; /* its operand list is in guide.operands */
    bool is_replayable;
    struct guide_part accesses;
    struct guide_part cleared; /* ranges cleared before it, also when it is replayed */
    struct guide_part before;  /* items */
    struct guide_part after;
    struct guide_part previous; /* tensors that had the pages its writes take before */
    bool is_followed;           /* a copy out starts right after it */
    uint32_t free_count;        /* tensors that pass pages on and are freed before it */
};

struct guide_tensor {
    const void *address;
    uint64_t bytes;    /* of the whole tensor */
    size_t page_count; /* 0: always resident */
    const char *name;  /* interned, or NULL */
    bool is_split;
    bool is_transient; /* by its description */
    bool is_kept;      /* to the iteration's end; others are dead after their last access */
    bool starts_resident;
    bool is_copied;       /* needs a host block */
    bool passes_pages_on; /* once freed, to other tensors, which it shares pages with only then */
    uint32_t freed_op;    /* the program freed it before this op; UINT32_MAX: it did not */
    uint32_t zeroed_op; /* capu_zero ended its contents before this op at the latest; 0: it did not
                         */
    struct hint_reason hint_reason; /* why the plan may not follow its hint */
    struct guide_part runs;
};

struct guide {
    const char *label; /* interned */
    uint64_t signature;

    struct guide_tensor *tensors;
    uint32_t tensor_count;
    struct guide_op *ops;
    uint32_t op_count;
    struct guide_access *accesses;
    uint32_t access_count;
    capu_operand *operands;
    uint32_t operand_count;
    struct record_range *cleared;
    uint32_t cleared_count;

    struct guide_item *items;
    uint32_t *previous; /* tensors */
    struct plan_run *runs;
    uint32_t page_count; /* pages it needs */
    bool is_unplaced;    /* no tensor has fixed pages: any may take any of them (free_list.h) */
    uint64_t bytes;      /* of host memory that the guide takes */
};

/* What the record's iteration did, without a plan yet. NO_HOST_MEMORY, TOO_LARGE. */
capu_status guide_create(const struct record *record, struct guide **out);
void guide_destroy(struct guide *guide);

/* Another guide for the same iteration. Pre: no plan has been filled in. NO_HOST_MEMORY. */
capu_status guide_copy(const struct guide *guide, struct guide **out);

/* A zeroed array that the guide keeps and counts in `bytes`; a pointer for no elements, too. NULL:
   no host memory. */
void *guide_array(struct guide *guide, size_t count, size_t bytes);

/* guide_compile.c: fills in what the plan of the program does. Its trace was built of the same
   record, for a plan. Errors: INVALID (the plan places only some tensors), NO_HOST_MEMORY,
   TOO_LARGE. */
capu_status guide_compile(struct guide *guide, const struct program *program,
                          struct error_text *error);

/* Whether a tensor of the guide begins there. */
bool guide_has_tensor(const struct guide *guide, const void *address);

/* The page numbers of one tensor of a guide, in order. They lie in several runs. */
struct page_walk {
    const struct guide *guide;
    struct guide_part runs;
    uint32_t run;
    uint32_t offset;
};

static inline struct page_walk page_walk_start(const struct guide *guide, uint32_t tensor)
{
    return (struct page_walk){.guide = guide, .runs = guide->tensors[tensor].runs};
}

static inline uint32_t page_walk_next(struct page_walk *walk)
{
    const struct plan_run *run = &walk->guide->runs[walk->runs.first + walk->run];
    uint32_t page = run->first + walk->offset++;

    if (walk->offset == run->count) {
        walk->offset = 0;
        walk->run++;
    }
    return page;
}

#endif
