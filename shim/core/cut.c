/*
 * Cutting tensors, see cut.h.
 *
 * A page that two tensors share is always resident, so a border inside a page costs one; all of
 * them together may take a sixteenth of the budget. A range that is larger than half the budget
 * could hardly be handled at once: it is cut into smaller pieces, at borders of pages, which cost
 * nothing. So do those around a range that is too small for a tensor.
 */
#include "shim/core/cut.h"

#include "base/array.h"
#include "runtime/api/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of tensors. */

enum { NAME_BYTES = 64 };

static const char prefix[] = "allocation ";

void cut_name_whole(capu_context *context, void *block, uint64_t ordinal)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof(name), "%s%" PRIu64, prefix, ordinal + 1);
    (void)CAPU_DESCRIBE(context, block, .name = name);
}

/* Names the tensors from `first` to `last`, its end, which have just been one of this name. */
static void name_parts(capu_context *context, const char *name, uint64_t first, uint64_t last)
{
    struct describe_range range = {first, last};
    capu_tensor_state state;
    uint64_t number;
    uint64_t offset;
    char *end;

    if (strncmp(name, prefix, strlen(prefix)) != 0) {
        return;
    }
    number = strtoull(name + strlen(prefix), &end, 10);
    offset = *end == '+' ? strtoull(end + 1, NULL, 10) : 0;
    while (describe_next(context, &range, &state)) {
        uint64_t at = offset + (uintptr_t)state.address - first;
        char part[NAME_BYTES];

        snprintf(part, sizeof(part), "%s%" PRIu64 "+%" PRIu64, prefix, number, at);
        (void)CAPU_DESCRIBE(context, state.address, .name = part);
    }
}

enum {
    LEAST_PAGES = 8,  /* of a part: a smaller one is not worth a tensor */
    EDGES_SHARE = 16, /* of the budget: what shared pages may take */
    LARGE_SHARE = 2,  /* of the budget: a larger range is divided */
    PIECE_SHARE = 8,  /* of the budget: the pieces of such a range */
    MOST_NOTED = 1 << 16,
    MOST_CHANGES = 8, /* times that tensors are cut between iterations */
    MOST_IDLE = 4     /* iterations in a row after which nothing was cut */
};

struct range {
    uint64_t address, bytes;
    bool is_divided; /* if it is large */
};

/* Guarded by the core's lock. */
static struct {
    uint64_t edge_bytes; /* of pages that cuts have made shared */
    uint64_t generation;
    bool is_deferred;
    struct range *noted;
    size_t noted_count, noted_capacity;
    unsigned change_count;
    unsigned idle_count;
} cuts;

uint64_t cut_edge_bytes(void)
{
    return cuts.edge_bytes;
}

uint64_t cut_generation(void)
{
    return cuts.generation;
}

struct cut {
    capu_context *context;
    const capu_config *config;
    const char *name;     /* of the tensor */
    uint64_t first, last; /* of it; last: after its end */
    uint64_t from, to;    /* of the part */
    bool is_divided;      /* if it is large */
    bool is_zero;         /* the tensor */
};

/* The pages that a border would make shared: none at the end of the tensor, or between pages. */
static uint64_t border_bytes(const struct cut *cut, uint64_t at)
{
    return at == cut->first || at == cut->last || at % cut->config->page_bytes == 0
               ? 0
               : cut->config->page_bytes;
}

/* The pieces that a range is divided into; 0: it is not. */
static uint64_t piece_bytes(const struct cut *cut)
{
    uint64_t page = cut->config->page_bytes;
    uint64_t piece = cut->config->budget_bytes / PIECE_SHARE / page * page;

    return !cut->is_divided || piece < LEAST_PAGES * page ||
                   cut->to - cut->from <= cut->config->budget_bytes / LARGE_SHARE
               ? 0
               : piece;
}

/* Divides what is large into pieces. Pre: the range is a tensor. */
static bool divide_range(const struct cut *cut)
{
    uint64_t page = cut->config->page_bytes;
    uint64_t piece = piece_bytes(cut);
    uint64_t at = (cut->from + page - 1) / page * page;
    bool is_divided = false;

    while (piece > 0 && at + piece + LEAST_PAGES * page <= cut->to &&
           capu_split(cut->context, (void *)(uintptr_t)at, piece) == CAPU_OK) {
        is_divided = true;
        at += piece;
    }
    return is_divided;
}

/* A small part of a tensor that is still zero takes the pages around it. Otherwise the rest of an
   arena would have to come with its first small allocation, always. */
static void widen_cut(struct cut *cut, uint64_t least)
{
    uint64_t page = cut->config->page_bytes;
    uint64_t from = cut->from / page * page;
    uint64_t to = (from + least + page - 1) / page * page;

    to = to < cut->to ? (cut->to + page - 1) / page * page : to;
    cut->from = from > cut->first ? from : cut->first;
    cut->to = to < cut->last ? to : cut->last;
}

/* Where the tensor would be cut. False: nowhere, or it is not worth it. */
static bool find_borders(struct cut *cut)
{
    uint64_t least = LEAST_PAGES * cut->config->page_bytes;
    uint64_t cost;

    if (cut->is_zero && cut->to - cut->from < least) {
        widen_cut(cut, least);
    }
    /* Borders near those of the tensor are moved there. */
    if (cut->from - cut->first < least) {
        cut->from = cut->first;
    }
    if (cut->last - cut->to < least) {
        cut->to = cut->last;
    }
    if (cut->to - cut->from < least) {
        return false;
    }
    cost = border_bytes(cut, cut->from) + border_bytes(cut, cut->to);
    return cost == 0 || cuts.edge_bytes + cost <= cut->config->budget_bytes / EDGES_SHARE;
}

static bool is_part(const struct cut *cut)
{
    return cut->from != cut->first || cut->to != cut->last;
}

/* Pre: find_borders. Whether the tensor is cut now. */
static bool cut_tensor(const struct cut *cut)
{
    if (is_part(cut) &&
        capu_split(cut->context, (void *)(uintptr_t)cut->from, cut->to - cut->from) != CAPU_OK) {
        return false;
    }
    cuts.edge_bytes += border_bytes(cut, cut->from) + border_bytes(cut, cut->to);
    cuts.generation++;
    if (!divide_range(cut) && !is_part(cut)) {
        return false;
    }
    name_parts(cut->context, cut->name, cut->first, cut->last);
    return true;
}

static void note_range(struct range range)
{
    const struct range *last =
        cuts.noted_count > 0 ? &cuts.noted[cuts.noted_count - 1] : &(struct range){0};

    if ((last->address != range.address || last->bytes != range.bytes) &&
        cuts.noted_count < MOST_NOTED &&
        array_reserve(&cuts.noted, &cuts.noted_capacity, cuts.noted_count + 1,
                      sizeof(cuts.noted[0]))) {
        cuts.noted[cuts.noted_count++] = range;
    }
}

/* Whether a tensor is cut at once although cuts are deferred. While it is zero, that needs no
   memory; with contents, it must fit as a whole, and an op that touches a part of it needs it as a
   whole. What is set to zero again and again is cut later, unless it is large. */
static bool is_due(const struct cut *cut, const capu_tensor_state *state)
{
    return state->is_zero != 0 &&
           (state->version <= 1 || state->bytes > cut->config->budget_bytes / PIECE_SHARE);
}

/* Cuts the tensors of a range, or, if cuts are deferred, finds out whether it would. Tensors with
   contents only where `has_contents` allows it. */
static bool handle(capu_context *context, struct range range, bool has_contents)
{
    struct describe_range left = {range.address, range.address + range.bytes};
    uint64_t address = range.address;
    capu_tensor_state state;
    bool is_cut = false;

    for (; describe_next(context, &left, &state); address = left.address) {
        struct cut cut = {.context = context,
                          .config = capu_context_config(context),
                          .name = state.name,
                          .first = (uintptr_t)state.address,
                          .last = left.address,
                          .from = address,
                          .to = left.end < left.address ? left.end : left.address,
                          .is_divided = range.is_divided,
                          .is_zero = state.is_zero != 0};

        if ((cut.is_zero || has_contents) && cut.config->mode != CAPU_MODE_OFF &&
            state.bytes >= 2 * LEAST_PAGES * cut.config->page_bytes && find_borders(&cut)) {
            bool waits = cuts.is_deferred && !is_due(&cut, &state);

            is_cut |= waits ? is_part(&cut) || piece_bytes(&cut) > 0 : cut_tensor(&cut);
        }
    }
    return is_cut;
}

static void cut_apart(capu_context *context, struct range range)
{
    if (handle(context, range, cuts.is_deferred) && cuts.is_deferred) {
        note_range(range);
    }
}

void cut_range(capu_context *context, uint64_t address, uint64_t bytes)
{
    cut_apart(context, (struct range){address, bytes, true});
}

void cut_part(capu_context *context, uint64_t address, uint64_t bytes)
{
    cut_apart(context, (struct range){address, bytes, false});
}

void cut_defer(bool is_deferred)
{
    cuts.is_deferred = is_deferred;
}

bool cut_noted(capu_context *context)
{
    bool was_deferred = cuts.is_deferred;
    bool is_cut = false;

    cuts.is_deferred = false;
    for (size_t i = 0; i < cuts.noted_count; i++) {
        is_cut |= handle(context, cuts.noted[i], true);
    }
    cuts.noted_count = 0;
    cuts.is_deferred = was_deferred;
    return is_cut;
}

void cut_note(capu_context *context, const capu_operand *operands, size_t count)
{
    for (size_t i = 0; i < count && cuts.is_deferred && cuts.idle_count < MOST_IDLE; i++) {
        cut_part(context, (uintptr_t)operands[i].address, operands[i].bytes);
    }
}

bool cut_operands(capu_context *context, const capu_operand *operands, size_t count)
{
    for (size_t i = 0; i < count && cuts.is_deferred; i++) {
        cut_part(context, (uintptr_t)operands[i].address, operands[i].bytes);
    }
    return cut_noted(context);
}

void cut_between(capu_context *context)
{
    if (cuts.change_count >= MOST_CHANGES || !cut_noted(context)) {
        cuts.noted_count = 0;
        cuts.idle_count++;
    } else {
        cuts.change_count++;
        cuts.idle_count = 0;
    }
}
