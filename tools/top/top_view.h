/* What `capuchin top` shows of running programs, as lines of text; the same on the screen and in
   the table of --once. */
#ifndef CAPU_TOOLS_TOP_VIEW_H
#define CAPU_TOOLS_TOP_VIEW_H

#include "policy/format/string_buffer.h"
#include "tools/top/top_source.h"

#include <stdbool.h>
#include <stddef.h>

/* How wide the bar and the sparkline may be, and whether they may use block characters. */
struct top_style {
    size_t columns;
    bool is_utf8;
};

/* Appends a block of lines per context; those that begin in the first column are headings. Errors:
   NO_HOST_MEMORY. */
capu_status top_view(struct string_buffer *text, const struct top_snapshot *snapshot,
                     const struct top_style *style);

/* Shows the programs on a screen until q is pressed, and asks them again after so many seconds.
   `folder`: as for top_snapshot_take. Returns an exit code. The screen needs ncurses, which is
   optional at build time. */
int top_screen_run(const char *folder, double seconds);

#endif
