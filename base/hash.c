/* Hashes: see hash.h. */
#include "base/hash.h"

#include <string.h>

uint64_t hash_bytes(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t hash = count;
    uint64_t word;

    for (; count >= sizeof(word); count -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = hash_mix(hash, word);
    }
    word = 0;
    memcpy(&word, at, count);
    return hash_mix(hash, word) >> 1;
}
