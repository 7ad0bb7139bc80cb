/*
 * capuchin/capuchin.hpp: ops from lambdas, names, operands that are left out, and objects that end
 * what they began. Compiled and run by cpp.sh with several compilers and options.
 */
#include "capuchin/capuchin.hpp"

#include <cstdlib>
#include <utility>

#define CHECK(condition_)                                                                 \
    do {                                                                                  \
        if (!(condition_)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition_); \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

namespace
{

constexpr std::size_t page = 65536;
constexpr std::size_t count = 4 * page / sizeof(float); /* of a tensor of four pages */

capu_config host_config(std::uint64_t pages, capu_mode mode = CAPU_MODE_PASSIVE)
{
    capu_config config = CAPU_CONFIG_INIT;

    config.device = "host";
    config.mode = mode;
    config.page_bytes = page;
    config.budget_bytes = pages * page;
    config.wait_for_plan = 1;
    return config;
}

float *make(capu_context *context, const char *name, capu_kind kind = CAPU_KIND_UNKNOWN)
{
    void *address = nullptr;

    CHECK(capu_malloc(context, count * sizeof(float), &address) == CAPU_OK);
    CHECK(capu::describe(context, address, name, kind) == CAPU_OK);
    return static_cast<float *>(address);
}

float item(capu_context *context, const float *address)
{
    float value = 0.0f;

    CHECK(capu_download(context, &value, address, sizeof(value), 0) == CAPU_OK);
    return value;
}

bool last_error_has(capu_context *context, const char *text)
{
    return std::strstr(capu_last_error(context), text) != nullptr;
}

void fill(float *x, float value)
{
    for (std::size_t i = 0; i < count; i++) {
        x[i] = value;
    }
}

/* What is captured is the library's copy, so it outlives the call and the block. */
void lambdas_run_as_ops()
{
    capu::context context(host_config(12));
    float *tensors[6];

    for (int i = 0; i < 6; i++) {
        const float value = static_cast<float>(i);
        float *const x = tensors[i] = make(context, "x");

        CHECK(capu::run(context, "fill", {capu::writes(x)}, [=](capu_stream) { fill(x, value); }) ==
              CAPU_OK);
    }
    for (int i = 0; i < 6; i++) {
        CHECK(item(context, tensors[i] + count - 1) == static_cast<float>(i));
    }
}

struct adder {
    float *x;
    float value;

    capu_status operator()(capu_stream) const
    {
        x[0] += value;
        return value < 0.0f ? CAPU_OP_FAILED : CAPU_OK;
    }
};

void other_function_objects_and_their_statuses()
{
    capu::context context(host_config(16));
    float *x = make(context, "x");
    capu_status status;

    CHECK(capu_zero(context, x, 0) == CAPU_OK);
    CHECK(capu::run(context, "add", {capu::updates(x)}, adder{x, 2.0f}) == CAPU_OK);
    CHECK(item(context, x) == 2.0f);
    status = capu::run(context, "subtract", {capu::updates(x)}, adder{x, -2.0f});
    CHECK(status == CAPU_OK || status == CAPU_OP_FAILED);
    CHECK(capu_synchronize(context) == CAPU_OP_FAILED);
    CHECK(last_error_has(context, "subtract"));
}

void operands_without_memory_are_left_out()
{
    capu::context context(host_config(16));
    float *x = make(context, "x");
    const float *bias = nullptr;
    void *whole = x;
    const auto set = [=](capu_stream) { fill(x, bias == nullptr ? 3.0f : 4.0f); };

    CHECK(capu::run(context, "set", {capu::reads(bias), capu::writes(x), capu::scratch(nullptr)},
                    set) == CAPU_OK);
    CHECK(item(context, x) == 3.0f);
    CHECK(capu::run(context, "none", {capu::updates(x + count, 0)}, [](capu_stream) {}) == CAPU_OK);
    CHECK(capu::run(context, "half", {capu::updates(x, count / 2)}, set) == CAPU_OK);
    CHECK(capu::run(context, "far", {capu::reads(x, count + 1)}, set) == CAPU_WRONG_ADDRESS);
    CHECK(last_error_has(context, "262148 bytes"));
    CHECK(capu::run(context, "far", {capu::scratch(x, SIZE_MAX)}, set) == CAPU_WRONG_ADDRESS);
    CHECK(capu::run(context, "bytes", {capu::writes(whole, count * sizeof(float))}, set) ==
          CAPU_OK);
    CHECK(capu::run(context, "bytes", {capu::writes(whole, count * sizeof(float) + 1)}, set) ==
          CAPU_WRONG_ADDRESS);
    CHECK(capu::run(context, "some", {capu::writes_rest_undefined(x, 4)}, [](capu_stream) {}) ==
          CAPU_OK);
    CHECK(capu::run(context, "all", {capu::writes_rest_undefined(x)}, set) == CAPU_OK);
    CHECK(capu::run(context, "clear", {capu::writes_rest_zero(x, 4)}, [](capu_stream) {}) ==
          CAPU_OK);
    CHECK(item(context, x + 3) == 0.0f);
    CHECK(item(context, x + 4) == 3.0f);
    CHECK(capu::run(context, "part", {capu::writes_rest_undefined(x)}, set) == CAPU_OK);
    CHECK(capu::run(context, "part", {capu::writes_rest_undefined(x, 4)}, [](capu_stream) {}) ==
          CAPU_OK);
    CHECK(item(context, x + 4) == 3.0f);
}

void ops_have_names()
{
    capu::context context(host_config(16));
    float *x = make(context, "x");
    const auto nothing = [](capu_stream) {};
    const std::size_t layer = 3;

    CHECK(capu::run(context, "gelu", {capu::reads(x)}, nothing) == CAPU_UNDEFINED_READ);
    CHECK(last_error_has(context, "op 'gelu' reads 'x'"));
    CHECK(capu::run(context, {"qkv", layer}, {capu::reads(x)}, nothing) == CAPU_UNDEFINED_READ);
    CHECK(last_error_has(context, "op 'qkv.3' reads"));
    CHECK(capu::run(context, {"qkv", -1}, {capu::reads(x)}, nothing) == CAPU_UNDEFINED_READ);
    CHECK(last_error_has(context, "op 'qkv.-1' reads"));
    CHECK(capu::run(context, nullptr, {capu::reads(x)}, nothing) == CAPU_INVALID);
    CHECK(capu::run(context, "odd", {capu::writes(x)}, nothing, {64}) == CAPU_INVALID);
    CHECK(capu::run(nullptr, "gelu", {capu::reads(x)}, nothing) == CAPU_INVALID);
}

void contexts_end_with_their_objects()
{
    char text[128] = "";
    capu_config config = host_config(16);

    config.device = "abacus";
    capu::context none(config);
    CHECK(none.status() == CAPU_INVALID);
    CHECK(static_cast<capu_context *>(none) == nullptr);
    CHECK(std::strstr(none.error(), "abacus") != nullptr);
    config.error = text;
    config.error_bytes = sizeof(text);
    CHECK(capu::context(config).status() == CAPU_INVALID);
    CHECK(std::strstr(text, "abacus") != nullptr);

    capu::context first(host_config(16));
    CHECK(first.status() == CAPU_OK && first.error()[0] == '\0');
    float *x = make(first, "x");
    capu_context *const c = first;
    capu::context second(std::move(first));
    CHECK(static_cast<capu_context *>(first) == nullptr);
    CHECK(static_cast<capu_context *>(second) == c);
    none = std::move(second);
    CHECK(none.status() == CAPU_OK);
    CHECK(capu_free(none, x) == CAPU_OK);
    none = capu::context(host_config(16));
    CHECK(none.status() == CAPU_OK && capu_synchronize(none) == CAPU_OK);
}

/* Leaves the iteration and the segment open, as a step that returns early does. */
capu_status step_that_fails(capu_context *context, const float *x)
{
    capu::iteration step(context, "train");
    capu::segment block(context, "block");

    CHECK(step.status() == CAPU_OK && block.status() == CAPU_OK);
    return capu::run(context, "early", {capu::reads(x)}, [](capu_stream) {});
}

void iterations_and_segments_end_with_their_objects()
{
    capu::context context(host_config(16));
    float *x = make(context, "x", CAPU_ACTIVATION);

    CHECK(step_that_fails(context, x) == CAPU_UNDEFINED_READ);
    {
        capu::iteration step(context);
        CHECK(step.status() == CAPU_OK);
        {
            capu::iteration inner(context);
            CHECK(inner.status() == CAPU_WRONG_ORDER);
            CHECK(inner.end() == CAPU_WRONG_ORDER);
        }
        {
            capu::segment block(context, nullptr);
            CHECK(block.status() == CAPU_INVALID);
        }
        CHECK(capu_iteration_begin(context, nullptr) == CAPU_WRONG_ORDER);
        {
            capu::segment block(context, "block");
            CHECK(step.end() == CAPU_WRONG_ORDER);
            CHECK(block.end() == CAPU_OK);
            CHECK(block.end() == CAPU_OK);
        }
        CHECK(step.end() == CAPU_OK);
        CHECK(step.end() == CAPU_OK);
        CHECK(capu_iteration_end(context) == CAPU_WRONG_ORDER);
    }
    CHECK(capu_iteration_end(context) == CAPU_WRONG_ORDER);
}

/* A chain of ops in less memory than it takes: lambdas are recognised from one iteration to the
   next, so that it is planned. */
void lambdas_are_planned()
{
    capu::context context(host_config(14, CAPU_MODE_GUIDED));
    capu_report report = CAPU_REPORT_INIT;
    float *x[6];
    float *input = make(context, "input");

    for (float *&tensor : x) {
        tensor = make(context, "x", CAPU_ACTIVATION);
    }
    CHECK(capu::run(context, "fill", {capu::writes(input)},
                    [=](capu_stream) { fill(input, 1.0f); }) == CAPU_OK);
    for (int n = 0; n < 5; n++) {
        capu::iteration step(context, "train");
        const float *from = input;

        for (float *to : x) {
            CHECK(capu::run(context, "next", {capu::reads(from), capu::writes(to)},
                            [=](capu_stream) { fill(to, 1.0f + from[count - 1]); }) == CAPU_OK);
            from = to;
        }
        for (int i = 6; i-- > 0;) {
            float *const to = x[i];
            CHECK(capu::run(context, "back", {capu::updates(to)},
                            [=](capu_stream) { fill(to, -to[0]); }) == CAPU_OK);
            CHECK(item(context, to) == -2.0f - static_cast<float>(i));
        }
        CHECK(step.end() == CAPU_OK);
    }
    CHECK(capu_synchronize(context) == CAPU_OK);
    CHECK(capu_report_get(context, &report) == CAPU_OK);
    CHECK(report.mode == CAPU_MODE_GUIDED);
}

} // namespace

int main()
{
    lambdas_run_as_ops();
    other_function_objects_and_their_statuses();
    operands_without_memory_are_left_out();
    ops_have_names();
    contexts_end_with_their_objects();
    iterations_and_segments_end_with_their_objects();
    lambdas_are_planned();
    return 0;
}
