/*
 * The lines of a report file: reports, and timeline logs (type "timeline"). docs/report.md defines
 * them.
 */
#ifndef CAPU_RUNTIME_REPORT_JSON_H
#define CAPU_RUNTIME_REPORT_JSON_H

#include "runtime/record/timeline_log.h"

struct records;

/* A report as one line of JSON, which the caller frees. The record adds
   what the struct has no fields for; NULL: nothing. NULL: host memory is full. */
char *report_json(const struct report *report, const struct record *record);

/* The same as a value of Jansson's, without the lists of evictions and stalls. NULL: as above. */
struct json_t *report_json_counters(const struct report *report);

/* The words for a capu_method and a capu_mode in JSON and in the printed table. Constants. */
const char *report_method_name(uint32_t method);
const char *report_mode_name(uint32_t mode);

/* A timeline log as one line of JSON. Begins it in log->text: everything but tensors and events.
   Pre: the record's report has its times, and the marks on the compute lane are still there.
   NO_HOST_MEMORY, INVALID (a mark is not). */
capu_status timeline_json_begin(struct records *records, struct timeline_log *log,
                                const struct record *record);

/* Adds tensors and events and returns the line, which the caller frees; log->text is empty then.
   NULL: no memory. */
char *timeline_json_end(struct timeline_log *log);

#endif
