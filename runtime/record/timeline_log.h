/*
 * Timeline logs: when everything in an iteration happened, for the timeline lines of the report
 * file (docs/report.md).
 *
 * A log is kept in timed iterations if the config asks for it; at any other time, each function
 * returns at once. Ops and replays have times anyway. A log adds an event before and after each
 * copy, and notes which tensors take memory and give it up, in order of issue. Copies may end after
 * their iteration, so a line is written once they have, which may be after the next report line.
 * Nothing waits for that unless all logs are in use. A log keeps its memory and its events.
 *
 * A log that cannot be completed is given up, and capu_flush says so; training goes on.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TIMELINE_LOG_H
#define CAPU_RUNTIME_TIMELINE_LOG_H

#include "capuchin/context.h"
#include "policy/format/plan.h"
#include "policy/format/string_buffer.h"
#include "runtime/iteration/record.h"
#include "runtime/tensor/tensor.h"

struct records;

enum { TIMELINE_LOG_COUNT = 3 };

enum timeline_event_kind {
    TIMELINE_TAKE, /* a tensor takes its pages */
    TIMELINE_GIVE, /* it gives them up: an eviction */
    TIMELINE_END,  /* it gives them up for good */
    TIMELINE_OUT,
    TIMELINE_IN,
    TIMELINE_REPLAY
};

struct timeline_event {
    uint32_t kind;    /* enum timeline_event_kind */
    uint32_t subject; /* a tensor of the log; of a replay the op, at first by its number in the
                         guide, then in the record */
    uint32_t before;  /* ops recorded when it was issued */
    uint32_t detail;  /* give: a capu_method; copy: its first mark; replay: index in the record */
    int64_t begin_ns; /* of what takes time, from the beginning of the iteration */
    int64_t end_ns;
    uint64_t wait_ns;
};

struct timeline_tensor {
    const char *name;
    const void *address;
    uint64_t bytes; /* that are copied; of a tensor that is always resident, all of it */
    uint64_t held_bytes;
    uint32_t kind; /* CAPU_PARAMETER and so on */
    bool is_persistent;
    bool is_on_device; /* when the iteration began */
    bool is_on_host;   /* the same: and not on the device */
    /* Copies of the iteration before that were still under way then end at these times; 0: there
       was none. A copy in; a copy out of a tensor that stays; either, of one that had left. */
    uint64_t ready_ns;
    uint64_t saved_ns;
    uint64_t free_ns;
    size_t record_index; /* SIZE_MAX: no op has touched it */
};

/* Open: in its iteration. Ended: the iteration has. Read: ops are in `text`, and copies may still
   be under way. */
enum timeline_log_stage { TIMELINE_FREE, TIMELINE_OPEN, TIMELINE_ENDED, TIMELINE_READ };

struct timeline_log {
    enum timeline_log_stage stage;
    uint64_t stamp; /* the iteration's number */
    struct device_event *begin;
    struct device_event **marks; /* two per copy */
    size_t mark_count;           /* used */
    size_t made_count;
    size_t mark_capacity;
    size_t last_out; /* marks after the newest copy of each direction; SIZE_MAX: there is none */
    size_t last_in;
    struct timeline_event *events;
    size_t event_count;
    size_t event_capacity;
    struct timeline_tensor *tensors;
    size_t tensor_count;
    size_t tensor_capacity;
    struct string_buffer text;
};

struct timeline_logs {
    struct timeline_log logs[TIMELINE_LOG_COUNT];
    struct timeline_log *open; /* NULL: nothing is logged now */
};

void timeline_logs_finish(struct records *records);

/* Opens a log for the iteration whose record is open, if one is to be kept. Pre: its beginning is
   marked. */
void timeline_log_open(struct records *records);

/* The iteration ends; its record will be completed. */
void timeline_log_close(struct records *records);

/* What happens in an iteration, in order of issue. A copy begins after everything that is in its
   stream by then, and it ends with what is in it then. */
void timeline_log_take(struct records *records, struct tensor *tensor);
void timeline_log_give(struct records *records, struct tensor *tensor, uint32_t method);
void timeline_log_end(struct records *records, struct tensor *tensor);
void timeline_log_copy_begin(struct records *records, struct tensor *tensor, bool is_out);
void timeline_log_copy_end(struct records *records, bool is_out);
/* `number`: of the op in the guide; it is the newest replay of the open record. */
void timeline_log_replay(struct records *records, uint32_t number);
/* The tensor has an entry in the open record. */
void timeline_log_meet(struct records *records, struct tensor *tensor, size_t record_index);

/* The record's times are read, and its marks are still there. */
void timeline_log_read(struct records *records, const struct record *record);

/* Passes lines on whose copies have completed. */
void timeline_logs_settle(struct records *records);

#endif
