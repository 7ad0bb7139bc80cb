/*
 * Bump allocation of pinned memory, see staging.h.
 *
 * Chunks stay with their set, in the order of first use, and are freed only by staging_finish. A
 * restarted set walks the same chunks again. A program whose iterations are alike therefore finds
 * everything it needs from the fourth iteration on.
 */
#include "runtime/lanes/staging.h"

#include <stddef.h>
#include <stdlib.h>

enum { ALIGNMENT = 64 };

void staging_init(struct staging *staging, struct device *device)
{
    *staging = (struct staging){.device = device};
}

void staging_finish(struct staging *staging)
{
    for (size_t i = 0; i < STAGING_SETS; i++) {
        struct staging_chunk *chunk = staging->sets[i].first;

        while (chunk != NULL) {
            struct staging_chunk *next = chunk->next;

            device_host_free(staging->device, chunk->memory, chunk->bytes);
            free(chunk);
            chunk = next;
        }
    }
    *staging = (struct staging){0};
}

/* Adds a chunk of at least `bytes` after the current one and makes it current. */
static capu_status add_chunk(struct staging *staging, struct staging_set *set, uint64_t bytes)
{
    struct staging_chunk *chunk = calloc(1, sizeof(*chunk));
    capu_status status;
    void *memory;

    if (chunk == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    chunk->bytes = bytes > STAGING_CHUNK ? bytes : STAGING_CHUNK;
    status = device_host_alloc(staging->device, chunk->bytes, &memory);
    if (status != CAPU_OK) {
        free(chunk);
        return status;
    }
    chunk->memory = memory;
    if (set->current == NULL) {
        set->first = chunk;
    } else {
        chunk->next = set->current->next;
        set->current->next = chunk;
    }
    set->current = chunk;
    set->offset = 0;
    return CAPU_OK;
}

capu_status staging_take(struct staging *staging, uint64_t bytes, void **memory)
{
    struct staging_set *set = &staging->sets[staging->open];

    if (bytes > UINT64_MAX - ALIGNMENT) {
        return CAPU_TOO_LARGE;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    while (set->current == NULL || set->current->bytes - set->offset < bytes) {
        if (set->current != NULL && set->current->next != NULL) {
            set->current = set->current->next;
            set->offset = 0;
        } else {
            capu_status status = add_chunk(staging, set, bytes);

            if (status != CAPU_OK) {
                return status;
            }
        }
    }
    *memory = set->current->memory + set->offset;
    set->offset += bytes;
    set->taken += bytes;
    return CAPU_OK;
}

bool staging_is_full(const struct staging *staging, uint64_t bytes)
{
    uint64_t taken = staging->sets[staging->open].taken;

    return taken > 0 && bytes > STAGING_LIMIT - (taken < STAGING_LIMIT ? taken : STAGING_LIMIT);
}

void staging_restart(struct staging *staging)
{
    struct staging_set *set = &staging->sets[staging->open];

    set->current = set->first;
    set->offset = 0;
    set->taken = 0;
}

void staging_turn(struct staging *staging)
{
    staging->open = (staging->open + 1) % STAGING_SETS;
    staging_restart(staging);
}
