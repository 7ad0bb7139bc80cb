/*
 * A device: one table of functions that everything above is written against.
 *
 * Three devices implement it (host, sim, cuda). In tests, adaptors wrap any of them to limit,
 * count, delay or fail calls. Callers use the device_... functions below, which check arguments; a
 * slot of the table may rely on them.
 *
 * Every slot states what must hold before (pre) and what holds after success (post). On failure
 * nothing has changed and outputs are untouched. Unless a slot says otherwise it may be called from
 * one thread at a time; host_alloc and host_free may be called from a second thread meanwhile.
 * Misuse is answered with INVALID and not asserted: much of it only the device can detect.
 *
 * Failure of running work: the first work that fails in flight stops the whole device. Nothing that
 * was enqueued after it on its stream, and nothing that waits for it, is executed; waits return at
 * once with the status of the failure, and so does every later call that enqueues. device_failure
 * reports it.
 */
#ifndef CAPU_DEVICE_DEVICE_H
#define CAPU_DEVICE_DEVICE_H

#include "capuchin/context.h"
#include "capuchin/op.h"
#include "capuchin/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A page of physical device memory. Opaque; never DEVICE_NO_PAGE. */
typedef uint64_t device_page;
#define DEVICE_NO_PAGE UINT64_MAX

/* Memory that work may touch: the pages that meet [address, address + bytes). */
struct device_grant {
    void *address;
    uint64_t bytes;
    bool is_writable; /* otherwise it may only be read */
};

/* What work touched although it was not granted: the first address of each kind, or NULL. */
struct device_faults {
    const void *strayed; /* outside all grants */
    const void *written; /* inside one that may only be read */
};

/* What run functions have said about themselves on one stream, added up (capu_run_waited,
   capuchin_run_exchanged). */
struct device_tally {
    uint64_t waited_ns; /* they waited for something that is neither compute nor memory */
    uint64_t exchange_ns;
    uint64_t exchanged_bytes;
};

/* What run functions say on one stream. Owned by the thread that calls them. */
struct device_notes {
    struct device_tally tally;
    char why[400]; /* why the one that runs is about to fail; "": it has not said */
};

struct device;
struct device_event;

/* What a stream is for: devices with copy engines, and the sim, choose by it. */
enum device_engine { DEVICE_COMPUTE, DEVICE_D2H, DEVICE_H2D };

/* Work for a stream. All pointers stay valid until the work is done. */
struct device_work {
    const char *name; /* for the text of device_failure */
    capu_run_function run;
    const void *arguments;
    uint64_t duration_ns; /* what it takes on sim */
    capu_status *answer;  /* cuda only: receives what `run` returned; NULL: not needed */
    bool is_repeated;     /* it ran before: what its function says of its waits does not count */
};

/* What becomes of the work of a stream. */
enum device_capture {
    DEVICE_RUNS,
    DEVICE_CAPTURES,      /* it is recorded */
    DEVICE_CAPTURE_FAILED /* it was being recorded until something was called that prevents it */
};

/* Recorded work, to be launched any number of times. */
struct device_graph;

/* The copy that a node of a graph makes. The host memory stays valid as long as the graph does. */
struct device_copy {
    void *to;
    const void *from;
    uint64_t bytes;
};

/*
 * How fast copies between device memory and pinned host memory are. A rate of 0 is not known.
 *
 * A solo rate is that of one direction while the other is idle. A duplex rate is that of one
 * direction while the other is busy, too; both directions share a memory, and on many machines a
 * bus, so it may be lower.
 *
 * The execution model has one rate per direction. Recorded traces have the solo rates; the runtime
 * plans with rates between the two, by how much both directions are busy at once in the plan
 * (policy/model/timeline.h), and then with those that copies turn out to have
 * (runtime/guide/feedback.h).
 *
 * The sim device knows all of them. The host device knows the rates that it throttles its copies
 * to. The cuda device measures when it is created, as calibration.h describes, what it was not
 * given.
 */
struct device_link {
    uint64_t d2h_bytes_per_s; /* solo */
    uint64_t h2d_bytes_per_s;
    uint64_t d2h_duplex_bytes_per_s;
    uint64_t h2d_duplex_bytes_per_s;
    uint64_t copy_latency_ns; /* what a copy takes in a queue of copies, however small it is */
};

/* How a device chooses its page size: the smallest power of two, of at least `least_bytes`, that
   makes no more than `most_pages` of the memory. Small pages waste little where split tensors share
   one and where a tensor fills its last one only in part; each page costs time to map. */
struct device_page_rule {
    uint64_t least_bytes; /* a power of two */
    uint64_t most_pages;
};

struct device_capabilities {
    const char *name;                  /* "host", "sim", "cuda"; adaptors keep the inner name */
    uint64_t page_bytes;               /* the unit of map */
    struct device_page_rule page_rule; /* by which it was chosen, or would have been */
    uint64_t memory_bytes;   /* device memory there is: pages cannot hold more than this */
    struct device_link link; /* what is known without measuring */
    bool is_simulated;       /* no memory behind the addresses */
    bool runs_on_stream;     /* `run` is called on the stream's thread and computes (host) */
    bool can_guard;          /* has the slots guard, open, close and view (host) */
    bool can_capture;        /* has the slots from capture_begin to graph_destroy (cuda) */
};

/* What a device is made with; zero fields mean the device's default. */
struct device_options {
    uint64_t memory_bytes;     /* device memory to offer: pages are created from this */
    uint64_t page_bytes;       /* a power of two, a multiple of the machine's page */
    uint64_t least_page_bytes; /* a power of two: no smaller page is chosen, if the memory has room
                                  for one of this size */
    uint64_t d2h_bytes_per_s;
    uint64_t h2d_bytes_per_s;
    uint64_t d2h_duplex_bytes_per_s; /* sim, cuda: see device_link */
    uint64_t h2d_duplex_bytes_per_s;
    uint64_t copy_latency_ns;
    uint32_t ordinal;      /* which of several devices (cuda) */
    bool has_peers;        /* cuda: other devices may touch the memory of this one */
    bool is_exportable;    /* cuda: pages can be exported to other processes */
    uint64_t host_wait_ns; /* cuda: how long pinning host memory is repeated if the machine has
                              none; default 2 s */
    /* Where the plug-in with the cuda device is, see cuda_open.c; NULL: where it is installed.
       Borrowed for the call that creates the device. */
    const char *plugin_folder;
};

struct device_table {
    /* Pre: no stream or event of it is in use. Frees the device, and with it all pages, ranges and
       host memory that were not given back. */
    void (*destroy)(struct device *device);

    /* Post: *page is one page of page_bytes, contents undefined. OVER_BUDGET: no memory left on the
       device; NO_HOST_MEMORY (host). */
    capu_status (*page_create)(struct device *device, device_page *page);
    /* Pre: the page is mapped nowhere. */
    void (*page_destroy)(struct device *device, device_page page);

    /* Pre: bytes is a multiple of page_bytes. Post: *address, aligned to page_bytes, is reserved
       and touching it faults. SYSTEM_LIMIT. */
    capu_status (*range_reserve)(struct device *device, uint64_t bytes, void **address);
    /* Pre: exactly a reserved range, nothing mapped in it. */
    void (*range_release)(struct device *device, void *address, uint64_t bytes);

    /* Pre: address lies in a reserved range, is aligned to page_bytes, and count pages from it are
       unmapped. A page may be mapped at several addresses (aliasing).
       Post: the pages are accessible there, in order. All or nothing. SYSTEM_LIMIT: no
       mappings are left. */
    capu_status (*map)(struct device *device, void *address, const device_page *pages,
                       size_t count);
    /* Pre: count pages from address are mapped, whole mappings of earlier calls (one or several
       adjacent ones), and all work that touches them has finished. Post: touching them faults. */
    capu_status (*unmap)(struct device *device, void *address, size_t count);

    /* Post: *address is bytes of host memory that copies can use asynchronously. Second thread
       allowed. NO_HOST_MEMORY. */
    capu_status (*host_alloc)(struct device *device, uint64_t bytes, void **address);
    void (*host_free)(struct device *device, void *address, uint64_t bytes);

    /* Post: *stream runs its work in order, beside other streams. */
    capu_status (*stream_create)(struct device *device, enum device_engine engine,
                                 capu_stream *stream);
    /* Waits for its work first. */
    void (*stream_destroy)(struct device *device, capu_stream stream);
    /* Waits for all work of the stream. OP_FAILED, DEVICE_LOST. */
    capu_status (*stream_synchronize)(struct device *device, capu_stream stream);

    /* Post: *event counts as reached until it is first recorded. */
    capu_status (*event_create)(struct device *device, bool with_timing,
                                struct device_event **event);
    /* Pre: nothing waits for it. */
    void (*event_destroy)(struct device *device, struct device_event *event);
    /* Post: the event is reached when all work now in the stream has finished. An earlier recording
       is forgotten, but streams that were made to wait for it still do. */
    capu_status (*event_record)(struct device *device, struct device_event *event,
                                capu_stream stream);
    /* OK if reached, NOT_READY if not. */
    capu_status (*event_query)(struct device *device, struct device_event *event);
    /* The host waits until it is reached. */
    capu_status (*event_wait)(struct device *device, struct device_event *event);
    /* Later work of the stream waits until the newest recording is reached. */
    capu_status (*stream_follow)(struct device *device, capu_stream stream,
                                 struct device_event *event);
    /* Pre: both were made with timing, recorded and reached. Post: *ns is the time from the first
       to the second on the device. */
    capu_status (*event_elapsed)(struct device *device, struct device_event *from,
                                 struct device_event *to, uint64_t *ns);

    /* Optional: NULL where run functions cannot say anything. Pre: as for event_elapsed, both in
       one stream. Post: *tally is what run functions have said in between. */
    capu_status (*event_tally)(struct device *device, struct device_event *from,
                               struct device_event *to, struct device_tally *tally);

    /* Copies of any alignment; source and target stay valid until the copy is done. `copy_out`
       takes device memory to host memory, `copy_in` the other way, `copy_within` device to device.
     */
    capu_status (*copy_out)(struct device *device, capu_stream stream, void *to, const void *from,
                            uint64_t bytes);
    capu_status (*copy_in)(struct device *device, capu_stream stream, void *to, const void *from,
                           uint64_t bytes);
    capu_status (*copy_within)(struct device *device, capu_stream stream, void *to,
                               const void *from, uint64_t bytes);
    /* Sets every byte to `byte`. */
    capu_status (*fill)(struct device *device, capu_stream stream, void *to, unsigned char byte,
                        uint64_t bytes);

    /* Runs work on the stream. On cuda `run` is called now and enqueues; if it fails, this call
       returns OP_FAILED and nothing stops. On host it is called on the stream's thread, and its
       failure is a failure in flight. On sim it is not called. */
    capu_status (*run)(struct device *device, capu_stream stream, const struct device_work *work);

    /* The device's clock as the host sees it: monotonic on host and cuda, virtual on sim. */
    uint64_t (*now_ns)(struct device *device);

    /* OK while the device works; `text` then says what the driver refused last, if anything. Else
       the status of the failure, and a text that names the work. Any thread. `text` may be NULL. */
    capu_status (*failure)(struct device *device, char *text, size_t text_bytes);

    /* The rest is optional, all or none: capabilities.can_guard. */

    /* Pre: nothing is reserved. Post: work, and the program, can touch only memory that is open.
       The device's own copies and fills are not affected. INVALID, SYSTEM_LIMIT. */
    capu_status (*guard)(struct device *device);
    /* Pre: guarded, nothing is open, no work is running, and all pages of the grants are mapped.
       `grants` stays valid, and nothing is mapped or unmapped, until `close`. Post: work may touch
       the grants; where two meet the same page, the larger right counts. What else it touches is
       noted, and work goes on. SYSTEM_LIMIT: nothing is open. */
    capu_status (*open)(struct device *device, const struct device_grant *grants, size_t count);
    /* Pre: open, and the work that was enqueued since has finished. Post: nothing is open. */
    capu_status (*close)(struct device *device, struct device_faults *faults);
    /* Memory of the calling process that is the device's memory at `address`, whether it is open or
       not. In: *bytes, how much is wanted; out: how much of that follows there without a gap.
       Valid until the page is unmapped there. NULL: nothing is mapped, or the device is not
       guarded. */
    void *(*view)(struct device *device, const void *address, uint64_t *bytes);

    /* Optional as well, all or none: capabilities.can_capture. */

    /* Pre: it runs. Post: from now on the work of the stream is recorded, and so is that of streams
       that follow an event recorded in it. An event recorded there can only be followed there: it
       has no other use, and no time, until it is recorded elsewhere. These streams cannot follow
       events of other streams, and no call can wait for them. */
    capu_status (*capture_begin)(struct device *device, capu_stream stream);
    /* Pre: the stream follows all that was recorded in others. Post: work runs again, also after a
       failure. *graph is what was recorded: NULL becomes a new graph; an old one is changed, or
       replaced if its shape is another. *is_updated: it was changed, and nodes have the names that
       they had. On failure *graph is as before. DEVICE_FAILED: something was called in between that
       prevents recording. OVER_BUDGET: no memory. */
    capu_status (*capture_end)(struct device *device, capu_stream stream,
                               struct device_graph **graph, bool *is_updated);
    capu_status (*capture_state)(struct device *device, capu_stream stream,
                                 enum device_capture *state);
    /* Pre: what was recorded last in the stream is a copy_in. Post: *node names it in the graph. */
    capu_status (*capture_node)(struct device *device, capu_stream stream, void **node);
    /* Pre: `node` is a copy_in of the graph. Post: later launches make this copy instead. */
    capu_status (*graph_set_copy_in)(struct device *device, struct device_graph *graph, void *node,
                                     const struct device_copy *copy);
    /* Post: the recorded work runs after all work of the stream, and after earlier launches; later
       work of the stream runs after it. */
    capu_status (*graph_launch)(struct device *device, struct device_graph *graph,
                                capu_stream stream);
    /* Launches under way still run. */
    void (*graph_destroy)(struct device *device, struct device_graph *graph);
};

/* The head of every device; the rest of its struct is its own. */
struct device {
    const struct device_table *table;
    struct device_capabilities capabilities;
};

/*
 * The devices. On failure *device is untouched, and `text` (may be NULL) says what is wrong.
 * INVALID (page size), OVER_BUDGET (more memory than there is), SYSTEM_LIMIT (more pages than
 * the machine has mappings), NO_DEVICE, NO_HOST_MEMORY.
 */
capu_status host_device_create(const struct device_options *options, struct device **device,
                               char *text, size_t text_bytes);
capu_status sim_device_create(const struct device_options *options, struct device **device,
                              char *text, size_t text_bytes);
/* Makes the device fail as if work of that name had failed. On sim `run` is not called, so no work
   fails by itself. False if it is not a sim device. */
bool sim_device_fail(struct device *device, const char *name);
/* NO_DEVICE also if there is no plug-in with this device; UNSUPPORTED: the plug-in that was found
   does not fit the library, or cannot be opened. Rates that are given are used as
   they are; otherwise the link is measured, which takes a moment. From then on this device is the
   calling thread's current one. */
capu_status cuda_device_create(const struct device_options *options, struct device **device,
                               char *text, size_t text_bytes);

/* Argument checks, then the slot of the same name. Misuse is INVALID; functions that destroy, free
   or release accept NULL. */
void device_destroy(struct device *device);
capu_status device_page_create(struct device *device, device_page *page);
void device_page_destroy(struct device *device, device_page page);
capu_status device_range_reserve(struct device *device, uint64_t bytes, void **address);
void device_range_release(struct device *device, void *address, uint64_t bytes);
capu_status device_map(struct device *device, void *address, const device_page *pages,
                       size_t count);
capu_status device_unmap(struct device *device, void *address, size_t count);
capu_status device_host_alloc(struct device *device, uint64_t bytes, void **address);
void device_host_free(struct device *device, void *address, uint64_t bytes);
capu_status device_stream_create(struct device *device, enum device_engine engine,
                                 capu_stream *stream);
void device_stream_destroy(struct device *device, capu_stream stream);
capu_status device_stream_synchronize(struct device *device, capu_stream stream);
capu_status device_event_create(struct device *device, bool with_timing,
                                struct device_event **event);
void device_event_destroy(struct device *device, struct device_event *event);
capu_status device_event_record(struct device *device, struct device_event *event,
                                capu_stream stream);
capu_status device_event_query(struct device *device, struct device_event *event);
capu_status device_event_wait(struct device *device, struct device_event *event);
capu_status device_stream_follow(struct device *device, capu_stream stream,
                                 struct device_event *event);
capu_status device_event_elapsed(struct device *device, struct device_event *from,
                                 struct device_event *to, uint64_t *ns);
/* All zero if the device lacks the slot. */
capu_status device_event_tally(struct device *device, struct device_event *from,
                               struct device_event *to, struct device_tally *tally);
capu_status device_copy_out(struct device *device, capu_stream stream, void *to, const void *from,
                            uint64_t bytes);
capu_status device_copy_in(struct device *device, capu_stream stream, void *to, const void *from,
                           uint64_t bytes);
capu_status device_copy_within(struct device *device, capu_stream stream, void *to,
                               const void *from, uint64_t bytes);
capu_status device_fill(struct device *device, capu_stream stream, void *to, unsigned char byte,
                        uint64_t bytes);
capu_status device_run(struct device *device, capu_stream stream, const struct device_work *work);

/* The page size that the rule gives for so much memory. */
uint64_t device_choose_page(const struct device_page_rule *rule, uint64_t memory_bytes);

/* UNSUPPORTED, and NULL, if the device cannot guard. */
capu_status device_guard(struct device *device);
capu_status device_open(struct device *device, const struct device_grant *grants, size_t count);
capu_status device_close(struct device *device, struct device_faults *faults);
void *device_view(struct device *device, const void *address, uint64_t *bytes);

/* While an op's function runs, device_is_in_run() is true on that thread. device_run sees to it
   where the slot `run` calls the function; devices that call it on a thread of their own
   (runs_on_stream) use device_call, with the notes of the stream. */
capu_status device_call(capu_run_function run, capu_stream stream, const void *arguments,
                        struct device_notes *notes);
bool device_is_in_run(void);

/* What a run function says while it runs: adds to the tally of its stream, and keeps a text for the
   failure that it is about to return. WRONG_ORDER: this thread is not in a run function;
   UNSUPPORTED: the device calls it when the work is enqueued. */
capu_status device_note(const struct device_tally *more);
capu_status device_explain(const char *why);

/* UNSUPPORTED without captures. */
capu_status device_capture_begin(struct device *device, capu_stream stream);
capu_status device_capture_end(struct device *device, capu_stream stream,
                               struct device_graph **graph, bool *is_updated);
/* DEVICE_RUNS without captures. */
capu_status device_capture_state(struct device *device, capu_stream stream,
                                 enum device_capture *state);
capu_status device_capture_node(struct device *device, capu_stream stream, void **node);
capu_status device_graph_set_copy_in(struct device *device, struct device_graph *graph, void *node,
                                     const struct device_copy *copy);
capu_status device_graph_launch(struct device *device, struct device_graph *graph,
                                capu_stream stream);
void device_graph_destroy(struct device *device, struct device_graph *graph);

uint64_t device_now_ns(struct device *device);
capu_status device_failure(struct device *device, char *text, size_t text_bytes);

/* For devices, in their creation. */

/* Writes the text, if one is wanted, and returns the status. */
capu_status device_refuse(capu_status status, char *text, size_t text_bytes, const char *format,
                          ...) __attribute__((format(printf, 4, 5)));

/* The rule by which the page is chosen. Pre: memory_bytes is set. */
struct device_page_rule device_make_page_rule(const struct device_options *options,
                                              uint64_t least_bytes, uint64_t most_pages);

/* Rounds the memory down to whole pages; page_bytes is a power of two. OVER_BUDGET: less than one
   page. */
capu_status device_round_memory(struct device_options *options, char *text, size_t text_bytes);

#endif
