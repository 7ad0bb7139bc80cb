/* The screen of `capuchin top`, drawn with ncurses, which is optional at build time. */
#ifndef CAPU_TOOLS_TOP_SCREEN_H
#define CAPU_TOOLS_TOP_SCREEN_H

/* Shows the programs until q is pressed, and asks them again after so many seconds. `folder`: as
   for top_snapshot_take. Returns an exit code. */
int top_screen_run(const char *folder, double seconds);

#endif
