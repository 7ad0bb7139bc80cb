/* Plan entries without a plan, for tests of what keeps them. */
#ifndef CAPU_TESTS_UNIT_RUNTIME_ENTRIES_H
#define CAPU_TESTS_UNIT_RUNTIME_ENTRIES_H

#include "runtime/guide/plan_entry.h"

#include "tests/support/suite.h"

#include <stdlib.h>

/* An entry that takes ENTRY_BYTES, last used in iteration `used`. */
enum { ENTRY_BYTES = 4096 };

static inline struct plan_entry *make_entry(uint64_t signature, uint64_t used)
{
    struct plan_entry *entry = calloc(1, sizeof(*entry));

    ck_assert_ptr_nonnull(entry);
    entry->guide = calloc(1, sizeof(*entry->guide));
    ck_assert_ptr_nonnull(entry->guide);
    entry->guide->signature = signature;
    entry->guide->bytes = ENTRY_BYTES - plan_entry_bytes(entry);
    entry->used = used;
    return entry;
}

#endif
