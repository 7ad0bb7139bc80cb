/* One-line ops, see steps.h. */
#include "tests/api/steps.h"

#include "runtime/api/context.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"

struct step {
    unsigned char *to;
    const unsigned char *from; /* NULL: `value` */
    size_t bytes;
    unsigned char value;
};

static capu_status run_step(capu_stream stream, const void *arguments)
{
    const struct step *step = arguments;

    (void)stream;
    for (size_t i = 0; i < step->bytes; i++) {
        step->to[i] = step->from != NULL ? (unsigned char)(step->from[i] + 1) : step->value;
    }
    return CAPU_OK;
}

/* What run_step touches, for the check of its order. */
static size_t ranges_of(const struct device_work *work, struct adaptor_order_range *ranges,
                        size_t most)
{
    const struct step *step = work->arguments;
    size_t count = 0;

    if (work->run != run_step || most < 2) {
        return 0;
    }
    ranges[count++] = (struct adaptor_order_range){step->to, step->bytes, .is_written = true};
    if (step->from != NULL) {
        ranges[count++] = (struct adaptor_order_range){step->from, step->bytes, false};
    }
    return count;
}

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

unsigned char *step_malloc(struct rig *rig, size_t bytes)
{
    void *address = NULL;

    RIG_OK(rig, capu_malloc(rig->context, bytes, &address));
    return address;
}

unsigned char *step_tensor(struct rig *rig, const char *name, capu_kind kind, size_t page_count)
{
    unsigned char *address = step_malloc(rig, PAGES(page_count));

    RIG_OK(rig,
           CAPU_DESCRIBE(rig->context, address, .name = name, .kind = (uint32_t)kind, .hint = 0));
    return address;
}

static capu_status run(struct rig *rig, const char *name, const struct step *step,
                       const capu_operand *operands, size_t count)
{
    capu_op op = {.size = sizeof(op),
                  .name = name,
                  .run = run_step,
                  .arguments = step,
                  .argument_bytes = sizeof(*step),
                  .operands = operands,
                  .operand_count = count};

    rig_ranges = ranges_of;
    return capu_run(rig->context, &op);
}

capu_status step_try_set(struct rig *rig, void *address, size_t bytes, unsigned char value)
{
    struct step step = {.to = address, .bytes = bytes, .value = value};
    capu_operand operand = capu_operand_of(address, bytes, CAPU_WRITE);

    return run(rig, "set", &step, &operand, 1);
}

void step_set(struct rig *rig, void *address, size_t bytes, unsigned char value)
{
    RIG_OK(rig, step_try_set(rig, address, bytes, value));
}

void step_bump(struct rig *rig, const char *name, void *address, size_t bytes)
{
    struct step step = {.to = address, .from = address, .bytes = bytes};
    capu_operand operand = capu_operand_of(address, bytes, CAPU_UPDATE);

    RIG_OK(rig, run(rig, name, &step, &operand, 1));
}

capu_status step_try_next(struct rig *rig, const char *name, void *to, const void *from,
                          size_t bytes)
{
    struct step step = {.to = to, .from = from, .bytes = bytes};
    capu_operand operands[] = {capu_operand_of(from, bytes, CAPU_READ),
                               capu_operand_of(to, bytes, CAPU_WRITE)};

    return run(rig, name, &step, operands, 2);
}

void step_next(struct rig *rig, const char *name, void *to, const void *from, size_t bytes)
{
    RIG_OK(rig, step_try_next(rig, name, to, from, bytes));
}

capu_status step_touch(struct rig *rig, const char *name, capu_role role, size_t count,
                       void *const *addresses)
{
    capu_operand operands[16];
    capu_op op = {.size = sizeof(op), .name = name, .run = nothing, .operands = operands};

    ck_assert_uint_le(count, sizeof(operands) / sizeof(operands[0]));
    for (size_t i = 0; i < count; i++) {
        operands[i] = capu_operand_of(addresses[i], 0, role);
    }
    op.operand_count = count;
    op.duration_ns = 1000;
    return capu_run(rig->context, &op);
}

void step_expect(struct rig *rig, const void *address, size_t bytes, unsigned char value)
{
    unsigned char *copy = malloc(bytes);

    ck_assert_ptr_nonnull(copy);
    RIG_OK(rig, capu_download(rig->context, copy, address, bytes, 0));
    for (size_t i = 0; i < bytes; i++) {
        if (copy[i] != value) { /* every Check assertion is a system call: avoid one per byte */
            ck_abort_msg("byte %zu is %u, not %u", i, copy[i], value);
        }
    }
    free(copy);
}

void step_lose(struct rig *rig, const void *address)
{
    capu_context *context = rig->context;
    struct tensor *tensor = tensors_find(&context->memory.tensors, address);

    ck_assert_ptr_nonnull(tensor);
    RIG_OK(rig, leave_guide(&context->residency));
    RIG_OK(rig, capu_synchronize(context));
    swap_drop(&context->residency, tensor);
    if (tensor->state.departure != NULL) {
        departure_cancel(&context->residency.departures, tensor->state.departure);
    }
    if (tensor_is_mapped(tensor)) {
        ck_assert_int_eq(device_unmap(context->lanes.device, tensor->span, tensor->page_count),
                         CAPU_OK);
        pages_give(context->memory.pages, tensor->pages, tensor->page_count);
        tensor_list_remove(tensor, RESIDENCY);
        tensor_state_unmapped(tensor);
    }
    ck_assert(tensor_is_lost(tensor));
}

capu_tensor_state step_query(struct rig *rig, const void *address)
{
    capu_tensor_state state = {.size = sizeof(state)};

    RIG_OK(rig, capu_tensor_query(rig->context, address, &state));
    return state;
}
