/*
 * Looks into a shared library before it is opened: opening runs its constructors, which is too late
 * to find out that it is something else.
 */
#ifndef CAPU_DEVICE_PLUGIN_FILE_H
#define CAPU_DEVICE_PLUGIN_FILE_H

/* Checks that the file is a library for this machine that defines a variable of this name. Returns
   0, ENOEXEC if it is anything else, or the errno with which it could not be read. Runs nothing in
   it. Thread: any. */
int plugin_file_check(const char *path, const char *variable);

#endif
