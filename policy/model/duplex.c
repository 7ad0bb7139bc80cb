/* Rates for links that slow each other down, see duplex.h. */
#include "policy/model/duplex.h"

#include "policy/model/timeline.h"

/* The shares settle quickly: slower copies overlap a little more. */
enum { ROUNDS = 3 };

/* The next copy of a direction, from a record on; record_count: there is none. */
static uint32_t next_copy(const struct timeline *timeline, enum timeline_engine engine,
                          uint32_t from)
{
    while (from < timeline->record_count && timeline->records[from].engine != engine) {
        from++;
    }
    return from;
}

/* How long a direction is busy. */
static int64_t busy_ns(const struct timeline *timeline, enum timeline_engine engine)
{
    int64_t ns = 0;

    for (uint32_t i = next_copy(timeline, engine, 0); i < timeline->record_count;
         i = next_copy(timeline, engine, i + 1)) {
        ns += (int64_t)(timeline->records[i].span.end - timeline->records[i].span.start);
    }
    return ns;
}

/* How long both are, if the copies back are moved by `shift_ns`. Spans of one engine are in order.
 */
static int64_t overlap_ns(const struct timeline *timeline, int64_t shift_ns)
{
    uint32_t out = next_copy(timeline, ENGINE_D2H, 0);
    uint32_t in = next_copy(timeline, ENGINE_H2D, 0);
    int64_t ns = 0;

    while (out < timeline->record_count && in < timeline->record_count) {
        const struct clock_span *one = &timeline->records[out].span;
        const struct clock_span *other = &timeline->records[in].span;
        int64_t other_start = (int64_t)other->start + shift_ns;
        int64_t other_end = (int64_t)other->end + shift_ns;
        int64_t start = (int64_t)one->start > other_start ? (int64_t)one->start : other_start;
        int64_t end = (int64_t)one->end < other_end ? (int64_t)one->end : other_end;

        ns += end > start ? end - start : 0;
        if ((int64_t)one->end < other_end) {
            out = next_copy(timeline, ENGINE_D2H, out + 1);
        } else {
            in = next_copy(timeline, ENGINE_H2D, in + 1);
        }
    }
    return ns;
}

/* A direction that is not known to be slower keeps its rate. */
static uint64_t mean(uint64_t solo, uint64_t duplex, double share)
{
    uint64_t lost = duplex != 0 && duplex < solo ? (uint64_t)((double)(solo - duplex) * share) : 0;

    return solo - lost;
}

bool duplex_matters(const struct duplex *duplex, const struct machine *solo)
{
    return (duplex->d2h_bytes_per_s != 0 && duplex->d2h_bytes_per_s < solo->d2h_bytes_per_s) ||
           (duplex->h2d_bytes_per_s != 0 && duplex->h2d_bytes_per_s < solo->h2d_bytes_per_s);
}

static double share_of(int64_t both_ns, int64_t ns)
{
    return ns <= 0 ? 0.0 : both_ns >= ns ? 1.0 : (double)both_ns / (double)ns;
}

capu_status duplex_rates(const struct program *program, const struct machine *solo,
                         const struct duplex *duplex, struct machine *machine,
                         struct error_text *error)
{
    capu_status status = CAPU_OK;

    *machine = *solo;
    for (int round = 0; round < ROUNDS && status == CAPU_OK && duplex_matters(duplex, solo);
         round++) {
        struct timeline timeline;

        status = timeline_of(&timeline, program, machine, true, error);
        if (status == CAPU_OK) {
            /* The iteration before has copies that reach into this one, and so on. */
            int64_t period = (int64_t)timeline.iteration_ns;
            int64_t both = overlap_ns(&timeline, 0) + overlap_ns(&timeline, period) +
                           overlap_ns(&timeline, -period);

            machine->d2h_bytes_per_s = mean(solo->d2h_bytes_per_s, duplex->d2h_bytes_per_s,
                                            share_of(both, busy_ns(&timeline, ENGINE_D2H)));
            machine->h2d_bytes_per_s = mean(solo->h2d_bytes_per_s, duplex->h2d_bytes_per_s,
                                            share_of(both, busy_ns(&timeline, ENGINE_H2D)));
            timeline_finish(&timeline);
        }
    }
    return status;
}
