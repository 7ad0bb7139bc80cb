/* What translated code is made of: types, and memory. */
#ifndef CAPU_TESTS_PTX_MACHINE_PRELUDE_MEMORY_H
#define CAPU_TESTS_PTX_MACHINE_PRELUDE_MEMORY_H

#include "tests/ptx/machine/thread.h"

#include <stddef.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned __int128 u128;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef __int128 s128;

/* Memory: addresses of each space become pointers, checked and observed. What is rare is out of
   line, so that translated code stays small: compiling it is most of the cost of a test. */

#define RARE __attribute__((noinline, cold)) static

RARE void misaligned(struct ptx_thread *t, u64 address, u32 line)
{
    t->block->calls->fail(t, line, "a misaligned address", address);
}

RARE void beyond(struct ptx_thread *t, u64 address, u32 line, const char *what)
{
    t->block->calls->fail(t, line, what, address);
}

RARE void observe(struct ptx_thread *t, u64 address, u32 bytes, enum ptx_access kind, u32 line)
{
    t->block->calls->observe(t, address, bytes, kind, line);
}

/* Before an access that a loop may wait with. Most do not, so a thread goes on for a while. */
static inline void spin(struct ptx_thread *t)
{
    enum { SPINS_MOST = 256 };

    if (__builtin_expect(++t->spins > SPINS_MOST, 0)) {
        t->spins = 0;
        t->block->calls->yield();
    }
}

static inline bool is_shared(const struct ptx_thread *t, u64 address)
{
    u64 offset = address - (u64)t->block->shared;

    return offset < t->block->shared_bytes || offset - t->block->reserved < PTX_RESERVED_BYTES;
}

static inline bool is_local(const struct ptx_thread *t, u64 address)
{
    return address - (u64)t->block->locals < t->block->locals_bytes;
}

RARE void observe_generic(struct ptx_thread *t, u64 address, u32 bytes, enum ptx_access kind,
                          u32 line)
{
    if (!is_shared(t, address) && !is_local(t, address)) {
        observe(t, address, bytes, kind, line);
    }
}

static inline void aligned(struct ptx_thread *t, u64 address, u32 bytes, u32 line)
{
    if (__builtin_expect((address & (bytes - 1)) != 0, 0)) {
        misaligned(t, address, line);
    }
}

static inline unsigned char *at_global(struct ptx_thread *t, u64 address, u32 bytes,
                                       enum ptx_access kind, u32 line)
{
    aligned(t, address, bytes, line);
    if (__builtin_expect(t->is_observed, 0)) {
        observe(t, address, bytes, kind, line);
    }
    return (unsigned char *)address;
}

static inline unsigned char *at_generic(struct ptx_thread *t, u64 address, u32 bytes,
                                        enum ptx_access kind, u32 line)
{
    aligned(t, address, bytes, line);
    if (__builtin_expect(t->is_observed, 0)) {
        observe_generic(t, address, bytes, kind, line);
    }
    return (unsigned char *)address;
}

static inline unsigned char *at_shared(struct ptx_thread *t, u64 address, u32 bytes,
                                       enum ptx_access kind, u32 line)
{
    (void)kind;
    aligned(t, address, bytes, line);
    if (__builtin_expect(address > t->shared_bytes || address + bytes > t->shared_bytes, 0)) {
        beyond(t, address, line, "shared memory beyond its end");
    }
    return t->shared + address;
}

static inline unsigned char *at_local(struct ptx_thread *t, u64 address, u32 bytes,
                                      enum ptx_access kind, u32 line)
{
    (void)kind;
    aligned(t, address, bytes, line);
    if (__builtin_expect(address > t->block->local_bytes || address + bytes > t->block->local_bytes,
                         0)) {
        beyond(t, address, line, "local memory beyond its end");
    }
    return t->local + address;
}

/* Constants, and parameters of kernels and calls. */
static inline unsigned char *at_own(struct ptx_thread *t, u64 address, u32 bytes,
                                    enum ptx_access kind, u32 line)
{
    (void)t;
    (void)bytes;
    (void)kind;
    (void)line;
    return (unsigned char *)address;
}

#define at_const at_own
#define at_param at_own

#define MEMORY(T)                                         \
    static inline T get_##T(const unsigned char *m)       \
    {                                                     \
        T value;                                          \
        memcpy(&value, m, sizeof(value));                 \
        return value;                                     \
    }                                                     \
    static inline void put_##T(unsigned char *m, T value) \
    {                                                     \
        memcpy(m, &value, sizeof(value));                 \
    }

MEMORY(u8)
MEMORY(u16)
MEMORY(u32)
MEMORY(u64)
MEMORY(u128)

#endif
