/*
 * What a context was asked to do: the caller's config, the environment and the defaults, combined
 * into one config, and what follows from it.
 */
#ifndef CAPU_RUNTIME_CONFIG_H
#define CAPU_RUNTIME_CONFIG_H

#include "capuchin/context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Structs at the API boundary. The caller may have been compiled with an older or newer header than
 * the library. The first field of each public struct, `size`, says how long the caller's is. New
 * fields are only ever added at the end, and zero means the default.
 */

/* Copies a caller's struct into the library's; fields that the caller's lacks become zero. False if
   the size is not set, or if a field that the library does not know is not zero. */
static inline bool struct_read(void *own, size_t own_bytes, const void *theirs, size_t their_bytes)
{
    const unsigned char *from = theirs;

    if (their_bytes < sizeof(size_t)) {
        return false;
    }
    for (size_t i = own_bytes; i < their_bytes; i++) {
        if (from[i] != 0) {
            return false;
        }
    }
    memset(own, 0, own_bytes);
    memcpy(own, from, their_bytes < own_bytes ? their_bytes : own_bytes);
    *(size_t *)own = own_bytes;
    return true;
}

/* Fills a caller's struct as far as it reaches and keeps its size. Fields that the library does not
   know become zero. False if the size is not set. */
static inline bool struct_write(void *theirs, size_t their_bytes, const void *own, size_t own_bytes)
{
    if (their_bytes < sizeof(size_t)) {
        return false;
    }
    memset(theirs, 0, their_bytes);
    memcpy(theirs, own, their_bytes < own_bytes ? their_bytes : own_bytes);
    *(size_t *)theirs = their_bytes;
    return true;
}

/*
 * Everything that a context can be asked to do, as docs/configuration.md describes it: the fields
 * of capu_config, and what capu_config_set sets. 0 and NULL are the default.
 */
struct config {
    const char *device;
    uint32_t mode; /* capu_mode */
    uint32_t wait_for_plan;
    uint32_t strict;
    uint64_t budget_bytes;
    uint64_t host_budget_bytes;
    uint64_t page_bytes;
    const char *report_path;
    const char *trace_path;
    capu_stream stream;

    uint32_t clear_fresh;
    uint32_t effort; /* enum plan_effort */
    uint32_t keep_contents;
    uint32_t top;
    uint32_t timeline;
    uint32_t peer_access;
    uint32_t exportable;
    uint64_t slab_threshold_bytes;
    uint64_t d2h_bytes_per_s;
    uint64_t h2d_bytes_per_s;
    uint64_t copy_latency_ns;
    uint64_t trace_iteration;
    uint64_t sample_every;
    uint64_t plan_memory_bytes;
    const char *planner;
    const char *plan_path;
    const char *plugin_folder;
    uint64_t rank;
    uint64_t rank_count;
    uint64_t local_rank_count;
    uint64_t link_d2h_bytes_per_s;
    uint64_t link_h2d_bytes_per_s;
    uint64_t d2h_duplex_bytes_per_s;
    uint64_t h2d_duplex_bytes_per_s;
};

/* A part of the context: what it was asked to do, and what follows from that. Owned by the
   context's thread. */
struct settings {
    struct config config;       /* strings owned, see config_finish */
    capu_config shown;          /* the same for the program, see config_show */
    uint64_t full_budget_bytes; /* that the context was created with; config has the one in use */
    bool is_page_pinned;        /* the caller names the page size */
    bool is_tracking;           /* operands are resolved and recorded */
    bool is_paging;             /* tensors are evicted and brought back */
};

/*
 * Fills *config from the caller's config (NULL: none), the environment and the defaults. Strings
 * are copied; release them with config_finish. Fields whose default depends on the device stay 0.
 * On failure *config is unchanged, nothing is held, and `text` names the field or variable.
 * INVALID, WRONG_STRUCT, NO_HOST_MEMORY.
 */
capu_status config_resolve(const capu_config *from, struct config *config, char *text,
                           size_t text_bytes);

/* Ends the text of an error in creating a context with the environment variables that gave the
   values which it is about, unless it names them already, and copies it to the buffer of the
   caller's config, if that has one. `from` is that config, or NULL. */
void config_report_error(const capu_config *from, capu_status status, char *text,
                         size_t text_bytes);

/* Fills in a public config in which every setting is set. Its strings are those of `config`. */
void config_show(const struct config *config, capu_config *shown);

/* Frees the strings. */
void config_finish(struct config *config);

#endif
