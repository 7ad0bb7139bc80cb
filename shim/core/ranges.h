/*
 * What NVTX's header and a library that it loads share, as far as it is used: see iteration.c. The
 * numbers and layouts are NVTX's, which a test compares where its header is installed.
 */
#ifndef CAPU_SHIM_RANGES_H
#define CAPU_SHIM_RANGES_H

#include <stddef.h>
#include <stdint.h>

enum { RANGE_CALLBACKS = 1 }; /* what the header is asked for */
enum { RANGE_CORE = 1, RANGE_CORE_2 = 5 };
enum { RANGE_START_EX = 4, RANGE_START = 5, RANGE_PUSH_EX = 8, RANGE_PUSH = 9 };
enum { RANGE_DOMAIN_START_EX = 2, RANGE_DOMAIN_PUSH_EX = 4, RANGE_DOMAIN_REGISTER = 10 };
enum { RANGE_TEXT = 1, RANGE_REGISTERED = 3 };
enum { RANGE_NOT_TRACKED = -2 }; /* for how deep ranges are nested */

struct range_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};

typedef void (*range_function)(void);

struct range_callbacks {
    size_t size;
    int (*get)(int module, range_function ***table, unsigned *count); /* 0: there is none */
};

typedef const void *range_export(uint32_t what);

/* 0: it has set nothing. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(range_export *get_table);

#endif
