/* What comes next, into the cache: see ahead.h. */
#include "runtime/record/ahead.h"

#include "runtime/tensor/tensors.h"

/* With fewer tensors all that matters stays in the second-level cache anyway. */
enum { MANY_TENSORS = 2048 };

/* How far ahead, in accesses: some ten ops, or one with very many operands, each of which takes as
   long as a miss. The tensor's entry in the record comes first, then the address that it says,
   since each is a miss of its own. */
enum { FETCH_AHEAD = 32, EXPECT_AHEAD = 64, RECALL_AHEAD = 96 };

static const void *address_of(const struct record *record, size_t access)
{
    return record->tensors[record_access_tensor(record->accesses[access])].address;
}

static size_t least(size_t left, size_t right)
{
    return left < right ? left : right;
}

void ahead_look(struct ahead *ahead, const struct tensors *tensors, const struct record *open,
                size_t access_count)
{
    const struct record *before = ahead->before;
    size_t end;

    if (before == NULL || tensors->live_count < MANY_TENSORS) {
        return;
    }
    end = least(open->access_count + access_count + RECALL_AHEAD, before->access_count);
    for (; ahead->recalled < end; ahead->recalled++) {
        record_access access = before->accesses[ahead->recalled];

        __builtin_prefetch(&before->tensors[record_access_tensor(access)].address);
    }
    end = least(open->access_count + access_count + EXPECT_AHEAD, before->access_count);
    for (; ahead->expected < end; ahead->expected++) {
        tensors_expect(tensors, address_of(before, ahead->expected));
    }
    end = least(open->spelled_count + access_count + EXPECT_AHEAD, before->spelled_count);
    for (; ahead->spelled < end; ahead->spelled++) {
        tensors_expect(tensors, before->spelled[ahead->spelled].address);
    }
    end = least(open->spelled_count + access_count + FETCH_AHEAD, before->spelled_count);
    for (; ahead->inside < end; ahead->inside++) {
        tensors_expect_inside(tensors, before->spelled[ahead->inside].address);
    }
    end = least(open->access_count + access_count + FETCH_AHEAD, before->access_count);
    for (; ahead->fetched < end; ahead->fetched++) {
        tensors_fetch(tensors, address_of(before, ahead->fetched));
    }
}
