/* Tensors of floats, and the one op that the programs of the traps are made of. */
#ifndef CAPU_TESTS_TRAPS_FLOATS_H
#define CAPU_TESTS_TRAPS_FLOATS_H

#include "tests/support/rig.h"

/* Floats in a tensor of some pages, at most those that floats_expect compares; and how many other
   tensors push such a one out. */
enum { FLOATS = 4096, FLOATS_MOST = 4 * FLOATS, FLOATS_OTHERS = 4 };

/* to[i] = scale * from[i] + offset for `count` floats, added to what is there if `adds`. */
struct floats_scaling {
    float *to;
    const float *from; /* NULL: only the offset */
    size_t count;
    float scale;
    float offset;
    bool adds;
};

/* An op's function: does that. */
capu_status floats_scale(capu_stream stream, const void *arguments);

/* A tensor of so many floats. */
float *floats_make(struct rig *rig, const char *name, capu_kind kind, size_t floats);

/* Writes `value` all over a tensor. */
void floats_set(struct rig *rig, float *tensor, size_t floats, float value);

/* Fails the test unless all of them have this value. */
void floats_expect(struct rig *rig, const float *tensor, size_t floats, float value);

/* The first of them. */
float floats_first(struct rig *rig, const float *tensor);

/* FLOATS_OTHERS tensors of FLOATS. */
void floats_make_others(struct rig *rig, float **others);

/* Touches more than the budget holds, so that everything else has to leave. */
void floats_press(struct rig *rig, float *const *others, size_t count);

#endif
