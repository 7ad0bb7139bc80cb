/* A timeline log as one line of JSON, of type "timeline": docs/report.md defines it. */
#ifndef CAPU_RUNTIME_TIMELINE_JSON_H
#define CAPU_RUNTIME_TIMELINE_JSON_H

#include "runtime/record/timeline_log.h"

struct records;

/* Begins the line in log->text: everything but tensors and events. Pre: the record's report has its
   times, and the marks on the compute lane are still there. NO_HOST_MEMORY, INVALID (a mark is
   not). */
capu_status timeline_json_begin(struct records *records, struct timeline_log *log,
                                const struct record *record);

/* Adds tensors and events and returns the line, which the caller frees; log->text is empty then.
   NULL: no memory. */
char *timeline_json_end(struct timeline_log *log);

#endif
