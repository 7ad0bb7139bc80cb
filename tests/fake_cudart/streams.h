/* The fake's streams, events, captures and graphs, shared by fake_stream.c (streams, events, work),
   fake_capture.c (what is recorded instead of being run) and fake_graph.c (graphs). */
#ifndef CAPU_TESTS_FAKE_CUDART_STREAMS_H
#define CAPU_TESTS_FAKE_CUDART_STREAMS_H

#include "tests/fake_cudart/fake.h"

#include <stdatomic.h>

enum item_kind { ITEM_COPY, ITEM_SET, ITEM_KERNEL, ITEM_RECORD, ITEM_WAIT };

/* Work for a stream. */
struct item {
    struct item *next; /* in its list, oldest first */
    struct CUstream_st *stream;
    enum item_kind kind;
    void *to;
    const void *from;
    const void *pinned; /* the host side, if it was pinned when the copy was issued; or NULL */
    size_t bytes;
    enum cudaMemcpyKind direction;
    int byte;
    uint32_t value; /* to wait for, in the 4 bytes at `to` */
    unsigned flags; /* how that is compared */
    capu_run_function kernel;
    const void *arguments;
    struct CUevent_st *event; /* to be recorded */
    atomic_bool is_done;
};

/* Work that was issued to one stream. */
struct item_list {
    struct item *first;
    struct item *last;
};

/* Nodes of the graph that is being captured. */
struct node_set {
    struct CUgraphNode_st **nodes;
    size_t count;
};

struct CUgraphNode_st {
    size_t index; /* in its graph */
    size_t lane;  /* which of the streams of the capture it came from */
    struct item item;
    struct node_set after; /* what must have finished before it */
};

struct CUgraph_st {
    struct CUgraph_st *next;
    struct CUgraphNode_st **nodes;
    size_t count;
    size_t lane_count;
};

struct fake_capture {
    struct fake_capture *next;
    unsigned long long id;
    struct CUgraph_st *graph;
    struct CUstream_st *origin;
    pthread_t thread;
    enum cudaStreamCaptureMode mode;
    bool is_invalidated;
};

struct CUstream_st {
    struct CUstream_st *next;
    capu_stream host;
    int device; /* the one that was current */
    struct item_list items;
    struct fake_capture *capture; /* NULL: its work is run */
    struct node_set tail;         /* what the next node of the capture comes after */
    size_t lane;                  /* its number in the capture */
};

struct CUevent_st {
    struct CUevent_st *next;
    struct device_event *host;
    int device;
    bool with_timing;
    bool is_recorded;
    unsigned long long capture_id; /* of the capture it was last recorded in; 0: in none */
    struct node_set at;            /* what it stands for there */
};

/* fake_stream.c: */

/* Issues work to a stream of the host device, and keeps it in the list until it has run. */
int fake_issue(capu_stream host, struct item_list *list, const struct item *item);
void fake_items_free(struct item_list *list);
/* Translates a status of the host device into a CUDA error. */
int fake_error_of(capu_status status);
/* The work of a copy, checked; or the error. */
int fake_copy_item(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                   struct item *item);

/* fake_capture.c: */

/* Whether the stream is being captured. Then *error is the result of adding the item to the graph:
   0, or why it cannot be added. */
bool fake_captures(struct CUstream_st *stream, const struct item *item, int *error);
/* As fake_capture_forbids, for calls that wait for or ask about everything on the device. */
int fake_capture_forbids_device(void);
/* The same for a call that waits for or asks about a stream, or an event. */
int fake_capture_forbids_stream(struct CUstream_st *stream);
int fake_capture_forbids_event(const struct CUevent_st *event);
/* Whether recording the event, or waiting for it, is part of a capture; *error as above. */
bool fake_captures_record(struct CUevent_st *event, struct CUstream_st *stream, int *error);
bool fake_captures_wait(struct CUstream_st *stream, const struct CUevent_st *event, int *error);
/* The stream or event is about to go. */
void fake_capture_lose_stream(struct CUstream_st *stream);
void fake_capture_finish(void);
void fake_nodes_free(struct node_set *set);

/* fake_graph.c: */

struct CUgraph_st *fake_graph_create(void);
/* Adds a node that comes after those of the set. NULL: no memory. */
struct CUgraphNode_st *fake_graph_add(struct CUgraph_st *graph, const struct item *item,
                                      size_t lane, const struct node_set *after);
void fake_graph_free(struct CUgraph_st *graph);
void fake_graphs_finish(void);
/* How many graphs there are, executable ones included. */
size_t fake_graphs_count(void);
/* Stores the host device's streams that launches use, at most so many; returns how many. Pre: the
   lock is held. */
size_t fake_graphs_lanes(capu_stream *streams, size_t most);

#endif
