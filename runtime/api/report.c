/*
 * Reports for programs and people: see capuchin/report.h.
 *
 * capu_report_get and capu_report_print show what a finished iteration did, capu_traffic_get what
 * the context has copied; capu_memory_usage and capu_memory_print show who holds memory right now.
 * Printing sorts a copy by cost and cuts the list: a large network evicts thousands of tensors, and
 * the few that cost most are what a person looks for. The JSON line (report_json.c) has them all,
 * in order, and more counters than the public struct.
 */
#include "base/printable.h"
#include "base/size_text.h"
#include "runtime/api/context.h"
#include "runtime/context/config.h"
#include "runtime/context/failure.h"
#include "runtime/issue/issue.h"
#include "runtime/record/report_json.h"
#include "runtime/tensor/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How many evictions and stalls are printed at most, the most expensive first. */
enum { PRINTED_EVICTIONS = 20, PRINTED_STALLS = 8 };

enum unit { UNIT_count, UNIT_ns, UNIT_bytes };

static capu_report public_report(const struct report *report)
{
    return (capu_report){.size = sizeof(capu_report),
                         .version = CAPU_REPORT_VERSION,
                         .mode = report->mode,
                         .label = report->label,
                         .floor_op = report->floor_op,
                         .evictions = report->evictions,
                         .eviction_count = report->eviction_count,
                         .plan_error = report->plan_error,
                         .stalls = report->stalls,
                         .stall_count = report->stall_count,
#define COPY_COUNTER(name, unit, text) .name = report->name,
                         CAPU_REPORT_COUNTERS(COPY_COUNTER)
#undef COPY_COUNTER
    };
}

capu_status capu_report_get(capu_context *context, capu_report *report)
{
    capu_status status = context_usable(&context);
    capu_report own;

    if (status != CAPU_OK) {
        return status;
    }
    if (report == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "capu_report_get: `report` is NULL");
    }
    if (!context->settings.is_tracking) {
        return failure_set(&context->failure, CAPU_UNSUPPORTED,
                           "capu_report_get: in mode off there are records only if a report file, "
                           "a trace file or strict mode asks for them");
    }
    status = settle_records(context);
    if (status != CAPU_OK) {
        return status;
    }
    if (context->records.tracker.newest == NULL) {
        return failure_set(&context->failure, CAPU_NOT_READY,
                           "capu_report_get: no iteration has finished yet; call "
                           "capu_synchronize to wait for the last one");
    }
    own = public_report(&context->records.tracker.newest->report);
    if (!struct_write(report, report->size, &own, sizeof(own))) {
        return failure_set(&context->failure, CAPU_WRONG_STRUCT,
                           "capu_report_get: a capu_report of %zu bytes; this library's has %zu: "
                           "start it with CAPU_REPORT_INIT",
                           report->size, sizeof(capu_report));
    }
    return CAPU_OK;
}

/* Prints a number with the unit in which people read it most easily. */
static void print_value(FILE *file, enum unit unit, uint64_t value)
{
    static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    static const char *const times[] = {"ns", "us", "ms", "s"};
    double number = (double)value;
    size_t step = 0;

    if (unit == UNIT_ns && value == CAPU_NOT_TIMED) {
        fprintf(file, "%14s", "not timed");
    } else if (unit == UNIT_bytes) {
        while (number >= 1024 && step + 1 < sizeof(sizes) / sizeof(sizes[0])) {
            number /= 1024;
            step++;
        }
        fprintf(file, step == 0 ? "%10.0f %-3s" : "%10.2f %-3s", number, sizes[step]);
    } else if (unit == UNIT_ns) {
        while (number >= 1000 && step + 1 < sizeof(times) / sizeof(times[0])) {
            number /= 1000;
            step++;
        }
        fprintf(file, step == 0 ? "%10.0f %-3s" : "%10.2f %-3s", number, times[step]);
    } else {
        fprintf(file, "%10" PRIu64 "    ", value);
    }
}

/* Prints a name in a column of so many characters. */
static void print_name(FILE *file, size_t width, const char *name)
{
    char text[PRINTABLE_BYTES];

    fprintf(file, "%s ", printable_column(name, width, text));
}

/* Orders evictions by how long an op waited for them, then by size. */
static int by_cost(const void *left, const void *right)
{
    const capu_eviction *a = left;
    const capu_eviction *b = right;

    if (a->wait_ns != b->wait_ns) {
        return a->wait_ns > b->wait_ns ? -1 : 1;
    }
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->evicted_access < b->evicted_access ? -1 : a->evicted_access > b->evicted_access;
}

static capu_status print_evictions(const capu_report *report, FILE *file)
{
    capu_eviction *sorted;
    size_t count = report->eviction_count;

    if (count == 0) {
        return CAPU_OK;
    }
    sorted = malloc(count * sizeof(*sorted));
    if (sorted == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    memcpy(sorted, report->evictions, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_cost);
    fprintf(file, "  evictions, longest wait first (%zu in total)\n", count);
    fprintf(file, "  %-24s %14s  %-6s %-24s %-24s %14s\n", "tensor", "size", "method", "left after",
            "needed again by", "wait");
    for (size_t i = 0; i < count && i < PRINTED_EVICTIONS; i++) {
        fprintf(file, "  ");
        print_name(file, 24, sorted[i].tensor);
        print_value(file, UNIT_bytes, sorted[i].bytes);
        fprintf(file, "  %-6s ", report_method_name(sorted[i].method));
        print_name(file, 24,
                   sorted[i].evicted_op[0] != '\0' ? sorted[i].evicted_op
                                                   : "(before its first use)");
        print_name(file, 24,
                   sorted[i].back_op[0] != '\0' ? sorted[i].back_op : "(not in this iteration)");
        if (sorted[i].is_hidden) {
            fprintf(file, "%14s\n", "hidden");
        } else {
            print_value(file, UNIT_ns, sorted[i].wait_ns);
            fprintf(file, "\n");
        }
    }
    free(sorted);
    return CAPU_OK;
}

static int by_stall(const void *left, const void *right)
{
    const capu_stall *a = left;
    const capu_stall *b = right;

    if (a->wait_ns != b->wait_ns) {
        return a->wait_ns > b->wait_ns ? -1 : 1;
    }
    return a->access != b->access ? (a->access < b->access ? -1 : 1) : strcmp(a->replay, b->replay);
}

static capu_status print_stalls(const capu_report *report, FILE *file)
{
    capu_stall *sorted;
    size_t count = report->stall_count;

    if (count == 0) {
        return CAPU_OK;
    }
    sorted = malloc(count * sizeof(*sorted));
    if (sorted == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    memcpy(sorted, report->stalls, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_stall);
    fprintf(file, "  ops that waited for tensors or for room, longest wait first (%zu in total)\n",
            count);
    for (size_t i = 0; i < count && i < PRINTED_STALLS; i++) {
        const capu_stall *stall = &sorted[i];

        if (stall->access == UINT64_MAX) {
            fprintf(file, "  %-36s ", "(after the last op)");
        } else {
            fprintf(file, "  ");
            print_name(file, 24, stall->op);
            fprintf(file, "op %-8" PRIu64 " ", stall->access);
        }
        print_value(file, UNIT_ns, stall->wait_ns);
        fputs(stall->replay[0] != '\0' ? " before a replay of " : "", file);
        printable_print(file, stall->replay);
        fputc('\n', file);
    }
    free(sorted);
    return CAPU_OK;
}

static void print_text(FILE *file, const char *field, const char *text)
{
    fprintf(file, "  %-20s %14s  ", field, "");
    printable_print(file, text != NULL ? text : "");
    fputc('\n', file);
}

capu_status capu_report_print(const capu_report *report, FILE *file)
{
    capu_report own;
    capu_status status;

    if (report == NULL || file == NULL) {
        return CAPU_INVALID;
    }
    if (!struct_read(&own, sizeof(own), report, report->size)) {
        return CAPU_WRONG_STRUCT;
    }
    fprintf(file, "iteration %" PRIu64 "%s", own.iteration,
            own.label != NULL && own.label[0] != '\0' ? " " : "");
    printable_print(file, own.label != NULL ? own.label : "");
    fprintf(file, ", %s mode\n", report_mode_name(own.mode));
#define PRINT_COUNTER(name, unit, text)       \
    fprintf(file, "  %-20s ", #name);         \
    print_value(file, UNIT_##unit, own.name); \
    fprintf(file, "  %s\n", text);
    CAPU_REPORT_COUNTERS(PRINT_COUNTER)
#undef PRINT_COUNTER
    print_text(file, "floor_op", own.floor_op);
    if (own.plan_error != NULL && own.plan_error[0] != '\0') {
        print_text(file, "plan_error", own.plan_error);
    }
    status = print_stalls(&own, file);
    if (status == CAPU_OK) {
        status = print_evictions(&own, file);
    }
    if (status != CAPU_OK) {
        return status;
    }
    return fflush(file) == 0 && !ferror(file) ? CAPU_OK : CAPU_FILE_FAILED;
}

capu_status capu_traffic_get(capu_context *context, capu_traffic *traffic)
{
    capu_status status = context_present(&context);

    if (status != CAPU_OK) {
        return status;
    }
    if (traffic == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "capu_traffic_get: `traffic` is NULL");
    }
    if (!struct_write(traffic, traffic->size, &context->records.traffic.totals, sizeof(*traffic))) {
        return failure_set(&context->failure, CAPU_WRONG_STRUCT,
                           "a capu_traffic of %zu bytes; this library's is %zu", traffic->size,
                           sizeof(*traffic));
    }
    return CAPU_OK;
}

void capu_memory_usage(const capu_context *context, uint64_t *held_bytes, uint64_t *peak_bytes,
                       uint64_t *host_bytes)
{
    uint64_t page_bytes;

    context = context_meant(context);
    if (context == NULL || fork_mark_is_in_child(&context->fork_mark)) {
        return;
    }
    page_bytes = pages_bytes_each(context->memory.pages);
    if (held_bytes != NULL) {
        *held_bytes = pages_out(context->memory.pages) * page_bytes;
    }
    if (peak_bytes != NULL) {
        *peak_bytes = pages_created_peak(context->memory.pages) * page_bytes;
    }
    if (host_bytes != NULL) {
        *host_bytes = host_arena_chunk_bytes(context->memory.arena);
    }
}

/* The memory that one tensor holds, or several small ones that are alike. */
struct holder {
    struct tensor *tensor; /* the first */
    size_t count;
    uint64_t bytes;
    uint64_t device_bytes;
    uint64_t host_bytes;
};

static int by_bytes(const void *left, const void *right)
{
    const struct holder *a = left;
    const struct holder *b = right;

    if (a->device_bytes != b->device_bytes) {
        return a->device_bytes > b->device_bytes ? -1 : 1;
    }
    if (a->host_bytes != b->host_bytes) {
        return a->host_bytes > b->host_bytes ? -1 : 1;
    }
    return (uintptr_t)a->tensor->address < (uintptr_t)b->tensor->address ? -1 : 1;
}

struct holders {
    struct holder *list;
    size_t count;
    uint64_t page_bytes;
};

static void collect_holder(struct tensor *tensor, void *data)
{
    struct holders *holders = data;
    struct holder *holder = &holders->list[holders->count];

    holder->tensor = tensor;
    holder->count = 1;
    holder->bytes = tensor->bytes;
    holder->device_bytes = tensor_is_mapped(tensor) ? tensor->page_count * holders->page_bytes : 0;
    if (!tensor_is_managed(tensor)) {
        holder->device_bytes = tensor->bytes;
    }
    holder->host_bytes = tensor_on_host(tensor) ? tensor->span_bytes : 0;
    holders->count += holder->device_bytes + holder->host_bytes > 0;
}

static bool is_small(const struct tensor *tensor)
{
    return tensor->allocation->page_count == 0;
}

static const char *after_digits(const char *text)
{
    while (*text >= '0' && *text <= '9') {
        text++;
    }
    return text;
}

/* Compares names in which all numbers are alike. */
static int compare_names(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        const char *rest_a = after_digits(a);
        const char *rest_b = after_digits(b);

        if ((rest_a == a) != (rest_b == b) || (rest_a == a && *a != *b)) {
            break;
        }
        a = rest_a == a ? a + 1 : rest_a;
        b = rest_b == b ? b + 1 : rest_b;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* Small ones first, those next to each other that are alike: of one kind, with names that differ in
   numbers only, or without names. */
static int by_group(const void *left, const void *right)
{
    const struct tensor *a = ((const struct holder *)left)->tensor;
    const struct tensor *b = ((const struct holder *)right)->tensor;

    if (is_small(a) != is_small(b)) {
        return is_small(a) ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    if (lookup_is_named(a) != lookup_is_named(b)) {
        return lookup_is_named(a) ? -1 : 1;
    }
    return lookup_is_named(a) ? compare_names(a->name, b->name) : 0;
}

/* Makes one entry of small tensors that are alike. */
static void group_holders(struct holders *holders)
{
    size_t count = 0;

    qsort(holders->list, holders->count, sizeof(*holders->list), by_group);
    for (size_t i = 0; i < holders->count; i++) {
        const struct holder *holder = &holders->list[i];
        struct holder *last = &holders->list[count > 0 ? count - 1 : 0];

        if (count == 0 || !is_small(holder->tensor) || by_group(last, holder) != 0) {
            holders->list[count++] = *holder;
            continue;
        }
        last->count += holder->count;
        last->bytes += holder->bytes;
        last->device_bytes += holder->device_bytes;
    }
    holders->count = count;
}

/* What small tensors take of the slabs, and why that may be little. */
static void print_slabs(capu_context *context, FILE *file)
{
    uint64_t page_bytes = pages_bytes_each(context->memory.pages);
    size_t used = slabs_used_count(context->memory.slabs);
    uint64_t used_bytes = slabs_used_bytes(context->memory.slabs);

    if (slabs_page_count(context->memory.slabs) == 0) {
        return;
    }
    fprintf(file, "small tensors take %s of %s of slabs; %zu more pages of slabs are empty\n",
            size_text(used_bytes).text, size_text(used * page_bytes).text,
            slabs_page_count(context->memory.slabs) - used);
    if (used > 1 && used_bytes < used * page_bytes / 2) {
        fprintf(file, "  a slab stays as long as one tensor is in it: allocate small tensors that "
                      "live long before those that do not, or together as one allocation\n");
    }
}

static const char *kind_text(uint32_t kind)
{
    static const char *const names[] = {"-",          "parameter", "optimizer", "gradient",
                                        "activation", "workspace", "input"};

    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "-";
}

static void print_holders(capu_context *context, const struct holders *holders, FILE *file)
{
    fprintf(file, "  %-28s %-10s %14s %14s %14s  %s\n", "tensor", "kind", "size", "on device",
            "on host", "state");
    for (size_t i = 0; i < holders->count; i++) {
        const struct holder *holder = &holders->list[i];
        const struct tensor *tensor = holder->tensor;

        fprintf(file, "  ");
        print_name(file, 28, lookup_name(&context->memory, holder->tensor));
        fprintf(file, "%-10s ", kind_text(tensor->kind));
        print_value(file, UNIT_bytes, holder->bytes);
        fprintf(file, " ");
        print_value(file, UNIT_bytes, holder->device_bytes);
        fprintf(file, " ");
        print_value(file, UNIT_bytes, holder->host_bytes);
        fprintf(file, "  %s",
                !tensor_is_managed(tensor)        ? "always resident"
                : tensor->state.departure != NULL ? "leaving"
                : tensor_is_mapped(tensor)        ? "resident"
                                                  : "out");
        if (holder->count > 1) {
            fprintf(file, ", %zu such tensors", holder->count);
        }
        fprintf(file, "\n");
    }
}

capu_status capu_memory_print(capu_context *context, FILE *file)
{
    struct holders holders = {0};
    capu_status status = context_present(&context);

    if (status != CAPU_OK) {
        return status;
    }
    if (file == NULL) {
        return failure_set(&context->failure, CAPU_INVALID, "capu_memory_print: `file` is NULL");
    }
    holders.page_bytes = pages_bytes_each(context->memory.pages);
    holders.list = malloc((context->memory.tensors.live_count + 1) * sizeof(*holders.list));
    if (holders.list == NULL) {
        return failure_set(&context->failure, CAPU_NO_HOST_MEMORY,
                           "capu_memory_print: no memory to list the tensors");
    }
    tensors_each(&context->memory.tensors, collect_holder, &holders);
    group_holders(&holders);
    qsort(holders.list, holders.count, sizeof(*holders.list), by_bytes);
    fprintf(file,
            "device memory: %zu of %zu pages of %" PRIu64 " bytes in use, %zu always "
            "resident, %zu leaving; host memory: %s of %s in use\n",
            pages_out(context->memory.pages), pages_limit(context->memory.pages),
            holders.page_bytes, memory_fixed_pages(&context->memory),
            context->residency.departures.leaving_pages,
            size_text(host_arena_used_bytes(context->memory.arena)).text,
            size_text(host_arena_chunk_bytes(context->memory.arena)).text);
    print_slabs(context, file);
    print_holders(context, &holders, file);
    free(holders.list);
    return fflush(file) == 0 && !ferror(file) ? CAPU_OK
                                              : failure_set(&context->failure, CAPU_FILE_FAILED,
                                                            "capu_memory_print: writing failed");
}
