/* Adding up in one order, see sum.h. Elements may lie at any address, so they are copied. */
#include "parallel/sum.h"

#include "capuchin/parallel.h"

#include <string.h>

#define SUM(name_, type_, wide_)                                                                 \
    static void name_(unsigned char *to, const void *const *parts, int ranks, size_t count)      \
    {                                                                                            \
        for (size_t i = 0; i < count; i++) {                                                     \
            type_ sum;                                                                           \
            type_ next;                                                                          \
                                                                                                 \
            memcpy(&sum, (const unsigned char *)parts[0] + i * sizeof(sum), sizeof(sum));        \
            for (int r = 1; r < ranks; r++) {                                                    \
                memcpy(&next, (const unsigned char *)parts[r] + i * sizeof(next), sizeof(next)); \
                sum = (type_)((wide_)sum + (wide_)next);                                         \
            }                                                                                    \
            memcpy(to + i * sizeof(sum), &sum, sizeof(sum));                                     \
        }                                                                                        \
    }

SUM(sum_f32, float, float)
SUM(sum_f64, double, double)
SUM(sum_i32, int32_t, uint32_t)
SUM(sum_i64, int64_t, uint64_t)

void sum_ranks(void *to, const void *const *parts, int ranks, size_t count, uint32_t type)
{
    switch (type) {
    case CAPU_PARALLEL_F32:
        sum_f32(to, parts, ranks, count);
        break;
    case CAPU_PARALLEL_F64:
        sum_f64(to, parts, ranks, count);
        break;
    case CAPU_PARALLEL_I32:
        sum_i32(to, parts, ranks, count);
        break;
    default:
        sum_i64(to, parts, ranks, count);
        break;
    }
}
