/* The page numbers of one tensor of a guide, in order. They lie in several runs. */
#ifndef CAPU_RUNTIME_PAGE_WALK_H
#define CAPU_RUNTIME_PAGE_WALK_H

#include "runtime/guide/guide.h"

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
