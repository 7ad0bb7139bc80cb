/*
 * How often the iterations of a label left their plans, and began with another plan than the one
 * before, over a whole report. A single slow iteration does not show that: its waits look like
 * those of a slow link.
 */
#ifndef CAPU_TOOLS_PLAN_CHANGES_H
#define CAPU_TOOLS_PLAN_CHANGES_H

#include "tools/report/account.h"

enum { PLAN_LENGTHS = 4 };

struct plan_changes {
    size_t count;        /* iterations of the label */
    size_t left;         /* of these, left their plan */
    size_t ended_early;  /* of these, by ending before it did */
    size_t changed;      /* iterations that began with another plan, after the first */
    size_t switched;     /* of these, because the iteration before had another label */
    uint64_t install_ns; /* installing plans, in all */
    uint64_t left_ns;    /* how much longer than the others the ones that left took, in all */
    size_t length_count; /* different numbers of ops under plans */
    uint64_t lengths[PLAN_LENGTHS]; /* the first few of them */
    bool has_plan;                  /* an earlier iteration installed one */
    uint64_t total_ns;              /* of all */
};

/* Zero if the label has no guided iterations. */
struct plan_changes plan_changes_of(const struct report_file *file, const char *label);

/* Whether so many left or changed plans that the label seems to mix iterations of several kinds. */
bool plan_changes_are_mixed(const struct plan_changes *changes);

/* Whether many changed plans because another label was in between. */
bool plan_changes_alternate(const struct plan_changes *changes);

#endif
