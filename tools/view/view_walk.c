/*
 * Events become stays, moves and copies. One walk over the events in order of issue follows each
 * tensor: when it arrived, when its last access ended, which copies are under way. A stay is
 * written down when it ends, because only its end says what it was: a tensor that a replay makes
 * again was dropped, one that is copied back was on the host.
 */
#include "tools/view/view_events.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define NEVER INT64_MIN

enum where { NOWHERE, TAKING, ON_DEVICE, GONE };

/* A tensor, at this point of the walk. */
struct follower {
    enum where where;
    int64_t since_ns; /* ON_DEVICE: from when; GONE and then TAKING: when it was gone, or NEVER */
    int64_t busy_ns;  /* its last access or copy in ends */
    int64_t out_ns;   /* its last copy out of this residency begins and ends */
    int64_t out_end_ns;
    uint32_t first_out; /* copies out of this residency, the newest first: see next_out */
    uint32_t move;      /* left and not accessed since; VIEW_NONE: none */
    uint32_t method;    /* of that */
};

struct walk {
    struct view *view;
    const struct view_events *events;
    struct follower *followers;
    uint32_t *next_out; /* per copy: the next older copy out of the same residency */
    size_t stay_capacity;
    size_t move_capacity;
    bool is_short_of_memory;
};

static void add_stay(struct walk *walk, uint32_t tensor, enum view_state state, int64_t begin_ns,
                     int64_t end_ns)
{
    struct view *view = walk->view;
    int64_t time_ns = (int64_t)walk->events->time_ns;

    begin_ns = begin_ns > 0 ? begin_ns : 0;
    end_ns = end_ns < time_ns ? end_ns : time_ns;
    if (begin_ns >= end_ns || walk->events->held_bytes[tensor] == 0) {
        return;
    }
    if (!array_reserve(&view->stays, &walk->stay_capacity, (size_t)view->stay_count + 1,
                       sizeof(*view->stays))) {
        walk->is_short_of_memory = true;
        return;
    }
    view->stays[view->stay_count++] = (struct view_stay){
        .tensor = tensor,
        .state = state,
        .begin_ns = begin_ns,
        .end_ns = end_ns,
    };
}

/* VIEW_NONE: out of memory, or more than 32 bits. */
static uint32_t add_move(struct walk *walk, uint32_t tensor, uint32_t method)
{
    struct view *view = walk->view;

    if (view->move_count == VIEW_NONE - 1 ||
        !array_reserve(&view->moves, &walk->move_capacity, (size_t)view->move_count + 1,
                       sizeof(*view->moves))) {
        walk->is_short_of_memory = true;
        return VIEW_NONE;
    }
    view->moves[view->move_count] = (struct view_move){
        .tensor = tensor,
        .method = method,
        .copy_out = VIEW_NONE,
        .in_trigger = VIEW_NONE,
        .copy_in = VIEW_NONE,
        .replay = VIEW_NONE,
        .back_op = VIEW_NONE,
    };
    return view->move_count++;
}

/* The move that is under way; where the tensor left before the iteration, a new one. */
static struct view_move *open_move(struct walk *walk, uint32_t tensor, uint32_t method)
{
    struct follower *follower = &walk->followers[tensor];

    if (follower->move == VIEW_NONE) {
        follower->move = add_move(walk, tensor, method);
    }
    return follower->move != VIEW_NONE ? &walk->view->moves[follower->move] : NULL;
}

/* The copies out of this residency belong to a move. */
static void claim_copies(struct walk *walk, uint32_t tensor, uint32_t move)
{
    struct follower *follower = &walk->followers[tensor];

    if (follower->first_out != VIEW_NONE && move != VIEW_NONE) {
        walk->view->moves[move].copy_out = follower->first_out;
    }
    for (uint32_t copy = follower->first_out; copy != VIEW_NONE; copy = walk->next_out[copy]) {
        walk->view->copies[copy].move = move;
    }
    follower->first_out = VIEW_NONE;
}

/* The tensor is on the device from begin_ns. `state`: how it comes, RESIDENT for an op that writes
   it; `before`: what it was until then. */
static void begin_presence(struct walk *walk, uint32_t tensor, enum view_state state,
                           int64_t begin_ns, int64_t end_ns)
{
    struct follower *follower = &walk->followers[tensor];

    if (follower->where == TAKING && state != VIEW_RESIDENT && follower->since_ns != NEVER) {
        add_stay(walk, tensor, state == VIEW_COMING ? VIEW_ON_HOST : VIEW_DROPPED,
                 follower->since_ns, begin_ns);
    }
    if (state != VIEW_RESIDENT) {
        add_stay(walk, tensor, state, begin_ns, end_ns);
        begin_ns = end_ns;
    }
    follower->where = ON_DEVICE;
    follower->since_ns = begin_ns;
    follower->busy_ns = end_ns;
    follower->out_ns = NEVER;
    follower->out_end_ns = NEVER;
}

/* Ends the residency; returns when its memory is free. */
static int64_t end_presence(struct walk *walk, uint32_t tensor)
{
    struct follower *follower = &walk->followers[tensor];
    int64_t leaves_ns = follower->busy_ns > follower->out_ns ? follower->busy_ns : follower->out_ns;
    int64_t free_ns =
        follower->busy_ns > follower->out_end_ns ? follower->busy_ns : follower->out_end_ns;

    if (follower->where != ON_DEVICE) {
        return follower->since_ns != NEVER ? follower->since_ns : 0; /* it never used its memory */
    }
    leaves_ns = leaves_ns < free_ns ? leaves_ns : free_ns;
    add_stay(walk, tensor, VIEW_RESIDENT, follower->since_ns, leaves_ns);
    add_stay(walk, tensor, VIEW_LEAVING,
             leaves_ns > follower->since_ns ? leaves_ns : follower->since_ns, free_ns);
    return free_ns;
}

static void walk_give(struct walk *walk, const struct view_event *event)
{
    uint32_t tensor = event->subject;
    struct follower *follower = &walk->followers[tensor];
    int64_t free_ns = end_presence(walk, tensor);
    uint32_t move = add_move(walk, tensor, event->method);

    claim_copies(walk, tensor, move);
    if (move != VIEW_NONE) {
        walk->view->moves[move].has_left = true;
        walk->view->moves[move].left_ns = free_ns;
    }
    follower->where = GONE;
    follower->since_ns = free_ns;
    follower->move = move;
    follower->method = event->method;
}

/* The contents are not needed any more. If they were copied out to be kept, it is an eviction. */
static void walk_end(struct walk *walk, const struct view_event *event)
{
    struct follower *follower = &walk->followers[event->subject];

    if (follower->first_out != VIEW_NONE) {
        struct view_event eviction = *event;

        eviction.method = CAPU_METHOD_SWAP;
        walk_give(walk, &eviction);
        return;
    }
    follower->since_ns = end_presence(walk, event->subject);
    follower->where = NOWHERE;
    follower->move = VIEW_NONE;
}

static void walk_copy(struct walk *walk, const struct view_event *event)
{
    struct view *view = walk->view;
    uint32_t tensor = event->subject;
    struct follower *follower = &walk->followers[tensor];
    uint32_t number = view->copy_count++;
    struct view_copy *copy = &view->copies[number];

    *copy = (struct view_copy){
        .direction = event->kind == EVENT_OUT ? VIEW_OUT : VIEW_IN,
        .tensor = tensor,
        .bytes = walk->events->trace_index->trace->tensors[tensor].bytes,
        .begin_ns = event->begin_ns,
        .end_ns = event->end_ns,
        .wait_ns = event->wait_ns,
        .wait = event->wait,
        .issue = event->point,
        .move = VIEW_NONE,
    };
    view->tensors[tensor].copied_bytes += copy->bytes;
    if (event->kind == EVENT_OUT) {
        view->out_bytes += copy->bytes;
        walk->next_out[number] = follower->first_out;
        follower->first_out = number;
        follower->out_ns = event->begin_ns;
        follower->out_end_ns = event->end_ns;
    } else {
        struct view_move *move = open_move(walk, tensor, CAPU_METHOD_SWAP);

        view->in_bytes += copy->bytes;
        begin_presence(walk, tensor, VIEW_COMING, event->begin_ns, event->end_ns);
        if (move != NULL) {
            copy->move = follower->move;
            /* It left without a copy, so there was one. */
            move->method = move->method == CAPU_METHOD_EMPTY ? CAPU_METHOD_CLEAN : move->method;
            move->copy_in = number;
            move->in_trigger = event->point;
        }
    }
}

/* How much of the wait before an op was for the return of a tensor. */
static uint64_t wait_for_return(const struct view *view, const struct view_move *move,
                                const struct view_event *event)
{
    int64_t idle_from = event->begin_ns - (int64_t)event->wait_ns;
    int64_t waited;

    if (move->copy_in == VIEW_NONE) {
        return 0;
    }
    waited = view->copies[move->copy_in].end_ns - idle_from;
    if (waited <= 0) {
        return 0;
    }
    return (uint64_t)waited < event->wait_ns ? (uint64_t)waited : event->wait_ns;
}

/* An op or a replay accesses a tensor. */
static void walk_access(struct walk *walk, const struct view_event *event, uint32_t tensor,
                        bool is_written)
{
    struct view *view = walk->view;
    struct follower *follower = &walk->followers[tensor];
    bool is_replay = event->kind == EVENT_REPLAY;

    if (follower->where == TAKING || follower->where == GONE) {
        bool is_made_again = is_replay && is_written && follower->move != VIEW_NONE;

        follower->where = TAKING;
        if (is_made_again) {
            struct view_move *move = &view->moves[follower->move];

            move->method = move->method == CAPU_METHOD_EMPTY ? CAPU_METHOD_RECOMPUTE : move->method;
            move->replay = view->op_count;
            move->in_trigger = event->point;
        }
        begin_presence(walk, tensor, is_replay && is_written ? VIEW_REPLAYED : VIEW_RESIDENT,
                       event->begin_ns, event->end_ns);
    }
    follower->busy_ns = event->end_ns > follower->busy_ns ? event->end_ns : follower->busy_ns;
    if (follower->move != VIEW_NONE) {
        struct view_move *move = &view->moves[follower->move];
        uint64_t wait_ns = wait_for_return(view, move, event);

        move->wait_ns += wait_ns;
        view->tensors[tensor].waited_ns += wait_ns;
        if (!is_replay) {
            move->back_op = event->subject;
            move->in_trigger = move->in_trigger != VIEW_NONE ? move->in_trigger : event->subject;
            follower->move = VIEW_NONE;
        }
    }
}

static void walk_run(struct walk *walk, const struct view_event *event)
{
    struct view *view = walk->view;
    const struct trace *trace = walk->events->trace_index->trace;
    const struct trace_op *op = &trace->ops[event->subject];

    for (uint32_t i = 0; i < trace_operand_count(op); i++) {
        uint32_t tensor = trace->operands[op->first + i];

        if (trace->tensors[tensor].managed) {
            walk_access(walk, event, tensor, i >= op->read_count);
        }
    }
    view->ops[view->op_count] = (struct view_op){
        .name = view->names + op->name,
        .segment = view->names + op->segment,
        .number = event->subject,
        .before = event->kind == EVENT_REPLAY ? event->point : event->subject,
        .is_replay = event->kind == EVENT_REPLAY,
        .begin_ns = event->begin_ns,
        .end_ns = event->end_ns,
        .wait_ns = event->wait_ns,
        .wait = event->wait,
        .waited_ns = event->waited_ns,
    };
    if (event->kind == EVENT_REPLAY) {
        view->replay_ns += (uint64_t)(event->end_ns - event->begin_ns);
    } else {
        view->ideal_ns += (uint64_t)(event->end_ns - event->begin_ns) - event->waited_ns;
        view->waited_ns += event->waited_ns;
        view->op_of_number[event->subject] = view->op_count;
    }
    view->stall_ns += event->wait_ns;
    view->op_count++;
}

static void walk_take(struct walk *walk, const struct view_event *event)
{
    struct follower *follower = &walk->followers[event->subject];

    if (follower->where == ON_DEVICE) {
        return;
    }
    follower->since_ns = follower->where == GONE ? follower->since_ns : NEVER;
    follower->where = TAKING;
}

static void walk_event(struct walk *walk, const struct view_event *event)
{
    switch (event->kind) {
    case EVENT_OP:
    case EVENT_REPLAY:
        walk_run(walk, event);
        break;
    case EVENT_OUT:
    case EVENT_IN:
        walk_copy(walk, event);
        break;
    case EVENT_TAKE:
        walk_take(walk, event);
        break;
    case EVENT_GIVE:
        walk_give(walk, event);
        break;
    case EVENT_END:
    default:
        walk_end(walk, event);
        break;
    }
}

/* What copies of the iteration before still do when this one begins. */
static void begin_stay(struct walk *walk, uint32_t tensor, const struct view_start *start)
{
    struct follower *follower = &walk->followers[tensor];

    if (follower->where != ON_DEVICE) {
        add_stay(walk, tensor, VIEW_LEAVING, 0, start->free_ns);
        follower->since_ns = start->free_ns;
        return;
    }
    add_stay(walk, tensor, VIEW_COMING, 0, start->ready_ns);
    follower->since_ns = start->ready_ns;
    follower->busy_ns = start->ready_ns;
    if (start->saved_ns > 0) {
        follower->out_ns = 0;
        follower->out_end_ns = start->saved_ns;
    }
}

static void begin_walk(struct walk *walk)
{
    const struct trace *trace = walk->events->trace_index->trace;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        const struct view_start *start = &walk->events->starts[t];

        walk->followers[t] = (struct follower){
            .where = start->is_on_device ? ON_DEVICE
                     : start->is_on_host ? GONE
                                         : NOWHERE,
            .out_ns = NEVER,
            .out_end_ns = NEVER,
            .first_out = VIEW_NONE,
            .move = VIEW_NONE,
            .method = CAPU_METHOD_SWAP,
        };
        begin_stay(walk, t, start);
    }
}

/* What is still there at the end of the iteration stays until then. */
static void end_walk(struct walk *walk)
{
    const struct trace *trace = walk->events->trace_index->trace;
    int64_t time_ns = (int64_t)walk->events->time_ns;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        struct follower *follower = &walk->followers[t];
        bool has_copy =
            follower->method == CAPU_METHOD_SWAP || follower->method == CAPU_METHOD_CLEAN;

        if (follower->where == ON_DEVICE) {
            add_stay(walk, t, VIEW_RESIDENT, follower->since_ns, time_ns);
        } else if (follower->where == GONE && has_copy && trace->tensors[t].persistent) {
            add_stay(walk, t, VIEW_ON_HOST, follower->since_ns, time_ns);
        }
        if (follower->first_out != VIEW_NONE) {
            claim_copies(walk, t, add_move(walk, t, CAPU_METHOD_SWAP));
        }
    }
}

capu_status view_walk(struct view *view, const struct view_events *events)
{
    struct walk walk = {.view = view, .events = events};

    walk.followers =
        malloc(((size_t)events->trace_index->trace->tensor_count + 1) * sizeof(*walk.followers));
    walk.next_out = malloc(((size_t)events->count + 1) * sizeof(*walk.next_out));
    if (walk.followers != NULL && walk.next_out != NULL) {
        begin_walk(&walk);
        for (uint32_t i = 0; i < events->count; i++) {
            walk_event(&walk, &events->events[i]);
        }
        end_walk(&walk);
    } else {
        walk.is_short_of_memory = true;
    }
    free(walk.followers);
    free(walk.next_out);
    return walk.is_short_of_memory ? CAPU_NO_HOST_MEMORY : CAPU_OK;
}
