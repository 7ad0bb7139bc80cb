/*
 * Bits: see bits.h. Bit i of level n + 1 says whether word i of level n has a bit set.
 */
#include "base/bits.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BITS ((size_t)64)

static size_t words_for(size_t bit_count)
{
    return bit_count / WORD_BITS + (bit_count % WORD_BITS != 0);
}

static size_t lowest_bit(uint64_t word)
{
    return (size_t)__builtin_ctzll(word);
}

static size_t highest_bit(uint64_t word)
{
    return WORD_BITS - 1 - (size_t)__builtin_clzll(word);
}

bool bits_init(struct bits *bits, size_t count)
{
    struct bits fresh = {.count = count};
    size_t sizes[BITS_LEVELS_MAX];
    size_t total = 0;
    size_t below = count;
    uint64_t *words;

    if (count == 0) {
        return false;
    }
    do {
        below = words_for(below);
        sizes[fresh.level_count++] = below;
        total += below;
    } while (below > 1);
    words = calloc(total, sizeof(*words));
    if (words == NULL) {
        return false;
    }
    for (unsigned level = 0; level < fresh.level_count; level++) {
        fresh.words[level] = words;
        words += sizes[level];
    }
    *bits = fresh;
    return true;
}

void bits_finish(struct bits *bits)
{
    free(bits->words[0]);
    memset(bits, 0, sizeof(*bits));
}

bool bits_grow(struct bits *bits, size_t count)
{
    struct bits larger;

    if (count <= bits->count) {
        return true;
    }
    if (!bits_init(&larger, count)) {
        return false;
    }
    for (size_t i = bits_next(bits, 0); i != BITS_NONE; i = bits_next(bits, i + 1)) {
        bits_add(&larger, i);
    }
    bits_finish(bits);
    *bits = larger;
    return true;
}

void bits_clear(struct bits *bits)
{
    size_t count = bits->count;

    for (unsigned level = 0; level < bits->level_count; level++) {
        count = words_for(count);
        memset(bits->words[level], 0, count * sizeof(*bits->words[level]));
    }
}

void bits_add(struct bits *bits, size_t index)
{
    ASSERT(index < bits->count);
    for (unsigned level = 0; level < bits->level_count; level++) {
        uint64_t *word = &bits->words[level][index / WORD_BITS];
        uint64_t before = *word;

        *word = before | UINT64_C(1) << (index % WORD_BITS);
        if (before != 0) {
            return;
        }
        index /= WORD_BITS;
    }
}

void bits_remove(struct bits *bits, size_t index)
{
    ASSERT(index < bits->count);
    for (unsigned level = 0; level < bits->level_count; level++) {
        uint64_t *word = &bits->words[level][index / WORD_BITS];

        *word &= ~(UINT64_C(1) << (index % WORD_BITS));
        if (*word != 0) {
            return;
        }
        index /= WORD_BITS;
    }
}

bool bits_has(const struct bits *bits, size_t index)
{
    return index < bits->count &&
           (bits->words[0][index / WORD_BITS] >> (index % WORD_BITS) & 1) != 0;
}

size_t bits_next(const struct bits *bits, size_t from)
{
    size_t limit = bits->count;

    for (unsigned level = 0; level < bits->level_count && from < limit; level++) {
        uint64_t word = bits->words[level][from / WORD_BITS] >> (from % WORD_BITS);

        if (word != 0) {
            from += lowest_bit(word);
            while (level > 0) {
                level--;
                from = from * WORD_BITS + lowest_bit(bits->words[level][from]);
            }
            return from;
        }
        /* Nothing more in this word: continue in the summary, after the word just seen. */
        from = from / WORD_BITS + 1;
        limit = words_for(limit);
    }
    return BITS_NONE;
}

size_t bits_previous(const struct bits *bits, size_t from)
{
    if (bits->count == 0) {
        return BITS_NONE;
    }
    if (from >= bits->count) {
        from = bits->count - 1;
    }
    for (unsigned level = 0; level < bits->level_count; level++) {
        uint64_t word = bits->words[level][from / WORD_BITS];

        word <<= WORD_BITS - 1 - from % WORD_BITS;
        if (word != 0) {
            from -= WORD_BITS - 1 - highest_bit(word);
            while (level > 0) {
                level--;
                from = from * WORD_BITS + highest_bit(bits->words[level][from]);
            }
            return from;
        }
        if (from < WORD_BITS) {
            return BITS_NONE;
        }
        from = from / WORD_BITS - 1;
    }
    return BITS_NONE;
}

size_t bits_run(const struct bits *bits, size_t from, size_t limit)
{
    size_t run = 0;

    while (run < limit && from + run < bits->count) {
        size_t at = (from + run) % WORD_BITS;
        uint64_t gaps = ~bits->words[0][(from + run) / WORD_BITS] >> at;

        if (gaps != 0) {
            run += lowest_bit(gaps);
            break;
        }
        run += WORD_BITS - at;
    }
    return run < limit ? run : limit;
}

bool bits_validate(const struct bits *bits)
{
    size_t count = bits->count;

    for (unsigned level = 0; level < bits->level_count; level++) {
        size_t word_count = words_for(count);
        const uint64_t *words = bits->words[level];

        if (count % WORD_BITS != 0 && words[word_count - 1] >> (count % WORD_BITS) != 0) {
            return false;
        }
        for (size_t i = 0; i < word_count && level + 1 < bits->level_count; i++) {
            uint64_t summary = bits->words[level + 1][i / WORD_BITS] >> (i % WORD_BITS) & 1;

            if ((words[i] != 0) != (summary != 0)) {
                return false;
            }
        }
        count = word_count;
    }
    return true;
}
