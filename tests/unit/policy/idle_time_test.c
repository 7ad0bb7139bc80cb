/* Idle time per op against a plain array. */
#include "policy/lower/op_trees.h"

#include "tests/support/seed.h"
#include "tests/support/suite.h"

enum { OPS = 37 };

struct fixture {
    struct idle_time idle;
    int64_t model[OPS]; /* idle ns per op */
};

static int64_t model_before(const struct fixture *fixture, uint32_t k)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < k; i++) {
        sum += fixture->model[i];
    }
    return sum;
}

static void model_take(struct fixture *fixture, uint32_t k, int64_t *amount)
{
    int64_t taken = fixture->model[k] < *amount ? fixture->model[k] : *amount;

    fixture->model[k] -= taken;
    *amount -= taken;
}

static void fill(struct fixture *fixture, uint64_t *state)
{
    uint64_t start[OPS + 1] = {0};
    uint64_t busy[OPS];

    for (uint32_t k = 0; k < OPS; k++) {
        uint64_t span = seed_below(state, 100);

        /* A link may also be busy for longer than the op: then nothing is idle. */
        busy[k] = seed_below(state, 120);
        start[k + 1] = start[k] + span;
        fixture->model[k] = span > busy[k] ? (int64_t)(span - busy[k]) : 0;
    }
    idle_time_fill(&fixture->idle, start, busy);
}

static void check(const struct fixture *fixture)
{
    int64_t total = model_before(fixture, OPS);

    for (uint32_t k = 0; k <= OPS; k++) {
        ck_assert_int_eq(idle_time_before(&fixture->idle, k), model_before(fixture, k));
    }
    for (int64_t amount = 1; amount <= total + 1; amount += 7) {
        uint32_t found = idle_time_find(&fixture->idle, amount);

        ck_assert(model_before(fixture, found) < amount);
        ck_assert(found == OPS || model_before(fixture, found + 1) >= amount);
    }
}

START_TEST(consumes_like_an_array)
{
    uint64_t state = seed_start("idle_time");
    struct fixture fixture;

    ck_assert_int_eq(idle_time_init(&fixture.idle, OPS), CAPU_OK);
    for (int round = 0; round < 20; round++) {
        fill(&fixture, &state);
        check(&fixture);
        for (int step = 0; step < 10; step++) {
            uint32_t from = (uint32_t)seed_below(&state, OPS + 1);
            int64_t amount = (int64_t)seed_below(&state, 300);

            if (seed_below(&state, 2) == 0) {
                idle_time_consume_forward(&fixture.idle, from, amount);
                for (uint32_t k = from; k < OPS; k++) {
                    model_take(&fixture, k, &amount);
                }
            } else {
                idle_time_consume_backward(&fixture.idle, from, amount);
                for (uint32_t k = from; k-- > 0;) {
                    model_take(&fixture, k, &amount);
                }
            }
            check(&fixture);
        }
    }
    idle_time_finish(&fixture.idle);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy/idle_time");
    TCase *tests = tcase_create("idle_time");

    tcase_add_test(tests, consumes_like_an_array);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
