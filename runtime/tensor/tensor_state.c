/*
 * The state of a tensor, see tensor_state.h.
 *
 * It is a pair: where the pages of the span are, and what the tensor contains. These pairs are
 * legal, for a tensor with a span:
 *
 *                UNDEFINED  ZERO  DEVICE  HOST  BOTH  LOST  OWED
 *   NONE             x       x              x           x     x
 *   OWN              x       x      x       x     x     x     x
 *   LEAVING          x       x              x     x     x     x
 *   PLACED           x       x      x       x     x     x     x
 *   PLACED_OUT       x       x              x           x     x
 *
 * Contents on the device need pages: hence no DEVICE or BOTH in NONE and PLACED_OUT. What leaves is
 * copied out first unless it is empty or has a copy: hence no DEVICE in LEAVING. HOST with pages is
 * a tensor whose copy back has not begun, or could not be enqueued.
 *
 * A tensor without a span is always resident: its pages are NONE, and it is UNDEFINED or FIXED.
 *
 * Besides the pair there is one flag, is_saved, which only decides how the next eviction is
 * reported: as a swap instead of as the drop of a clean tensor. It belongs to a host copy, so it is
 * false without one.
 *
 * Not part of the state, because any value goes with any state: whether the tensor is persistent,
 * and whether a guide has reserved its host block (keeps_block).
 */
#include "runtime/tensor/tensor_state.h"

#include "base/assert.h"

#define BIT(value) (1u << (value))
#define ALL_PAGES (BIT(PAGES_PLACED_OUT + 1) - 1)
#define ALL_CONTENTS (BIT(CONTENTS_OWED + 1) - 1)

enum {
    ABSENT = BIT(CONTENTS_UNDEFINED) | BIT(CONTENTS_ZERO) | BIT(CONTENTS_HOST) |
             BIT(CONTENTS_LOST) | BIT(CONTENTS_OWED)
};

static const unsigned legal[] = {
    [PAGES_NONE] = ABSENT,
    [PAGES_OWN] = ABSENT | BIT(CONTENTS_DEVICE) | BIT(CONTENTS_BOTH),
    [PAGES_LEAVING] = ABSENT | BIT(CONTENTS_BOTH),
    [PAGES_PLACED] = ABSENT | BIT(CONTENTS_DEVICE) | BIT(CONTENTS_BOTH),
    [PAGES_PLACED_OUT] = ABSENT,
};

static bool is_legal(const struct tensor *tensor)
{
    enum tensor_pages pages = tensor->state.pages;
    enum tensor_contents contents = tensor->state.contents;

    if (!tensor_is_managed(tensor)) {
        return pages == PAGES_NONE &&
               (contents == CONTENTS_UNDEFINED || contents == CONTENTS_FIXED);
    }
    return (legal[pages] & BIT(contents)) != 0 &&
           (!tensor->state.is_saved || tensor_on_host(tensor)) &&
           (pages == PAGES_LEAVING) == (tensor->state.departure != NULL);
}

/* Every change of the state comes here: from one of these pages and contents, to a legal state. */
static void change_state(struct tensor *tensor, unsigned from_pages, unsigned from_contents,
                         enum tensor_pages pages, enum tensor_contents contents)
{
    struct tensor_state *state = &tensor->state;

    ASSERT((from_pages & BIT(state->pages)) != 0);
    ASSERT((from_contents & BIT(state->contents)) != 0);
    state->pages = pages;
    state->contents = contents;
    if (!tensor_on_host(tensor)) {
        state->is_saved = false;
    }
    if (pages != PAGES_LEAVING) {
        state->departure = NULL;
    }
    ASSERT(is_legal(tensor));
}

static void change_pages(struct tensor *tensor, unsigned from, enum tensor_pages to)
{
    change_state(tensor, from, ALL_CONTENTS, to, tensor->state.contents);
}

static void change_contents(struct tensor *tensor, unsigned from, enum tensor_contents to)
{
    change_state(tensor, ALL_PAGES, from, tensor->state.pages, to);
}

/* What is left of the contents when those on the device are gone. */
static enum tensor_contents without_device(const struct tensor *tensor, enum tensor_contents lost)
{
    switch (tensor->state.contents) {
    case CONTENTS_DEVICE:
        return lost;
    case CONTENTS_BOTH:
        return CONTENTS_HOST;
    default:
        return tensor->state.contents;
    }
}

void tensor_state_mapped(struct tensor *tensor)
{
    change_pages(tensor, BIT(PAGES_NONE), PAGES_OWN);
}

void tensor_state_unmapped(struct tensor *tensor)
{
    change_state(tensor, BIT(PAGES_OWN) | BIT(PAGES_LEAVING), ALL_CONTENTS, PAGES_NONE,
                 without_device(tensor, CONTENTS_LOST));
}

void tensor_state_leaves(struct tensor *tensor, struct departure *departure)
{
    tensor->state.departure = departure;
    tensor->state.is_saved = false;
    change_pages(tensor, BIT(PAGES_OWN), PAGES_LEAVING);
}

void tensor_state_stays(struct tensor *tensor)
{
    change_pages(tensor, BIT(PAGES_LEAVING), PAGES_OWN);
}

void tensor_state_placed(struct tensor *tensor, bool holds)
{
    change_pages(tensor, holds ? BIT(PAGES_NONE) | BIT(PAGES_OWN) : BIT(PAGES_NONE),
                 holds ? PAGES_PLACED : PAGES_PLACED_OUT);
}

void tensor_state_unplaced(struct tensor *tensor)
{
    if (tensor_is_placed(tensor)) {
        change_pages(tensor, BIT(PAGES_PLACED) | BIT(PAGES_PLACED_OUT),
                     tensor->state.pages == PAGES_PLACED ? PAGES_OWN : PAGES_NONE);
    }
}

void tensor_state_takes(struct tensor *tensor)
{
    change_pages(tensor, BIT(PAGES_PLACED_OUT), PAGES_PLACED);
}

void tensor_state_gives(struct tensor *tensor, bool is_owed)
{
    change_state(tensor, BIT(PAGES_PLACED) | BIT(PAGES_PLACED_OUT), ALL_CONTENTS, PAGES_PLACED_OUT,
                 without_device(tensor, is_owed ? CONTENTS_OWED : CONTENTS_LOST));
}

void tensor_state_regains(struct tensor *tensor)
{
    change_state(tensor, BIT(PAGES_PLACED_OUT), BIT(CONTENTS_LOST) | BIT(CONTENTS_OWED),
                 PAGES_PLACED, CONTENTS_DEVICE);
}

void tensor_state_written(struct tensor *tensor)
{
    change_contents(tensor, ALL_CONTENTS,
                    tensor_is_managed(tensor) ? CONTENTS_DEVICE : CONTENTS_FIXED);
}

void tensor_state_zeroed(struct tensor *tensor)
{
    change_contents(tensor, ALL_CONTENTS, CONTENTS_ZERO);
}

void tensor_state_filled(struct tensor *tensor)
{
    change_contents(tensor, BIT(CONTENTS_ZERO), CONTENTS_DEVICE);
}

void tensor_state_undefined(struct tensor *tensor)
{
    change_contents(tensor, ALL_CONTENTS, CONTENTS_UNDEFINED);
}

void tensor_state_copied_out(struct tensor *tensor)
{
    change_contents(tensor, BIT(CONTENTS_DEVICE), CONTENTS_BOTH);
}

void tensor_state_copied_in(struct tensor *tensor)
{
    change_contents(tensor, BIT(CONTENTS_HOST), CONTENTS_BOTH);
}

void tensor_state_copy_dropped(struct tensor *tensor)
{
    change_contents(tensor, BIT(CONTENTS_HOST) | BIT(CONTENTS_BOTH),
                    tensor->state.contents == CONTENTS_BOTH ? CONTENTS_DEVICE : CONTENTS_LOST);
}

void tensor_state_saved(struct tensor *tensor)
{
    tensor->state.is_saved = true;
    ASSERT(is_legal(tensor));
}

void tensor_state_save_used(struct tensor *tensor)
{
    tensor->state.is_saved = false;
}

void tensor_state_replayed(struct tensor *tensor, bool is_current)
{
    enum tensor_contents contents = tensor->state.contents;

    if (is_current && contents == CONTENTS_HOST) {
        contents = CONTENTS_BOTH;
    } else if (is_current && tensor_is_lost(tensor)) {
        contents = CONTENTS_DEVICE;
    } else if (!is_current) {
        contents = without_device(tensor, CONTENTS_LOST);
    }
    change_contents(tensor, ALL_CONTENTS, contents);
}

void tensor_state_spoiled(struct tensor *tensor)
{
    change_contents(tensor, ALL_CONTENTS, without_device(tensor, CONTENTS_OWED));
}

void tensor_state_not_owed(struct tensor *tensor)
{
    if (tensor_is_owed(tensor)) {
        change_contents(tensor, BIT(CONTENTS_OWED), CONTENTS_LOST);
    }
}

void tensor_state_restored(struct tensor *tensor, const struct tensor_state *state)
{
    tensor->state = *state;
    ASSERT(is_legal(tensor) && (tensor_is_placed(tensor) || !tensor_is_managed(tensor)));
}

void tensor_state_split(struct tensor *part, const struct tensor *old)
{
    enum tensor_contents contents = old->state.contents;

    if (tensor_is_lost(old)) {
        contents = CONTENTS_LOST;
    } else if (tensor_on_device(old)) {
        contents = CONTENTS_DEVICE;
    }
    if (!tensor_is_managed(part)) {
        /* It is always resident, where nothing can be lost: then it has no contents. */
        part->state.contents = contents == CONTENTS_UNDEFINED || contents == CONTENTS_LOST
                                   ? CONTENTS_UNDEFINED
                                   : CONTENTS_FIXED;
    } else {
        part->state.pages = old->state.pages;
        part->state.contents = contents;
    }
    ASSERT(is_legal(part));
}

bool tensor_validate(const struct tensor *tensor, const char **what)
{
    if (!is_legal(tensor)) {
        *what = "a tensor is in a state that is not legal";
        return false;
    }
    if ((tensor_on_host(tensor) || tensor->keeps_block) != (tensor->host.extent_count > 0)) {
        *what = "a host block without copy";
        return false;
    }
    return true;
}
