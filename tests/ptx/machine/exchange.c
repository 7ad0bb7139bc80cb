/* Shuffles, votes, matches and reductions of a warp, see exchange.h. */
#include "tests/ptx/machine/exchange.h"

static bool has(const struct exchange *exchange, unsigned lane)
{
    return (exchange->lanes >> lane & 1) != 0;
}

/* Which lane a lane reads, and whether that is in range: as PTX defines it. A lane that does not
   take part gives its reader's own value. */
static void shuffle(const struct exchange *exchange, unsigned lane)
{
    uint32_t b = exchange->in[lane][1] & 31;
    uint32_t clamp = exchange->in[lane][2] & 31;
    uint32_t segment = exchange->in[lane][2] >> 8 & 31;
    uint32_t most = (lane & segment) | (clamp & ~segment);
    uint32_t from = lane;
    bool is_in_range = false;

    switch (exchange->kind) {
    case PTX_SHUFFLE_UP:
        from = lane - b;
        is_in_range = (int32_t)from >= (int32_t)most;
        break;
    case PTX_SHUFFLE_DOWN:
        from = lane + b;
        is_in_range = from <= most;
        break;
    case PTX_SHUFFLE_BFLY:
        from = lane ^ b;
        is_in_range = from <= most;
        break;
    default:
        from = (lane & segment) | (b & ~segment);
        is_in_range = from <= most;
        break;
    }
    if (!is_in_range || !has(exchange, from)) {
        from = lane;
    }
    exchange->out[lane][0] = exchange->in[from][0];
    exchange->out[lane][1] = is_in_range;
}

static uint32_t ballot(const struct exchange *exchange)
{
    uint32_t lanes = 0;

    for (unsigned i = 0; i < EXCHANGE_LANES; i++) {
        if (has(exchange, i) && exchange->in[i][0] != 0) {
            lanes |= 1u << i;
        }
    }
    return lanes;
}

static uint32_t vote(const struct exchange *exchange)
{
    uint32_t lanes = ballot(exchange);

    switch (exchange->kind) {
    case PTX_VOTE_ALL:
        return lanes == exchange->lanes;
    case PTX_VOTE_ANY:
        return lanes != 0;
    case PTX_VOTE_UNI:
        return lanes == exchange->lanes || lanes == 0;
    default:
        return lanes;
    }
}

static void match(const struct exchange *exchange, unsigned lane)
{
    uint32_t lanes = 0;
    bool is_all;

    for (unsigned i = 0; i < EXCHANGE_LANES; i++) {
        if (has(exchange, i) && exchange->in[i][0] == exchange->in[lane][0] &&
            exchange->in[i][1] == exchange->in[lane][1]) {
            lanes |= 1u << i;
        }
    }
    is_all = lanes == exchange->lanes;
    exchange->out[lane][0] = exchange->kind == PTX_MATCH_ANY || is_all ? lanes : 0;
    exchange->out[lane][1] = is_all;
}

static uint32_t combine(enum ptx_exchange kind, uint32_t a, uint32_t b)
{
    switch (kind) {
    case PTX_REDUX_ADD:
        return a + b;
    case PTX_REDUX_MIN_U:
        return a < b ? a : b;
    case PTX_REDUX_MAX_U:
        return a > b ? a : b;
    case PTX_REDUX_MIN_S:
        return (int32_t)a < (int32_t)b ? a : b;
    case PTX_REDUX_MAX_S:
        return (int32_t)a > (int32_t)b ? a : b;
    case PTX_REDUX_AND:
        return a & b;
    case PTX_REDUX_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static uint32_t reduce(const struct exchange *exchange)
{
    unsigned first = (unsigned)__builtin_ctz(exchange->lanes);
    uint32_t result = exchange->in[first][0];

    for (unsigned i = first + 1; i < EXCHANGE_LANES; i++) {
        if (has(exchange, i)) {
            result = combine(exchange->kind, result, exchange->in[i][0]);
        }
    }
    return result;
}

static void compute_lane(const struct exchange *exchange, unsigned lane)
{
    switch (exchange->kind) {
    case PTX_SYNC:
        break;
    case PTX_SHUFFLE_UP:
    case PTX_SHUFFLE_DOWN:
    case PTX_SHUFFLE_BFLY:
    case PTX_SHUFFLE_IDX:
        shuffle(exchange, lane);
        break;
    case PTX_VOTE_ALL:
    case PTX_VOTE_ANY:
    case PTX_VOTE_UNI:
    case PTX_VOTE_BALLOT:
        exchange->out[lane][0] = vote(exchange);
        break;
    case PTX_MATCH_ANY:
    case PTX_MATCH_ALL:
        match(exchange, lane);
        break;
    case PTX_ELECT:
        exchange->out[lane][0] = (uint32_t)__builtin_ctz(exchange->lanes);
        exchange->out[lane][1] = exchange->out[lane][0] == lane;
        break;
    default:
        exchange->out[lane][0] = reduce(exchange);
        break;
    }
}

void exchange_compute(const struct exchange *exchange)
{
    if (exchange_is_matrix(exchange->kind)) {
        exchange_compute_matrix(exchange);
        return;
    }
    for (unsigned i = 0; i < EXCHANGE_LANES; i++) {
        if (has(exchange, i)) {
            compute_lane(exchange, i);
        }
    }
}
