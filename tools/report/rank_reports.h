/*
 * The report files of all ranks of a run: which of their iterations are the same step of training,
 * and what those cost each rank.
 *
 * Iterations are matched by their label and their number under it, because a rank may have
 * iterations of labels that others do not have. A rank whose file ends early ends the comparison of
 * that label.
 */
#ifndef CAPU_TOOLS_RANK_REPORTS_H
#define CAPU_TOOLS_RANK_REPORTS_H

#include "tools/report/report_file.h"

/* Over the steps that count. */
struct rank_sums {
    uint64_t time_ns;
    uint64_t waited_ns; /* for other ranks */
    uint64_t exchange_ns;
    uint64_t exchanged_bytes;
    uint64_t peak_bytes; /* the largest; so are the other sizes */
    uint64_t budget_bytes;
    uint64_t live_peak_bytes;
    uint64_t floor_bytes;
    uint64_t host_bytes;
    size_t slowest;      /* steps in which the rank took longest by itself */
    size_t timed;        /* steps in which all ranks timed their ops; of those: */
    uint64_t compute_ns; /* without exchanging */
    uint64_t stall_ns;   /* waiting for memory */
    uint64_t replay_ns;
};

struct rank_report {
    struct report_file file;
    uint64_t rank;
    struct rank_sums sums;
};

struct rank_step {
    const struct reported **of; /* the iteration of each rank, in their order */
    size_t number;              /* among those of its label, from 1 */
    bool counts;                /* the first of a label does not, unless it is the only one */
};

struct rank_reports {
    struct rank_report *ranks; /* in order */
    size_t count;
    uint64_t rank_count;            /* of the run; some may be missing here */
    const struct reported **places; /* of all steps */
    struct rank_step *steps;
    size_t step_count;
    size_t counted; /* steps that count */
    bool is_single; /* one iteration was asked for */
};

/*
 * Reads the files, in any order. `iteration`, unless it is 0, is the number of an iteration of the
 * lowest rank, and then only its step counts. False: an error has been printed: a file cannot be
 * read, is not that of a rank, or of another run; two are of one rank; there is no such iteration,
 * or no common one.
 */
bool rank_reports_read(struct rank_reports *reports, char *const *paths, size_t count,
                       uint64_t iteration);
void rank_reports_finish(struct rank_reports *reports);

/* What a rank's iteration took without waiting for others. */
uint64_t rank_reports_own_ns(const struct reported *iteration);

/* The label of a step, "" if it has none; the mode of a rank in it. */
const char *rank_reports_label(const struct rank_reports *reports, const struct rank_step *step);
const char *rank_reports_mode(const struct rank_reports *reports, const struct rank_step *step,
                              size_t rank);

#endif
