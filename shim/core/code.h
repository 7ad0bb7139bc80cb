/*
 * The program's device code: what is known about each kernel, and the parameters that its launches
 * pass. For the thread that has entered the core, except the parameters: thread any. Entries are
 * never removed: reports name kernels of code that is gone.
 */
#ifndef CAPU_SHIM_CODE_H
#define CAPU_SHIM_CODE_H

#include "interpose/flow/roles.h"

#include <string.h>

struct reach;

struct code_kernel {
    char *name;
    const struct kernel *roles;      /* NULL: open, for the reason given */
    const char *reason;              /* NULL: closed */
    const struct ptx_module *module; /* with the roles */
    const void *origin;              /* the code that it is of; NULL: not known */
    const void *handle;              /* of that code, by which the kernel was found */
    bool is_in_library;              /* the handle is a library's; else a module's */
    bool is_trusted;                 /* open, and its last launch had those of its parameters */
    bool is_gone; /* the code was unloaded: its handles may come to mean others */
    uint64_t launch_count;
    uint64_t failed_count; /* launches that did not get their operands */
    uint64_t most_bytes;   /* of the operands of one launch */
    uint64_t kept_count;   /* launches that could be repeated */
    uint64_t repeat_count; /* atomic: how often one was */
    struct reach *reach;   /* atomic, see reach.h; NULL: not yet asked for */
    struct code_kernel *next;
};

/* Reads the code behind an image that the driver has loaded under `handle`: a fat binary, with or
   without its wrapper, a cubin or PTX. What cannot be read has open kernels. */
void code_add_image(const void *handle, const void *image, unsigned architecture);

/* The same for a file. */
void code_add_file(const void *handle, const char *path, unsigned architecture);

/* Another handle of the same code. */
void code_add_handle(const void *handle, const void *of);

/* Says which architecture the device has, which then counts in place of what calls say. Code that
   was loaded for another one has open kernels from now on: other machine code of it runs than was
   assumed. */
void code_settle(unsigned architecture);

/* PTX by which kernels would be closed that are open, since other code than that runs: the driver
   can compile it instead. NULL: there is none, or need for it. Valid for ever. */
const char *code_text(const void *handle, unsigned architecture);

/* Whether it is a handle of such code, which is valid. */
bool code_has(const void *handle);

/* The handle is no longer valid. */
void code_remove(const void *handle);

/* Notes a kernel's or function's handle, got by its name from code: a library's or a module's. */
void code_note(const void *function, const void *handle, bool is_library, const char *name);

/* Another handle of the same kernel. */
void code_note_same(const void *function, const void *of);

/* The kernel of a handle; NULL: it was never noted, or what it is of is gone. */
struct code_kernel *code_find(const void *function);

/* Makes an open kernel for such a handle. NULL: no host memory. */
struct code_kernel *code_add_unknown(const void *function, const char *name);

/* Notes that a variable of some module may have been stored to. Thread: any, entered or not. */
void code_note_stored(void);

/* How often that was noted: while it stays the same, no variable has changed. Thread: any. */
uint64_t code_version(void);

/* The program has reset the device: variables that were stored to should have their first contents
   again, and have not. */
void code_reset(void);

/* Whether the kernel may use such variables. */
bool code_is_stale(const struct code_kernel *kernel);

/* All kernels, by `next`, those seen last first. */
struct code_kernel *code_kernels(void);

/* A launch's parameters, in either of the two ways in which programs give them. */

/* Borrowed from the caller of the launch. */
struct parameters {
    void **list;                /* one address per parameter, or NULL */
    const unsigned char *bytes; /* the whole block, if there is no such array; or NULL */
    size_t byte_count;
};

/* From what a launch was called with; either may be NULL. */
struct parameters parameters_of(void **list, void **extra);

enum { PARAMETERS_BYTES_MOST = 33024 }; /* of a block, and something that is added to it */

/* Copies a parameter, or a part of one: nearly all are numbers and pointers. */
static inline void parameters_copy(unsigned char *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
    } else if (bytes == sizeof(uint32_t)) {
        memcpy(to, from, sizeof(uint32_t));
    } else {
        memcpy(to, from, bytes);
    }
}

/* Copies all of them to a block, as the driver would. False: some are not there, or too many. */
bool parameters_block(const struct parameters *parameters, const struct kernel *roles,
                      unsigned char block[PARAMETERS_BYTES_MOST]);

/* Visits the pointers that a word stands for: the one at its offset, or all of its parameter. Begin
   with *offset 0. False: there are no more. */
bool parameters_next(const unsigned char *block, const struct kernel *roles,
                     const struct kernel_word *word, uint32_t *offset, uint64_t *pointer);

#endif
