/* The account of a reported iteration: which ops waited, for what, and which tensors moved; and
   what to do about it. */
#ifndef CAPU_TOOLS_ACCOUNT_H
#define CAPU_TOOLS_ACCOUNT_H

#include "tools/report/report_file.h"

#include <stdio.h>

/* A wait of an op: for tensors to return, all of them together, or for free memory; or the wait of
   an op that was replayed for this one. */
struct wait {
    const char *op;
    const char *replay; /* name of the replayed op, or "" */
    uint64_t access;
    uint64_t ns;
    uint64_t bytes;   /* copied back */
    size_t count;     /* of tensors; 0: free memory, or a replay */
    size_t ahead;     /* how many of them were requested before the op */
    const char *name; /* of the largest */
    uint64_t largest;
};

/* The traffic of a tensor. */
struct mover {
    const char *name;
    uint64_t bytes;
    uint64_t out_bytes;
    uint64_t in_bytes;
    uint64_t ns;
    size_t recomputed;
    const char *ignored_hint; /* that the plan did not follow, or "" */
    const char *because;      /* why */
};

/* The strings belong to the line. */
struct account {
    struct reported counters;
    const struct report_kind *kind;
    json_t *line;
    struct wait *waits;
    size_t wait_count;
    struct mover *movers;
    size_t mover_count;
    uint64_t back_ns;   /* ops waited for tensors to return */
    uint64_t replay_ns; /* replays waited */
    size_t ahead;       /* tensors that were requested in advance and arrived late */
    size_t ignored;     /* tensors whose hints the plan did not follow */
};

/* False: an error has been printed. `file` must outlive the account. */
bool account_init(struct account *account, const struct report_file *file,
                  const struct reported *iteration);
void account_finish(struct account *account);

/* A string of the report, or "". */
const char *account_text(const struct account *account, const char *key);

/* The time in which the device neither computed nor waited for memory or for others. */
uint64_t account_idle_ns(const struct account *account);

/*
 * How often the iterations of a label left their plans, and began with another plan than the one
 * before, over a whole report. A single slow iteration does not show that: its waits look like
 * those of a slow link.
 */

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

/*
 * All of this as text, to stdout: the iterations of the file by label and mode; the labels whose
 * iterations leave their plans or change them; and the account of an iteration: where its time
 * went, what memory it had, which ops waited longest, which tensors moved most.
 */

void account_print_kinds(const struct report_file *file);
void account_print_plans(const struct report_file *file);
void account_print(const struct account *account);

/* What to do about what made the iteration slow (remedies.c). Prints a list: each remedy begins
   with "  - ", the most important first. If there is none, a line without it says so. `trace` NULL:
   none is given. Fit for a terminal. */
void remedies_print(FILE *stream, const struct account *account, const struct report_file *file,
                    const char *trace);

#endif
