/*
 * The cache, see reach_cache.h: a table from the hash of a key to its entry, and a list of all
 * entries by their last use. Of two keys with the same hash, the later one stays.
 */
#include "shim/launch/reach_cache.h"

#include "base/hash.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct reach_entry {
    struct reach_entry *newer;
    struct reach_entry *older;
    uint64_t hash;
    size_t bytes; /* of all of it */
    size_t key_bytes;
    unsigned char value[] __attribute__((aligned(16))); /* then the key */
};

static const unsigned char *key_of(const struct reach_entry *entry)
{
    return (const unsigned char *)entry + entry->bytes - entry->key_bytes;
}

static void unlink_entry(struct reach_cache *cache, const struct reach_entry *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &cache->first) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &cache->last) = entry->newer;
}

static void link_first(struct reach_cache *cache, struct reach_entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->first;
    *(cache->first != NULL ? &cache->first->newer : &cache->last) = entry;
    cache->first = entry;
}

static void drop_entry(struct reach_cache *cache, struct reach_entry *entry)
{
    unlink_entry(cache, entry);
    table_remove(&cache->table, entry->hash);
    cache->bytes -= entry->bytes;
    free(entry);
}

static struct reach_entry *entry_of(const struct reach_cache *cache, uint64_t hash)
{
    uint64_t value;

    return table_get(&cache->table, hash, &value) ? (struct reach_entry *)(uintptr_t)value : NULL;
}

void *reach_cache_get(struct reach_cache *cache, const void *key, size_t key_bytes)
{
    struct reach_entry *entry = entry_of(cache, hash_bytes(key, key_bytes));

    if (entry == NULL || entry->key_bytes != key_bytes ||
        memcmp(key_of(entry), key, key_bytes) != 0) {
        return NULL;
    }
    if (entry != cache->first) {
        unlink_entry(cache, entry);
        link_first(cache, entry);
    }
    return entry->value;
}

void *reach_cache_put(struct reach_cache *cache, const void *key, size_t key_bytes,
                      size_t value_bytes)
{
    uint64_t hash = hash_bytes(key, key_bytes);
    struct reach_entry *entry = entry_of(cache, hash);
    size_t bytes = sizeof(*entry) + value_bytes + key_bytes;

    if (entry != NULL) {
        drop_entry(cache, entry);
    }
    if (bytes > cache->bytes_most || !table_reserve(&cache->table, cache->table.count + 1)) {
        return NULL;
    }
    while (cache->bytes > cache->bytes_most - bytes) {
        drop_entry(cache, cache->last);
    }
    entry = malloc(bytes);
    if (entry == NULL) {
        return NULL;
    }
    *entry = (struct reach_entry){.hash = hash, .bytes = bytes, .key_bytes = key_bytes};
    memcpy(entry->value + value_bytes, key, key_bytes);
    table_put(&cache->table, hash, (uint64_t)(uintptr_t)entry);
    link_first(cache, entry);
    cache->bytes += bytes;
    return entry->value;
}

void reach_cache_finish(struct reach_cache *cache)
{
    while (cache->last != NULL) {
        drop_entry(cache, cache->last);
    }
    table_finish(&cache->table);
}
