/*
 * Status codes, the result of every function that can fail.
 *
 * 0 is success, errors are negative, and a value never changes its meaning. The codes are grouped
 * by the recovery they call for: -1.. fix the call, -20.. memory is short now, -40.. the device,
 * -60.. files. The code names the kind of failure; capu_last_error() names the tensor, op, option
 * or file. docs/errors.md has the causes and remedies.
 */
#ifndef CAPU_INCLUDE_STATUS_H
#define CAPU_INCLUDE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CAPU_API __attribute__((visibility("default")))
#else
#define CAPU_API
#endif

/* X(name, value, text). One list generates the enum, the names and the texts. */
#define CAPU_STATUS_LIST(X)                                                                        \
    X(OK, 0, "success")                                                                            \
    /* The caller's mistake: fix the call. Nothing was changed. */                                 \
    X(INVALID, -1, "invalid argument")                                                             \
    X(WRONG_STRUCT, -2, "a struct of another size, or newer than the library")                     \
    X(WRONG_ADDRESS, -3, "not an address in an allocation of this context, or past its end")       \
    X(TOO_LARGE, -4, "a size that cannot be represented")                                          \
    X(WRONG_ORDER, -5, "called out of order, or in a forked child")                                \
    X(UNDEFINED_READ, -6, "read before it was written")                                            \
    X(UNSUPPORTED, -7, "not supported")                                                            \
    X(CONTENTS_LOST, -8, "discarded by a plan that is no longer followed")                         \
    /* Memory is short now: free something or raise the limit, then retry. */                      \
    X(OVER_BUDGET, -20, "does not fit the budget")                                                 \
    X(NO_HOST_MEMORY, -21, "host memory is full")                                                  \
    X(HOST_OVER_BUDGET, -22, "does not fit the host budget")                                       \
    X(SYSTEM_LIMIT, -23, "no more addresses, mappings, threads or descriptors, or file too large") \
    /* The device. */                                                                              \
    X(NO_DEVICE, -40, "no such device on this machine")                                            \
    X(DEVICE_FAILED, -41, "a device call failed; the context is still usable")                     \
    X(DEVICE_LOST, -42, "the device failed: destroy the context")                                  \
    X(OP_FAILED, -43, "an op failed while running: destroy the context")                           \
    X(NOT_READY, -44, "not finished yet")                                                          \
    /* Files. */                                                                                   \
    X(FILE_FAILED, -60, "a file could not be read or written, or has the wrong contents")

#define CAPU_STATUS_ENUMERATOR(name, value, text) CAPU_##name = value,
typedef enum capu_status { CAPU_STATUS_LIST(CAPU_STATUS_ENUMERATOR) } capu_status;
#undef CAPU_STATUS_ENUMERATOR

/*
 * The code's name ("CAPU_OVER_BUDGET") and its text ("does not fit the budget"). Constants; values
 * that are not codes give "CAPU_?" and "not a status code". Thread: any.
 */
CAPU_API const char *capu_status_name(capu_status status);
CAPU_API const char *capu_status_text(capu_status status);

#ifdef __cplusplus
}
#endif

#endif
