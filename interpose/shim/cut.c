/*
 * Cutting tensors, see cut.h.
 *
 * A page that two tensors share is always resident, so a border inside a page costs one; all of
 * them together may take a sixteenth of the budget. A range that is larger than half the budget
 * could hardly be handled at once: it is cut into smaller pieces, at borders of pages, which cost
 * nothing.
 */
#include "interpose/shim/cut.h"

#include "interpose/shim/core.h"

#include "capuchin/capuchin.h"

enum {
    LEAST_PAGES = 8,  /* of a part: a smaller one is not worth a tensor */
    EDGES_SHARE = 16, /* of the budget: what shared pages may take */
    LARGE_SHARE = 2,  /* of the budget: a larger range is divided */
    PIECE_SHARE = 8   /* of the budget: the pieces of such a range */
};

/* Bytes of pages that cuts have made shared. Guarded by the core's lock. */
static uint64_t edge_bytes;

uint64_t cut_edge_bytes(void)
{
    return edge_bytes;
}

struct cut {
    const capu_config *config;
    uint64_t first, last; /* of the tensor; last: after its end */
    uint64_t from, to;    /* of the part */
    bool is_divided;      /* if it is large */
};

/* The pages that a border would make shared: none at the end of the tensor, or between pages. */
static uint64_t border_bytes(const struct cut *cut, uint64_t at)
{
    return at == cut->first || at == cut->last || at % cut->config->page_bytes == 0
               ? 0
               : cut->config->page_bytes;
}

/* Divides what is large into pieces. Pre: the range is a tensor. */
static void divide(const struct cut *cut)
{
    uint64_t page = cut->config->page_bytes;
    uint64_t piece = cut->config->budget_bytes / PIECE_SHARE / page * page;
    uint64_t at = (cut->from + page - 1) / page * page;

    if (piece < LEAST_PAGES * page ||
        cut->to - cut->from <= cut->config->budget_bytes / LARGE_SHARE) {
        return;
    }
    while (at + piece + LEAST_PAGES * page <= cut->to) {
        if (capu_split(core_context(), (void *)(uintptr_t)at, piece) != CAPU_OK) {
            return;
        }
        at += piece;
    }
}

static void cut_tensor(struct cut *cut)
{
    uint64_t least = LEAST_PAGES * cut->config->page_bytes;
    uint64_t cost;

    /* Borders near those of the tensor are moved there. */
    if (cut->from - cut->first < least) {
        cut->from = cut->first;
    }
    if (cut->last - cut->to < least) {
        cut->to = cut->last;
    }
    if (cut->to - cut->from < least) {
        return;
    }
    cost = border_bytes(cut, cut->from) + border_bytes(cut, cut->to);
    if (cost > 0 && edge_bytes + cost > cut->config->budget_bytes / EDGES_SHARE) {
        return;
    }
    if ((cut->from != cut->first || cut->to != cut->last) &&
        capu_split(core_context(), (void *)(uintptr_t)cut->from, cut->to - cut->from) != CAPU_OK) {
        return;
    }
    edge_bytes += cost;
    if (cut->is_divided) {
        divide(cut);
    }
}

static void cut_tensors(uint64_t address, uint64_t end, bool is_divided)
{
    while (address < end) {
        capu_tensor_state state = {.size = sizeof(state)};
        struct cut cut = {.config = capu_context_config(core_context()),
                          .from = address,
                          .is_divided = is_divided};

        if (capu_tensor_query(core_context(), (void *)(uintptr_t)address, &state) != CAPU_OK) {
            return;
        }
        cut.first = (uintptr_t)state.address;
        cut.last = cut.first + state.bytes;
        cut.to = end < cut.last ? end : cut.last;
        if (state.is_zero && cut.config->mode != CAPU_MODE_OFF &&
            state.bytes >= 2 * LEAST_PAGES * cut.config->page_bytes) {
            cut_tensor(&cut);
        }
        address = cut.last;
    }
}

void cut_range(uint64_t address, uint64_t bytes)
{
    cut_tensors(address, address + bytes, true);
}

void cut_part(uint64_t address, uint64_t bytes)
{
    cut_tensors(address, address + bytes, false);
}
