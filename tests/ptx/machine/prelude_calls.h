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

/* From global to shared memory; `bytes` is that of whole units. */
static inline void copy_bulk(struct ptx_thread *t, u64 to, u64 from, u32 bytes, u32 line)
{
    if (bytes % 16 != 0) {
        t->block->calls->fail(t, line, "a bulk copy of no whole units", bytes);
    }
    if (bytes > 0) {
        unsigned char *destination = at_shared(t, to, 16, PTX_WRITE, line);

        (void)at_shared(t, to + bytes - 16, 16, PTX_WRITE, line);
        aligned(t, from, 16, line);
        if (t->is_observed) {
            observe(t, from, bytes, PTX_READ, line);
        }
        memcpy(destination, (const unsigned char *)from, bytes);
    }
}

static inline u64 *mbarrier_at(struct ptx_thread *t, u64 address, u32 line)
{
    return (u64 *)(void *)at_shared(t, address, 8, PTX_WRITE, line);
}

static inline void mbarrier_init(struct ptx_thread *t, u64 address, u32 count, u32 line)
{
    *mbarrier_at(t, address, line) = count | (u64)count << PTX_MBARRIER_PENDING;
}

/* Arrivals, and bytes that are announced or, below 0, have come. The result is the state before. */
static inline u64 mbarrier_change(struct ptx_thread *t, u64 address, u32 arrivals, s64 bytes,
                                  u32 line)
{
    const u64 most = (1u << PTX_MBARRIER_COUNT_BITS) - 1;
    u64 *barrier = mbarrier_at(t, address, line);
    u64 before = *barrier, count = before & most;
    u64 pending = before >> PTX_MBARRIER_PENDING & most, parity = before >> PTX_MBARRIER_PARITY;
    s64 missing = (s64)(before << (63 - PTX_MBARRIER_PARITY + 1)) >> (64 - PTX_MBARRIER_BYTES_BITS);

    if (pending < arrivals) {
        t->block->calls->fail(t, line, "more arrivals than the mbarrier takes", arrivals);
    }
    pending -= arrivals;
    missing += bytes;
    if (pending == 0 && missing == 0) {
        pending = count;
        parity ^= 1;
    }
    *barrier = count | pending << PTX_MBARRIER_PENDING |
               ((u64)missing & ((1u << PTX_MBARRIER_BYTES_BITS) - 1)) << PTX_MBARRIER_BYTES |
               parity << PTX_MBARRIER_PARITY;
    return before;
}

static inline void mbarrier_wait(struct ptx_thread *t, u64 address, u32 parity, u32 line)
{
    t->block->calls->wait_phase(t, mbarrier_at(t, address, line), parity, line);
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
