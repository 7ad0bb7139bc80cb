/*
 * The calls of cuRAND that libcurand of these tests has, as a list written by us; see
 * tests/ptx/headers_check.c.
 */
#ifndef CAPU_TESTS_PTX_CURAND_CALLS_H
#define CAPU_TESTS_PTX_CURAND_CALLS_H

/* X(name, parameters) */
#define CURAND_CALLS(X)                                                                           \
    X(curandCreateGenerator, (curandGenerator_t * generator, curandRngType_t type))               \
    X(curandDestroyGenerator, (curandGenerator_t generator))                                      \
    X(curandSetStream, (curandGenerator_t generator, cudaStream_t stream))                        \
    X(curandSetPseudoRandomGeneratorSeed, (curandGenerator_t generator, unsigned long long seed)) \
    X(curandGenerate, (curandGenerator_t generator, unsigned *numbers, size_t count))             \
    X(curandGenerateUniform, (curandGenerator_t generator, float *numbers, size_t count))         \
    X(curandGenerateNormal,                                                                       \
      (curandGenerator_t generator, float *numbers, size_t count, float mean, float deviation))

#endif
