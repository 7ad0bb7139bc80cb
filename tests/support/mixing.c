/* The mixing op, see mixing.h. */
#include "tests/support/mixing.h"

uint64_t mixing_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * 1099511628211u;
    }
    return hash;
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
        uint64_t state = hash + i;
        uint64_t count = operand->bytes;

        if (operand->role == CAPU_READ) {
            continue;
        }
        if (operand->role == CAPU_WRITE_CLEARED) {
            count = count * operand->written_percent / 100;
        }
        for (uint64_t at = 0; at < count; at++) {
            unsigned char byte = (unsigned char)mixing_random(&state);

            operand->address[at] =
                operand->role == CAPU_UPDATE ? operand->address[at] ^ byte : byte;
        }
    }
    return CAPU_OK;
}
