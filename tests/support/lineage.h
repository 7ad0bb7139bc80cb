/*
 * Which contents guided mode may give up: a model of what docs/guided.md promises, for tests that
 * mirror a program on plain memory.
 *
 * Contents can be recomputed if the op that made them in this iteration is replayable, and if
 * everything that it read is unchanged since and can itself be had. A call that reads other
 * contents of a transient tensor may fail with CONTENTS_LOST.
 */
#ifndef CAPU_TESTS_SUPPORT_LINEAGE_H
#define CAPU_TESTS_SUPPORT_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINEAGE_SOURCES = 16 };

/* The present contents of one tensor. All zeros is valid: contents of unknown origin. Other
   lineages point to it, so it must stay where it is until the iteration has ended. */
struct lineage {
    bool is_held;     /* set by the caller: plans keep it, because it is persistent */
    uint64_t version; /* counts writes and turns */
    bool is_replayable;
    size_t source_count;
    struct lineage_source {
        struct lineage *from;
        uint64_t version;
        bool is_output; /* of the same op: must be unchanged, too, but comes from the replay */
    } sources[LINEAGE_SOURCES];
    uint64_t asked; /* the question to lineage_is_safe to which `is_safe` is the answer */
    bool is_safe;
};

/* An op has written the tensor. It read `sources`. Pass false if it cannot be run again, for
   example because it updates something. */
void lineage_write(struct lineage *to, bool is_replayable, struct lineage *const *sources,
                   size_t count);

/* The op that has just written `to` has also written `other`, and running it again would overwrite
   newer contents of that, because it is always resident. */
void lineage_tie(struct lineage *to, struct lineage *other);

/* An iteration begins: what was made before cannot be recomputed any more. */
void lineage_turn(struct lineage *lineage);

/* Whether a call that reads the tensor must not fail with CONTENTS_LOST. */
bool lineage_is_safe(struct lineage *lineage);

#endif
