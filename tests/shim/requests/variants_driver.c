/* A driver for tests that has every variant of every function that the file VARIANTS lists, as
   name, version and flags: each at an address of its own, which must not be called. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIANTS_MOST = 2048, NAME_BYTES = 96, NOT_FOUND = 500, PER_THREAD = 2 };

__attribute__((visibility("default"))) int
cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status);

static struct {
    char name[NAME_BYTES];
    int version;
    int flags;
} variants[VARIANTS_MOST];
static size_t variant_count;

__attribute__((constructor)) static void read_variants(void)
{
    const char *path = getenv("VARIANTS");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;

    while (file != NULL && variant_count < VARIANTS_MOST &&
           fscanf(file, "%95s %d %d", variants[variant_count].name,
                  &variants[variant_count].version, &variants[variant_count].flags) == 3) {
        variant_count++;
    }
    if (file == NULL || fclose(file) != 0 || variant_count == 0) {
        fprintf(stderr, "VARIANTS: no such list\n");
        exit(3);
    }
}

/* The newest variant that is not newer than asked for; one per thread before one that is not. */
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    size_t best = variant_count;

    for (size_t i = 0; i < variant_count; i++) {
        if (strcmp(variants[i].name, name) == 0 && variants[i].version <= version &&
            variants[i].flags <= (flags == PER_THREAD ? PER_THREAD : 0) &&
            (best == variant_count || variants[i].flags > variants[best].flags ||
             (variants[i].flags == variants[best].flags &&
              variants[i].version > variants[best].version))) {
            best = i;
        }
    }
    *function = best < variant_count ? &variants[best] : NULL;
    if (status != NULL) {
        *status = best < variant_count ? 0 : 1;
    }
    return best < variant_count ? 0 : NOT_FOUND;
}
