/* The forwarding adaptor: see adaptor.h. */
#include "tests/support/adaptor.h"

#include "base/assert.h"

#include <stdlib.h>

struct adaptor {
    struct device head;
    struct device *inner;
    bool owns_inner;
    const struct adaptor_hooks *hooks;
    void *state;
};

static struct adaptor *adaptor_of(struct device *device)
{
    return (struct adaptor *)device;
}

const char *adaptor_slot_name(enum adaptor_slot slot)
{
#define SLOT_NAME(name, slot_name) #slot_name,
    static const char *const names[] = {ADAPTOR_SLOTS(SLOT_NAME)};
#undef SLOT_NAME

    return (unsigned)slot < ADAPTOR_SLOT_COUNT ? names[slot] : "unknown";
}

static capu_status before(struct adaptor *adaptor, const struct adaptor_call *call)
{
    return adaptor->hooks->before == NULL
               ? CAPU_OK
               : adaptor->hooks->before(adaptor->state, adaptor->inner, call);
}

static void after(struct adaptor *adaptor, const struct adaptor_call *call, capu_status status)
{
    if (adaptor->hooks->after != NULL) {
        adaptor->hooks->after(adaptor->state, adaptor->inner, call, status);
    }
}

/* The body of a slot that returns a status, and of one that does not. After the inner call come the
   other fields of the adaptor_call. */
#define PASS_ON(NAME, inner_call, ...)                                      \
    struct adaptor *adaptor = adaptor_of(device);                           \
    struct device *inner = adaptor->inner;                                  \
    const struct adaptor_call call = {.slot = ADAPTOR_##NAME, __VA_ARGS__}; \
    capu_status status = before(adaptor, &call);                            \
    if (status == CAPU_OK) {                                                \
        status = inner->table->inner_call;                                  \
        after(adaptor, &call, status);                                      \
    }                                                                       \
    return status

#define PASS_ON_VOID(NAME, inner_call, ...)                                 \
    struct adaptor *adaptor = adaptor_of(device);                           \
    struct device *inner = adaptor->inner;                                  \
    const struct adaptor_call call = {.slot = ADAPTOR_##NAME, __VA_ARGS__}; \
    (void)before(adaptor, &call);                                           \
    inner->table->inner_call;                                               \
    after(adaptor, &call, CAPU_OK)

static uint64_t page_bytes_of(const struct device *device)
{
    return device->capabilities.page_bytes;
}

static capu_status pass_page_create(struct device *device, device_page *page)
{
    PASS_ON(PAGE_CREATE, page_create(inner, page), .bytes = page_bytes_of(device));
}

static void pass_page_destroy(struct device *device, device_page page)
{
    PASS_ON_VOID(PAGE_DESTROY, page_destroy(inner, page), .bytes = page_bytes_of(device),
                 .pages = &page, .page_count = 1);
}

static capu_status pass_range_reserve(struct device *device, uint64_t bytes, void **address)
{
    PASS_ON(RANGE_RESERVE, range_reserve(inner, bytes, address), .bytes = bytes);
}

static void pass_range_release(struct device *device, void *address, uint64_t bytes)
{
    PASS_ON_VOID(RANGE_RELEASE, range_release(inner, address, bytes), .bytes = bytes,
                 .to = address);
}

static capu_status pass_map(struct device *device, void *address, const device_page *pages,
                            size_t count)
{
    PASS_ON(MAP, map(inner, address, pages, count), .bytes = count * page_bytes_of(device),
            .to = address, .pages = pages, .page_count = count);
}

static capu_status pass_unmap(struct device *device, void *address, size_t count)
{
    PASS_ON(UNMAP, unmap(inner, address, count), .bytes = count * page_bytes_of(device),
            .to = address, .page_count = count);
}

static capu_status pass_host_alloc(struct device *device, uint64_t bytes, void **address)
{
    PASS_ON(HOST_ALLOC, host_alloc(inner, bytes, address), .bytes = bytes);
}

static void pass_host_free(struct device *device, void *address, uint64_t bytes)
{
    PASS_ON_VOID(HOST_FREE, host_free(inner, address, bytes), .bytes = bytes, .to = address);
}

static capu_status pass_stream_create(struct device *device, enum device_engine engine,
                                      capu_stream *stream)
{
    PASS_ON(STREAM_CREATE, stream_create(inner, engine, stream), .bytes = 0);
}

static void pass_stream_destroy(struct device *device, capu_stream stream)
{
    PASS_ON_VOID(STREAM_DESTROY, stream_destroy(inner, stream), .stream = stream);
}

static capu_status pass_stream_synchronize(struct device *device, capu_stream stream)
{
    PASS_ON(STREAM_SYNCHRONIZE, stream_synchronize(inner, stream), .stream = stream);
}

static capu_status pass_event_create(struct device *device, bool with_timing,
                                     struct device_event **event)
{
    PASS_ON(EVENT_CREATE, event_create(inner, with_timing, event), .bytes = 0);
}

static void pass_event_destroy(struct device *device, struct device_event *event)
{
    PASS_ON_VOID(EVENT_DESTROY, event_destroy(inner, event), .event = event);
}

static capu_status pass_event_record(struct device *device, struct device_event *event,
                                     capu_stream stream)
{
    PASS_ON(EVENT_RECORD, event_record(inner, event, stream), .stream = stream, .event = event);
}

static capu_status pass_event_query(struct device *device, struct device_event *event)
{
    PASS_ON(EVENT_QUERY, event_query(inner, event), .event = event);
}

static capu_status pass_event_wait(struct device *device, struct device_event *event)
{
    PASS_ON(EVENT_WAIT, event_wait(inner, event), .event = event);
}

static capu_status pass_stream_follow(struct device *device, capu_stream stream,
                                      struct device_event *event)
{
    PASS_ON(STREAM_FOLLOW, stream_follow(inner, stream, event), .stream = stream, .event = event);
}

static capu_status pass_event_elapsed(struct device *device, struct device_event *from,
                                      struct device_event *to, uint64_t *ns)
{
    PASS_ON(EVENT_ELAPSED, event_elapsed(inner, from, to, ns), .bytes = 0);
}

static capu_status pass_event_tally(struct device *device, struct device_event *from,
                                    struct device_event *to, struct device_tally *tally)
{
    return device_event_tally(adaptor_of(device)->inner, from, to, tally);
}

static capu_status pass_copy_out(struct device *device, capu_stream stream, void *to,
                                 const void *from, uint64_t bytes)
{
    PASS_ON(COPY_OUT, copy_out(inner, stream, to, from, bytes), .bytes = bytes, .stream = stream,
            .to = to, .from = from);
}

static capu_status pass_copy_in(struct device *device, capu_stream stream, void *to,
                                const void *from, uint64_t bytes)
{
    PASS_ON(COPY_IN, copy_in(inner, stream, to, from, bytes), .bytes = bytes, .stream = stream,
            .to = to, .from = from);
}

static capu_status pass_copy_within(struct device *device, capu_stream stream, void *to,
                                    const void *from, uint64_t bytes)
{
    PASS_ON(COPY_WITHIN, copy_within(inner, stream, to, from, bytes), .bytes = bytes,
            .stream = stream, .to = to, .from = from);
}

static capu_status pass_fill(struct device *device, capu_stream stream, void *to,
                             unsigned char byte, uint64_t bytes)
{
    PASS_ON(FILL, fill(inner, stream, to, byte, bytes), .bytes = bytes, .stream = stream, .to = to);
}

static capu_status pass_run(struct device *device, capu_stream stream,
                            const struct device_work *work)
{
    PASS_ON(RUN, run(inner, stream, work), .stream = stream, .work = work);
}

static capu_status pass_open(struct device *device, const struct device_grant *grants, size_t count)
{
    PASS_ON(OPEN, open(inner, grants, count), .bytes = 0);
}

static capu_status pass_capture_begin(struct device *device, capu_stream stream)
{
    PASS_ON(CAPTURE_BEGIN, capture_begin(inner, stream), .stream = stream);
}

/* Work runs again after a failure, too. So a call that is stopped ends the recording, and discards
   it. */
static capu_status pass_capture_end(struct device *device, capu_stream stream,
                                    struct device_graph **graph, bool *is_updated)
{
    struct adaptor *adaptor = adaptor_of(device);
    struct device *inner = adaptor->inner;
    const struct adaptor_call call = {
        .slot = ADAPTOR_CAPTURE_END, .stream = stream, .graph = graph};
    capu_status status = before(adaptor, &call);
    struct device_graph *discarded = NULL;

    if (status == CAPU_OK) {
        status = inner->table->capture_end(inner, stream, graph, is_updated);
        after(adaptor, &call, status);
    } else if (inner->table->capture_end(inner, stream, &discarded, is_updated) == CAPU_OK) {
        inner->table->graph_destroy(inner, discarded);
    }
    return status;
}

static capu_status pass_graph_launch(struct device *device, struct device_graph *graph,
                                     capu_stream stream)
{
    PASS_ON(GRAPH_LAUNCH, graph_launch(inner, graph, stream), .stream = stream, .graph = &graph);
}

static capu_status pass_capture_state(struct device *device, capu_stream stream,
                                      enum device_capture *state)
{
    return device_capture_state(adaptor_of(device)->inner, stream, state);
}

static capu_status pass_capture_node(struct device *device, capu_stream stream, void **node)
{
    return device_capture_node(adaptor_of(device)->inner, stream, node);
}

static capu_status pass_graph_set_copy_in(struct device *device, struct device_graph *graph,
                                          void *node, const struct device_copy *copy)
{
    return device_graph_set_copy_in(adaptor_of(device)->inner, graph, node, copy);
}

static void pass_graph_destroy(struct device *device, struct device_graph *graph)
{
    device_graph_destroy(adaptor_of(device)->inner, graph);
}

static capu_status pass_guard(struct device *device)
{
    return device_guard(adaptor_of(device)->inner);
}

static capu_status pass_close(struct device *device, struct device_faults *faults)
{
    return device_close(adaptor_of(device)->inner, faults);
}

static void *pass_view(struct device *device, const void *address, uint64_t *bytes)
{
    return device_view(adaptor_of(device)->inner, address, bytes);
}

static uint64_t pass_now_ns(struct device *device)
{
    return device_now_ns(adaptor_of(device)->inner);
}

static capu_status pass_failure(struct device *device, char *text, size_t text_bytes)
{
    return device_failure(adaptor_of(device)->inner, text, text_bytes);
}

static void pass_destroy(struct device *device)
{
    struct adaptor *adaptor = adaptor_of(device);

    if (adaptor->owns_inner) {
        device_destroy(adaptor->inner);
    }
    /* After the inner device: its streams may run work of the hooks until then. */
    if (adaptor->hooks->destroy != NULL) {
        adaptor->hooks->destroy(adaptor->state);
    }
    free(adaptor);
}

#define TABLE_SLOT(name, slot) .slot = pass_##slot,
static const struct device_table adaptor_table = {
    ADAPTOR_SLOTS(TABLE_SLOT).destroy = pass_destroy,
    .event_tally = pass_event_tally,
    .now_ns = pass_now_ns,
    .failure = pass_failure,
    .guard = pass_guard,
    .close = pass_close,
    .view = pass_view,
    .capture_state = pass_capture_state,
    .capture_node = pass_capture_node,
    .graph_set_copy_in = pass_graph_set_copy_in,
    .graph_destroy = pass_graph_destroy,
};
#undef TABLE_SLOT

capu_status adaptor_create(struct device *inner, bool owns_inner, const struct adaptor_hooks *hooks,
                           void *state, struct device **device)
{
    struct adaptor *adaptor = calloc(1, sizeof(*adaptor));

    ASSERT(inner != NULL && hooks != NULL);
    if (adaptor == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    adaptor->head.table = &adaptor_table;
    adaptor->head.capabilities = inner->capabilities;
    adaptor->inner = inner;
    adaptor->owns_inner = owns_inner;
    adaptor->hooks = hooks;
    adaptor->state = state;
    *device = &adaptor->head;
    return CAPU_OK;
}

void *adaptor_state(struct device *device, const struct adaptor_hooks *hooks)
{
    if (device->table != &adaptor_table || adaptor_of(device)->hooks != hooks) {
        return NULL;
    }
    return adaptor_of(device)->state;
}
