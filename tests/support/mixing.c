/* The mixing op, see mixing.h. */
#include "tests/support/mixing.h"

#include "base/random.h"

#include <string.h>

uint64_t mixing_random(uint64_t *state)
{
    return random_next(state);
}

/* The next eight bytes, or `count` if fewer are left. Words, because tests process gigabytes. */
static uint64_t word_at(const unsigned char *bytes, uint64_t count)
{
    uint64_t word = 0;

    memcpy(&word, bytes, count < sizeof(word) ? count : sizeof(word));
    return word;
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, uint64_t count)
{
    for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
        hash = (hash ^ word_at(bytes + at, count - at)) * 1099511628211u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Clears a bit of each byte that every NaN has in its highest byte. */
#define WITHOUT_NAN UINT64_C(0xbfbfbfbfbfbfbfbf)

/* Writes a stream of random numbers, or combines it with the old contents. No float in it is a NaN,
   at whatever offset: strict mode finds its own NaN in results, and would find one by chance. */
static void write_stream(unsigned char *to, uint64_t count, uint64_t state, int is_update)
{
    for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t left = count - at;
        uint64_t word = mixing_random(&state);

        word ^= is_update ? word_at(to + at, left) : 0;
        word &= WITHOUT_NAN;
        memcpy(to + at, &word, left < sizeof(word) ? left : sizeof(word));
    }
}

capu_status mixing_run(capu_stream stream, const void *arguments)
{
    const struct mixing *mixing = arguments;
    uint64_t hash = mixing->seed;

    (void)stream;
    for (size_t i = 0; i < mixing->count; i++) {
        const struct mixing_operand *operand = &mixing->operands[i];

        if (operand->role == CAPU_READ || operand->role == CAPU_UPDATE) {
            hash = hash_bytes(hash, operand->address, operand->bytes);
        }
    }
    for (size_t i = 0; i < mixing->count; i++) {
        const struct mixing_operand *operand = &mixing->operands[i];
        uint64_t count = operand->bytes;

        if (operand->role == CAPU_READ) {
            continue;
        }
        if (operand->role == CAPU_WRITE_REST_ZERO) {
            count = count * operand->written_percent / 100;
        }
        write_stream(operand->address, count, hash + i, operand->role == CAPU_UPDATE);
    }
    return CAPU_OK;
}
