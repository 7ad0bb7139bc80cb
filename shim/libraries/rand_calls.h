/*
 * The functions of cuRAND that the shim wraps, as a list, and their types as far as they are used.
 * tests/shim/headers/rand_headers_check.c compares them with NVIDIA's headers where those are
 * installed.
 */
#ifndef CAPU_SHIM_RAND_CALLS_H
#define CAPU_SHIM_RAND_CALLS_H

#include "shim/driver/driver.h"

typedef unsigned curandStatus_t;
typedef struct curandGenerator_st *curandGenerator_t;

enum rand_status {
    RAND_SUCCESS = 0,
    RAND_NOT_INITIALIZED = 101,
    RAND_ALLOCATION_FAILED = 102,
    RAND_LAUNCH_FAILURE = 201
};

/* X(symbol, parameters, arguments): calls that may launch kernels, which touch memory of the
   library's own. */
#define RAND_PLAIN(X)                                                                             \
    X(curandDestroyGenerator, (curandGenerator_t generator), (generator))                         \
    X(curandGenerateSeeds, (curandGenerator_t generator), (generator))                            \
    X(curandSetPseudoRandomGeneratorSeed, (curandGenerator_t generator, unsigned long long seed), \
      (generator, seed))                                                                          \
    X(curandSetGeneratorOffset, (curandGenerator_t generator, unsigned long long offset),         \
      (generator, offset))

/* X(symbol, type of a number, parameters, arguments): fills an array. */
#define RAND_FILLING(X)                                                                            \
    X(curandGenerate, unsigned, (curandGenerator_t generator, unsigned *numbers, size_t count),    \
      (generator, numbers, count))                                                                 \
    X(curandGenerateLongLong, unsigned long long,                                                  \
      (curandGenerator_t generator, unsigned long long *numbers, size_t count),                    \
      (generator, numbers, count))                                                                 \
    X(curandGenerateUniform, float, (curandGenerator_t generator, float *numbers, size_t count),   \
      (generator, numbers, count))                                                                 \
    X(curandGenerateUniformDouble, double,                                                         \
      (curandGenerator_t generator, double *numbers, size_t count), (generator, numbers, count))   \
    X(curandGenerateNormal, float,                                                                 \
      (curandGenerator_t generator, float *numbers, size_t count, float mean, float deviation),    \
      (generator, numbers, count, mean, deviation))                                                \
    X(curandGenerateNormalDouble, double,                                                          \
      (curandGenerator_t generator, double *numbers, size_t count, double mean, double deviation), \
      (generator, numbers, count, mean, deviation))                                                \
    X(curandGenerateLogNormal, float,                                                              \
      (curandGenerator_t generator, float *numbers, size_t count, float mean, float deviation),    \
      (generator, numbers, count, mean, deviation))                                                \
    X(curandGenerateLogNormalDouble, double,                                                       \
      (curandGenerator_t generator, double *numbers, size_t count, double mean, double deviation), \
      (generator, numbers, count, mean, deviation))                                                \
    X(curandGeneratePoisson, unsigned,                                                             \
      (curandGenerator_t generator, unsigned *numbers, size_t count, double lambda),               \
      (generator, numbers, count, lambda))

/* X(symbol, parameters): the others. */
#define RAND_OTHER(X)                                                        \
    X(curandCreateGenerator, (curandGenerator_t * generator, unsigned type)) \
    X(curandSetStream, (curandGenerator_t generator, CUstream stream))

#endif
