/* Tensors and allocations on their way out, see departure.h. */
#include "runtime/residency/departure.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/tensor/memory.h"

#include <stdlib.h>

struct departure *departure_take(struct departures *departures)
{
    struct departure *departure = departures->spare;

    if (departure == NULL) {
        return calloc(1, sizeof(*departure));
    }
    departures->spare = departure->next;
    *departure = (struct departure){0};
    return departure;
}

void departure_append(struct departures *departures, struct departure_queue *queue,
                      struct departure *departure)
{
    departure->order = departures->order++;
    departure->queue = queue;
    departure->previous = queue->tail;
    departure->next = NULL;
    if (queue->tail != NULL) {
        queue->tail->next = departure;
    } else {
        queue->head = departure;
    }
    queue->tail = departure;
    departures->leaving_pages += departure->page_count;
}

void departure_recycle(struct departures *departures, struct departure *departure)
{
    if (departure->tensor != NULL && departure->tensor->state.departure == departure) {
        tensor_state_stays(departure->tensor);
    }
    if (departure->allocation != NULL) {
        departure->allocation->departure = NULL;
    }
    departure->next = departures->spare;
    departures->spare = departure;
}

void departure_cancel(struct departures *departures, struct departure *departure)
{
    struct departure_queue *queue = departure->queue;

    if (departure->previous != NULL) {
        departure->previous->next = departure->next;
    } else {
        queue->head = departure->next;
    }
    if (departure->next != NULL) {
        departure->next->previous = departure->previous;
    } else {
        queue->tail = departure->previous;
    }
    departures->leaving_pages -= departure->page_count;
    departure_recycle(departures, departure);
}

static bool departure_is_past(const struct departure *departure)
{
    return lane_has_passed(departure->after[0]) && lane_has_passed(departure->after[1]) &&
           lane_has_passed(departure->after[2]);
}

/* Unmaps a span and gives its pages back. Pre: all work that touches it has finished. */
static capu_status release_span(struct residency *residency, struct tensor *tensor)
{
    capu_status status;

    if (!tensor_is_mapped(tensor)) {
        return CAPU_OK;
    }
    status = device_unmap(residency->lanes->device, tensor->span, tensor->page_count);
    if (status != CAPU_OK) {
        return failure_check(residency->failure, status, "unmapping memory");
    }
    TRACKER_ADD(residency->records, unmap_count, 1);
    pages_give(residency->memory->pages, tensor->pages, tensor->page_count);
    tensor_state_unmapped(tensor);
    return CAPU_OK;
}

static capu_status release_edges(struct residency *residency, struct allocation *allocation)
{
    uint64_t page_bytes = pages_bytes_each(residency->memory->pages);

    for (size_t i = 0; allocation->edge_pages != NULL && i < allocation->page_count; i++) {
        unsigned char *address = (unsigned char *)allocation->address + i * page_bytes;

        if (allocation->edge_pages[i] != DEVICE_NO_PAGE) {
            capu_status status = device_unmap(residency->lanes->device, address, 1);

            if (status != CAPU_OK) {
                return failure_check(residency->failure, status, "unmapping memory");
            }
            TRACKER_ADD(residency->records, unmap_count, 1);
            pages_give(residency->memory->pages, &allocation->edge_pages[i], 1);
            allocation->edge_pages[i] = DEVICE_NO_PAGE;
            residency->memory->edge_page_count--;
        }
    }
    return CAPU_OK;
}

/* Unmaps everything that a freed allocation still has mapped. Can be repeated after a failure. */
static capu_status release_pages(struct residency *residency, struct allocation *allocation)
{
    struct departure *departure = allocation->departure;

    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        size_t held = tensor_is_mapped(tensor) ? tensor->page_count : 0;
        capu_status status = release_span(residency, tensor);

        if (status != CAPU_OK) {
            return status;
        }
        if (departure != NULL) {
            departure->page_count -= held;
            residency->departures.leaving_pages -= held;
        }
    }
    return release_edges(residency, allocation);
}

static capu_status departure_end(struct residency *residency, struct departure *departure)
{
    struct allocation *allocation = departure->allocation;
    capu_status status = departure->tensor != NULL ? release_span(residency, departure->tensor)
                                                   : release_pages(residency, allocation);
    bool rests;

    if (status != CAPU_OK) {
        return status;
    }
    departure_cancel(&residency->departures, departure);
    if (allocation != NULL) {
        rests = residency->iteration->is_open &&
                allocation->freed_iteration == residency->iteration->number;
        ranges_give(residency->memory->ranges, allocation->address, allocation->page_count, rests);
        allocation_destroy(residency->memory, allocation, residency->iteration->is_open);
    }
    return CAPU_OK;
}

static capu_status reap_queue(struct residency *residency, struct departure_queue *queue)
{
    while (queue->head != NULL && departure_is_past(queue->head)) {
        capu_status status = departure_end(residency, queue->head);

        if (status != CAPU_OK) {
            return status;
        }
    }
    return CAPU_OK;
}

capu_status departures_reap(struct residency *residency)
{
    capu_status status = reap_queue(residency, &residency->departures.leaving);

    return status != CAPU_OK ? status : reap_queue(residency, &residency->departures.copying);
}

capu_status departure_wait(struct residency *residency, struct departure *departure)
{
    uint64_t start = device_now_ns(residency->lanes->device);

    for (size_t i = 0; i < sizeof(departure->after) / sizeof(departure->after[0]); i++) {
        capu_status status = lane_wait(departure->after[i]);

        if (status != CAPU_OK) {
            return failure_check(residency->failure, status, "waiting for an eviction");
        }
    }
    traffic_host_waited(residency->records, start);
    return departure_end(residency, departure);
}

capu_status departures_wait_oldest(struct residency *residency)
{
    const struct departure_queue *copying = &residency->departures.copying;
    const struct departure_queue *leaving = &residency->departures.leaving;
    const struct departure_queue *queue = leaving;

    ASSERT(departures_any(residency));
    if (leaving->head == NULL ||
        (copying->head != NULL && copying->head->order < leaving->head->order)) {
        queue = copying;
    }
    return departure_wait(residency, queue->head);
}

bool departures_any(const struct residency *residency)
{
    return residency->departures.leaving.head != NULL || residency->departures.copying.head != NULL;
}

capu_status departure_reserve(struct residency *residency)
{
    struct departure *departure = departure_take(&residency->departures);

    if (departure == NULL) {
        return failure_set(residency->failure, CAPU_NO_HOST_MEMORY,
                           "no memory to note a freed allocation");
    }
    departure_recycle(&residency->departures, departure);
    return CAPU_OK;
}

/* Several tensors of an allocation may have work under way: the last of each lane counts. There are
   as many lanes as positions. */
static void keep_later(struct departure *departure, struct lane_position position)
{
    struct lane_position *latest = departure->after;

    if (lane_has_passed(position)) {
        return;
    }
    while (latest->lane != NULL && latest->lane != position.lane) {
        latest++;
    }
    if (latest->lane == NULL || position.sequence > latest->sequence) {
        *latest = position;
    }
}

static bool waits_for_copy_out(const struct residency *residency, const struct departure *departure)
{
    bool waits = false;

    for (size_t i = 0; i < sizeof(departure->after) / sizeof(departure->after[0]); i++) {
        waits = waits || departure->after[i].lane == &residency->lanes->d2h;
    }
    return waits;
}

void departure_bury(struct residency *residency, struct allocation *allocation,
                    struct lane_position used)
{
    struct departure *departure = departure_take(&residency->departures);

    ASSERT(departure != NULL && allocation->departure == NULL);
    departure->allocation = allocation;
    keep_later(departure, used);
    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        if (tensor->state.departure != NULL) {
            departure_cancel(&residency->departures, tensor->state.departure);
        }
        swap_drop(residency, tensor);
        tensor_list_remove(tensor, RESIDENCY);
        keep_later(departure, tensor->left);
        keep_later(departure, tensor->ready);
        departure->page_count += tensor_is_mapped(tensor) ? tensor->page_count : 0;
    }
    allocation->departure = departure;
    departure_append(&residency->departures,
                     waits_for_copy_out(residency, departure) ? &residency->departures.copying
                                                              : &residency->departures.leaving,
                     departure);
}

void departure_unbury(struct residency *residency, struct allocation *allocation)
{
    departure_cancel(&residency->departures, allocation->departure);
    victims_touch(residency, allocation->first);
}

capu_status departure_wait_buried(struct residency *residency, struct allocation *allocation)
{
    return departure_wait(residency, allocation->departure);
}

/* Ends a departure even if the device fails: its structs are freed here, and its pages when the
   device is destroyed. */
static void departure_force(struct residency *residency, struct departure *departure)
{
    struct allocation *allocation = departure->allocation;

    for (size_t i = 0; i < sizeof(departure->after) / sizeof(departure->after[0]); i++) {
        lane_wait(departure->after[i]);
    }
    if (departure_end(residency, departure) != CAPU_OK) {
        departure_cancel(&residency->departures, departure);
        if (allocation != NULL) {
            allocation_destroy(residency->memory, allocation, residency->iteration->is_open);
        }
    }
}

void departure_abandon(struct residency *residency, struct allocation *allocation)
{
    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        if (tensor->state.departure != NULL) {
            departure_cancel(&residency->departures, tensor->state.departure);
        }
        swap_drop(residency, tensor);
        tensor_list_remove(tensor, RESIDENCY);
        tensor_list_remove(tensor, CONTENTS);
        tensors_remove(&residency->memory->tensors, tensor);
    }
    release_pages(residency, allocation);
    allocation_destroy(residency->memory, allocation, residency->iteration->is_open);
}

void departures_finish(struct residency *residency)
{
    struct departures *departures = &residency->departures;

    while (departures->leaving.head != NULL) {
        departure_force(residency, departures->leaving.head);
    }
    while (departures->copying.head != NULL) {
        departure_force(residency, departures->copying.head);
    }
    while (departures->spare != NULL) {
        struct departure *next = departures->spare->next;

        free(departures->spare);
        departures->spare = next;
    }
}

/*
 * Parked allocations.
 */

void parked_add(struct residency *residency, struct allocation *allocation)
{
    allocation->is_parked = true;
    allocation->next_parked = residency->parked;
    residency->parked = allocation;
}

void parked_remove(struct residency *residency, struct allocation *allocation)
{
    struct allocation **at = &residency->parked;

    while (*at != allocation) {
        at = &(*at)->next_parked;
    }
    *at = allocation->next_parked;
    allocation->is_parked = false;
}

capu_status parked_create(struct residency *residency, const void *address, uint64_t bytes,
                          size_t page_count, struct allocation **out)
{
    void *at = (void *)(uintptr_t)address;
    capu_status status = ranges_take_at(residency->memory->ranges, at, page_count);

    if (status != CAPU_OK) {
        return failure_set(residency->failure, CAPU_NOT_READY, "the addresses at %p are in use",
                           address);
    }
    status = allocation_create(residency->memory, at, bytes, page_count, out);
    if (status != CAPU_OK) {
        ranges_give(residency->memory->ranges, at, page_count, false);
        return failure_set(residency->failure, status, "no memory to note an allocation");
    }
    tensors_remove(&residency->memory->tensors, (*out)->first);
    (*out)->is_freed = true;
    parked_add(residency, *out);
    return CAPU_OK;
}

/* Starts the departure of a freed allocation that was parked. Pre: departure_reserve. */
static void depart_parked(struct residency *residency, struct allocation *allocation)
{
    struct lane_position used = {0};

    for (struct tensor *tensor = allocation->first; tensor != NULL; tensor = tensor->next) {
        contents_forget(residency, tensor);
        used = tensor->used.sequence > used.sequence ? tensor->used : used;
    }
    if (allocation->edge_pages != NULL) {
        /* Replays may have written small tensors after they were freed. */
        used = lane_promise(&residency->lanes->compute);
    }
    departure_bury(residency, allocation, used);
}

bool parked_is_in_use(const struct residency *residency, const struct allocation *allocation)
{
    return residency->iteration->is_open &&
           allocation->freed_iteration == residency->iteration->number;
}

void parked_clear(struct residency *residency)
{
    struct allocation *next;

    for (struct allocation *allocation = residency->parked; allocation != NULL; allocation = next) {
        next = allocation->next_parked;
        /* Without host memory for its departure it stays parked, and the next call tries again. */
        if (!tensor_is_placed(allocation->first) && !parked_is_in_use(residency, allocation) &&
            departure_reserve(residency) == CAPU_OK) {
            parked_remove(residency, allocation);
            depart_parked(residency, allocation);
        }
    }
}
