/* What the cases of the parallel tests share, see ranks.h. */
#include "tests/parallel/ranks.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

extern char **environ;

/* Configs are what the cases say, whatever the caller has in its environment. */
static void forget_settings(void)
{
    static const char prefix[] = "CAPUCHIN_";
    char **kept = environ;

    for (char **variable = environ; *variable != NULL; variable++) {
        if (strncmp(*variable, prefix, strlen(prefix)) != 0) {
            *kept++ = *variable;
        }
    }
    *kept = NULL;
}

void ranks_start(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    forget_settings();
}

void ranks_open(struct ranks *ranks, const struct ranks_options *options)
{
    char text[512] = "";
    capu_config config = CAPU_CONFIG_INIT;
    capu_parallel_options group = CAPU_PARALLEL_OPTIONS_INIT;
    capu_status status;

    *ranks = (struct ranks){0};
    config.device = "host";
    config.budget_bytes = options->budget_bytes != 0 ? options->budget_bytes : 8 << 20;
    config.page_bytes = 4096;
    config.mode = options->mode;
    config.report_path = options->report_path;
    config.wait_for_plan = 1;
    (void)capu_config_set(&config, "effort", "quick");
    config.error = group.error = text;
    config.error_bytes = group.error_bytes = sizeof(text);
    group.bucket_bytes = options->bucket_bytes;
    group.wait_limit_ns = options->wait_limit_ns;
    status = capu_parallel_config(MPI_COMM_WORLD, &config);
    if (status == CAPU_OK) {
        status = capu_context_create(&config, &ranks->context);
    }
    if (status == CAPU_OK) {
        status = capu_parallel_create(ranks->context, MPI_COMM_WORLD, &group, &ranks->group);
    }
    if (status != CAPU_OK) {
        FAIL("%s: %s", capu_status_name(status), text);
    }
    ranks->rank = capu_parallel_rank(ranks->group);
    ranks->ranks = capu_parallel_ranks(ranks->group);
}

void ranks_close(struct ranks *ranks)
{
    capu_parallel_destroy(ranks->group);
    capu_context_destroy(ranks->context);
}

float *ranks_tensor(struct ranks *ranks, const char *name, capu_kind kind, size_t count)
{
    void *tensor;

    WORKS(ranks, capu_malloc(ranks->context, count * sizeof(float), &tensor));
    WORKS(ranks, CAPU_DESCRIBE(ranks->context, tensor, .name = name, .kind = kind));
    return tensor;
}

float ranks_number(uint64_t seed, int rank, size_t i)
{
    uint64_t mixed = (seed * 1000003 + (uint64_t)rank) * UINT64_C(0x9e3779b97f4a7c15) + i;

    mixed = (mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed ^= mixed >> 32;
    /* Of very different sizes, so that a sum in another order has other bits. */
    return ((float)(mixed & 0xffffff) - 8388608.0f) * (mixed >> 60 < 8 ? 1e-6f : 1.0f);
}

float ranks_sum(uint64_t seed, int ranks, size_t i)
{
    float sum = ranks_number(seed, 0, i);

    for (int r = 1; r < ranks; r++) {
        sum += ranks_number(seed, r, i);
    }
    return sum;
}

struct fill {
    float *tensor;
    size_t count;
    uint64_t seed;
    int rank;
};

static capu_status fill(capu_stream stream, const void *arguments)
{
    const struct fill *own = arguments;

    (void)stream;
    for (size_t i = 0; i < own->count; i++) {
        own->tensor[i] = ranks_number(own->seed, own->rank, i);
    }
    return CAPU_OK;
}

void ranks_fill(struct ranks *ranks, float *tensor, size_t count, uint64_t seed)
{
    struct fill arguments = {tensor, count, seed, ranks->rank};

    WORKS(ranks, CAPU_RUN(ranks->context, fill, &arguments,
                          capu_operand_of(tensor, count * sizeof(float), CAPU_WRITE)));
}

struct add {
    float *to;
    const float *from;
    size_t count;
};

static capu_status add(capu_stream stream, const void *arguments)
{
    const struct add *own = arguments;

    (void)stream;
    for (size_t i = 0; i < own->count; i++) {
        own->to[i] += own->from[i];
    }
    return CAPU_OK;
}

void ranks_add(struct ranks *ranks, float *to, const float *from, size_t count)
{
    struct add arguments = {to, from, count};

    WORKS(ranks, CAPU_RUN(ranks->context, add, &arguments, capu_updates(to), capu_reads(from)));
}

float *ranks_read(struct ranks *ranks, const float *tensor, size_t count)
{
    float *numbers = malloc(count * sizeof(float));

    CHECK(numbers != NULL);
    WORKS(ranks, capu_download(ranks->context, numbers, tensor, count * sizeof(float), 0));
    return numbers;
}

void ranks_expect_sum(struct ranks *ranks, const float *tensor, size_t count, uint64_t seed)
{
    float *numbers = ranks_read(ranks, tensor, count);

    for (size_t i = 0; i < count; i++) {
        float expected = ranks_sum(seed, ranks->ranks, i);

        if (memcmp(&numbers[i], &expected, sizeof(float)) != 0) {
            FAIL("element %zu of %zu is %a, not %a", i, count, (double)numbers[i],
                 (double)expected);
        }
    }
    free(numbers);
}
