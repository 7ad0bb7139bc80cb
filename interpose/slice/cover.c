/* Lists of intervals, see cover.h. */
#include "interpose/slice/cover.h"

#include <string.h>

static uint64_t length_of(const struct cover_interval *interval)
{
    return interval->end - interval->first;
}

/* Makes room for one that is longer than the shortest. False: none is shorter. */
static bool drop_shortest(struct cover *cover, uint64_t length)
{
    size_t shortest = 0;

    if (length <= cover->least_bytes) {
        return false;
    }
    for (size_t i = 1; i < cover->count; i++) {
        if (length_of(&cover->intervals[i]) < length_of(&cover->intervals[shortest])) {
            shortest = i;
        }
    }
    cover->least_bytes = length_of(&cover->intervals[shortest]);
    if (length <= cover->least_bytes) {
        return false;
    }
    cover->count--;
    memmove(&cover->intervals[shortest], &cover->intervals[shortest + 1],
            (cover->count - shortest) * sizeof(cover->intervals[0]));
    return true;
}

void cover_add(struct cover *cover, uint64_t first, uint64_t end)
{
    if (end <= first) {
        return;
    }
    if (cover->count > 0 && cover->intervals[cover->count - 1].end == first) {
        cover->intervals[cover->count - 1].end = end;
        return;
    }
    if (cover->count == COVER_MOST && !drop_shortest(cover, end - first)) {
        return;
    }
    cover->intervals[cover->count++] = (struct cover_interval){first, end};
}

/* The first bit from `index` on that has a value; `count`: there is none. */
static uint64_t find_bit(const uint32_t *words, uint64_t index, uint64_t count, bool is_set)
{
    while (index < count) {
        uint32_t word = (is_set ? words[index / 32] : ~words[index / 32]) >> index % 32;

        if (word != 0) {
            index += (unsigned)__builtin_ctz(word);
            return index < count ? index : count;
        }
        index += 32 - index % 32;
    }
    return count;
}

void cover_add_bits(struct cover *cover, const uint32_t *words, uint64_t count, uint64_t base,
                    uint32_t granule_bytes)
{
    uint64_t first = find_bit(words, 0, count, true);

    while (first < count) {
        uint64_t end = find_bit(words, first, count, false);

        cover_add(cover, base + first * granule_bytes, base + end * granule_bytes);
        first = find_bit(words, end, count, true);
    }
}

uint64_t cover_end(const struct cover *cover, uint64_t address)
{
    for (size_t i = 0; i < cover->count; i++) {
        if (address >= cover->intervals[i].first && address < cover->intervals[i].end) {
            return cover->intervals[i].end;
        }
    }
    return address;
}
