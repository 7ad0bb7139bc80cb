/* Tensors of floats, and the one op from which the programs of the traps are built. */
#ifndef CAPU_TESTS_TRAPS_FLOATS_H
#define CAPU_TESTS_TRAPS_FLOATS_H

#include "tests/support/rig.h"

/* The floats of a tensor of several pages, the most that floats_expect compares, and the number of
   other tensors that are enough to evict such a tensor. */
enum { FLOATS = 4096, FLOATS_MOST = 4 * FLOATS, FLOATS_OTHERS = 4 };

/* to[i] = scale * from[i] + offset, for `count` floats; added to the old contents if `adds`. */
struct floats_scaling {
    float *to;
    const float *from; /* NULL: only the offset */
    size_t count;
    float scale;
    float offset;
    bool adds;
};

/* The run function that computes this. */
capu_status floats_scale(capu_stream stream, const void *arguments);

/* Allocates and describes a tensor of floats. */
float *floats_make(struct rig *rig, const char *name, capu_kind kind, size_t floats);

/* Writes `value` to the whole tensor. */
void floats_set(struct rig *rig, float *tensor, size_t floats, float value);

/* Fails the test unless all floats have this value. */
void floats_expect(struct rig *rig, const float *tensor, size_t floats, float value);

/* The first float. */
float floats_first(struct rig *rig, const float *tensor);

/* Allocates FLOATS_OTHERS tensors of FLOATS floats each. */
void floats_make_others(struct rig *rig, float **others);

/* Writes more than the budget holds, so that everything else is evicted. */
void floats_press(struct rig *rig, float *const *others, size_t count);

#endif
