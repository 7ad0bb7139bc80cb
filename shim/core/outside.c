/*
 * Device memory outside the context, see outside.h.
 *
 * What is freed is given back to the budget at once if nothing is left, and otherwise once it is a
 * thirty-second part of the budget: each change may cost a plan, and a program may allocate and
 * free the same in each of its iterations. Where that keeps an access from fitting, it is given
 * back before. All is guarded by the core's lock.
 */
#include "shim/core/outside.h"

#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/floor.h"
#include "shim/driver/caller.h"
#include "shim/driver/log.h"
#include "shim/driver/real.h"
#include "shim/driver/settings.h"

#include "base/array.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

enum { SLACK_SHARE = 32 };

struct block {
    enum outside_kind kind;
    uint64_t handle;
    uint64_t bytes;
    size_t mapping_count; /* of pages */
    bool is_released;
};

struct mapping {
    uint64_t handle; /* of pages */
    uint64_t address;
    uint64_t bytes;
};

static struct {
    struct block *blocks;
    size_t block_count, block_capacity;
    struct mapping *mappings;
    size_t mapping_count, mapping_capacity;
    uint64_t bytes; /* of all blocks, and of calls under way */
    uint64_t peak_bytes;
    uint64_t taken_bytes;    /* from the budget: not less than `bytes` */
    uint64_t reserved_bytes; /* of `bytes`: for libraries, and not allocated yet */
    uint64_t needed_bytes;   /* of all blocks but those that can be spared */
    uint64_t needed_peak_bytes;
    void (*release)(void); /* frees those; NULL: there are none */
} outside;

/* Enters the core, unless the thread is in it. False: nothing is managed. */
static bool enter_core(enum caller caller, bool *is_inside)
{
    *is_inside = core_is_inside();
    return settings_get()->is_managed && caller != CALLER_OWN && caller != CALLER_DRIVER &&
           (*is_inside || (core_is_parent() && core_enter() == DRIVER_SUCCESS));
}

static void leave_core(bool is_inside)
{
    if (!is_inside) {
        core_leave();
    }
}

static capu_status take_from_budget(uint64_t bytes)
{
    uint64_t budget = core_full_budget();
    capu_status status;

    if (bytes >= budget) {
        return CAPU_OVER_BUDGET;
    }
    status = capu_budget_set(core_context(), budget - bytes);
    if (status == CAPU_OK) {
        outside.taken_bytes = bytes;
    }
    return status;
}

static void give_back(uint64_t bytes)
{
    outside.bytes -= bytes;
    if (outside.bytes == 0 ||
        outside.taken_bytes - outside.bytes >= core_full_budget() / SLACK_SHARE) {
        (void)take_from_budget(outside.bytes); /* if that fails, the next one gives back more */
    }
}

/* Returns to the budget what can be spared, and what was freed. False: nothing. */
static bool make_room(void)
{
    void (*release)(void) = outside.release;
    uint64_t taken_bytes = outside.taken_bytes;

    outside.bytes -= outside.reserved_bytes;
    outside.reserved_bytes = 0;

    outside.release = NULL;
    if (release != NULL) {
        release();
    }
    if (outside.taken_bytes > outside.bytes) {
        (void)take_from_budget(outside.bytes);
    }
    return outside.taken_bytes < taken_bytes;
}

static capu_status take_bytes(uint64_t bytes)
{
    if (bytes > UINT64_MAX - outside.bytes) {
        return CAPU_OVER_BUDGET;
    }
    return outside.bytes + bytes > outside.taken_bytes ? take_from_budget(outside.bytes + bytes)
                                                       : CAPU_OK;
}

static void add_bytes(uint64_t bytes)
{
    outside.bytes += bytes;
    if (outside_bytes() > outside.peak_bytes) {
        outside.peak_bytes = outside_bytes();
    }
}

/* Notes for the floor what is needed, and what does not fit beside it. */
static void note_needed(uint64_t more_bytes)
{
    if (outside.needed_bytes + more_bytes > outside.needed_peak_bytes) {
        outside.needed_peak_bytes = outside.needed_bytes + more_bytes;
    }
}

/* The least budget in which the program's work and so many bytes beside it would fit. */
static uint64_t sufficient_budget(uint64_t bytes)
{
    return floor_bytes(core_context(), cut_edge_bytes()) + outside.needed_bytes + bytes;
}

void outside_reserve(uint64_t bytes)
{
    core_on_lack(make_room);
    if (take_bytes(bytes) == CAPU_OK) {
        outside.reserved_bytes += bytes;
        outside.bytes += bytes;
    }
}

CUresult outside_take(enum caller caller, const char *name, uint64_t bytes)
{
    uint64_t reserved;
    capu_status status;
    bool is_inside;

    if (!enter_core(caller, &is_inside)) {
        return DRIVER_SUCCESS;
    }
    core_on_lack(make_room);
    reserved = caller != CALLER_LIBRARY         ? 0
               : bytes < outside.reserved_bytes ? bytes
                                                : outside.reserved_bytes;
    outside.bytes -= reserved;
    outside.reserved_bytes -= reserved;
    status = take_bytes(bytes);
    if (status == CAPU_OVER_BUDGET && make_room()) {
        status = take_bytes(bytes);
    }
    if (status == CAPU_OK) {
        add_bytes(bytes);
    } else {
        log_line("%s: %" PRIu64 " bytes do not fit the budget, of which such memory has %" PRIu64
                 ": %s; for what the program has done so far, --budget %" PRIu64 " would do",
                 name, bytes, outside.bytes, capu_status_text(status), sufficient_budget(bytes));
        note_needed(bytes);
    }
    leave_core(is_inside);
    return status == CAPU_OK ? DRIVER_SUCCESS : DRIVER_OUT_OF_MEMORY;
}

/* Without host memory for it, it counts for good. */
static void add_block(enum outside_kind kind, uint64_t handle, uint64_t bytes)
{
    outside.needed_bytes += kind != OUTSIDE_SPARE ? bytes : 0;
    note_needed(0);
    if (array_reserve(&outside.blocks, &outside.block_capacity, outside.block_count + 1,
                      sizeof(outside.blocks[0]))) {
        outside.blocks[outside.block_count++] =
            (struct block){.kind = kind, .handle = handle, .bytes = bytes};
    }
}

CUresult outside_note(enum caller caller, CUresult result, enum outside_kind kind, uint64_t handle,
                      uint64_t bytes)
{
    bool is_inside;

    if (!enter_core(caller, &is_inside)) {
        return result;
    }
    if (result != DRIVER_SUCCESS) {
        give_back(bytes);
    } else {
        add_block(kind, handle, bytes);
    }
    leave_core(is_inside);
    return result;
}

static struct block *find_block(enum outside_kind kind, uint64_t handle)
{
    for (size_t i = outside.block_count; i-- > 0;) {
        struct block *block = &outside.blocks[i];

        if (block->kind == kind && block->handle == handle && !block->is_released) {
            return block;
        }
    }
    return NULL;
}

static void remove_block(struct block *block)
{
    uint64_t bytes = block->bytes;

    outside.needed_bytes -= block->kind != OUTSIDE_SPARE ? bytes : 0;
    *block = outside.blocks[--outside.block_count];
    give_back(bytes);
}

CUresult outside_freed(enum caller caller, CUresult result, enum outside_kind kind, uint64_t handle)
{
    struct block *block;
    bool is_inside;

    if (result != DRIVER_SUCCESS || handle == 0 || !enter_core(caller, &is_inside)) {
        return result;
    }
    block = find_block(kind, handle);
    if (block != NULL && block->mapping_count > 0) {
        block->is_released = true;
    } else if (block != NULL) {
        remove_block(block);
    }
    leave_core(is_inside);
    return result;
}

CUresult outside_mapped(enum caller caller, CUresult result, uint64_t handle, uint64_t address,
                        uint64_t bytes)
{
    struct block *block;
    bool is_inside;

    if (result != DRIVER_SUCCESS || !enter_core(caller, &is_inside)) {
        return result;
    }
    block = find_block(OUTSIDE_PAGES, handle);
    if (block != NULL && array_reserve(&outside.mappings, &outside.mapping_capacity,
                                       outside.mapping_count + 1, sizeof(outside.mappings[0]))) {
        outside.mappings[outside.mapping_count++] = (struct mapping){handle, address, bytes};
        block->mapping_count++;
    }
    leave_core(is_inside);
    return result;
}

/* A mapping of these pages is gone. A handle that was released may be given out again, for others:
   of two blocks that have it, the one that was released is meant, since it was mapped before. */
static void unmap(uint64_t handle)
{
    for (size_t i = 0; i < outside.block_count; i++) {
        struct block *block = &outside.blocks[i];

        if (block->kind == OUTSIDE_PAGES && block->handle == handle && block->mapping_count > 0) {
            block->mapping_count--;
            if (block->mapping_count == 0 && block->is_released) {
                remove_block(block);
            }
            return;
        }
    }
}

CUresult outside_unmapped(enum caller caller, CUresult result, uint64_t address, uint64_t bytes)
{
    bool is_inside;

    if (result != DRIVER_SUCCESS || !enter_core(caller, &is_inside)) {
        return result;
    }
    for (size_t i = outside.mapping_count; i-- > 0;) {
        const struct mapping mapping = outside.mappings[i];

        if (mapping.address >= address && mapping.address - address < bytes) {
            outside.mappings[i] = outside.mappings[--outside.mapping_count];
            unmap(mapping.handle);
        }
    }
    leave_core(is_inside);
    return result;
}

void outside_on_lack(void (*release)(void))
{
    outside.release = release;
}

uint64_t outside_bytes(void)
{
    return outside.bytes - outside.reserved_bytes;
}

uint64_t outside_reserved_bytes(void)
{
    return outside.reserved_bytes;
}

uint64_t outside_peak_bytes(void)
{
    return outside.peak_bytes;
}

uint64_t outside_needed_bytes(void)
{
    return outside.needed_peak_bytes;
}

/* The driver's functions, with a count. What they allocate on the device is taken from the budget.
 */

enum { PASSED_MOST = 16 };
static pthread_mutex_t passed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct passed passed_list[PASSED_MOST];
static size_t passed_count;

CUresult outside_count_call(CUresult result, const char *name, uint64_t bytes)
{
    size_t i = 0;

    if (result != DRIVER_SUCCESS) {
        return result;
    }
    (void)pthread_mutex_lock(&passed_lock);
    while (i < passed_count && strcmp(passed_list[i].name, name) != 0) {
        i++;
    }
    if (i < PASSED_MOST) {
        passed_count = i == passed_count ? i + 1 : passed_count;
        passed_list[i].name = name;
        passed_list[i].call_count++;
        passed_list[i].bytes += bytes;
    }
    (void)pthread_mutex_unlock(&passed_lock);
    return result;
}

bool outside_call(size_t index, struct passed *passed)
{
    bool is_there;

    (void)pthread_mutex_lock(&passed_lock);
    is_there = index < passed_count;
    if (is_there) {
        *passed = passed_list[index];
    }
    (void)pthread_mutex_unlock(&passed_lock);
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

#define PASS_HOST(name, parameters, arguments, bytes)                                    \
    DRIVER_EXPORT CUresult name parameters;                                              \
    CUresult name parameters                                                             \
    {                                                                                    \
        enum caller caller = CALLER();                                                   \
        CUresult result = real_calls()->name arguments;                                  \
                                                                                         \
        return is_counted(caller) ? outside_count_call(result, #name, (bytes)) : result; \
    }
DRIVER_PASSED_HOST(PASS_HOST)

#define PASS_DEVICE(name, parameters, arguments, bytes, kind, place)                   \
    DRIVER_EXPORT CUresult name parameters;                                            \
    CUresult name parameters                                                           \
    {                                                                                  \
        enum caller caller = CALLER();                                                 \
        uint64_t taken = is_counted(caller) ? (bytes) : 0;                             \
        CUresult result = outside_take(caller, #name, taken);                          \
                                                                                       \
        if (result != DRIVER_SUCCESS) {                                                \
            return result;                                                             \
        }                                                                              \
        result = real_calls()->name arguments;                                         \
        outside_note(caller, result, (kind), HANDLE(result, place), taken);            \
        return is_counted(caller) ? outside_count_call(result, #name, taken) : result; \
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
