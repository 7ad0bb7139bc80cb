/*
 * Launchers in C++, with every role: compiled with the warnings of a program that allows no casts
 * in C's style and none that change nothing. The macros become part of that program.
 */
#include <capuchin/capuchin.h>
#include <capuchin/launcher.h>

#include <cstdint>

typedef struct gpu_handle *gpu_stream; /* as CUDA declares one */

struct shape {
    int rows;
    int columns;
};

CAPU_LAUNCHER(every_role, (const float *, a, reads), (float *, b, writes, n),
              (float *, c, writes_rest_zero, rows *columns), (float *, d, writes_rest_undefined, 3),
              (double *, e, updates, static_cast<std::int64_t>(n)), (char *, f, scratch, size),
              (int, n, value), (int, rows, value), (int, columns, value), (size_t, size, value),
              (shape, whole, value), (const char *, label, name), (int, layer, index))
{
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    (void)n, (void)rows, (void)columns, (void)size, (void)whole;
}

CAPU_LAUNCHER(on_gpu, (float *, x, updates), (gpu_stream, stream, stream))
{
    (void)x, (void)stream;
}

static CAPU_LAUNCHER(on_any, (void *, stream, stream), (float *, x, updates, 1), (long, at, index))
{
    (void)x, (void)stream;
}

void fill(float *x, int count, gpu_stream stream);

CAPU_WRAPPER(run_fill, fill, (float *, x, writes, count), (int, count, value),
             (gpu_stream, stream, stream));

void fill(float *x, int count, gpu_stream stream)
{
    (void)stream;
    for (int i = 0; i < count; i++) {
        x[i] = 1.0F;
    }
}

static capu_status call_all(float *x)
{
    const capu_operand operands[] = {
        capu_reads(x),   capu_writes(x), capu_writes_rest_zero(x), capu_writes_rest_undefined(x),
        capu_updates(x), capu_scratch(x)};
    double e = 0.0;
    char f = 0;
    capu_status status = every_role(x, x, x, x, &e, &f, 1, 1, 1, 1, shape(), "label", 1);

    (void)operands;
    status = status == CAPU_OK ? on_gpu(x, gpu_stream()) : status;
    status = status == CAPU_OK ? on_any(x, x, 2L) : status;
    return status == CAPU_OK ? run_fill(x, 1, gpu_stream()) : status;
}

int main()
{
    float x = 0.0F;

    /* Without a context no launcher runs. */
    return call_all(&x) != CAPU_OK ? 0 : 1;
}
