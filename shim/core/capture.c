/* Which streams capture, and which events captures have recorded, see capture.h. */
#include "shim/core/capture.h"

#include "shim/driver/real.h"

#include "base/table.h"

#include <pthread.h>

static struct {
    unsigned count; /* captures that have begun and not ended; atomic */
    pthread_mutex_t lock;
    struct table events;   /* those that a capture recorded last; guarded by the lock */
    void (*changed)(void); /* see capture_on_change; constant once the library is loaded */
} captures = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool is_relaxed;
static _Thread_local int mode_before;

static bool is_any(void)
{
    return __atomic_load_n(&captures.count, __ATOMIC_ACQUIRE) > 0;
}

bool capture_has(CUstream stream)
{
    unsigned status = CAPTURE_NONE;

    return real_calls()->cuStreamIsCapturing(stream, &status) != DRIVER_SUCCESS ||
           status != CAPTURE_NONE;
}

bool capture_takes(CUstream stream)
{
    return is_any() && capture_has(stream);
}

static int exchange_mode(int mode)
{
    return real_calls()->cuThreadExchangeStreamCaptureMode(&mode) == DRIVER_SUCCESS
               ? mode
               : CAPTURE_GLOBAL;
}

void capture_relax(void)
{
    if (is_any()) {
        mode_before = exchange_mode(CAPTURE_RELAXED);
        is_relaxed = true;
    }
}

void capture_restore(void)
{
    if (is_relaxed) {
        (void)exchange_mode(mode_before);
        is_relaxed = false;
    }
}

/* The driver is asked by a call of this kind, since it then also makes the capture invalid. */
CUresult capture_check(void)
{
    CUdeviceptr address = 0;
    CUresult result;

    if (!is_any()) {
        return DRIVER_SUCCESS;
    }
    result = real_calls()->cuMemAlloc_v2(&address, 1);
    if (result == DRIVER_SUCCESS) {
        int mode = exchange_mode(CAPTURE_RELAXED);

        (void)real_calls()->cuMemFree_v2(address);
        (void)exchange_mode(mode);
    }
    return result >= DRIVER_CAPTURE_FIRST && result <= DRIVER_CAPTURE_LAST ? result
                                                                           : DRIVER_SUCCESS;
}

/* A handle that comes to mean another event is noted again before anything waits for it. */
void capture_note_event(CUevent event, bool is_captured)
{
    uint64_t key = (uint64_t)(uintptr_t)event;

    (void)pthread_mutex_lock(&captures.lock);
    if (captures.events.count > 0) {
        table_remove(&captures.events, key);
    }
    if (is_captured && table_reserve(&captures.events, captures.events.count + 1)) {
        table_put(&captures.events, key, 1);
    }
    (void)pthread_mutex_unlock(&captures.lock);
}

bool capture_has_event(CUevent event)
{
    uint64_t value;
    bool is;

    (void)pthread_mutex_lock(&captures.lock);
    is = captures.events.count > 0 &&
         table_get(&captures.events, (uint64_t)(uintptr_t)event, &value);
    (void)pthread_mutex_unlock(&captures.lock);
    return is;
}

void capture_count(int change)
{
    (void)__atomic_add_fetch(&captures.count, (unsigned)change, __ATOMIC_ACQ_REL);
}

void capture_on_change(void (*changed)(void))
{
    captures.changed = changed;
}

void capture_changed(void)
{
    if (captures.changed != NULL) {
        captures.changed();
    }
}
