/* What the shim has to say to the user: lines on standard error that begin with "capuchin: ". */
#ifndef CAPU_SHIM_LOG_H
#define CAPU_SHIM_LOG_H

/* One line, written with one call, so that lines of several threads and processes do not mix. A
   line that was written before is not repeated: a program may try many times. Keeps errno. Thread:
   any. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
