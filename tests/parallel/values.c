/* What collectives compute, and what ranks know of each other. */
#include "tests/parallel/cases.h"

#include <string.h>

enum { COUNT = 3001 };

/* Whatever the buckets are, also below and above the tensor. */
void sums_have_one_order(void)
{
    static const uint64_t buckets[] = {0, 1, 1000, 4096, 20000};

    for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
        struct ranks ranks;
        float *tensor;

        ranks_open(&ranks, &(struct ranks_options){.bucket_bytes = buckets[i]});
        tensor = ranks_tensor(&ranks, "sum", CAPU_PARAMETER, COUNT);
        for (size_t count = COUNT; count > 0; count /= 7) {
            ranks_fill(&ranks, tensor, COUNT, count);
            WORKS(&ranks,
                  capu_parallel_allreduce(ranks.group, "sum", tensor, count, CAPU_PARALLEL_F32));
            ranks_expect_sum(&ranks, tensor, count, count);
        }
        ranks_close(&ranks);
    }
}

/* Integers wrap around; negative zero stays what one rank alone has. */
void integers_and_doubles(void)
{
    struct ranks ranks;
    int64_t longs[3];
    int32_t ints[3];
    double doubles[3];
    float zero = -0.0f;
    void *memory;

    ranks_open(&ranks, &(struct ranks_options){0});
    WORKS(&ranks, capu_malloc(ranks.context, 64, &memory));
    for (int i = 0; i < 3; i++) {
        longs[i] = INT64_MAX - i;
        ints[i] = INT32_MAX - i;
        doubles[i] = 0.1 * (ranks.rank + i);
    }
    WORKS(&ranks, capu_upload(ranks.context, memory, longs, sizeof(longs), 0));
    WORKS(&ranks, capu_parallel_allreduce(ranks.group, "longs", memory, 3, CAPU_PARALLEL_I64));
    WORKS(&ranks, capu_download(ranks.context, longs, memory, sizeof(longs), 0));
    WORKS(&ranks, capu_upload(ranks.context, memory, ints, sizeof(ints), 0));
    WORKS(&ranks, capu_parallel_allreduce(ranks.group, "ints", memory, 3, CAPU_PARALLEL_I32));
    WORKS(&ranks, capu_download(ranks.context, ints, memory, sizeof(ints), 0));
    WORKS(&ranks, capu_upload(ranks.context, memory, doubles, sizeof(doubles), 0));
    WORKS(&ranks, capu_parallel_allreduce(ranks.group, "doubles", memory, 3, CAPU_PARALLEL_F64));
    WORKS(&ranks, capu_download(ranks.context, doubles, memory, sizeof(doubles), 0));
    for (int i = 0; i < 3; i++) {
        uint64_t sum = 0;
        uint32_t small = 0;
        double real = 0.1 * i;

        for (int r = 0; r < ranks.ranks; r++) {
            sum += (uint64_t)INT64_MAX - (uint64_t)i;
            small += (uint32_t)INT32_MAX - (uint32_t)i;
            real = r > 0 ? real + 0.1 * (r + i) : real;
        }
        CHECK((uint64_t)longs[i] == sum);
        CHECK((uint32_t)ints[i] == small);
        CHECK(memcmp(&doubles[i], &real, sizeof(real)) == 0);
    }
    WORKS(&ranks, capu_upload(ranks.context, memory, &zero, sizeof(zero), 0));
    WORKS(&ranks, capu_parallel_allreduce(ranks.group, "zero", memory, 1, CAPU_PARALLEL_F32));
    WORKS(&ranks, capu_download(ranks.context, &zero, memory, sizeof(zero), 0));
    CHECK(zero == 0.0f && 1.0f / zero < 0.0f);
    ranks_close(&ranks);
}

/* One call for a blob of small and large tensors, and one for a part from the middle of one tensor
   to the middle of another. The budget has no room for the blob. */
void ranges_of_several_tensors(void)
{
    enum { TENSORS = 9, BLOB = 40000 };
    size_t sizes[TENSORS];
    struct ranks ranks;
    size_t left = BLOB;
    float *blob;
    float *numbers;
    uint32_t pieces = 0;

    ranks_open(&ranks, &(struct ranks_options){.budget_bytes = 120000, .bucket_bytes = 9000});
    blob = ranks_tensor(&ranks, "blob", CAPU_GRADIENT, BLOB);
    for (size_t i = 0; i < TENSORS; i++) {
        size_t count = i + 1 < TENSORS ? (i % 3 == 0 ? 100 + i : 4096 * (i % 3) + i) : left;

        sizes[i] = count * sizeof(float);
        left -= count;
    }
    WORKS(&ranks, capu_split_list(ranks.context, blob, sizes, TENSORS));
    for (float *at = blob; at != NULL; at = capu_tensor_next(ranks.context, at)) {
        ranks_fill(&ranks, at, sizes[pieces] / sizeof(float), 7 + pieces);
        pieces++;
    }
    CHECK(pieces == TENSORS);
    WORKS(&ranks, capu_parallel_allreduce(ranks.group, "blob", blob, BLOB, CAPU_PARALLEL_F32));
    pieces = 0;
    for (float *at = blob; at != NULL; at = capu_tensor_next(ranks.context, at)) {
        ranks_expect_sum(&ranks, at, sizes[pieces] / sizeof(float), 7 + pieces);
        pieces++;
    }
    WORKS(&ranks, capu_parallel_allreduce(ranks.group, "part", blob + 50, 5000, CAPU_PARALLEL_F32));
    numbers = ranks_read(&ranks, blob, 5100);
    for (size_t i = 0; i < 100; i++) {
        float once = ranks_sum(7, ranks.ranks, i);
        float twice = once;

        for (int r = 1; r < ranks.ranks; r++) {
            twice += once;
        }
        CHECK(numbers[i] == (i < 50 ? once : twice));
    }
    CHECK(numbers[5050] == ranks_sum(9, ranks.ranks, 5050 - 100 - 4097));
    free(numbers);
    ranks_close(&ranks);
}

/* Broadcast, allgather and reduce-scatter, from the last rank and in small buckets. */
void data_for_all(void)
{
    struct ranks ranks;
    size_t all;
    float *own;
    float *everything;
    float *numbers;

    ranks_open(&ranks, &(struct ranks_options){.bucket_bytes = 5000});
    all = (size_t)COUNT * (size_t)ranks.ranks;
    own = ranks_tensor(&ranks, "own", CAPU_GRADIENT, COUNT);
    everything = ranks_tensor(&ranks, "everything", CAPU_GRADIENT, all);

    if (ranks.rank == ranks.ranks - 1) {
        ranks_fill(&ranks, own, COUNT, 3); /* on the others it has no contents */
    }
    WORKS(&ranks, capu_parallel_broadcast(ranks.group, "from last", own, COUNT, CAPU_PARALLEL_F32,
                                          ranks.ranks - 1));
    numbers = ranks_read(&ranks, own, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(numbers[i] == ranks_number(3, ranks.ranks - 1, i));
    }
    free(numbers);

    ranks_fill(&ranks, own, COUNT, 4);
    WORKS(&ranks, capu_parallel_allgather(ranks.group, "gather", everything, own,
                                          COUNT * sizeof(float), CAPU_PARALLEL_BYTE));
    numbers = ranks_read(&ranks, everything, all);
    for (size_t i = 0; i < all; i++) {
        CHECK(numbers[i] == ranks_number(4, (int)(i / COUNT), i % COUNT));
    }
    free(numbers);

    ranks_fill(&ranks, everything, all, 5);
    WORKS(&ranks, capu_parallel_reduce_scatter(ranks.group, "scatter", own, everything, COUNT,
                                               CAPU_PARALLEL_F32));
    numbers = ranks_read(&ranks, own, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(numbers[i] == ranks_sum(5, ranks.ranks, i + (size_t)COUNT * (size_t)ranks.rank));
    }
    free(numbers);
    ranks_close(&ranks);
}

/* A setting that is a number; -1: it is not set. */
static long long number_of(const capu_config *config, const char *name)
{
    char text[32];

    CHECK(capu_config_get(config, name, text, sizeof(text)) == CAPU_OK);
    return text[0] != '\0' ? strtoll(text, NULL, 10) : -1;
}

/* All ranks of the host have the same share of what it has. */
void places_are_filled_in(void)
{
    capu_config config = CAPU_CONFIG_INIT;
    uint64_t budgets[2];
    int rank;
    int count;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    config.device = "host";
    config.budget_bytes = 1 << 20;
    config.mode = CAPU_MODE_PASSIVE;
    CHECK(capu_parallel_config(MPI_COMM_WORLD, &config) == CAPU_OK);
    CHECK(number_of(&config, "rank") == rank && number_of(&config, "ranks") == count);
    CHECK(number_of(&config, "local_ranks") == count); /* the tests have one host */
    CHECK(number_of(&config, "link_d2h") == -1 && number_of(&config, "link_h2d") == -1);
    CHECK(config.host_budget_bytes > 0 && config.host_budget_bytes < UINT64_MAX);
    budgets[0] = config.host_budget_bytes;
    budgets[1] = UINT64_MAX - config.host_budget_bytes;
    MPI_Allreduce(MPI_IN_PLACE, budgets, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    CHECK(budgets[0] == UINT64_MAX - budgets[1]);

    /* One guided rank is enough for all to measure; what is given stays. */
    config.host_budget_bytes = 12345678;
    config.mode = rank == count - 1 ? CAPU_MODE_GUIDED : CAPU_MODE_OFF;
    CHECK(capu_parallel_config(MPI_COMM_WORLD, &config) == CAPU_OK);
    CHECK(config.host_budget_bytes == 12345678);
    CHECK((number_of(&config, "link_d2h") > 0) == (rank == count - 1));

    /* An error of one rank is one of all. */
    config = (capu_config)CAPU_CONFIG_INIT;
    config.mode = CAPU_MODE_GUIDED;
    config.device = rank == count - 1 ? "nowhere" : "sim";
    CHECK(capu_parallel_config(MPI_COMM_WORLD, &config) ==
          (rank == count - 1 ? CAPU_INVALID : CAPU_OP_FAILED));
    CHECK(capu_parallel_config(MPI_COMM_WORLD, NULL) == CAPU_INVALID);
}

/* A counter of the first line of a report file. */
static uint64_t counter_in(const char *path, const char *name)
{
    char line[8192] = "";
    char key[64];
    const char *at;
    FILE *file = fopen(path, "r");

    CHECK(file != NULL && fgets(line, sizeof(line), file) != NULL);
    fclose(file);
    snprintf(key, sizeof(key), "\"%s\":", name);
    at = strstr(line, key);
    CHECK(at != NULL);
    return strtoull(at + strlen(key), NULL, 10);
}

/* A dry run on sim has the ops, with operands and workspace. It needs no other rank: only the last
   one does it here. */
void nothing_is_sent_on_sim(void)
{
    capu_config config = CAPU_CONFIG_INIT;
    char path[] = "/tmp/capuchin-report-XXXXXX";
    capu_context *context;
    capu_parallel *group;
    void *tensor;
    int rank;
    int count;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    if (rank < count - 1) {
        return;
    }
    CHECK(close(mkstemp(path)) == 0);
    config.device = "sim";
    config.report_path = path;
    config.budget_bytes = 64 << 20;
    CHECK(capu_context_create(&config, &context) == CAPU_OK);
    CHECK(capu_parallel_create(context, MPI_COMM_WORLD, NULL, &group) == CAPU_OK);
    CHECK(capu_parallel_rank(group) == rank && capu_parallel_ranks(group) == count);
    CHECK(capu_malloc(context, 16 << 20, &tensor) == CAPU_OK);
    CHECK(capu_iteration_begin(context, NULL) == CAPU_OK);
    CHECK(capu_zero(context, tensor, 0) == CAPU_OK);
    CHECK(capu_parallel_allreduce(group, "sum", tensor, 4 << 20, CAPU_PARALLEL_F32) == CAPU_OK);
    CHECK(capu_iteration_end(context) == CAPU_OK);
    CHECK(capu_synchronize(context) == CAPU_OK);
    CHECK(capu_flush(context) == CAPU_OK);
    CHECK(counter_in(path, "floor_operands_bytes") >= 16 << 20);
    CHECK(counter_in(path, "exchanged_bytes") + counter_in(path, "waited_ns") == 0);
    unlink(path);
    CHECK(capu_parallel_broadcast(group, "bad", NULL, 1, CAPU_PARALLEL_F32, 0) == CAPU_INVALID);
    capu_parallel_destroy(group);
    capu_context_destroy(context);
}

void counters(void)
{
    capu_report report = CAPU_REPORT_INIT;
    struct ranks ranks;
    float *tensor;
    char folder[] = "/tmp/capuchin-report-XXXXXX";
    char path[64];
    uint64_t exchange_ns;
    uint64_t exchanged_bytes;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/%%r", folder);
    ranks_open(&ranks, &(struct ranks_options){.report_path = path});
    tensor = ranks_tensor(&ranks, "t", CAPU_GRADIENT, COUNT);
    WORKS(&ranks, capu_iteration_begin(ranks.context, NULL));
    ranks_fill(&ranks, tensor, COUNT, 1);
    for (int i = 0; i < 3; i++) {
        WORKS(&ranks, capu_parallel_allreduce(ranks.group, "t", tensor, COUNT, CAPU_PARALLEL_F32));
    }
    WORKS(&ranks, capu_iteration_end(ranks.context));
    WORKS(&ranks, capu_synchronize(ranks.context));
    WORKS(&ranks, capu_report_get(ranks.context, &report));
    WORKS(&ranks, capu_flush(ranks.context));
    snprintf(path, sizeof(path), "%s/%d", folder, ranks.rank);
    CHECK(counter_in(path, "rank") == (uint64_t)ranks.rank);
    CHECK(counter_in(path, "rank_count") == (uint64_t)ranks.ranks);
    exchange_ns = counter_in(path, "exchange_ns");
    exchanged_bytes = counter_in(path, "exchanged_bytes");
    unlink(path);
    rmdir(folder);
    if (ranks.ranks == 1) {
        CHECK(exchanged_bytes + exchange_ns + report.waited_ns == 0);
    } else {
        CHECK(exchanged_bytes == 3 * COUNT * sizeof(float));
        CHECK(exchange_ns > 0 && report.waited_ns > 0);
        CHECK(exchange_ns <= report.compute_ns);
        CHECK(report.compute_ns + report.waited_ns <= report.time_ns);
    }
    ranks_close(&ranks);
}
