/* Writing and reading what records pack, see record.h. */
#include "runtime/iteration/record.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"

#include <stdlib.h>

/* An operand that is all of a tensor: the tensor, whether it gives the size, and its role. */
#define OPERAND_TENSOR_BITS 27
#define OPERAND_HAS_BYTES (UINT32_C(1) << OPERAND_TENSOR_BITS)
#define OPERAND_ROLE_SHIFT 28
#define OPERAND_SPELLED (UINT32_C(1) << 31) /* the rest is an index into spelled */

#define SITE_MAX ((UINT32_C(1) << 30) - 1)
#define PARTIAL (UINT32_C(1) << 31)

/* Accesses that an operand is compared with. Nearly always the first one is right; ops with
   hundreds of operands must not take the square of that. */
enum { COMPARED = 16 };

void record_finish(struct record *record)
{
    free(record->ops);
    free(record->sites);
    free(record->accesses);
    free(record->operands);
    free(record->spelled);
    free(record->cleared);
    free(record->waits);
    free(record->tensors);
    free(record->untouched);
    free(record->evictions);
    free(record->replays);
    free(record->report_evictions);
    free(record->report_stalls);
}

void record_clear(struct record *record)
{
    record->op_count = 0;
    record->site_count = 0;
    record->access_count = 0;
    record->operand_count = 0;
    record->spelled_count = 0;
    record->cleared_count = 0;
    record->wait_count = 0;
    record->tensor_count = 0;
    record->eviction_count = 0;
    record->replay_count = 0;
    record->untouched_count = 0;
}

bool record_reserve(struct record *record, size_t op_count, size_t access_count,
                    size_t operand_count, size_t cleared_count)
{
    size_t ops = record->op_count + op_count;
    size_t accesses = record->access_count + access_count;
    size_t operands = record->operand_count + operand_count;
    size_t tensors = record->tensor_count + access_count;

    return ops <= SITE_MAX && accesses <= INT32_MAX && operands <= INT32_MAX &&
           tensors <= (size_t)1 << RECORD_ACCESS_TENSOR_BITS &&
           array_reserve(&record->ops, &record->op_capacity, ops, sizeof(*record->ops)) &&
           array_reserve(&record->sites, &record->site_capacity, record->site_count + op_count,
                         sizeof(*record->sites)) &&
           array_reserve(&record->waits, &record->wait_capacity, record->wait_count + op_count,
                         sizeof(*record->waits)) &&
           array_reserve(&record->accesses, &record->access_capacity, accesses,
                         sizeof(*record->accesses)) &&
           array_reserve(&record->tensors, &record->tensor_capacity, tensors,
                         sizeof(*record->tensors)) &&
           array_reserve(&record->operands, &record->operand_capacity, operands,
                         sizeof(*record->operands)) &&
           array_reserve(&record->spelled, &record->spelled_capacity,
                         record->spelled_count + operand_count, sizeof(*record->spelled)) &&
           array_reserve(&record->cleared, &record->cleared_capacity,
                         record->cleared_count + cleared_count, sizeof(*record->cleared));
}

static bool is_site(const struct record_site *site, const struct call *call, const char *segment)
{
    return site->run == call->run && site->key == call->key && site->segment == segment &&
           site->kind == call->kind && site->replay == call->replay &&
           site->is_replayable == call->is_replayable;
}

static uint64_t sign(const struct call *call)
{
    uint64_t signature = hash_mix(0, (uintptr_t)call->run);

    signature = hash_mix(signature, (uintptr_t)call->replay);
    signature = hash_mix(signature, call->key);
    return hash_mix(signature, (uint64_t)call->kind << 1 | call->is_replayable);
}

/* The site of a call. A site that is not found again is added a second time, which does no harm. */
static uint32_t site_of(struct record *record, const struct call *call, const char *segment)
{
    uint64_t key = (uintptr_t)call->run ^ call->key ^ (uintptr_t)segment;
    uint32_t *recent = &record->recent_sites[hash_place(key, RECORD_RECENT_BITS)];

    if (*recent < record->site_count && is_site(&record->sites[*recent], call, segment)) {
        return *recent;
    }
    ASSERT(record->site_count < record->site_capacity);
    *recent = (uint32_t)record->site_count;
    record->sites[record->site_count++] = (struct record_site){
        .kind = call->kind,
        .is_replayable = call->is_replayable,
        .run = call->run,
        .replay = call->replay,
        .key = call->key,
        .segment = segment,
        .signature = sign(call),
    };
    return *recent;
}

struct record_op *record_add_op(struct record *record, const struct call *call, const char *segment)
{
    struct record_op *op = &record->ops[record->op_count];

    ASSERT(record->op_count < record->op_capacity);
    op->name = call->name;
    op->ns = 0;
    op->site = site_of(record, call, segment) & SITE_MAX;
    op->is_once = call->is_once;
    op->is_replayable = false;
    op->first_access = (uint32_t)record->access_count;
    op->first_operand = (uint32_t)record->operand_count;
    op->start = 0;
    op->end = 0;
    record->op_count++;
    return op;
}

void record_set_partial(struct record *record)
{
    record->accesses[record->access_count - 1] |= PARTIAL;
}

/* The code of an operand that is all of a tensor of the newest op; false: it is not. `at` is where
   its access is, if ops have one access per operand, as most do. Tensors do not overlap, so the one
   in which the operand begins decides. */
static bool code_whole(const struct record *record, const capu_operand *operand, size_t at,
                       record_operand_code *code)
{
    size_t first = record->ops[record->op_count - 1].first_access;
    size_t count = record->access_count - first;

    at = at < count ? at : 0;
    for (size_t i = 0; i < count && i < COMPARED; i++) {
        uint32_t number = record_access_tensor(record->accesses[first + at]);
        const struct record_tensor *tensor = &record->tensors[number];

        if ((uintptr_t)operand->address - (uintptr_t)tensor->address < tensor->tensor_bytes) {
            bool is_whole = tensor->address == operand->address &&
                            (operand->bytes == 0 || operand->bytes == tensor->tensor_bytes);

            *code = number | (operand->bytes != 0 ? OPERAND_HAS_BYTES : 0) |
                    operand->role << OPERAND_ROLE_SHIFT;
            return is_whole && number < OPERAND_HAS_BYTES;
        }
        at = at + 1 < count ? at + 1 : 0;
    }
    return false;
}

void record_add_operands(struct record *record, const capu_operand *operands, size_t count)
{
    ASSERT(record->operand_count + count <= record->operand_capacity &&
           record->spelled_count + count <= record->spelled_capacity);
    for (size_t i = 0; i < count; i++) {
        record_operand_code *code = &record->operands[record->operand_count++];

        if (!code_whole(record, &operands[i], i, code)) {
            *code = OPERAND_SPELLED | (uint32_t)record->spelled_count;
            record->spelled[record->spelled_count++] = operands[i];
        }
    }
}

struct call record_call(const struct record *record, size_t op)
{
    const struct record_site *site = &record->sites[record->ops[op].site];

    return (struct call){
        .kind = site->kind,
        .name = record->ops[op].name,
        .run = site->run,
        .replay = site->replay,
        .key = site->key,
        .is_once = record->ops[op].is_once,
        .is_replayable = site->is_replayable,
    };
}

size_t record_access_count(const struct record *record, size_t op)
{
    size_t end =
        op + 1 < record->op_count ? record->ops[op + 1].first_access : record->access_count;

    return end - record->ops[op].first_access;
}

size_t record_operand_count(const struct record *record, size_t op)
{
    size_t end =
        op + 1 < record->op_count ? record->ops[op + 1].first_operand : record->operand_count;

    return end - record->ops[op].first_operand;
}

capu_operand record_operand(const struct record *record, size_t index)
{
    record_operand_code code = record->operands[index];
    const struct record_tensor *tensor;

    if ((code & OPERAND_SPELLED) != 0) {
        return record->spelled[code & ~OPERAND_SPELLED];
    }
    tensor = &record->tensors[code & (OPERAND_HAS_BYTES - 1)];
    return (capu_operand){
        .address = (void *)(uintptr_t)tensor->address,
        .bytes = (code & OPERAND_HAS_BYTES) != 0 ? tensor->tensor_bytes : 0,
        .role = code >> OPERAND_ROLE_SHIFT,
    };
}

uint64_t record_wait_ns(const struct record *record, size_t op)
{
    size_t low = 0;
    size_t high = record->wait_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (record->waits[middle].op < op) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < record->wait_count && record->waits[low].op == op ? record->waits[low].ns : 0;
}

size_t record_bytes(const struct record *record)
{
    return record->op_count * sizeof(*record->ops) + record->site_count * sizeof(*record->sites) +
           record->access_count * sizeof(*record->accesses) +
           record->operand_count * sizeof(*record->operands) +
           record->spelled_count * sizeof(*record->spelled) +
           record->cleared_count * sizeof(*record->cleared) +
           record->wait_count * sizeof(*record->waits) +
           record->tensor_count * sizeof(*record->tensors);
}

uint32_t record_mark(const struct record *record, struct lane_position position)
{
    return position.sequence == 0 ? 0 : (uint32_t)(position.sequence - record->begin.sequence + 1);
}

struct lane_position record_position(const struct record *record, uint32_t mark)
{
    return mark == 0 ? (struct lane_position){0}
                     : (struct lane_position){.lane = record->begin.lane,
                                              .sequence = record->begin.sequence + mark - 1};
}
