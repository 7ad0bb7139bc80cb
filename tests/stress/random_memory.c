/* Allocating, freeing and splitting in random programs, see random_program.h. */
#include "tests/stress/random_program.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_PAGES = PROGRAM_LARGEST_PAGES, TENSORS = PROGRAM_TENSORS };

#define HOLDS PROGRAM_HOLDS
#define WORKS PROGRAM_WORKS
#define TRIES PROGRAM_TRIES

static void describe(struct program *program, struct shadow *tensor)
{
    bool was_transient = tensor->is_transient;
    capu_status status;

    tensor->is_transient = random_draw(program, 2) == 0;
    TRIES(program, status,
          CAPU_DESCRIBE(program->rig.context, tensor->address, .name = "tensor",
                        .kind = tensor->is_transient ? CAPU_ACTIVATION : CAPU_PARAMETER,
                        .hint = (uint32_t)random_draw(program, CAPU_HINT_RECOMPUTE + 1)));
    if (was_transient && !tensor->is_transient) {
        tensor->is_gone = status == CAPU_CONTENTS_LOST || !program->in_iteration;
        tensor->is_kept = !tensor->is_gone;
    }
    if (!random_may_fail(program, (const struct shadow *const *)&tensor, 1, status)) {
        HOLDS(program, status == CAPU_OK);
    }
}

static void add_tensor(struct program *program, unsigned char *address, uint64_t count)
{
    struct shadow *tensor = &program->tensors[program->tensor_count++];

    *tensor = (struct shadow){
        .address = address,
        .bytes = calloc(1, count),
        .count = count,
        .blob = program->blob_count,
        .is_live = true,
        .is_defined = program->rig.context->settings.config.clear_fresh != 0,
    };
    HOLDS(program, tensor->bytes != NULL);
    random_trace(program, tensor);
    describe(program, tensor);
}

void random_allocate(struct program *program)
{
    uint64_t count = 1 + random_draw(program, LARGEST_PAGES * RIG_PAGE);
    uint64_t offset = 0;
    void *address;

    if (program->tensor_count + 4 > TENSORS) {
        return;
    }
    if (random_draw(program, 3) == 0) {
        count = 1 + random_draw(program, RIG_PAGE);
    }
    WORKS(program, capu_malloc(program->rig.context, count, &address));
    if (program->is_lost) {
        return;
    }
    program->blob_count++;
    for (size_t pieces = random_draw(program, 3); pieces > 0 && count - offset > 1; pieces--) {
        uint64_t here = 1 + random_draw(program, count - offset - 1);

        WORKS(program, capu_split(program->rig.context, (unsigned char *)address + offset, here));
        add_tensor(program, (unsigned char *)address + offset, here);
        offset += here;
    }
    add_tensor(program, (unsigned char *)address + offset, count - offset);
}

void random_free(struct program *program, size_t blob)
{
    unsigned char *start = NULL;
    size_t kept = 0;

    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *tensor = &program->tensors[i];

        if (tensor->blob != blob) {
            program->tensors[kept++] = *tensor;
            continue;
        }
        if (start == NULL || tensor->address < start) {
            start = tensor->address;
        }
        free(tensor->bytes);
        lineage_turn(tensor->lineage);
    }
    program->tensor_count = kept;
    WORKS(program, capu_free(program->rig.context, start));
}

void random_replace(struct program *program)
{
    struct shadow *tensor = random_pick(program);
    void *again;

    for (size_t i = 0; i < program->tensor_count; i++) {
        if (&program->tensors[i] != tensor && program->tensors[i].blob == tensor->blob) {
            return;
        }
    }
    WORKS(program, capu_free(program->rig.context, tensor->address));
    if (random_draw(program, 2) == 0) {
        WORKS(program, capu_synchronize(program->rig.context));
    }
    WORKS(program, capu_malloc(program->rig.context, tensor->count, &again));
    if (program->is_lost) {
        return;
    }
    memset(tensor->bytes, 0, tensor->count);
    /* A plan made for the old tensor discards the new one in the same way. */
    tensor->is_overwritten = tensor->is_overwritten && again == tensor->address;
    tensor->address = again;
    tensor->is_defined = program->rig.context->settings.config.clear_fresh != 0;
    tensor->is_transient = false;
    random_trace(program, tensor);
    if (random_draw(program, 2) == 0) {
        describe(program, tensor);
    }
}

/* After a resize: the shadows of an allocation, in the order of their addresses. */
static void move_shadows(struct program *program, size_t blob, ptrdiff_t distance)
{
    bool is_cleared = program->rig.context->settings.config.clear_fresh != 0;

    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *tensor = &program->tensors[i];

        if (tensor->blob != blob) {
            continue;
        }
        tensor->address += distance;
        if (tensor->is_transient && !program->in_iteration &&
            program->rig.context->settings.is_tracking) {
            tensor->is_defined = false;
        }
        if (!tensor->is_defined && is_cleared) {
            memset(tensor->bytes, 0, tensor->count);
            tensor->is_defined = true;
        }
    }
}

/* The last tensor has become longer. What was added is made known, if there are contents. */
static void lengthen(struct program *program, struct shadow *last, uint64_t added)
{
    unsigned char *bytes = realloc(last->bytes, last->count + added);

    HOLDS(program, bytes != NULL);
    memset(bytes + last->count, 0, added);
    last->bytes = bytes;
    if (last->is_defined && program->rig.context->settings.config.clear_fresh == 0) {
        WORKS(program, capu_upload(program->rig.context, last->address + last->count,
                                   bytes + last->count, added, 0));
    }
    last->count += added;
}

void random_resize(struct program *program)
{
    struct shadow *first = random_pick(program);
    struct shadow *last = first;
    uint64_t sizes[3] = {0};
    uint64_t bytes;
    void *address;
    capu_status status;

    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *tensor = &program->tensors[i];

        first = tensor->blob == first->blob && tensor->address < first->address ? tensor : first;
        last = tensor->blob == last->blob && tensor->address > last->address ? tensor : last;
    }
    bytes = (uint64_t)(last->address - first->address) + last->count;
    sizes[0] = 1 + random_draw(program, bytes);
    sizes[1] = bytes + random_draw(program, RIG_PAGE / 8);
    sizes[2] = bytes + random_draw(program, 3 * RIG_PAGE);
    sizes[0] = sizes[program->rig.context->plans.keeper == NULL ? random_draw(program, 3) : 0];
    if (sizes[0] > bytes && sizes[0] - bytes > LARGEST_PAGES * RIG_PAGE - last->count) {
        return;
    }
    TRIES(program, status, capu_realloc(program->rig.context, first->address, sizes[0], &address));
    if (random_is_starved(program, status) || status == CAPU_OVER_BUDGET || program->is_lost) {
        return;
    }
    HOLDS(program, status == CAPU_OK);
    if (address != first->address) {
        move_shadows(program, first->blob, (unsigned char *)address - first->address);
    }
    if (sizes[0] > bytes) {
        lengthen(program, last, sizes[0] - bytes);
    }
}

/* Up to three pieces replace the tensor; the named one has no description. Contents that a plan
   discarded stay lost, except in always-resident pieces, which become undefined. */
void random_split(struct program *program)
{
    struct shadow old = *random_pick(program);
    struct shadow *place = program->tensors;
    uint64_t from = random_draw(program, 2) == 0 ? 0 : random_draw(program, old.count);
    uint64_t ends[] = {from, from + 1 + random_draw(program, old.count - from), old.count};
    uint64_t at = 0;
    bool was_lost;

    while (place->address != old.address) {
        place++;
    }
    if (program->tensor_count + 2 > TENSORS || ends[1] - from == old.count) {
        return;
    }
    was_lost = tensor_is_lost(tensors_find(&program->rig.context->memory.tensors, old.address));
    WORKS(program, capu_split(program->rig.context, old.address + from, ends[1] - from));
    if (program->is_lost) {
        return;
    }
    was_lost =
        was_lost ||
        tensor_is_lost(tensors_find(&program->rig.context->memory.tensors, old.address)) ||
        tensor_is_lost(tensors_find(&program->rig.context->memory.tensors, old.address + from)) ||
        tensor_is_lost(
            tensors_find(&program->rig.context->memory.tensors, old.address + old.count - 1));
    *place = program->tensors[--program->tensor_count];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct shadow *piece = &program->tensors[program->tensor_count];

        if (ends[i] == at) {
            continue;
        }
        *piece = old;
        piece->address = old.address + at;
        piece->count = ends[i] - at;
        piece->bytes = malloc(piece->count);
        HOLDS(program, piece->bytes != NULL);
        memcpy(piece->bytes, old.bytes + at, piece->count);
        piece->is_transient = i != 1 && old.is_transient;
        piece->is_defined =
            old.is_defined &&
            (!was_lost || tensor_is_defined(
                              tensors_find(&program->rig.context->memory.tensors, piece->address)));
        random_trace(program, piece);
        program->tensor_count++;
        at = ends[i];
    }
    free(old.bytes);
}

void random_describe(struct program *program)
{
    describe(program, random_pick(program));
}
