/* The break-even rule, see improvement.h. */
#include "runtime/guide/improvement.h"

#include "base/assert.h"

bool improvement_is_due(struct improvement *improvement, uint64_t change_ns)
{
    uint64_t lost_ns = improvement->forgone_ns;

    ASSERT(improvement->gain_ns > 0);
    lost_ns =
        improvement->gain_ns > UINT64_MAX - lost_ns ? UINT64_MAX : lost_ns + improvement->gain_ns;
    improvement->forgone_ns = lost_ns;
    return lost_ns >= change_ns;
}
