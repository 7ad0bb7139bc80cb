/* The traces of the model zoo: published figures of the networks, and the rules for traces. */
#include "models/largest.h"
#include "models/zoo.h"

#include "policy/format/plan.h"
#include "policy/model/validate.h"
#include "tests/support/suite.h"

#include <string.h>

#define MODELS 16

static struct trace trace;
static struct trace_index trace_index;
static struct zoo_summary summary;

static void teardown(void)
{
    trace_index_finish(&trace_index);
    trace_finish(&trace);
}

static capu_status try_build(const char *name, const char *machine,
                             const struct zoo_options *options, struct error_text *error)
{
    struct hardware hardware;

    ck_assert_ptr_nonnull(zoo_find(name));
    ck_assert_int_eq(hardware_load(&hardware, machine, NULL), CAPU_OK);
    return zoo_build(zoo_find(name), options, &hardware, &trace, &summary, error);
}

static void build(const char *name, const struct zoo_options *options)
{
    struct error_text error = {""};

    teardown();
    ck_assert_msg(try_build(name, "a100", options, &error) == CAPU_OK, "%s: %s", name, error.text);
    ck_assert_msg(trace_index_init(&trace_index, &trace, 1, &error) == CAPU_OK, "%s: %s", name,
                  error.text);
}

static uint32_t find_tensor(const char *name)
{
    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        if (strcmp(trace_tensor_name(&trace, t), name) == 0) {
            return t;
        }
    }
    ck_abort_msg("no tensor %s", name);
    return 0;
}

static const struct trace_op *find_op(const char *name)
{
    for (uint32_t k = 0; k < trace.op_count; k++) {
        if (strcmp(trace_op_name(&trace, k), name) == 0) {
            return &trace.ops[k];
        }
    }
    ck_abort_msg("no op %s", name);
    return NULL;
}

static bool op_reads(const char *op, const char *tensor)
{
    const struct trace_op *entry = find_op(op);
    uint32_t t = find_tensor(tensor);

    for (uint32_t i = 0; i < entry->read_count; i++) {
        if (trace_reads(&trace, entry)[i] == t) {
            return true;
        }
    }
    return false;
}

/*
 * Counts from torchvision, timm and Hugging Face transformers; for networks that none of these has
 * (U-Net with one channel and two classes, Zaremba's LSTM), from the layers in the papers.
 */
START_TEST(parameter_counts_are_as_published)
{
    static const struct {
        const char *name;
        uint64_t count;
    } published[] = {
        {"vgg16", 138357544},      {"resnet50", 25557032},    {"resnet152", 60192808},
        {"inceptionv3", 23834568}, {"inceptionv4", 42679816}, {"densenet121", 7978856},
        {"unet", 31030658},        {"lstm", 66022000},        {"bert-base", 110106428},
        {"bert-large", 336226108}, {"gpt2-small", 124439808}, {"gpt2-medium", 354823168},
        {"gpt2-large", 774030080}, {"gpt2-xl", 1557611200},   {"llama3-1b", 1235814400},
        {"llama3-8b", 8030261248},
    };

    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        build(published[i].name, &(struct zoo_options){.batch = 1});
        ck_assert_msg(summary.parameter_count == published[i].count, "%s: %llu", published[i].name,
                      (unsigned long long)summary.parameter_count);
    }
    ck_assert_uint_eq(MODELS, sizeof(published) / sizeof(published[0]));
    ck_assert_ptr_null(zoo_models[MODELS].name);
}
END_TEST

START_TEST(parameter_tensors_have_the_counted_size)
{
    for (const struct zoo_model *model = zoo_models; model->name != NULL; model++) {
        uint64_t bytes = 0;
        uint64_t state = 0;

        build(model->name, &(struct zoo_options){.batch = 1, .dtype = DTYPE_BF16});
        for (uint32_t t = 0; t < trace.tensor_count; t++) {
            bool is_running = strstr(trace_tensor_name(&trace, t), ".running") != NULL;

            bytes +=
                trace.tensors[t].kind == CAPU_PARAMETER && !is_running ? trace.tensors[t].bytes : 0;
            state += trace.tensors[t].kind == CAPU_OPTIMIZER ? trace.tensors[t].bytes : 0;
        }
        ck_assert_uint_eq(bytes, 2 * summary.parameter_count);
        /* An fp32 copy of the parameter and its momentum; with Adam, two moments. */
        ck_assert_uint_eq(state,
                          (model->optimizer == OPTIMIZER_ADAM ? 12 : 8) * summary.parameter_count);
    }
}
END_TEST

START_TEST(activations_have_the_published_shapes)
{
    static const struct {
        const char *model;
        const char *tensor;
        uint64_t elements; /* per sample */
        uint64_t sequence;
    } known[] = {
        {"vgg16", "conv1.y", 64 * 224 * 224, 0},
        {"vgg16", "pool18.y", 512 * 7 * 7, 0},
        {"resnet50", "conv1.y", 64 * 112 * 112, 0},
        {"resnet50", "stage1.3.add.y", 256 * 56 * 56, 0},
        {"resnet152", "stage3.36.add.y", 1024 * 14 * 14, 0},
        {"resnet50", "stage4.3.conv2.y", 512 * 7 * 7, 0},
        {"inceptionv3", "cat26.y", 288 * 35 * 35, 0},
        {"inceptionv3", "cat30.y", 768 * 17 * 17, 0},
        {"inceptionv3", "cat94.y", 2048 * 8 * 8, 0},
        {"inceptionv4", "cat149.y", 1536 * 8 * 8, 0},
        {"densenet121", "dense1.1.conv2.y", 32 * 56 * 56, 0},
        {"densenet121", "transition4.cat.y", 1024 * 7 * 7, 0},
        {"unet", "bottom4.conv2.y", 1024 * 32 * 32, 0},
        {"unet", "up0.cat.y", 128 * 512 * 512, 0},
        {"lstm", "lstm1.34.gates.y", 4 * 1500, 0},
        {"lstm", "linear.y", 35 * 10000, 0},
        {"bert-base", "words.head.linear.y", 20 * 30522, 128},
        {"gpt2-xl", "block47.up.linear.y", 1024 * 6400, 0},
        {"llama3-8b", "block31.qkv.linear.y", 2048 * (32 + 8 + 8) * 128, 2048},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        build(known[i].model, &(struct zoo_options){.batch = 3, .sequence = known[i].sequence});
        ck_assert_msg(trace.tensors[find_tensor(known[i].tensor)].bytes ==
                          3 * 4 * known[i].elements,
                      "%s %s", known[i].model, known[i].tensor);
    }
}
END_TEST

START_TEST(saved_attention_keeps_its_matrices)
{
    const struct zoo_options options = {
        .batch = 2, .dtype = DTYPE_BF16, .sequence = 256, .saves_matrix = true};
    uint64_t matrix = (uint64_t)2 * 12 * 256 * 256;

    build("gpt2-small", &options);
    ck_assert_uint_eq(trace.tensors[find_tensor("block0.attention.p")].bytes, 2 * matrix);
    ck_assert_uint_eq(trace.tensors[find_tensor("block0.attention.mask")].bytes, matrix);
    ck_assert(op_reads("block0.attention.softmax_bwd", "block0.attention.p"));
    ck_assert(op_reads("block0.attention.drop_bwd", "block0.attention.mask"));
    ck_assert(op_reads("block0.attention.attn.pv_bwd_v", "block0.attention.dropped"));
    /* Fused attention stores no matrix. */
    build("gpt2-small", &(struct zoo_options){.batch = 2, .dtype = DTYPE_BF16, .sequence = 256});
    ck_assert(op_reads("block0.attention.flash_bwd", "block0.attention.rows"));
    ck_assert(op_reads("block0.attention.flash_bwd", "block0.qkv.linear.y"));
}
END_TEST

START_TEST(backward_reads_what_forward_saved)
{
    build("resnet50", &(struct zoo_options){.batch = 2});
    ck_assert(op_reads("stage2.2.conv2.bwd_weight", "stage2.2.bn1.y"));
    ck_assert(op_reads("stage2.2.conv2.bwd_data", "stage2.2.conv2.w"));
    ck_assert(op_reads("stage2.2.bn2.bwd", "stage2.2.conv2.y"));
    ck_assert(op_reads("stage2.2.bn2.bwd", "stage2.2.bn2.statistics"));
    ck_assert(op_reads("stage2.2.bn2.relu_bwd", "stage2.2.bn2.y"));
    ck_assert(op_reads("loss.bwd", "loss.probabilities"));
    /* The gradient of the images is not needed. */
    for (uint32_t k = 0; k < trace.op_count; k++) {
        ck_assert_str_ne(trace_op_name(&trace, k), "conv1.bwd_data");
    }
    build("gpt2-small", &(struct zoo_options){.batch = 2});
    ck_assert(op_reads("block3.gelu.bwd", "block3.up.linear.y"));
    ck_assert(op_reads("block3.dropout1.bwd", "block3.dropout1.mask"));
    ck_assert(op_reads("block3.norm2.bwd", "block3.norm2.statistics"));
    /* The head writes the gradient of the table; the embedding then adds to it. */
    ck_assert_uint_eq(find_op("embedding.bwd")->update_count, 1);
}
END_TEST

START_TEST(ops_that_cannot_run_twice_are_not_replayable)
{
    build("resnet50", &(struct zoo_options){.batch = 2});
    ck_assert(find_op("stage1.1.bn1.relu.fwd")->replayable);
    ck_assert(!find_op("stage1.1.bn1.running")->replayable);
    ck_assert(!find_op("images.copyin")->replayable);
    build("bert-base", &(struct zoo_options){.batch = 2});
    ck_assert(!find_op("block0.dropout1.mask")->replayable);
    ck_assert(find_op("block0.dropout1.fwd")->replayable);
}
END_TEST

/*
 * Checks that each trained parameter is updated once, after everything that reads it: with `asap`
 * mostly during backward, otherwise only after it.
 */
static void check_updates(const char *name, bool asap)
{
    uint32_t updates = 0;
    uint32_t parameters = 0;
    uint32_t before_backward_ends = 0;

    build(name, &(struct zoo_options){.batch = 2, .updates_asap = asap});
    for (uint32_t t = 0; t < trace.tensor_count; t++) {
        parameters += trace.tensors[t].kind == CAPU_OPTIMIZER;
    }
    for (uint32_t k = 0; k < trace.op_count; k++) {
        const struct trace_op *op = &trace.ops[k];
        uint32_t t;

        if (strstr(trace_op_name(&trace, k), ".update") == NULL) {
            before_backward_ends = updates;
            continue;
        }
        updates++;
        t = trace_updates(&trace, op)[0];
        ck_assert_int_eq(trace.tensors[t].kind, CAPU_PARAMETER);
        ck_assert_uint_eq(trace_index.op[trace_index.first[t + 1] - 1], k);
        ck_assert_uint_eq(trace.tensors[trace_reads(&trace, op)[0]].bytes, trace.tensors[t].bytes);
    }
    ck_assert_uint_eq(updates, parameters);
    if (asap) {
        ck_assert_uint_gt(before_backward_ends, parameters / 2);
    } else {
        ck_assert_uint_eq(before_backward_ends, 0);
    }
}

START_TEST(parameters_are_updated_once_and_last)
{
    static const char *const names[] = {"vgg16",      "densenet121", "unet",     "lstm",
                                        "gpt2-small", "bert-base",   "llama3-1b"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        check_updates(names[i], false);
        /* The gradients of the LSTM's weights are complete only after backward of its first step.
         */
        if (strcmp(names[i], "lstm") != 0) {
            check_updates(names[i], true);
        }
    }
}
END_TEST

/* Updating as soon as possible frees gradients early and lowers the peak. */
START_TEST(early_updates_free_gradients)
{
    uint64_t at_end;

    build("gpt2-medium", &(struct zoo_options){.batch = 1, .sequence = 128});
    at_end = trace_index.peak_bytes;
    build("gpt2-medium", &(struct zoo_options){.batch = 1, .sequence = 128, .updates_asap = true});
    ck_assert_uint_lt(trace_index.peak_bytes, at_end - summary.parameter_count);
}
END_TEST

static void check_valid(const struct zoo_model *model, const struct zoo_options *options)
{
    struct error_text error = {""};
    struct plan plan;

    build(model->name, options);
    ck_assert_int_eq(plan_init(&plan, "t", trace_index.peak_bytes, 1), CAPU_OK);
    ck_assert_msg(validate_plan(&trace_index, &plan, &error) == CAPU_OK, "%s: %s", model->name,
                  error.text);
    plan_finish(&plan);
}

START_TEST(every_model_is_a_valid_trace)
{
    for (const struct zoo_model *model = zoo_models; model->name != NULL; model++) {
        for (unsigned ways = 0; ways < 8; ways++) {
            struct zoo_options options = {.batch = 2,
                                          .updates_asap = (ways & 1) != 0,
                                          .by_layer = (ways & 2) != 0,
                                          .saves_matrix = (ways & 4) != 0};

            if (!options.saves_matrix || model->optimizer == OPTIMIZER_ADAM) {
                check_valid(model, &options);
            }
        }
    }
}
END_TEST

/* A trace by layer has the same work and persistent bytes in fewer ops. */
START_TEST(layers_are_the_sum_of_their_ops)
{
    for (const struct zoo_model *model = zoo_models; model->name != NULL; model++) {
        uint64_t persistent[2] = {0};
        uint64_t ns[2];
        uint32_t ops[2];

        for (int by_layer = 0; by_layer < 2; by_layer++) {
            build(model->name, &(struct zoo_options){.batch = 4, .by_layer = by_layer == 1});
            for (uint32_t t = 0; t < trace.tensor_count; t++) {
                persistent[by_layer] += trace.tensors[t].persistent ? trace.tensors[t].bytes : 0;
            }
            ns[by_layer] = trace.total_ns;
            ops[by_layer] = trace.op_count;
        }
        ck_assert_uint_eq(ns[0], ns[1]);
        ck_assert_uint_eq(persistent[0], persistent[1]);
        ck_assert_uint_lt(ops[1], ops[0]);
    }
}
END_TEST

START_TEST(layers_have_separate_workspaces_and_draws)
{
    build("gpt2-small", &(struct zoo_options){.batch = 2, .by_layer = true});
    ck_assert(find_op("block5.fwd")->replayable);
    ck_assert(!find_op("block5.draw")->replayable);
    ck_assert_uint_eq(find_op("block5.draw")->write_count, 2);
    ck_assert_int_eq(trace.tensors[find_tensor("block5.fwd.inner")].kind, CAPU_WORKSPACE);
    build("resnet50", &(struct zoo_options){.batch = 2, .by_layer = true});
    ck_assert(find_op("stage1.1.fwd")->replayable);
    ck_assert_uint_eq(find_op("stage1.1.running")->update_count, 4);
}
END_TEST

/* A machine with 10^9 operations and 10^9 bytes per second, used at 50 % and 80 %. */
START_TEST(the_slower_of_arithmetic_and_memory_counts)
{
    const struct hardware hardware = {.flops_per_s = {[DTYPE_FP32] = 1000000000},
                                      .memory_bytes_per_s = 1000000000,
                                      .product_percent = 50,
                                      .memory_percent = 80,
                                      .launch_ns = 7};

    ck_assert_uint_eq(hardware_op_ns(&hardware, DTYPE_FP32, 1000.0, 800.0, 1), 2007);
    ck_assert_uint_eq(hardware_op_ns(&hardware, DTYPE_FP32, 100.0, 800.0, 2), 1014);
    ck_assert_uint_gt(hardware_op_ns(&hardware, DTYPE_FP32, 1e300, 0.0, 1), TRACE_NS_MAX);
}
END_TEST

/* A ResNet convolution worked out by hand: 3 x 3, 64 to 64 channels at 56 x 56, TF32 on an A100. */
START_TEST(a_convolution_takes_the_time_of_its_arithmetic)
{
    double flops = 2.0 * 64 * 64 * 64 * 9 * 56 * 56;
    uint64_t ns = (uint64_t)(flops / (156e12 * 0.65 / 1e9)) + 4000;

    build("resnet50", &(struct zoo_options){.batch = 64, .dtype = DTYPE_TF32});
    ck_assert_uint_eq(find_op("stage1.1.conv2.fwd")->ns, ns);
}
END_TEST

/*
 * Milliseconds that a P100 was busy in the profiles of the paper's authors, and the largest batches
 * of TensorFlow in 16 GB. A roofline estimate is not a measurement, but must be close to one.
 */
START_TEST(a_p100_matches_published_times_and_batches)
{
    static const struct {
        const char *name;
        uint64_t batch;
        double ms;
        double largest;
    } recorded[] = {
        {"vgg16", 228, 2288.0, 228.0},     {"resnet50", 190, 746.0, 190.0},
        {"resnet152", 86, 881.0, 86.0},    {"inceptionv3", 160, 1061.0, 160.0},
        {"inceptionv4", 88, 1208.0, 88.0},
    };
    struct hardware hardware;

    ck_assert_int_eq(hardware_load(&hardware, "p100", NULL), CAPU_OK);
    for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
        const struct zoo_options options = {.batch = recorded[i].batch};
        const struct largest_request request = {.model = zoo_find(recorded[i].name),
                                                .options = &options,
                                                .hardware = &hardware,
                                                .budget_bytes = hardware.machine.memory_bytes};
        struct largest largest;

        teardown();
        ck_assert_int_eq(try_build(recorded[i].name, "p100", &options, NULL), CAPU_OK);
        ck_assert_double_gt((double)trace.total_ns / 1e6, 0.8 * recorded[i].ms);
        ck_assert_double_lt((double)trace.total_ns / 1e6, 1.2 * recorded[i].ms);
        ck_assert_int_eq(largest_batch(&request, &largest, NULL), CAPU_OK);
        ck_assert_double_gt((double)largest.batch, recorded[i].largest);
        ck_assert_double_lt((double)largest.batch, 1.15 * recorded[i].largest);
    }
}
END_TEST

static void expect_failure(const char *model, const char *machine, struct zoo_options options,
                           capu_status expected, const char *text)
{
    struct error_text error = {""};

    ck_assert_int_eq(try_build(model, machine, &options, &error), expected);
    ck_assert_msg(strstr(error.text, text) != NULL, "%s", error.text);
    ck_assert_ptr_null(trace.ops);
}

START_TEST(impossible_models_are_rejected)
{
    expect_failure("vgg16", "p100", (struct zoo_options){0}, CAPU_INVALID, "a batch is 1 to");
    expect_failure("vgg16", "p100", (struct zoo_options){.batch = ZOO_BATCH_MAX}, CAPU_TOO_LARGE,
                   "all tensors together exceed");
    expect_failure("llama3-8b", "h100",
                   (struct zoo_options){.batch = ZOO_BATCH_MAX, .sequence = ZOO_BATCH_MAX},
                   CAPU_TOO_LARGE, "2^50");
    expect_failure("vgg16", "p100", (struct zoo_options){.batch = 1, .dtype = DTYPE_TF32},
                   CAPU_INVALID, "machine p100 has no rate for tf32; it has rates for fp32 fp16");
    expect_failure("vgg16", "p100", (struct zoo_options){.batch = 1, .sequence = 5}, CAPU_INVALID,
                   "takes images");
    expect_failure("lstm", "p100", (struct zoo_options){.batch = 1, .image = 5}, CAPU_INVALID,
                   "takes sequences");
    expect_failure("lstm", "p100", (struct zoo_options){.batch = 1, .saves_matrix = true},
                   CAPU_INVALID, "no attention");
    expect_failure("inceptionv3", "p100", (struct zoo_options){.batch = 1, .image = 40},
                   CAPU_INVALID, "too small");
    expect_failure("unet", "p100", (struct zoo_options){.batch = 1, .image = 40}, CAPU_INVALID,
                   "multiple of 16");
}
END_TEST

/* The largest batch works and the next does not. Without a plan the peak alone decides. */
START_TEST(the_largest_batch_is_the_largest)
{
    const struct zoo_options options = {.dtype = DTYPE_FP32};
    struct largest_request request = {.model = zoo_find("vgg16"),
                                      .options = &options,
                                      .budget_bytes = (uint64_t)12 << 30,
                                      .overhead = 0.0};
    struct hardware hardware;
    struct largest without;
    struct largest with;
    struct largest beyond;
    uint64_t possible;

    ck_assert_int_eq(hardware_load(&hardware, "p100", NULL), CAPU_OK);
    request.hardware = &hardware;
    ck_assert_int_eq(largest_batch(&request, &without, NULL), CAPU_OK);
    build("vgg16", &(struct zoo_options){.batch = without.batch});
    ck_assert_uint_le(trace_index.peak_bytes, request.budget_bytes);
    build("vgg16", &(struct zoo_options){.batch = without.batch + 1});
    ck_assert_uint_gt(trace_index.peak_bytes, request.budget_bytes);

    request.planner = planner_find("lru");
    request.overhead = 0.2;
    ck_assert_int_eq(largest_batch(&request, &with, NULL), CAPU_OK);
    ck_assert_uint_gt(with.batch, without.batch);
    ck_assert_double_le(with.overhead, 0.2);
    ck_assert_int_eq(largest_try(&request, with.batch + 1, &beyond, NULL), CAPU_OK);
    ck_assert_double_gt(beyond.overhead, 0.2);

    ck_assert_int_eq(largest_possible(&request, &possible, NULL), CAPU_OK);
    build("vgg16", &(struct zoo_options){.batch = possible});
    ck_assert_uint_le(trace_index.floor_bytes, request.budget_bytes);
    build("vgg16", &(struct zoo_options){.batch = possible + 1});
    ck_assert_uint_gt(trace_index.floor_bytes, request.budget_bytes);
}
END_TEST

/* What a search says of itself, and when it is asked to stop. */
struct listener {
    uint64_t left;     /* of the phase; 0: none has begun */
    uint64_t phases;   /* whose length is known */
    uint64_t tries;    /* in them, and before them */
    uint64_t most;     /* then it is to stop */
    uint64_t largest;  /* batch that worked */
    double acceptable; /* overhead */
};

static void note_trying(uint64_t left, void *user)
{
    struct listener *listener = user;

    ck_assert_uint_gt(left, 0);
    listener->phases += left >= listener->left;
    listener->left = left;
}

static void note_tried(uint64_t batch, double overhead, void *user)
{
    struct listener *listener = user;

    listener->tries++;
    if (overhead >= 0.0 && overhead <= listener->acceptable && batch > listener->largest) {
        listener->largest = batch;
    }
}

static bool is_enough(void *user)
{
    const struct listener *listener = user;

    return listener->tries >= listener->most;
}

/* In each phase fewer and fewer batches are left, and whenever it is stopped, the answer is the
   largest batch so far. */
START_TEST(a_search_for_the_largest_batch_can_be_stopped)
{
    const struct zoo_options options = {.dtype = DTYPE_FP32};
    struct listener listener = {.most = UINT64_MAX, .acceptable = 0.2};
    struct largest_request request = {.model = zoo_find("vgg16"),
                                      .options = &options,
                                      .budget_bytes = (uint64_t)12 << 30,
                                      .planner = planner_find("lru"),
                                      .overhead = 0.2,
                                      .tried = note_tried,
                                      .trying = note_trying,
                                      .should_stop = is_enough,
                                      .user = &listener};
    struct hardware hardware;
    struct largest result;
    uint64_t tries;

    ck_assert_int_eq(hardware_load(&hardware, "p100", NULL), CAPU_OK);
    request.hardware = &hardware;
    ck_assert_int_eq(largest_batch(&request, &result, NULL), CAPU_OK);
    ck_assert_uint_eq(result.batch, listener.largest);
    /* Halving, steps of an eighth, and halving again where one of them works. */
    ck_assert_uint_ge(listener.phases, 2);
    ck_assert_uint_le(listener.phases, 3);
    tries = listener.tries;
    for (uint64_t most = 1; most < tries; most++) {
        listener = (struct listener){.most = most, .acceptable = 0.2};
        ck_assert_int_eq(largest_batch(&request, &result, NULL), CAPU_OK);
        ck_assert_uint_eq(listener.tries, most);
        ck_assert_uint_ge(result.batch, listener.largest);
    }
}
END_TEST

/* Every planner on every model, by layer, with a budget halfway between floor and peak. */
START_TEST(planners_plan_for_every_model)
{
    const struct zoo_model *model = &zoo_models[_i];
    const struct zoo_options options = {.batch = 4, .by_layer = true};
    struct planner_request request = {
        .trace_index = &trace_index, .host_bytes = UINT64_MAX, .effort = EFFORT_QUICK};

    build(model->name, &options);
    request.budget_bytes =
        trace_index.floor_bytes + (trace_index.peak_bytes - trace_index.floor_bytes) / 2;
    for (const struct planner *planner = planners; planner->name != NULL; planner++) {
        struct error_text error = {""};
        struct plan plan;

        /* planner_run validates the plan. */
        ck_assert_msg(planner_run(planner, &request, &plan, &error) == CAPU_OK, "%s: %s",
                      model->name, error.text);
        ck_assert_uint_gt(plan.action_count, 0);
        plan_finish(&plan);
    }
}
END_TEST

START_TEST(every_machine_has_rates)
{
    struct hardware hardware;
    unsigned count = 0;

    for (; hardware_builtin(&hardware, count); count++) {
        ck_assert_int_eq(hardware_check(&hardware, DTYPE_FP32, NULL), CAPU_OK);
        ck_assert_uint_gt(hardware.machine.memory_bytes, 0);
        ck_assert_str_ne(hardware.text, "");
    }
    ck_assert_uint_eq(count, 6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("models/zoo");
    TCase *tests = tcase_create("zoo");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, parameter_counts_are_as_published);
    tcase_add_test(tests, parameter_tensors_have_the_counted_size);
    tcase_add_test(tests, activations_have_the_published_shapes);
    tcase_add_test(tests, saved_attention_keeps_its_matrices);
    tcase_add_test(tests, backward_reads_what_forward_saved);
    tcase_add_test(tests, ops_that_cannot_run_twice_are_not_replayable);
    tcase_add_test(tests, parameters_are_updated_once_and_last);
    tcase_add_test(tests, early_updates_free_gradients);
    tcase_add_test(tests, every_model_is_a_valid_trace);
    tcase_add_test(tests, layers_are_the_sum_of_their_ops);
    tcase_add_test(tests, layers_have_separate_workspaces_and_draws);
    tcase_add_test(tests, the_slower_of_arithmetic_and_memory_counts);
    tcase_add_test(tests, a_convolution_takes_the_time_of_its_arithmetic);
    tcase_add_test(tests, a_p100_matches_published_times_and_batches);
    tcase_add_test(tests, impossible_models_are_rejected);
    tcase_add_test(tests, the_largest_batch_is_the_largest);
    tcase_add_test(tests, a_search_for_the_largest_batch_can_be_stopped);
    tcase_add_loop_test(tests, planners_plan_for_every_model, 0, MODELS);
    tcase_add_test(tests, every_machine_has_rates);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
