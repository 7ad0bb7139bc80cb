/* The steps of random programs, see random_program.h. */
#include "tests/stress/random_program.h"

#include "tests/support/adaptor_fault.h"
#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_PAGES = PROGRAM_LARGEST_PAGES };

uint64_t random_draw(struct program *program, uint64_t below)
{
    return mixing_random(&program->state) % below;
}

#define HOLDS PROGRAM_HOLDS
#define WORKS PROGRAM_WORKS
#define TRIES PROGRAM_TRIES

/* Device calls that report a failure to the caller. (A failed event query only counts as not yet
   reached.) */
static const struct {
    enum adaptor_slot slot;
    uint32_t one_in;
} faults[] = {
    {ADAPTOR_PAGE_CREATE, 4},   {ADAPTOR_RANGE_RESERVE, 2}, {ADAPTOR_MAP, 20},
    {ADAPTOR_HOST_ALLOC, 2},    {ADAPTOR_EVENT_CREATE, 4},  {ADAPTOR_STREAM_SYNCHRONIZE, 20},
    {ADAPTOR_EVENT_RECORD, 60}, {ADAPTOR_EVENT_WAIT, 10},   {ADAPTOR_STREAM_FOLLOW, 20},
    {ADAPTOR_COPY_OUT, 20},     {ADAPTOR_COPY_IN, 20},      {ADAPTOR_FILL, 20},
    {ADAPTOR_RUN, 20},          {ADAPTOR_UNMAP, 200}};

void random_faults(struct program *program, uint64_t number)
{
    size_t kind = number % (sizeof(faults) / sizeof(faults[0]));
    struct adaptor_fault_plan plan = {.slot = faults[kind].slot,
                                      .one_in = faults[kind].one_in,
                                      .seed = number,
                                      .status = CAPU_DEVICE_FAILED};

    adaptor_fault_arm(program->rig.faults, &plan);
}

/* If the device refuses a replay after the ranges to clear were cleared, small tensors become
   undefined. That is documented, and reading them fails. */
static void note_cleared(struct program *program)
{
    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *shadow = &program->tensors[i];
        const struct tensor *tensor =
            tensors_find(&program->rig.context->memory.tensors, shadow->address);

        shadow->is_defined &=
            tensor == NULL || tensor_is_managed(tensor) || tensor_is_defined(tensor);
    }
}

bool random_is_refused(struct program *program, capu_status status)
{
    bool is_faulty = program->rig.faults != NULL && adaptor_fault_hits(program->rig.faults) > 0;
    const char *what = "";

    if (is_faulty && status == CAPU_DEVICE_LOST) {
        program->is_lost = true;
    }
    if (!is_faulty || status != CAPU_DEVICE_FAILED) {
        return false;
    }
    ck_assert_msg(context_validate(program->rig.context, &what), "%s: after %s: %s", program->where,
                  capu_last_error(program->rig.context), what);
    program->refused++;
    note_cleared(program);
    return true;
}

bool random_is_starved(struct program *program, capu_status status)
{
    const char *what = "";

    if (!program->may_starve || status != CAPU_HOST_OVER_BUDGET) {
        return false;
    }
    ck_assert_msg(context_validate(program->rig.context, &what), "%s: after %s: %s", program->where,
                  capu_last_error(program->rig.context), what);
    program->starved++;
    return true;
}

/* Whether copies of a tensor may still be under way. */
static bool has_copies(struct program *program, const struct shadow *shadow)
{
    const struct tensor *tensor =
        tensors_find(&program->rig.context->memory.tensors, shadow->address);

    return !lane_has_passed(tensor->ready) || !lane_has_passed(tensor->left);
}

/* Between iterations: a persistent tensor, if possible one with copies under way. */
static struct shadow *pick_visited(struct program *program, size_t first)
{
    struct shadow *any = &program->tensors[first];

    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *tensor = &program->tensors[(first + i) % program->tensor_count];

        if (!tensor->is_transient && first % 4 > 0 && has_copies(program, tensor)) {
            program->pending += program->rig.context->guided.active != NULL;
            return tensor;
        }
        any = tensor->is_transient ? any : tensor;
    }
    return any;
}

struct shadow *random_pick(struct program *program)
{
    size_t first = random_draw(program, program->tensor_count);

    if (program->is_sweeping && program->in_iteration) {
        /* Three times the same or the next one, then on. */
        first = (program->picks++ / 3 + first % 2) % program->tensor_count;
    }
    if (program->is_visiting) {
        return pick_visited(program, first);
    }
    return &program->tensors[first];
}

static void check_bytes(struct program *program, const struct shadow *tensor, uint64_t from,
                        uint64_t count)
{
    static _Thread_local unsigned char bytes[LARGEST_PAGES * RIG_PAGE];

    capu_status status;

    TRIES(program, status,
          capu_download(program->rig.context, bytes, tensor->address + from, count, 0));
    if (random_may_fail(program, &tensor, 1, status)) {
        return;
    }
    HOLDS(program, status == CAPU_OK);
    HOLDS(program, memcmp(bytes, tensor->bytes + from, count) == 0);
}

/* Adds an operand on a whole tensor or on part of one. */
static struct shadow *add_operand(struct program *program, struct mixing *plain,
                                  struct mixing *device, capu_operand *operands)
{
    static const uint32_t roles[] = {
        CAPU_READ, CAPU_READ, CAPU_WRITE, CAPU_WRITE, CAPU_WRITE_REST_ZERO, CAPU_UPDATE};
    struct shadow *tensor = random_pick(program);
    struct mixing_operand *to = &plain->operands[plain->count];
    uint64_t from = 0;
    uint64_t count = tensor->count;

    for (size_t i = 0; i < plain->count; i++) {
        /* Operands on the same tensor are merged and may overlap; tested elsewhere. */
        if (device->operands[i].address >= tensor->address &&
            device->operands[i].address < tensor->address + tensor->count) {
            return NULL;
        }
    }
    to->role = roles[random_draw(program, sizeof(roles) / sizeof(roles[0]))];
    if (program->is_pure && random_draw(program, 16) > 0) {
        to->role = tensor->is_defined ? CAPU_READ : CAPU_WRITE;
    }
    if (!program->is_pure && random_draw(program, 4) == 0 && count > 1) {
        from = random_draw(program, count - 1);
        count = 1 + random_draw(program, count - from);
    }
    to->address = tensor->bytes + from;
    to->bytes = count;
    to->written_percent = (uint32_t)random_draw(program, 101);
    device->operands[plain->count] = *to;
    device->operands[plain->count].address = tensor->address + from;
    operands[plain->count] = capu_operand_of(
        tensor->address + from, count == tensor->count && random_draw(program, 2) == 0 ? 0 : count,
        (capu_role)to->role);
    plain->count++;
    return tensor;
}

static bool is_whole(const struct shadow *tensor, const struct mixing_operand *operand)
{
    return operand->bytes == tensor->count;
}

static uint64_t pages_of(struct program *program, struct shadow *const *tensors, size_t count)
{
    uint64_t pages = memory_fixed_pages(&program->rig.context->memory);

    for (size_t i = 0; i < count; i++) {
        pages +=
            tensors_find(&program->rig.context->memory.tensors, tensors[i]->address)->page_count;
    }
    return pages;
}

/* Runs the op on plain memory. */
static void run_plain(struct mixing *plain, struct shadow *const *tensors)
{
    for (size_t i = 0; i < plain->count; i++) {
        struct mixing_operand *operand = &plain->operands[i];

        if (operand->role == CAPU_WRITE_REST_ZERO) {
            memset(operand->address, 0, operand->bytes);
        }
    }
    mixing_run(NULL, plain);
    for (size_t i = 0; i < plain->count; i++) {
        if (plain->operands[i].role != CAPU_READ) {
            tensors[i]->is_defined = true;
            tensors[i]->is_overwritten |= plain->operands[i].role != CAPU_UPDATE;
        }
    }
}

static void run_op(struct program *program)
{
    struct mixing plain = {.seed = mixing_random(&program->state) ^ program->salt};
    struct mixing device = plain;
    struct shadow *tensors[MIXING_OPERANDS];
    capu_operand operands[MIXING_OPERANDS];
    capu_op op = {.size = sizeof(op), .name = "mix", .run = mixing_run};
    size_t wanted = 1 + random_draw(program, MIXING_OPERANDS - 1);
    bool reads_undefined = false;
    bool is_replayable;
    capu_status status;

    for (size_t i = 0; i < wanted; i++) {
        struct shadow *tensor = add_operand(program, &plain, &device, operands);

        if (tensor != NULL) {
            const struct mixing_operand *operand = &plain.operands[plain.count - 1];
            bool reads = operand->role == CAPU_READ || operand->role == CAPU_UPDATE;

            tensors[plain.count - 1] = tensor;
            reads_undefined = reads_undefined || (reads && !tensor->is_defined);
            if (!is_whole(tensor, operand) && !tensor->is_defined) {
                return; /* the rest would stay undefined, but would be compared later */
            }
        }
    }
    device.count = plain.count;
    op.arguments = &device;
    op.argument_bytes = sizeof(device);
    op.operands = operands;
    op.operand_count = plain.count;
    op.flags = random_draw(program, 12) == 0 ? CAPU_OP_NOT_REPLAYABLE : 0;
    is_replayable = op.flags == 0;
    if (random_draw(program, 10) == 0 && program->graph == NULL) {
        is_replayable = false;
        TRIES(program, status, capu_access_begin(program->rig.context, &op));
        if (status == CAPU_OK) {
            mixing_run(NULL, &device);
            WORKS(program, capu_access_end(program->rig.context));
        }
    } else {
        TRIES(program, status, capu_run(program->rig.context, &op));
    }
    if (program->is_lost) {
        return;
    }
    if (reads_undefined) { /* refused, also when the iteration was captured */
        HOLDS(program, status == CAPU_UNDEFINED_READ || program->is_plain);
        return;
    }
    if (random_may_fail(program, (const struct shadow *const *)tensors, plain.count, status)) {
        return;
    }
    /* Checked afterwards, since empty slabs give back their pages before an op is refused. */
    if (pages_of(program, tensors, plain.count) > pages_limit(program->rig.context->memory.pages)) {
        HOLDS(program, status == CAPU_OVER_BUDGET);
        return;
    }
    HOLDS(program, status == CAPU_OK);
    run_plain(&plain, tensors);
    random_note_op(program, &plain, tensors, is_replayable);
    program->ops++;
}

static void draw_bytes(struct program *program, unsigned char *bytes, uint64_t count)
{
    for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t word = mixing_random(&program->state) ^ program->salt;

        memcpy(bytes + at, &word, count - at < sizeof(word) ? count - at : sizeof(word));
    }
}

/* Uploads to the rear part of a tensor that discards the front part, or the reverse, and then to
   the other one, since it is undefined. */
static void upload_parts(struct program *program, struct shadow *tensor, uint64_t from,
                         const unsigned char *source)
{
    bool is_front = from % 8 < 4;
    uint64_t first = is_front ? 0 : from;
    uint64_t second = is_front ? from : 0;
    uint64_t count = is_front ? from : tensor->count - from;
    capu_status status;

    TRIES(program, status,
          capu_upload(program->rig.context, tensor->address + first, source + first, count,
                      CAPU_TRANSFER_REST_UNDEFINED));
    if (random_may_fail(program, (const struct shadow *const *)&tensor, 1, status)) {
        return;
    }
    HOLDS(program, status == CAPU_OK);
    tensor->is_defined = true;
    tensor->is_overwritten = true;
    random_note_write(program, tensor, false, NULL, 0);
    TRIES(program, status,
          capu_upload(program->rig.context, tensor->address + second, source + second,
                      tensor->count - count, 0));
    if (random_may_fail(program, (const struct shadow *const *)&tensor, 1, status)) {
        program->is_lost = true; /* half of it is done: the contents are unknown */
        return;
    }
    HOLDS(program, status == CAPU_OK);
    memcpy(tensor->bytes, source, tensor->count);
    random_note_write(program, tensor, false, NULL, 0);
}

static void upload(struct program *program)
{
    struct shadow *tensor = random_pick(program);
    uint64_t from = random_draw(program, 2) == 0 || !tensor->is_defined
                        ? 0
                        : random_draw(program, tensor->count);
    uint64_t count = tensor->count - from;
    static _Thread_local unsigned char source[LARGEST_PAGES * RIG_PAGE];
    capu_status status;

    draw_bytes(program, source, count);
    if (from % 4 == 1) {
        memset(source + count, 0x5a, from);
        upload_parts(program, tensor, from, source);
        return;
    }
    TRIES(program, status,
          capu_upload(program->rig.context, tensor->address + from, source, count, 0));
    if (random_may_fail(program, (const struct shadow *const *)&tensor, 1, status)) {
        return;
    }
    HOLDS(program, status == CAPU_OK);
    memcpy(tensor->bytes + from, source, count);
    memset(source, 0xa5, count); /* the upload has copied its source */
    tensor->is_defined = true;
    tensor->is_overwritten = true;
    /* The context stops keeping uploads for good when it cannot get host memory for one. */
    random_note_write(program, tensor,
                      program->in_iteration && count == tensor->count && !program->is_short &&
                          !program->rig.context->residency.uploads.is_off,
                      NULL, 0);
}

static void download(struct program *program)
{
    struct shadow *tensor = random_pick(program);
    uint64_t from = random_draw(program, tensor->count);

    if (tensor->is_defined) {
        check_bytes(program, tensor, from, 1 + random_draw(program, tensor->count - from));
    }
}

static void zero(struct program *program)
{
    struct shadow *tensor = random_pick(program);
    uint64_t count = random_draw(program, 2) == 0 ? 0 : tensor->count;

    WORKS(program, capu_zero(program->rig.context, tensor->address, count));
    memset(tensor->bytes, 0, tensor->count);
    tensor->is_defined = true;
    tensor->is_overwritten = true;
    random_note_write(program, tensor, true, NULL, 0);
}

/* Copies the common length of two tensors, or an arbitrary part. */
static void copy(struct program *program)
{
    struct shadow *from = random_pick(program);
    struct shadow *to = random_pick(program);
    bool is_part = random_draw(program, 2) == 0;
    uint64_t source = is_part ? random_draw(program, from->count) : 0;
    uint64_t target = is_part ? random_draw(program, to->count) : 0;
    uint64_t most =
        from->count - source < to->count - target ? from->count - source : to->count - target;
    uint64_t count = is_part ? 1 + random_draw(program, most) : most;
    struct shadow *both[] = {from, to};
    capu_status status;

    if (from == to || !from->is_defined || (count < to->count && !to->is_defined) ||
        pages_of(program, both, 2) > pages_limit(program->rig.context->memory.pages)) {
        return;
    }
    TRIES(program, status,
          capu_copy(program->rig.context, to->address + target, from->address + source, count));
    if (random_may_fail(program, (const struct shadow *const *)both, 2, status)) {
        return;
    }
    HOLDS(program, status == CAPU_OK);
    memcpy(to->bytes + target, from->bytes + source, count);
    to->is_defined = true;
    to->is_overwritten = true;
    random_note_write(program, to, count == to->count, &from, 1);
}

/* The tensor directly after another one in the same allocation; NULL if there is none. */
static struct shadow *neighbour_of(struct program *program, const struct shadow *tensor)
{
    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *other = &program->tensors[i];

        if (other->blob == tensor->blob && other->address == tensor->address + tensor->count) {
            return other;
        }
    }
    return NULL;
}

static bool is_lost(struct program *program, const struct shadow *tensor)
{
    return tensor_is_lost(tensors_find(&program->rig.context->memory.tensors, tensor->address));
}

/* Makes one call on the end of a tensor and the beginning of the next. */
static void cross(struct program *program)
{
    static _Thread_local unsigned char bytes[2 * LARGEST_PAGES * RIG_PAGE];
    struct shadow *first = random_pick(program);
    struct shadow *second = neighbour_of(program, first);
    uint64_t kind = random_draw(program, 3);
    uint64_t from = random_draw(program, first->count);
    uint64_t left = first->count - from;
    uint64_t beyond;
    unsigned char *address = first->address + from;
    const struct shadow *both[] = {first, second};
    capu_status status;

    if (second == NULL || !first->is_defined || !second->is_defined || is_lost(program, first) ||
        is_lost(program, second)) {
        return; /* half of the call would be done */
    }
    beyond = 1 + random_draw(program, second->count);
    memset(bytes, kind == 1 ? 0 : (int)(program->salt >> 56), left + beyond);
    if (kind == 0) {
        TRIES(program, status,
              capu_download(program->rig.context, bytes, address, left + beyond, 0));
    } else if (kind == 1) {
        TRIES(program, status, capu_zero(program->rig.context, address, left + beyond));
    } else {
        TRIES(program, status, capu_upload(program->rig.context, address, bytes, left + beyond, 0));
    }
    if (random_may_fail(program, both, 2, status)) {
        program->is_lost |= kind != 0; /* half of it may be done: the contents are unknown */
        return;
    }
    HOLDS(program, status == CAPU_OK);
    if (kind == 0) {
        HOLDS(program, memcmp(bytes, first->bytes + from, left) == 0 &&
                           memcmp(bytes + left, second->bytes, beyond) == 0);
        return;
    }
    memcpy(first->bytes + from, bytes, left);
    memcpy(second->bytes, bytes + left, beyond);
    first->is_overwritten = true;
    second->is_overwritten = true;
    random_note_write(program, first, false, NULL, 0);
    random_note_write(program, second, false, NULL, 0);
}

/* Makes the calls that are allowed at any time. */
static void look(struct program *program)
{
    capu_context *context = program->rig.context;
    capu_report report = CAPU_REPORT_INIT;
    capu_tensor_state state = {.size = sizeof(state)};
    const struct shadow *tensor = random_pick(program);
    capu_status status;

    WORKS(program, capu_tensor_query(context, tensor->address, &state));
    HOLDS(program,
          program->is_lost || (state.address == tensor->address && state.bytes == tensor->count));
    TRIES(program, status, capu_report_get(context, &report));
    HOLDS(program, status == CAPU_OK || status == CAPU_NOT_READY || program->is_lost);
    if (random_draw(program, 4) == 0) {
        WORKS(program, capu_flush(context));
    }
}

/* Begins a segment, or ends the open one. */
static void turn_segment(struct program *program)
{
    capu_context *context = program->rig.context;

    if (!program->in_iteration) {
        return;
    }
    if (program->in_segment) {
        WORKS(program, capu_segment_end(context));
    } else {
        WORKS(program, capu_segment_begin(context, "segment"));
    }
    program->in_segment = !program->in_segment;
}

void random_visit(struct program *program, uint64_t count)
{
    program->is_visiting = true;
    for (uint64_t i = 0; i < count && !program->is_lost; i++) {
        const struct shadow *tensor = random_pick(program);

        if (random_draw(program, 2) == 0) {
            random_work(program);
        } else if (tensor->is_defined && !tensor->is_transient) {
            check_bytes(program, tensor, 0, tensor->count);
        }
        random_check(program);
    }
    program->is_visiting = false;
}

void random_read_late(struct program *program)
{
    size_t first = random_draw(program, program->tensor_count);

    for (size_t i = 0; i < program->tensor_count; i++) {
        const struct shadow *tensor = &program->tensors[(first + i) % program->tensor_count];

        if (tensor->is_defined && tensor->is_transient) {
            check_bytes(program, tensor, 0, tensor->count);
            return;
        }
    }
}

void random_check(struct program *program)
{
    if (!program->is_lost) {
        rig_check(&program->rig);
    }
    if (!program->is_lost && program->rig.faults != NULL) {
        note_cleared(program);
    }
}

/* Whether the iteration became a graph. If not, it has run all the same. */
static bool end_capture(struct program *program)
{
    capu_status status = capu_graph_end(program->graph);

    HOLDS(program, status == CAPU_OK || status == CAPU_NOT_READY);
    return status == CAPU_OK;
}

void random_turn(struct program *program, const char *label)
{
    if (program->in_iteration) {
        if (program->in_segment) {
            turn_segment(program);
        }
        if (program->is_captured) {
            program->is_captured = end_capture(program);
        } else {
            WORKS(program, capu_iteration_end(program->rig.context));
        }
        random_note_turn(program);
    } else {
        program->is_captured = program->graph != NULL && !program->is_plain &&
                               capu_graph_begin(program->graph, label) == CAPU_OK;
        if (!program->is_captured) {
            WORKS(program, capu_iteration_begin(program->rig.context, label));
        }
        program->label = label;
        program->picks = 0;
        for (size_t i = 0; i < program->tensor_count; i++) {
            program->tensors[i].is_defined &= !program->tensors[i].is_transient;
        }
        random_note_turn(program);
    }
    program->in_iteration = !program->in_iteration;
}

void random_work(struct program *program)
{
    uint64_t choice = random_draw(program, 100);

    if (program->is_pure && choice < 38 && random_draw(program, 4) > 0) {
        choice = choice < 8 ? 21 : 99; /* capu_zero, or an op */
    }
    if (program->graph != NULL && program->in_iteration && choice >= 15 &&
        (choice < 21 || (choice >= 34 && choice < 38))) {
        choice = 99; /* captured iterations do not read */
    }
    if (random_draw(program, 16) == 0 && program->graph == NULL) {
        look(program);
    }
    if (random_draw(program, 16) == 0) {
        turn_segment(program);
    }
    if (choice < 15) {
        upload(program);
    } else if (choice < 21) {
        download(program);
    } else if (choice < 28) {
        zero(program);
    } else if (choice < 34) {
        copy(program);
    } else if (choice < 38) {
        cross(program);
    } else {
        run_op(program);
    }
}

void random_step(struct program *program)
{
    static const char *const labels[] = {NULL, "train", "validate"};
    uint64_t choice = random_draw(program, 100);

    if (program->tensor_count == 0 || choice < 6) {
        random_allocate(program);
    } else if (choice < 9) {
        random_free(program, random_pick(program)->blob);
    } else if (choice < 14) {
        random_turn(program, labels[random_draw(program, 3)]);
    } else if (choice < 15) {
        WORKS(program, capu_synchronize(program->rig.context));
    } else if (choice < 17) {
        random_split(program);
    } else if (choice < 19) {
        random_describe(program);
    } else if (choice < 20) {
        random_replace(program);
    } else if (choice < 22) {
        random_resize(program);
    } else {
        random_work(program);
    }
}

void random_finish(struct program *program)
{
    capu_report report = CAPU_REPORT_INIT;

    for (size_t i = 0; i < program->tensor_count; i++) {
        if (program->tensors[i].is_defined && !program->is_lost) {
            check_bytes(program, &program->tensors[i], 0, program->tensors[i].count);
        }
        free(program->tensors[i].bytes);
    }
    for (size_t i = 0; i < program->lineage_count; i++) {
        free(program->lineages[i]);
    }
    WORKS(program, capu_synchronize(program->rig.context));
    if (program->is_lost) {
        capu_context_destroy(program->rig.context);
        return;
    }
    if (capu_report_get(program->rig.context, &report) == CAPU_OK) {
        HOLDS(program, report.peak_bytes <= report.budget_bytes);
    }
    rig_finish(&program->rig);
}

/* A number from the environment. */
static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

void random_programs(const struct rig_options *options, uint64_t share,
                     void (*run)(uint64_t seed, struct rig_options options, void *user), void *user)
{
    uint64_t first = setting("TEST_SEED", 1);
    uint64_t last = first + setting("TEST_PROGRAMS", effort_share(1000)) / share;

    printf("seeds %" PRIu64 " to %" PRIu64 "\n", first, last);
    for (uint64_t seed = first; seed <= last; seed++) {
        struct rig_options own = *options;

        own.delay_seed = own.delay_seed != 0 ? seed : 0;
        run(seed, own, user);
    }
}
