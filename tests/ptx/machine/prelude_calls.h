/* What translated code is made of: calls that the machine itself answers. Includes the rest. */
#ifndef CAPU_TESTS_PTX_MACHINE_PRELUDE_CALLS_H
#define CAPU_TESTS_PTX_MACHINE_PRELUDE_CALLS_H

#include "tests/ptx/machine/prelude_convert.h"

/* The rest of the destination is cleared. */
static inline void copy_async(struct ptx_thread *t, u64 to, u64 from, u32 bytes, u32 from_bytes,
                              u32 line)
{
    unsigned char *destination = at_shared(t, to, bytes, PTX_WRITE, line);

    memset(destination, 0, bytes);
    from_bytes = from_bytes < bytes ? from_bytes : bytes;
    aligned(t, from, bytes, line);
    if (from_bytes > 0) {
        if (t->is_observed) {
            observe(t, from, from_bytes, PTX_READ, line);
        }
        memcpy(destination, (const unsigned char *)from, from_bytes);
    }
}

static inline u32 print(struct ptx_thread *t, const unsigned char *format,
                        const unsigned char *arguments)
{
    return t->block->calls->print((const char *)get_u64(format),
                                  (const unsigned char *)get_u64(arguments));
}

static inline void assertion(struct ptx_thread *t, u32 line, const unsigned char *message,
                             const unsigned char *file, const unsigned char *file_line,
                             const unsigned char *function, const unsigned char *character_bytes)
{
    (void)character_bytes;
    t->block->calls->assertion(t, line, (const char *)get_u64(message), (const char *)get_u64(file),
                               get_u32(file_line), (const char *)get_u64(function));
}

#endif
