/*
 * Streams that capture. What the program calls for such a stream goes to the driver as it is, with
 * the program's own stream: the driver makes nodes of it. Nothing runs, so nothing has to be
 * resident, but for copies and memsets, whose addresses the driver looks at (graph.h).
 *
 * All other streams stand for one, which never takes part in a capture: a stream that waits for an
 * event of a capture is the program's own, too. While any stream captures, the library's calls are
 * made in relaxed mode, since the driver would refuse them otherwise, and the capture would fail.
 */
#ifndef CAPU_SHIM_CAPTURE_H
#define CAPU_SHIM_CAPTURE_H

#include "shim/driver/driver.h"

#include <stdbool.h>

/* Whether a call for a stream is the driver's: the stream captures, or cannot be used because
   another one does. Thread: any. */
bool capture_takes(CUstream stream);

/* What the driver answers now to a call that may wait for work: success, or the error with which it
   refuses such calls during a capture. Thread: any, not entered. */
CUresult capture_check(void);

/* Around the library's calls. For the thread that has entered the core. */
void capture_relax(void);
void capture_restore(void);

/* Whether a stream captures, or cannot be used because another one does, as the driver says. */
bool capture_has(CUstream stream);

/* Whether a capture recorded an event last. */
void capture_note_event(CUevent event, bool is_captured);
bool capture_has_event(CUevent event);

/* Captures have begun (1) or ended (-1). */
void capture_count(int change);

/* Streams may capture now that did not, or the other way round. Thread: any, not entered. */
void capture_changed(void);

/* Sets what is called then. It is called once, while the library is loaded. */
void capture_on_change(void (*changed)(void));

#endif
