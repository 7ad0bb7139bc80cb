/* Host allocations that fail on purpose, see malloc_faults.h. The linker redirects calls here with
   --wrap. */
#include "tests/support/malloc_faults.h"

#include <stddef.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static _Thread_local struct {
    uint64_t call; /* 0: not armed */
    uint64_t calls;
    uint64_t hits;
    bool is_lasting;
} faults;

static bool fails(void)
{
    if (faults.call == 0) {
        return false;
    }
    faults.calls++;
    if (faults.calls != faults.call && !(faults.is_lasting && faults.calls > faults.call)) {
        return false;
    }
    faults.hits++;
    return true;
}

void malloc_faults_arm(uint64_t call, bool is_lasting)
{
    faults.call = call;
    if (call != 0) {
        faults.calls = 0;
        faults.hits = 0;
        faults.is_lasting = is_lasting;
    }
}

uint64_t malloc_faults_calls(void)
{
    return faults.calls;
}

uint64_t malloc_faults_hits(void)
{
    return faults.hits;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return fails() ? NULL : __real_realloc(old, bytes);
}
