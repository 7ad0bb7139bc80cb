/* Poison, see poison.h. */
#include "runtime/strict/poison.h"

#include <string.h>

#define WORD_BYTES ((uint64_t)sizeof(uint32_t))
/* Among up to so many words, one result is no accident, and two. */
#define FEW_WORDS 16
#define MANY_WORDS 65536

/* A negative NaN with its quiet bit clear, as a float. As a double, a word above another. */
#define FLOAT_NAN UINT32_C(0xff800000)
#define DOUBLE_NAN UINT32_C(0xfff00000)
#define FLOAT_QUIET UINT32_C(0x00400000)
#define DOUBLE_QUIET UINT32_C(0x00080000)
#define SIGN UINT32_C(0x80000000)
#define UPPER UINT32_C(0x00010000)           /* the lowest bit of a word's upper half */
#define FLOAT_NUMBERS (63 * (uint64_t)UPPER) /* different payloads */
#define DOUBLE_NUMBERS (7 * (uint64_t)UPPER)
#define ANY_NAN UINT32_C(0x7f800000)

/* The payloads begin with a bit in the upper half, so that this alone is a NaN. */
struct poison poison_of(uint64_t number)
{
    return (struct poison){{FLOAT_NAN + UPPER + (uint32_t)(number % FLOAT_NUMBERS),
                            DOUBLE_NAN + UPPER + (uint32_t)(number % DOUBLE_NUMBERS)}};
}

/* Clears a bit of the exponent, and for every second pattern the sign. */
struct poison poison_other(const struct poison *poison)
{
    uint32_t change = (poison->words[0] & 1) != 0 ? UINT32_C(0xa0a0a0a0) : UINT32_C(0x20202020);

    return (struct poison){{poison->words[0] ^ change, poison->words[1] ^ change}};
}

/* How far `number` is above the one with this payload; payloads count modulo `numbers`. */
static uint64_t payload_distance(uint64_t number, uint32_t payload, uint64_t numbers)
{
    return payload < UPPER ? UINT64_MAX
                           : (number % numbers + numbers - (payload - UPPER)) % numbers;
}

bool poison_is_from(uint32_t word, uint64_t number, uint64_t count, uint64_t *index)
{
    if ((word & ANY_NAN) != ANY_NAN) {
        return false;
    }
    *index = UINT64_MAX;
    if ((word & ~SIGN & DOUBLE_NAN) == (DOUBLE_NAN & ~SIGN)) {
        *index = payload_distance(number, word & (DOUBLE_QUIET - 1), DOUBLE_NUMBERS);
    }
    if (*index >= count) {
        *index = payload_distance(number, word & (FLOAT_QUIET - 1), FLOAT_NUMBERS);
    }
    return *index < count;
}

void poison_fill(const struct poison *poison, void *memory, const void *address, uint64_t bytes)
{
    unsigned char pattern[2 * sizeof(poison->words)]; /* twice, so that it can begin anywhere */
    unsigned char *to = memory;
    size_t phase = (uintptr_t)address % sizeof(poison->words);
    uint64_t done = bytes < sizeof(poison->words) ? bytes : sizeof(poison->words);

    memcpy(pattern, poison->words, sizeof(poison->words));
    memcpy(pattern + sizeof(poison->words), poison->words, sizeof(poison->words));
    memcpy(to, pattern + phase, done);
    /* What is filled is a multiple of the pattern, until the end. */
    while (done < bytes) {
        uint64_t now = done < bytes - done ? done : bytes - done;

        memcpy(to + done, to, now);
        done += now;
    }
}

static uint32_t word_at(const unsigned char *memory)
{
    uint32_t word;

    memcpy(&word, memory, sizeof(word));
    return word;
}

/* The word of the pattern for an address that is a multiple of 4. */
static uint32_t pattern_at(const struct poison *poison, uintptr_t address)
{
    return poison->words[address / WORD_BYTES % 2];
}

/* The first multiple of 4 from the address on. */
static uintptr_t first_word(const void *address)
{
    return ((uintptr_t)address + WORD_BYTES - 1) & ~(uintptr_t)(WORD_BYTES - 1);
}

static void count_word(struct poison_found *found, uintptr_t at)
{
    if (found->words++ == 0) {
        found->at = (const void *)at;
    }
}

void poison_find_unchanged(const struct poison *poison, const struct poison_range *range,
                           const void *memory, const void *address, uint64_t bytes,
                           struct poison_found *found)
{
    uintptr_t start = (uintptr_t)address;
    uintptr_t first = first_word(range->first);
    uintptr_t end = (uintptr_t)range->first + range->bytes;

    for (uintptr_t at = first_word(address); at + WORD_BYTES <= start + bytes; at += WORD_BYTES) {
        found->scanned++;
        if (word_at((const unsigned char *)memory + (at - start)) == pattern_at(poison, at)) {
            count_word(found, at);
            found->is_at_edge = found->is_at_edge || at == first || at + 2 * WORD_BYTES > end;
        }
    }
}

/* Whether a NaN is the pattern's or comes from it: arithmetic may have made it quiet or changed its
   sign. */
static bool is_result(const struct poison *poison, uint32_t word)
{
    return ((word ^ poison->words[0]) & ~(SIGN | FLOAT_QUIET)) == 0 ||
           ((word ^ poison->words[1]) & ~(SIGN | DOUBLE_QUIET)) == 0;
}

void poison_find_results(const struct poison *poison, bool own, const void *memory,
                         const void *address, uint64_t bytes, struct poison_found *found)
{
    uintptr_t start = (uintptr_t)address;

    for (uintptr_t at = first_word(address); at + WORD_BYTES <= start + bytes; at += WORD_BYTES) {
        uint32_t word = word_at((const unsigned char *)memory + (at - start));

        found->scanned++;
        if ((word & ANY_NAN) == ANY_NAN && is_result(poison, word) &&
            !(own && word == pattern_at(poison, at))) {
            count_word(found, at);
        }
    }
}

bool poison_is_unchanged(const struct poison_found *found)
{
    return found->words >= 2 || found->is_at_edge;
}

bool poison_is_result(const struct poison_found *found)
{
    return found->words >= (found->scanned <= FEW_WORDS ? 1 : found->scanned <= MANY_WORDS ? 2 : 4);
}
