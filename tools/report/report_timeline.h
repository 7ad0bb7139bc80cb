/* The measured iterations of a report file as a timeline. */
#ifndef CAPU_TOOLS_REPORT_TIMELINE_H
#define CAPU_TOOLS_REPORT_TIMELINE_H

#include "tools/report/report_file.h"
#include "tools/view/timeline_export.h"

/* Adds all iterations, one after the other, or only one (`number` not 0). Those without a timeline
   are shown by their time alone; what happened between iterations is not known and not shown.
   *last_ns is when the last one with a timeline begins. False: an error has been printed; none that
   is to be added has a timeline, or one cannot be read. */
bool report_timeline_add(const struct report_file *file, uint64_t number,
                         struct timeline_export *export, uint64_t *last_ns);

#endif
