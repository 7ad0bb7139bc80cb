/* Keeping uploads, see uploads.h. */
#include "runtime/residency/uploads.h"

#include "runtime/residency/residency.h"

#include <stdlib.h>

/* Small uploads share blocks. A block that no iteration has used for long is given back, so that
   uploads of ever other sizes do not collect blocks. */
enum { ALIGNMENT = 64, LEAST_HALF = 32 << 10, LONG_UNUSED = 64 };

/* Takes a block of the arena. NULL: there is no room. */
static struct upload_block *take_upload_block(struct residency *residency, uint64_t half_bytes)
{
    struct upload_block *block = calloc(1, sizeof(*block));
    capu_status status = block != NULL ? CAPU_NOT_READY : CAPU_NO_HOST_MEMORY;

    while (status == CAPU_NOT_READY) {
        status = host_arena_take_whole(residency->memory->arena, 2 * half_bytes, &block->host);
        if (status == CAPU_NOT_READY && agent_grow(residency->agent, 2 * half_bytes) != CAPU_OK) {
            break;
        }
    }
    if (status != CAPU_OK) {
        free(block);
        return NULL;
    }
    block->half_bytes = half_bytes;
    return block;
}

/* Adds a block after the current one and makes it current. */
static bool add_upload_block(struct residency *residency, uint64_t bytes)
{
    struct uploads *uploads = &residency->uploads;
    struct upload_block *block = NULL;

    if (bytes < LEAST_HALF) {
        block = take_upload_block(residency, LEAST_HALF);
    }
    if (block == NULL) {
        block = take_upload_block(residency, bytes);
    }
    if (block == NULL) {
        return false;
    }
    if (uploads->current == NULL) {
        block->next = uploads->first;
        uploads->first = block;
    } else {
        block->next = uploads->current->next;
        uploads->current->next = block;
    }
    uploads->current = block;
    uploads->offset = 0;
    uploads->bytes += 2 * block->half_bytes;
    return true;
}

/* The block that comes next; NULL: there is none. */
static struct upload_block *next_block(const struct uploads *uploads)
{
    return uploads->current == NULL ? uploads->first : uploads->current->next;
}

void *uploads_take(struct residency *residency, uint64_t bytes)
{
    struct uploads *uploads = &residency->uploads;
    unsigned char *memory;

    if (uploads->is_off || residency->settings->config.mode != CAPU_MODE_GUIDED ||
        !residency->iteration->is_open || bytes > UINT64_MAX / 4) {
        return NULL;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    while (uploads->current == NULL || uploads->current->half_bytes - uploads->offset < bytes) {
        if (next_block(uploads) != NULL) {
            uploads->current = next_block(uploads);
            uploads->offset = 0;
        } else if (!add_upload_block(residency, bytes)) {
            uploads->is_off = true;
            return NULL;
        }
    }
    uploads->current->used = residency->iteration->number;
    memory = uploads->current->host.first.address;
    memory += residency->iteration->number % 2 * uploads->current->half_bytes + uploads->offset;
    uploads->offset += bytes;
    return memory;
}

/* Gives a block back to the arena, once the work that was enqueued before has finished. */
static void give_upload_block(struct residency *residency, struct upload_block **at)
{
    struct upload_block *block = *at;

    *at = block->next;
    residency->uploads.bytes -= 2 * block->half_bytes;
    host_arena_give(residency->memory->arena, &block->host,
                    lane_promise(&residency->lanes->compute));
    free(block);
}

void uploads_turn(struct residency *residency)
{
    struct uploads *uploads = &residency->uploads;
    struct upload_block **at = &uploads->first;

    uploads->current = NULL;
    uploads->offset = 0;
    while (*at != NULL) {
        if ((*at)->used + LONG_UNUSED < residency->iteration->number) {
            give_upload_block(residency, at);
        } else {
            at = &(*at)->next;
        }
    }
}

/* Whether an upload may have to run again in this iteration. */
static bool are_needed(const struct residency *residency)
{
    const struct guide *guide = residency->guided->owed.guide;

    if (residency->uploads.is_held) {
        return true;
    }
    if (!residency->iteration->is_open) {
        return false;
    }
    for (uint32_t i = 0; guide != NULL && i < guide->tensor_count; i++) {
        const struct owed_entry *entry = &residency->guided->owed.entries[i];

        if (owed_is_lost(residency->guided, i) && entry->maker > 0 &&
            (entry->is_source || owed_is_due(residency->guided, i)) &&
            guide->ops[entry->maker - 1].call.kind == CALL_UPLOAD) {
            return true;
        }
    }
    return residency->guided->active != NULL;
}

bool uploads_give_way(struct residency *residency)
{
    struct uploads *uploads = &residency->uploads;

    if (uploads->first == NULL || are_needed(residency)) {
        return false;
    }
    uploads->is_off = true;
    uploads->current = NULL;
    while (uploads->first != NULL) {
        give_upload_block(residency, &uploads->first);
    }
    return true;
}

void uploads_finish(struct uploads *uploads)
{
    while (uploads->first != NULL) {
        struct upload_block *next = uploads->first->next;

        free(uploads->first);
        uploads->first = next;
    }
    *uploads = (struct uploads){0};
}
