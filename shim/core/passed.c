/* Memory that stays the driver's, see passed.h: the functions are the driver's, with a count; what
   is on the device is taken from the budget. */
#include "shim/core/passed.h"

#include "shim/core/outside.h"
#include "shim/driver/caller.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"

#include <pthread.h>
#include <string.h>

enum { MOST = 16 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct passed list[MOST];
static size_t list_count;

CUresult passed_note(CUresult result, const char *name, uint64_t bytes)
{
    size_t i = 0;

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    (void)pthread_mutex_lock(&lock);
    while (i < list_count && strcmp(list[i].name, name) != 0) {
        i++;
    }
    if (i < MOST) {
        list_count = i == list_count ? i + 1 : list_count;
        list[i].name = name;
        list[i].call_count++;
        list[i].bytes += bytes;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

bool passed_get(size_t index, struct passed *passed)
{
    bool is_there;

    (void)pthread_mutex_lock(&lock);
    is_there = index < list_count;
    if (is_there) {
        *passed = list[index];
    }
    (void)pthread_mutex_unlock(&lock);
    return is_there;
}

/* Bytes of an element's channel, by CUarray_format; 0: a compressed or newer one. */
static uint64_t channel_bytes(unsigned format)
{
    switch (format) {
    case 0x01: /* unsigned and signed integers, then floating point */
    case 0x08:
        return 1;
    case 0x02:
    case 0x09:
    case 0x10:
        return 2;
    case 0x03:
    case 0x0a:
    case 0x20:
        return 4;
    default:
        return 0;
    }
}

static uint64_t box_bytes(const size_t size[3], unsigned format, unsigned channels)
{
    uint64_t bytes = channel_bytes(format) * channels;

    for (int i = 0; i < 3; i++) {
        bytes *= size[i] != 0 ? size[i] : 1;
    }
    return bytes;
}

static uint64_t flat_bytes(const struct array_2d *array)
{
    return array == NULL ? 0
                         : box_bytes((size_t[3]){array->width, array->height, 1}, array->format,
                                     array->channels);
}

/* Each level has half the size of the one before. */
static uint64_t level_bytes(const struct array_3d *array, unsigned levels)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; array != NULL && i < levels && i < 64; i++) {
        bytes += box_bytes((size_t[3]){array->width >> i, array->height >> i, array->depth >> i},
                           array->format, array->channels);
    }
    return bytes;
}

static uint64_t page_bytes(uint64_t bytes, const struct page_properties *properties)
{
    return properties != NULL && properties->location.type == LOCATION_DEVICE ? bytes : 0;
}

/* The number behind a handle that the driver has stored, of either type. */
#define HANDLE(result, place) \
    ((result) == DRIVER_SUCCESS && (place) != NULL ? (uint64_t)(uintptr_t) * (place) : (uint64_t)0)

static bool is_counted(enum caller caller)
{
    return settings_get()->is_managed && caller != CALLER_OWN && caller != CALLER_DRIVER;
}

#define PASS_HOST(name, parameters, arguments, bytes)                             \
    DRIVER_EXPORT CUresult name parameters;                                       \
    CUresult name parameters                                                      \
    {                                                                             \
        enum caller caller = CALLER();                                            \
        CUresult result = real_calls()->name arguments;                           \
                                                                                  \
        return is_counted(caller) ? passed_note(result, #name, (bytes)) : result; \
    }
DRIVER_PASSED_HOST(PASS_HOST)

#define PASS_DEVICE(name, parameters, arguments, bytes, kind, place)            \
    DRIVER_EXPORT CUresult name parameters;                                     \
    CUresult name parameters                                                    \
    {                                                                           \
        enum caller caller = CALLER();                                          \
        uint64_t taken = is_counted(caller) ? (bytes) : 0;                      \
        CUresult result = outside_take(caller, #name, taken);                   \
                                                                                \
        if (result != DRIVER_SUCCESS) {                                         \
            return result;                                                      \
        }                                                                       \
        result = real_calls()->name arguments;                                  \
        outside_note(caller, result, (kind), HANDLE(result, place), taken);     \
        return is_counted(caller) ? passed_note(result, #name, taken) : result; \
    }
DRIVER_PASSED_DEVICE(PASS_DEVICE)

#define UNPACK(...) __VA_ARGS__
#define PASS_FREES(name, parameters, arguments, note, what)             \
    DRIVER_EXPORT CUresult name parameters;                             \
    CUresult name parameters                                            \
    {                                                                   \
        enum caller caller = CALLER();                                  \
                                                                        \
        return note(caller, real_calls()->name arguments, UNPACK what); \
    }
DRIVER_PASSED_FREES(PASS_FREES)
