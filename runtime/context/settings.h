/*
 * What a context was asked to do, and what follows from that.
 *
 * Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_SETTINGS_H
#define CAPU_RUNTIME_SETTINGS_H

#include "capuchin/context.h"

#include <stdbool.h>
#include <stdint.h>

struct settings {
    capu_config config;         /* strings owned, see config_finish */
    uint64_t full_budget_bytes; /* that the context was created with; config has the one in use */
    bool is_page_pinned;        /* the caller names the page size */
    bool is_tracking;           /* operands are resolved and recorded */
    bool is_paging;             /* tensors are evicted and brought back */
};

#endif
