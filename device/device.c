/*
 * The checking wrappers of device.h: arguments are checked here, once, so that no device has to.
 * And what devices share in their creation.
 *
 * What only a device can know (whether an address is reserved, whether a page is mapped) the
 * devices check in their books (books.h). No state; threads as in device.h.
 */
#include "device/device.h"

#include "base/size_text.h"

#include <stdarg.h>
#include <stdio.h>

/* Misuse is the caller's bug: a plain status, since there is no context to hang a text on. */
#define GUARD(condition)         \
    do {                         \
        if (!(condition)) {      \
            return CAPU_INVALID; \
        }                        \
    } while (0)

static bool is_aligned(const struct device *device, const void *address)
{
    return ((uintptr_t)address & (device->capabilities.page_bytes - 1)) == 0;
}

/* Whether [address, address + bytes) is a range of memory at all. */
static bool is_range(const void *address, uint64_t bytes)
{
    return address != NULL && bytes > 0 && bytes <= UINTPTR_MAX - (uintptr_t)address;
}

static bool is_page_range(const struct device *device, const void *address, size_t count)
{
    uint64_t page_bytes = device->capabilities.page_bytes;

    return count > 0 && count <= UINT64_MAX / page_bytes && is_aligned(device, address) &&
           is_range(address, count * page_bytes);
}

uint64_t device_choose_page(const struct device_page_rule *rule, uint64_t memory_bytes)
{
    uint64_t page_bytes = rule->least_bytes;

    while (memory_bytes / page_bytes > rule->most_pages && page_bytes < (uint64_t)1 << 40) {
        page_bytes *= 2;
    }
    return page_bytes;
}

void device_destroy(struct device *device)
{
    if (device != NULL) {
        device->table->destroy(device);
    }
}

capu_status device_page_create(struct device *device, device_page *page)
{
    GUARD(device != NULL && page != NULL);
    return device->table->page_create(device, page);
}

void device_page_destroy(struct device *device, device_page page)
{
    if (device != NULL && page != DEVICE_NO_PAGE) {
        device->table->page_destroy(device, page);
    }
}

capu_status device_range_reserve(struct device *device, uint64_t bytes, void **address)
{
    GUARD(device != NULL && address != NULL && bytes > 0);
    GUARD((bytes & (device->capabilities.page_bytes - 1)) == 0);
    return device->table->range_reserve(device, bytes, address);
}

void device_range_release(struct device *device, void *address, uint64_t bytes)
{
    if (device != NULL && address != NULL) {
        device->table->range_release(device, address, bytes);
    }
}

capu_status device_map(struct device *device, void *address, const device_page *pages, size_t count)
{
    GUARD(device != NULL && pages != NULL && is_page_range(device, address, count));
    for (size_t index = 0; index < count; index++) {
        GUARD(pages[index] != DEVICE_NO_PAGE);
    }
    return device->table->map(device, address, pages, count);
}

capu_status device_unmap(struct device *device, void *address, size_t count)
{
    GUARD(device != NULL && is_page_range(device, address, count));
    return device->table->unmap(device, address, count);
}

capu_status device_host_alloc(struct device *device, uint64_t bytes, void **address)
{
    GUARD(device != NULL && address != NULL && bytes > 0);
    return device->table->host_alloc(device, bytes, address);
}

void device_host_free(struct device *device, void *address, uint64_t bytes)
{
    if (device != NULL && address != NULL) {
        device->table->host_free(device, address, bytes);
    }
}

capu_status device_stream_create(struct device *device, enum device_engine engine,
                                 capu_stream *stream)
{
    GUARD(device != NULL && stream != NULL);
    GUARD(engine == DEVICE_COMPUTE || engine == DEVICE_D2H || engine == DEVICE_H2D);
    return device->table->stream_create(device, engine, stream);
}

void device_stream_destroy(struct device *device, capu_stream stream)
{
    if (device != NULL && stream != NULL) {
        device->table->stream_destroy(device, stream);
    }
}

capu_status device_stream_synchronize(struct device *device, capu_stream stream)
{
    GUARD(device != NULL && stream != NULL);
    return device->table->stream_synchronize(device, stream);
}

capu_status device_event_create(struct device *device, bool with_timing,
                                struct device_event **event)
{
    GUARD(device != NULL && event != NULL);
    return device->table->event_create(device, with_timing, event);
}

void device_event_destroy(struct device *device, struct device_event *event)
{
    if (device != NULL && event != NULL) {
        device->table->event_destroy(device, event);
    }
}

capu_status device_event_record(struct device *device, struct device_event *event,
                                capu_stream stream)
{
    GUARD(device != NULL && event != NULL && stream != NULL);
    return device->table->event_record(device, event, stream);
}

capu_status device_event_query(struct device *device, struct device_event *event)
{
    GUARD(device != NULL && event != NULL);
    return device->table->event_query(device, event);
}

capu_status device_event_wait(struct device *device, struct device_event *event)
{
    GUARD(device != NULL && event != NULL);
    return device->table->event_wait(device, event);
}

capu_status device_stream_follow(struct device *device, capu_stream stream,
                                 struct device_event *event)
{
    GUARD(device != NULL && stream != NULL && event != NULL);
    return device->table->stream_follow(device, stream, event);
}

capu_status device_event_elapsed(struct device *device, struct device_event *from,
                                 struct device_event *to, uint64_t *ns)
{
    GUARD(device != NULL && from != NULL && to != NULL && ns != NULL);
    return device->table->event_elapsed(device, from, to, ns);
}

capu_status device_event_tally(struct device *device, struct device_event *from,
                               struct device_event *to, struct device_tally *tally)
{
    GUARD(device != NULL && from != NULL && to != NULL && tally != NULL);
    if (device->table->event_tally == NULL) {
        *tally = (struct device_tally){0};
        return CAPU_OK;
    }
    return device->table->event_tally(device, from, to, tally);
}

capu_status device_copy_out(struct device *device, capu_stream stream, void *to, const void *from,
                            uint64_t bytes)
{
    GUARD(device != NULL && stream != NULL && is_range(to, bytes) && is_range(from, bytes));
    return device->table->copy_out(device, stream, to, from, bytes);
}

capu_status device_copy_in(struct device *device, capu_stream stream, void *to, const void *from,
                           uint64_t bytes)
{
    GUARD(device != NULL && stream != NULL && is_range(to, bytes) && is_range(from, bytes));
    return device->table->copy_in(device, stream, to, from, bytes);
}

capu_status device_copy_within(struct device *device, capu_stream stream, void *to,
                               const void *from, uint64_t bytes)
{
    GUARD(device != NULL && stream != NULL && is_range(to, bytes) && is_range(from, bytes));
    return device->table->copy_within(device, stream, to, from, bytes);
}

capu_status device_fill(struct device *device, capu_stream stream, void *to, unsigned char byte,
                        uint64_t bytes)
{
    GUARD(device != NULL && stream != NULL && is_range(to, bytes));
    return device->table->fill(device, stream, to, byte, bytes);
}

static _Thread_local bool is_in_run;
static _Thread_local struct device_notes *notes_of_run; /* NULL: nothing can be noted */

capu_status device_call(capu_run_function run, capu_stream stream, const void *arguments,
                        struct device_notes *notes)
{
    capu_status status;

    notes->why[0] = '\0';
    notes_of_run = notes;
    is_in_run = true;
    status = run(stream, arguments);
    is_in_run = false;
    notes_of_run = NULL;
    return status;
}

static capu_status notes_now(struct device_notes **notes)
{
    if (!is_in_run) {
        return CAPU_WRONG_ORDER;
    }
    *notes = notes_of_run;
    return notes_of_run != NULL ? CAPU_OK : CAPU_UNSUPPORTED;
}

capu_status device_note(const struct device_tally *more)
{
    struct device_notes *notes;
    capu_status status = notes_now(&notes);

    if (status == CAPU_OK) {
        notes->tally.waited_ns += more->waited_ns;
        notes->tally.exchange_ns += more->exchange_ns;
        notes->tally.exchanged_bytes += more->exchanged_bytes;
    }
    return status;
}

capu_status device_explain(const char *why)
{
    struct device_notes *notes;
    capu_status status = notes_now(&notes);

    if (status == CAPU_OK) {
        snprintf(notes->why, sizeof(notes->why), "%s", why);
    }
    return status;
}

bool device_is_in_run(void)
{
    return is_in_run;
}

capu_status device_run(struct device *device, capu_stream stream, const struct device_work *work)
{
    bool was_in_run;
    capu_status status;

    GUARD(device != NULL && stream != NULL && work != NULL && work->name != NULL);
    /* A trace driven through the sim has durations and no functions. */
    GUARD(work->run != NULL || device->capabilities.is_simulated);
    if (device->capabilities.runs_on_stream) {
        return device->table->run(device, stream, work);
    }
    was_in_run = is_in_run;
    is_in_run = true;
    status = device->table->run(device, stream, work);
    is_in_run = was_in_run; /* an adaptor calls this once more for the device inside */
    return status;
}

capu_status device_guard(struct device *device)
{
    GUARD(device != NULL);
    return device->capabilities.can_guard ? device->table->guard(device) : CAPU_UNSUPPORTED;
}

capu_status device_open(struct device *device, const struct device_grant *grants, size_t count)
{
    GUARD(device != NULL && (grants != NULL || count == 0));
    for (size_t i = 0; i < count; i++) {
        GUARD(is_range(grants[i].address, grants[i].bytes));
    }
    return device->capabilities.can_guard ? device->table->open(device, grants, count)
                                          : CAPU_UNSUPPORTED;
}

capu_status device_close(struct device *device, struct device_faults *faults)
{
    GUARD(device != NULL && faults != NULL);
    return device->capabilities.can_guard ? device->table->close(device, faults) : CAPU_UNSUPPORTED;
}

void *device_view(struct device *device, const void *address, uint64_t *bytes)
{
    if (device == NULL || bytes == NULL || !is_range(address, *bytes) ||
        !device->capabilities.can_guard) {
        return NULL;
    }
    return device->table->view(device, address, bytes);
}

capu_status device_capture_begin(struct device *device, capu_stream stream)
{
    GUARD(device != NULL && stream != NULL);
    return device->capabilities.can_capture ? device->table->capture_begin(device, stream)
                                            : CAPU_UNSUPPORTED;
}

capu_status device_capture_end(struct device *device, capu_stream stream,
                               struct device_graph **graph, bool *is_updated)
{
    GUARD(device != NULL && stream != NULL && graph != NULL && is_updated != NULL);
    return device->capabilities.can_capture
               ? device->table->capture_end(device, stream, graph, is_updated)
               : CAPU_UNSUPPORTED;
}

capu_status device_capture_state(struct device *device, capu_stream stream,
                                 enum device_capture *state)
{
    GUARD(device != NULL && stream != NULL && state != NULL);
    *state = DEVICE_RUNS;
    return device->capabilities.can_capture ? device->table->capture_state(device, stream, state)
                                            : CAPU_OK;
}

capu_status device_capture_node(struct device *device, capu_stream stream, void **node)
{
    GUARD(device != NULL && stream != NULL && node != NULL);
    return device->capabilities.can_capture ? device->table->capture_node(device, stream, node)
                                            : CAPU_UNSUPPORTED;
}

capu_status device_graph_set_copy_in(struct device *device, struct device_graph *graph, void *node,
                                     const struct device_copy *copy)
{
    GUARD(device != NULL && graph != NULL && node != NULL && copy != NULL);
    GUARD(is_range(copy->to, copy->bytes) && is_range(copy->from, copy->bytes));
    return device->table->graph_set_copy_in(device, graph, node, copy);
}

capu_status device_graph_launch(struct device *device, struct device_graph *graph,
                                capu_stream stream)
{
    GUARD(device != NULL && graph != NULL && stream != NULL);
    return device->table->graph_launch(device, graph, stream);
}

void device_graph_destroy(struct device *device, struct device_graph *graph)
{
    if (device != NULL && graph != NULL) {
        device->table->graph_destroy(device, graph);
    }
}

uint64_t device_now_ns(struct device *device)
{
    return device == NULL ? 0 : device->table->now_ns(device);
}

capu_status device_failure(struct device *device, char *text, size_t text_bytes)
{
    GUARD(device != NULL && (text != NULL || text_bytes == 0));
    return device->table->failure(device, text, text_bytes);
}

/* What devices share in their creation. */

capu_status device_refuse(capu_status status, char *text, size_t text_bytes, const char *format,
                          ...)
{
    if (text != NULL && text_bytes > 0) {
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, text_bytes, format, arguments);
        va_end(arguments);
    }
    return status;
}

struct device_page_rule device_make_page_rule(const struct device_options *options,
                                              uint64_t least_bytes, uint64_t most_pages)
{
    struct device_page_rule rule = {.least_bytes = least_bytes, .most_pages = most_pages};

    if (options->least_page_bytes > least_bytes &&
        options->least_page_bytes <= options->memory_bytes) {
        rule.least_bytes = options->least_page_bytes;
    }
    return rule;
}

capu_status device_round_memory(struct device_options *options, char *text, size_t text_bytes)
{
    if (options->memory_bytes < options->page_bytes) {
        return device_refuse(
            CAPU_OVER_BUDGET, text, text_bytes, "a budget of %s is less than one page of %s",
            size_text(options->memory_bytes).text, size_text(options->page_bytes).text);
    }
    options->memory_bytes &= ~(options->page_bytes - 1);
    return CAPU_OK;
}
