/*
 * A cache from bytes to bytes, of limited size: what was not asked for longest goes first. Keys are
 * compared as a whole, so a wrong value is never found. Owned by the owner of the struct around it.
 */
#ifndef CAPU_SHIM_REACH_CACHE_H
#define CAPU_SHIM_REACH_CACHE_H

#include "base/table.h"

struct reach_entry;

/* All but bytes_most zeroed: empty. */
struct reach_cache {
    size_t bytes_most;
    size_t bytes;              /* of all entries */
    struct table table;        /* hash to entry */
    struct reach_entry *first; /* asked for last */
    struct reach_entry *last;
};

/* The value that was put for a key, aligned for any type; it may be changed in place. NULL: it is
   not there. Valid until the next put. */
void *reach_cache_get(struct reach_cache *cache, const void *key, size_t key_bytes);

/* Makes a value for a key, which replaces an earlier one, for the caller to fill; entries may go to
   make room. NULL: no host memory, or larger than the whole cache; an earlier value is gone. */
void *reach_cache_put(struct reach_cache *cache, const void *key, size_t key_bytes,
                      size_t value_bytes);

void reach_cache_finish(struct reach_cache *cache);

#endif
