/*
 * The host device: memory is a memfd, streams are threads. The default where there is no GPU.
 *
 * Page size: the machine's, unless that makes more pages than half of the mappings that the kernel
 * allows this process; then the smallest power of two that does not. Half, because each page may
 * need a mapping of its own and a hole beside it. Larger pages would save little: ops that only
 * read and write their operands once take a few percent less (docs/results/pages.md).
 */
#define _GNU_SOURCE
#include "device/host.h"

#include "base/size_text.h"
#include "device/monotonic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Mappings left to the program: its libraries, heap and threads use hundreds, big programs a few
   thousand. */
#define PROGRAM_MAPPINGS 4096
#define USUAL_MAX_MAP_COUNT 65530

size_t host_mapping_limit(const struct host_machine *machine)
{
    return machine->mapping_count > 2 * PROGRAM_MAPPINGS ? machine->mapping_count - PROGRAM_MAPPINGS
                                                         : machine->mapping_count / 2;
}

struct device_page_rule host_page_rule(const struct host_machine *machine,
                                       const struct device_options *options)
{
    return device_make_page_rule(options, machine->page_bytes, host_mapping_limit(machine) / 2);
}

capu_status host_options_complete(const struct host_machine *machine,
                                  struct device_options *options, char *text, size_t text_bytes)
{
    size_t limit = host_mapping_limit(machine);
    struct device_options complete = *options;
    uint64_t memory_bytes =
        options->memory_bytes == 0 ? machine->memory_bytes : options->memory_bytes;
    uint64_t page_bytes = options->page_bytes;

    if (memory_bytes > machine->memory_bytes) {
        return device_refuse(CAPU_OVER_BUDGET, text, text_bytes,
                             "a budget of %s is more than the machine's memory of %s",
                             size_text(memory_bytes).text, size_text(machine->memory_bytes).text);
    }
    complete.memory_bytes = memory_bytes;
    if (page_bytes == 0) {
        struct device_page_rule rule = host_page_rule(machine, &complete);

        page_bytes = device_choose_page(&rule, memory_bytes);
    }
    if ((page_bytes & (page_bytes - 1)) != 0 || page_bytes < machine->page_bytes) {
        return device_refuse(CAPU_INVALID, text, text_bytes,
                             "a page of %" PRIu64
                             " bytes is not a power of two of at least the machine's "
                             "page, %" PRIu64,
                             page_bytes, machine->page_bytes);
    }
    if (memory_bytes / page_bytes > limit) {
        uint64_t enough = page_bytes;

        while (memory_bytes / enough > limit) {
            enough *= 2;
        }
        return device_refuse(CAPU_SYSTEM_LIMIT, text, text_bytes,
                             "a budget of %s in pages of %" PRIu64 " may need %" PRIu64
                             " mappings, and of vm.max_map_count = %zu the device may "
                             "use %zu: set a smaller budget, or pages of at least %s",
                             size_text(memory_bytes).text, page_bytes, memory_bytes / page_bytes,
                             machine->mapping_count, limit, size_text(enough).text);
    }
    complete.page_bytes = page_bytes;
    *options = complete;
    return device_round_memory(options, text, text_bytes);
}

static size_t read_max_map_count(void)
{
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    size_t count = 0;

    if (file != NULL) {
        if (fscanf(file, "%zu", &count) != 1) {
            count = 0;
        }
        fclose(file);
    }
    return count == 0 ? USUAL_MAX_MAP_COUNT : count;
}

static capu_status host_host_alloc(struct device *device, uint64_t bytes, void **address)
{
    return chunks_alloc(&host_of(device)->chunks, bytes, false, address);
}

static void host_host_free(struct device *device, void *address, uint64_t bytes)
{
    chunks_free(&host_of(device)->chunks, address, bytes);
}

static uint64_t host_now_ns(struct device *device)
{
    (void)device;
    return monotonic_now_ns();
}

static capu_status host_failure(struct device *device, char *text, size_t text_bytes)
{
    struct host_device *host = host_of(device);
    capu_status status = (capu_status)atomic_load(&host->failure);

    if (text != NULL && text_bytes > 0) {
        pthread_mutex_lock(&host->failure_lock);
        snprintf(text, text_bytes, "%s", status == CAPU_OK ? "" : host->failure_text);
        pthread_mutex_unlock(&host->failure_lock);
    }
    return status;
}

static void host_destroy(struct device *device)
{
    struct host_device *host = host_of(device);

    host_streams_finish(host);
    host_guard_finish(host);
    host_memory_finish(host);
    chunks_finish(&host->chunks);
    close(host->memory_file);
    pthread_mutex_destroy(&host->links[0].lock);
    pthread_mutex_destroy(&host->links[1].lock);
    pthread_mutex_destroy(&host->streams_lock);
    pthread_mutex_destroy(&host->failure_lock);
    free(host);
}

static const struct device_table host_table = {
    .destroy = host_destroy,
    .page_create = host_page_create,
    .page_destroy = host_page_destroy,
    .range_reserve = host_range_reserve,
    .range_release = host_range_release,
    .map = host_map,
    .unmap = host_unmap,
    .host_alloc = host_host_alloc,
    .host_free = host_host_free,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_synchronize = host_stream_synchronize,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_query = host_event_query,
    .event_wait = host_event_wait,
    .stream_follow = host_stream_follow,
    .event_elapsed = host_event_elapsed,
    .event_tally = host_event_tally,
    .copy_out = host_copy_out,
    .copy_in = host_copy_in,
    .copy_within = host_copy_within,
    .fill = host_fill,
    .run = host_run,
    .now_ns = host_now_ns,
    .failure = host_failure,
    .guard = host_guard,
    .open = host_open,
    .close = host_close,
    .view = host_view,
};

static void init_device(struct host_device *host, const struct device_options *options,
                        int memory_file, const struct host_machine *machine)
{
    const struct device_capabilities capabilities = {
        .name = "host",
        .page_bytes = options->page_bytes,
        .page_rule = host_page_rule(machine, options),
        .memory_bytes = options->memory_bytes,
        /* Each direction keeps to a rate of its own. */
        .link = {.d2h_bytes_per_s = options->d2h_bytes_per_s,
                 .h2d_bytes_per_s = options->h2d_bytes_per_s,
                 .d2h_duplex_bytes_per_s = options->d2h_bytes_per_s,
                 .h2d_duplex_bytes_per_s = options->h2d_bytes_per_s},
        .runs_on_stream = true,
        .can_guard = true,
    };

    host->head.table = &host_table;
    host->head.capabilities = capabilities;
    host->memory_file = memory_file;
    host->mapping_limit = host_mapping_limit(machine);
    page_numbers_init(&host->pages, options->memory_bytes / options->page_bytes);
    reservations_init(&host->reservations, options->page_bytes);
    chunks_init(&host->chunks);
    host->links[0].bytes_per_s = options->d2h_bytes_per_s;
    host->links[1].bytes_per_s = options->h2d_bytes_per_s;
    pthread_mutex_init(&host->links[0].lock, NULL);
    pthread_mutex_init(&host->links[1].lock, NULL);
    pthread_mutex_init(&host->streams_lock, NULL);
    pthread_mutex_init(&host->failure_lock, NULL);
}

/* Creates the file that is the device's memory. It is sparse: a page takes memory when it is
   created. */
static capu_status create_memory_file(uint64_t bytes, int *file, char *text, size_t text_bytes)
{
    struct rlimit limit;
    int created;
    int error;

    /* Beyond this limit, making a file larger raises SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) {
        return device_refuse(CAPU_SYSTEM_LIMIT, text, text_bytes,
                             "the host device's memory is a file of %s, and the file size limit "
                             "(RLIMIT_FSIZE) is %s",
                             size_text(bytes).text, size_text(limit.rlim_cur).text);
    }
    created = memfd_create("capuchin-device", MFD_CLOEXEC);
    if (created < 0) {
        error = errno;
        return device_refuse(
            error == EMFILE || error == ENFILE ? CAPU_SYSTEM_LIMIT : CAPU_NO_HOST_MEMORY, text,
            text_bytes, "creating the file descriptor of the host device's memory: %s",
            strerror(error));
    }
    if (ftruncate(created, (off_t)bytes) != 0) {
        error = errno;
        close(created);
        return device_refuse(CAPU_NO_HOST_MEMORY, text, text_bytes,
                             "making a memory file of %s: %s", size_text(bytes).text,
                             strerror(error));
    }
    *file = created;
    return CAPU_OK;
}

capu_status host_device_create(const struct device_options *options, struct device **device,
                               char *text, size_t text_bytes)
{
    const struct host_machine machine = {
        .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
        .mapping_count = read_max_map_count(),
    };
    struct device_options complete = {0};
    struct host_device *host;
    int memory_file = -1;
    capu_status status;

    if (options != NULL) {
        complete = *options;
    }
    status = host_options_complete(&machine, &complete, text, text_bytes);
    if (status != CAPU_OK) {
        return status;
    }
    host = calloc(1, sizeof(*host));
    if (host == NULL) {
        return device_refuse(CAPU_NO_HOST_MEMORY, text, text_bytes,
                             "out of memory while creating the host device");
    }
    status = create_memory_file(complete.memory_bytes, &memory_file, text, text_bytes);
    if (status != CAPU_OK) {
        goto free_host;
    }
    init_device(host, &complete, memory_file, &machine);
    *device = &host->head;
    return CAPU_OK;

free_host:
    free(host);
    return status;
}

/*
 * The host device's events.
 *
 * A recording is a stream and the number of its newest item; it is reached when the stream's `done`
 * reaches that number (host_stream.c). Nothing is enqueued for it. Only an event with timing needs
 * an item as well, which reads the clock and keeps the event alive until then.
 *
 * Locks: an event's lock is taken alone.
 */

struct device_event {
    struct host_stream *stream; /* of the newest recording; NULL before */
    uint64_t number;            /* its item */
    uint64_t recording;         /* counts recordings with timing */
    bool with_timing;

    pthread_mutex_t lock;     /* guards the rest */
    unsigned reference_count; /* the caller's, and one per item that will read the clock */
    uint64_t timed;           /* the recording that `ns` belongs to; older ones no longer count */
    uint64_t ns;
    struct device_tally tally; /* of the stream, at that time */
};

static void release_event(struct device_event *event)
{
    bool is_last;

    pthread_mutex_lock(&event->lock);
    is_last = --event->reference_count == 0;
    pthread_mutex_unlock(&event->lock);
    if (is_last) {
        pthread_mutex_destroy(&event->lock);
        free(event);
    }
}

/* On the stream's thread: the time of a recording, and the end of its item's reference. */
static void take_time(struct device_event *event, uint64_t recording,
                      const struct device_tally *tally)
{
    uint64_t now = monotonic_now_ns();

    pthread_mutex_lock(&event->lock);
    if (event->timed < recording) {
        event->timed = recording;
        event->ns = now;
        event->tally = *tally;
    }
    pthread_mutex_unlock(&event->lock);
    release_event(event);
}

capu_status host_event_create(struct device *device, bool with_timing, struct device_event **event)
{
    struct device_event *made = calloc(1, sizeof(*made));

    (void)device;
    if (made == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->with_timing = with_timing;
    made->reference_count = 1;
    *event = made;
    return CAPU_OK;
}

void host_event_destroy(struct device *device, struct device_event *event)
{
    (void)device;
    release_event(event);
}

/* Enqueues an item that reads the clock. */
static capu_status record_time(struct device_event *event, struct host_stream *stream)
{
    capu_status status;

    pthread_mutex_lock(&event->lock);
    event->reference_count++;
    pthread_mutex_unlock(&event->lock);

    status = host_stream_push_notice(stream, take_time, event, event->recording + 1);
    if (status != CAPU_OK) {
        release_event(event);
        return status;
    }
    event->recording++;
    return CAPU_OK;
}

capu_status host_event_record(struct device *device, struct device_event *event, capu_stream stream)
{
    struct host_stream *recorded = stream;
    capu_status status;

    status = event->with_timing ? record_time(event, recorded) : host_failure_of(host_of(device));
    if (status != CAPU_OK) {
        return status;
    }
    event->stream = recorded;
    event->number = host_stream_newest(recorded);
    return CAPU_OK;
}

capu_status host_event_query(struct device *device, struct device_event *event)
{
    capu_status status = host_failure_of(host_of(device));

    if (status != CAPU_OK) {
        return status;
    }
    return event->stream == NULL || host_stream_is_done(event->stream, event->number)
               ? CAPU_OK
               : CAPU_NOT_READY;
}

capu_status host_event_wait(struct device *device, struct device_event *event)
{
    return event->stream == NULL ? host_failure_of(host_of(device))
                                 : host_stream_wait(event->stream, event->number);
}

capu_status host_stream_follow(struct device *device, capu_stream stream,
                               struct device_event *event)
{
    if (event->stream == NULL || event->stream == stream ||
        host_stream_is_done(event->stream, event->number)) {
        return host_failure_of(host_of(device));
    }
    return host_stream_push_follow(stream, event->stream, event->number);
}

/* Whether both are timed and have been reached. */
static capu_status check_times(struct device *device, const struct device_event *from,
                               const struct device_event *to)
{
    capu_status status = host_failure_of(host_of(device));

    if (!from->with_timing || !to->with_timing || from->stream == NULL || to->stream == NULL) {
        return CAPU_INVALID;
    }
    if (status != CAPU_OK) {
        return status;
    }
    return host_stream_is_done(from->stream, from->number) &&
                   host_stream_is_done(to->stream, to->number)
               ? CAPU_OK
               : CAPU_NOT_READY;
}

static uint64_t time_of(struct device_event *event)
{
    uint64_t ns;

    pthread_mutex_lock(&event->lock);
    ns = event->ns;
    pthread_mutex_unlock(&event->lock);
    return ns;
}

static struct device_tally tally_of(struct device_event *event)
{
    struct device_tally tally;

    pthread_mutex_lock(&event->lock);
    tally = event->tally;
    pthread_mutex_unlock(&event->lock);
    return tally;
}

capu_status host_event_elapsed(struct device *device, struct device_event *from,
                               struct device_event *to, uint64_t *ns)
{
    capu_status status = check_times(device, from, to);
    uint64_t start;
    uint64_t end;

    if (status != CAPU_OK) {
        return status;
    }
    start = time_of(from);
    end = time_of(to);
    *ns = end > start ? end - start : 0;
    return CAPU_OK;
}

capu_status host_event_tally(struct device *device, struct device_event *from,
                             struct device_event *to, struct device_tally *tally)
{
    capu_status status = from->stream == to->stream ? check_times(device, from, to) : CAPU_INVALID;
    struct device_tally start;
    struct device_tally end;

    if (status != CAPU_OK) {
        return status;
    }
    start = tally_of(from);
    end = tally_of(to);
    *tally = (struct device_tally){
        .waited_ns = end.waited_ns - start.waited_ns,
        .exchange_ns = end.exchange_ns - start.exchange_ns,
        .exchanged_bytes = end.exchanged_bytes - start.exchanged_bytes,
    };
    return CAPU_OK;
}
