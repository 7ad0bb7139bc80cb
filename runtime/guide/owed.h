/*
 * What is owed after an iteration has left its guide: tensors that the plan dropped and would have
 * recomputed, and the sources that replays of them will read.
 *
 * Recovery needs to know, per tensor of the guide, which op of this iteration made what it holds
 * last, and whether a replay that is still to come reads it. That is worked out once, when the
 * guide is left. The room for it is reserved when the guide is installed, so that leaving needs no
 * memory.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_OWED_H
#define CAPU_RUNTIME_OWED_H

#include "runtime/guide/guide.h"
#include "runtime/op/op.h"

struct guided;

/* Per tensor of the guide. */
struct owed_entry {
    uint64_t version; /* that this iteration's ops made or read last; of a tensor that is always
                         resident and freed, that its memory holds */
    uint32_t maker;   /* the op that made its newest version, plus one; 0: none */
    bool is_source;   /* a replay that is still to come reads it: to be overwritten only after that
                       */
};

struct owed {
    const struct guide *guide; /* that the iteration left; NULL: it did not */
    bool keeps_contents;       /* the guide was made to keep what iterations may still read */
    struct owed_entry *entries;
    size_t entry_capacity;
    uint32_t *stack; /* room for every tensor, and one more */
    size_t stack_capacity;
    struct op again; /* the op that runs again; room for that with the most accesses */
};

enum { OWED_NONE = UINT32_MAX };

/* Makes room for leaving this guide. NO_HOST_MEMORY. */
capu_status owed_reserve(struct owed *owed, const struct guide *guide);

/* Zeroed is fine. */
void owed_finish(struct owed *owed);

/* The iteration has left its guide after so many ops. If the guide keeps what nothing could
   recompute, then all that is lost is due: this iteration may overwrite what the planned one does
   not, and read it all. Pre: owed_reserve. */
void owed_start(struct guided *guided, const struct guide *guide, uint32_t executed,
                bool keeps_contents);

/* A tensor's number in the guide that was left; OWED_NONE: it knows none at this address. */
uint32_t owed_find(const struct guided *guided, const struct tensor *tensor);

/* Whether a replay that is still to come reads the tensor. */
bool owed_is_source(const struct guided *guided, const struct tensor *tensor);

/* Whether the tensor of this number is lost; and whether it is to be recomputed before anything
   overwrites what it is made from: the plan would have recomputed it, or keeps all contents. */
bool owed_is_lost(const struct guided *guided, uint32_t number);
bool owed_is_due(const struct guided *guided, uint32_t number);

/* The tensor of this number; NULL: there is none. Always-resident ones come and go, so they are
   looked up. Where the guide has a piece, what is yet to be split may stand there. */
struct tensor *owed_tensor(struct guided *guided, uint32_t number);

/* Marks the sources of what is owed, after something has become owed. */
void owed_mark(struct guided *guided);

#endif
