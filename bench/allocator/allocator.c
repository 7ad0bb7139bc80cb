/*
 * The cost of a call of the allocators, with a hundred to a hundred thousand live objects.
 *
 *     bench_allocator [-j]
 *
 * Live objects of random sizes are returned and taken again in a random (seeded) order. A row is
 * the median over batches, in nanoseconds per pair of calls. The structures are validated before a
 * time is printed. It runs on the sim device, so the time of devices is not included. -j: JSON, one
 * line per row.
 */
#include "allocator/extents.h"
#include "allocator/host_arena.h"
#include "allocator/slabs.h"
#include "tools/output/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE UINT64_C(65536)
#define BATCHES 201
#define BATCH 500

/* A kind of object to measure. `take` allocates object i, `give` returns it. */
struct subject {
    const char *name;
    bool (*start)(struct subject *subject, size_t count);
    bool (*take)(struct subject *subject, size_t i);
    void (*give)(struct subject *subject, size_t i);
    bool (*finish)(struct subject *subject, size_t count); /* false: validation failed */
    uint64_t random;
    void *objects;
    struct device *device;
    struct extents extents;
    struct pages *pages;
    struct ranges *ranges;
    struct slabs *slabs;
    struct host_arena *arena;
};

static uint64_t random_below(struct subject *subject, uint64_t limit)
{
    subject->random = subject->random * 6364136223846793005u + 1442695040888963407u;
    return (subject->random >> 33) % limit;
}

static bool start_device(struct subject *subject, uint64_t memory_bytes)
{
    const struct device_options options = {.memory_bytes = memory_bytes, .page_bytes = PAGE};

    return sim_device_create(&options, &subject->device, NULL, 0) == CAPU_OK;
}

static bool extents_start(struct subject *subject, size_t count)
{
    subject->objects = calloc(count, sizeof(uint64_t));
    return subject->objects != NULL && extents_init(&subject->extents, 64, true) == CAPU_OK &&
           extents_add(&subject->extents, 1 << 20, (count + 100) * 64 * 70) == CAPU_OK;
}

static bool extents_object_take(struct subject *subject, size_t i)
{
    uint64_t *starts = subject->objects;

    return extents_take(&subject->extents, 64 * (1 + random_below(subject, 100)), &starts[i]) ==
           CAPU_OK;
}

static void extents_object_give(struct subject *subject, size_t i)
{
    uint64_t *starts = subject->objects;

    extents_give(&subject->extents, starts[i]);
}

static bool extents_end(struct subject *subject, size_t count)
{
    const char *what;
    bool is_valid = extents_validate(&subject->extents, &what);

    (void)count;
    extents_finish(&subject->extents);
    return is_valid;
}

#define RUN 4 /* pages per object */

static bool pages_start(struct subject *subject, size_t count)
{
    subject->objects = calloc(count * RUN, sizeof(device_page));
    return subject->objects != NULL && start_device(subject, count * RUN * PAGE * 5 / 4) &&
           pages_create(subject->device, UINT64_MAX, &subject->pages) == CAPU_OK;
}

static bool pages_object_take(struct subject *subject, size_t i)
{
    device_page *list = subject->objects;

    return pages_take(subject->pages, 1 + i % RUN, &list[i * RUN]) == CAPU_OK;
}

static void pages_object_give(struct subject *subject, size_t i)
{
    device_page *list = subject->objects;

    pages_give(subject->pages, &list[i * RUN], 1 + i % RUN);
}

static bool pages_end(struct subject *subject, size_t count)
{
    const char *what;

    for (size_t i = 0; i < count; i++) {
        pages_object_give(subject, i);
    }
    return pages_validate(subject->pages, &what) && pages_out(subject->pages) == 0;
}

static bool slabs_start(struct subject *subject, size_t count)
{
    subject->objects = calloc(count, sizeof(void *));
    return subject->objects != NULL && start_device(subject, (count / 4 + 64) * PAGE) &&
           pages_create(subject->device, UINT64_MAX, &subject->pages) == CAPU_OK &&
           ranges_create(subject->device, &subject->ranges) == CAPU_OK &&
           slabs_create(subject->device, subject->pages, subject->ranges, &subject->slabs) ==
               CAPU_OK;
}

static bool slabs_object_take(struct subject *subject, size_t i)
{
    void **addresses = subject->objects;

    return slabs_take(subject->slabs, 1 + random_below(subject, PAGE / 8), &addresses[i]) ==
           CAPU_OK;
}

static void slabs_object_give(struct subject *subject, size_t i)
{
    void **addresses = subject->objects;

    slabs_give(subject->slabs, addresses[i]);
    if (i % 64 == 0) {
        slabs_settle(subject->slabs);
    }
}

static bool slabs_end(struct subject *subject, size_t count)
{
    const char *what;

    (void)count;
    return slabs_validate(subject->slabs, &what);
}

/* Little more room than the live objects need, so that blocks are scattered at times. */
static bool arena_start(struct subject *subject, size_t count)
{
    subject->objects = calloc(count, sizeof(struct host_block));
    return subject->objects != NULL && start_device(subject, 64 * PAGE) &&
           host_arena_create(subject->device, UINT64_MAX, &subject->arena) == CAPU_OK &&
           host_arena_grow(subject->arena, count * 64 * 56) == CAPU_OK;
}

static bool arena_object_take(struct subject *subject, size_t i)
{
    struct host_block *blocks = subject->objects;

    return host_arena_take(subject->arena, 1 + random_below(subject, 6400), &blocks[i]) == CAPU_OK;
}

static void arena_object_give(struct subject *subject, size_t i)
{
    struct host_block *blocks = subject->objects;

    host_arena_give(subject->arena, &blocks[i], (struct lane_position){NULL, 0});
}

static bool arena_end(struct subject *subject, size_t count)
{
    const char *what;

    (void)count;
    return host_arena_validate(subject->arena, &what);
}

static const struct subject subjects[] = {
    {.name = "extents",
     .start = extents_start,
     .take = extents_object_take,
     .give = extents_object_give,
     .finish = extents_end},
    {.name = "pages",
     .start = pages_start,
     .take = pages_object_take,
     .give = pages_object_give,
     .finish = pages_end},
    {.name = "slabs",
     .start = slabs_start,
     .take = slabs_object_take,
     .give = slabs_object_give,
     .finish = slabs_end},
    {.name = "host_arena",
     .start = arena_start,
     .take = arena_object_take,
     .give = arena_object_give,
     .finish = arena_end},
};

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* Times pairs of calls in batches. The results are sorted: the first one is the minimum. */
static bool measure(struct subject *subject, size_t count, double *batches)
{
    for (size_t i = 0; i < count; i++) {
        if (!subject->take(subject, i)) {
            return false;
        }
    }
    for (size_t i = 0; i < 2 * count; i++) { /* until fragmentation is steady */
        size_t at = random_below(subject, count);

        subject->give(subject, at);
        if (!subject->take(subject, at)) {
            return false;
        }
    }
    for (size_t batch = 0; batch < BATCHES; batch++) {
        double start = now_ns();

        for (size_t i = 0; i < BATCH; i++) {
            size_t at = random_below(subject, count);

            subject->give(subject, at);
            if (!subject->take(subject, at)) {
                return false;
            }
        }
        batches[batch] = (now_ns() - start) / BATCH;
    }
    qsort(batches, BATCHES, sizeof(*batches), by_value);
    return true;
}

static bool run(const struct subject *kind, size_t count, bool is_json)
{
    struct subject subject = *kind;
    double batches[BATCHES];
    bool is_done;

    subject.random = 1;
    is_done = subject.start(&subject, count) && measure(&subject, count, batches) &&
              subject.finish(&subject, count);
    slabs_destroy(subject.slabs);
    ranges_destroy(subject.ranges);
    pages_destroy(subject.pages);
    host_arena_destroy(subject.arena);
    device_destroy(subject.device);
    free(subject.objects);
    progress_clear();
    if (!is_done) {
        fprintf(stderr, "%s with %zu objects: out of room, or invalid\n", kind->name, count);
        return false;
    }
    printf(is_json ? "{\"subject\":\"%s\",\"live\":%zu,\"median_ns\":%.0f,\"minimum_ns\":%.0f,"
                     "\"batches\":%d}\n"
                   : "%-12s %8zu %10.0f %10.0f %8d\n",
           kind->name, count, batches[BATCHES / 2], batches[0], BATCHES);
    return true;
}

int main(int count, char **arguments)
{
    bool is_json = count > 1 && strcmp(arguments[1], "-j") == 0;
    bool is_done = true;

    if (!is_json) {
        printf("%-12s %8s %10s %10s %8s\n", "subject", "live", "median_ns", "min_ns", "batches");
    }
    progress_begin("measuring", 4 * sizeof(subjects) / sizeof(subjects[0]), 0.0);
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        for (size_t live = 100; live <= 100000 && !progress_should_stop(NULL); live *= 10) {
            is_done = run(&subjects[i], live, is_json) && is_done;
            progress_step();
        }
    }
    return progress_end() ? EXIT_STOPPED : is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}
