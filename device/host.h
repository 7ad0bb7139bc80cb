/*
 * The inside of the host device, shared by its three files: host.c (table, creation, events),
 * host_memory.c (pages, ranges, mappings, and what work may touch) and host_stream.c (streams and
 * their work). Calls go from host.c to the others, and from host_stream.c to host_memory.c, never
 * back.
 */
#ifndef CAPU_DEVICE_HOST_H
#define CAPU_DEVICE_HOST_H

#include "device/books.h"
#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

struct host_stream;

/* One direction of the link, when it has a rate. */
struct host_link {
    pthread_mutex_t lock;
    uint64_t bytes_per_s; /* constant; 0: as fast as memory */
    uint64_t
        free_at_ns; /* guarded by lock: when the copies started so far will have passed the link */
};

/* See host_memory.c. */
struct host_guard {
    char *view; /* the whole memory file, mapped once more; NULL: not guarded */
    const struct device_grant *grants; /* the caller's; what is open */
    size_t grant_count;
    _Atomic uintptr_t written; /* struct device_faults; 0: none */
    _Atomic uintptr_t strayed;
    atomic_bool is_open;
    atomic_bool has_opened_more; /* pages outside the grants are accessible */
};

struct host_device {
    struct device head;

    /* Owned by the calling thread. */
    int memory_file; /* the memfd that is the device's memory; page n lies at n * page_bytes */
    struct page_numbers pages;
    struct reservations reservations;
    size_t mapping_limit; /* kernel mappings that all host devices together may use */
    size_t mapping_count; /* the most that this device may use: see host_memory.c */

    struct host_guard guard;

    struct chunks chunks; /* has its own lock */

    struct host_link links[2]; /* d2h, h2d */

    pthread_mutex_t streams_lock; /* guards the list below, taken before any stream's lock */
    struct host_stream
        *streams; /* all, including destroyed ones, whose item numbers remain valid */

    atomic_int failure; /* capu_status; set once, after failure_text is written */
    pthread_mutex_t failure_lock;
    char failure_text[512]; /* guarded by failure_lock */
};

static inline struct host_device *host_of(struct device *device)
{
    return (struct host_device *)device;
}

/* OK, or how the device has failed. */
static inline capu_status host_failure_of(const struct host_device *host)
{
    return (capu_status)atomic_load_explicit(&host->failure, memory_order_acquire);
}

/* host.c: what the machine allows. Taken as constant over the life of the process. */
struct host_machine {
    uint64_t memory_bytes; /* physical */
    uint64_t page_bytes;   /* the machine's own page */
    size_t mapping_count;  /* vm.max_map_count */
};
/* Mappings that devices may use; the rest is left to the program. */
size_t host_mapping_limit(const struct host_machine *machine);
struct device_page_rule host_page_rule(const struct host_machine *machine,
                                       const struct device_options *options);
/* Fills in the defaults and checks them. Statuses and text as host_device_create. */
capu_status host_options_complete(const struct host_machine *machine,
                                  struct device_options *options, char *text, size_t text_bytes);

/* host_memory.c */
capu_status host_page_create(struct device *device, device_page *page);
void host_page_destroy(struct device *device, device_page page);
capu_status host_range_reserve(struct device *device, uint64_t bytes, void **address);
void host_range_release(struct device *device, void *address, uint64_t bytes);
capu_status host_map(struct device *device, void *address, const device_page *pages, size_t count);
capu_status host_unmap(struct device *device, void *address, size_t count);
/* Unreserves all addresses. */
void host_memory_finish(struct host_device *host);

/* The same file, what work may touch: the slots of the table, */
capu_status host_guard(struct device *device);
capu_status host_open(struct device *device, const struct device_grant *grants, size_t count);
capu_status host_close(struct device *device, struct device_faults *faults);
void *host_view(struct device *device, const void *address, uint64_t *bytes);
/* the handler of the traps over reserved ranges (fault_trap.h; the owner is the device), */
bool host_guard_fault(void *owner, void *address);
/* and the end. The ranges are still reserved. */
void host_guard_finish(struct host_device *host);

/* host_stream.c */
capu_status host_stream_create(struct device *device, enum device_engine engine,
                               capu_stream *stream);
void host_stream_destroy(struct device *device, capu_stream stream);
capu_status host_stream_synchronize(struct device *device, capu_stream stream);
capu_status host_copy_out(struct device *device, capu_stream stream, void *to, const void *from,
                          uint64_t bytes);
capu_status host_copy_in(struct device *device, capu_stream stream, void *to, const void *from,
                         uint64_t bytes);
capu_status host_copy_within(struct device *device, capu_stream stream, void *to, const void *from,
                             uint64_t bytes);
capu_status host_fill(struct device *device, capu_stream stream, void *to, unsigned char byte,
                      uint64_t bytes);
capu_status host_run(struct device *device, capu_stream stream, const struct device_work *work);
/* Ends every stream's thread after its remaining work, and frees the streams. */
void host_streams_finish(struct host_device *host);
/* The number of the newest item, and whether an item has finished. */
uint64_t host_stream_newest(const struct host_stream *stream);
bool host_stream_is_done(struct host_stream *stream, uint64_t number);
/* Waits until the item has finished or the device has failed; the failure, if it has. */
capu_status host_stream_wait(struct host_stream *stream, uint64_t number);
/* An item that calls `notice` on the stream's thread: in its turn, and also after a failure, so
   that `notice` can release what the item has kept. It must not wait. `tally` is what run functions
   have said on the stream until then. NO_HOST_MEMORY, or the device's failure: then it is never
   called. */
typedef void host_stream_notice(struct device_event *event, uint64_t recording,
                                const struct device_tally *tally);
capu_status host_stream_push_notice(struct host_stream *stream, host_stream_notice *notice,
                                    struct device_event *event, uint64_t recording);
/* An item that waits for another stream's item. The same errors. */
capu_status host_stream_push_follow(struct host_stream *stream, struct host_stream *other,
                                    uint64_t number);

/* host.c: events */
capu_status host_event_create(struct device *device, bool with_timing, struct device_event **event);
void host_event_destroy(struct device *device, struct device_event *event);
capu_status host_event_record(struct device *device, struct device_event *event,
                              capu_stream stream);
capu_status host_event_query(struct device *device, struct device_event *event);
capu_status host_event_wait(struct device *device, struct device_event *event);
capu_status host_stream_follow(struct device *device, capu_stream stream,
                               struct device_event *event);
capu_status host_event_elapsed(struct device *device, struct device_event *from,
                               struct device_event *to, uint64_t *ns);
capu_status host_event_tally(struct device *device, struct device_event *from,
                             struct device_event *to, struct device_tally *tally);

#endif
