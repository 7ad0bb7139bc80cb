/* The table of entry points, cuGetProcAddress, the variants for the per-thread default stream, and
   the calls that are refused. */
#include "tests/ptx/driver/driver.h"

#include <stdio.h>
#include <string.h>

/* A call that is refused looks at none of its arguments, so its type does not matter. */
#define REFUSE(symbol)                                                  \
    DRIVER_API CUresult symbol(void);                                   \
    CUresult symbol(void)                                               \
    {                                                                   \
        fprintf(stderr, "test driver: %s is not supported\n", #symbol); \
        return CUDA_ERROR_NOT_SUPPORTED;                                \
    }
#define REFUSE_PLAIN(name, suffix, since) REFUSE(name##suffix)
#define REFUSE_STREAM(name, suffix, since, since_pt, suffix_pt) \
    REFUSE(name##suffix) REFUSE(name##suffix##suffix_pt)
DRIVER_REFUSED_CALLS(REFUSE_PLAIN)
DRIVER_REFUSED_STREAM_CALLS(REFUSE_STREAM)

#define PER_THREAD_VARIANT(name, suffix, since, since_pt, suffix_pt, parameters, arguments) \
    CUresult name##suffix##suffix_pt parameters                                             \
    {                                                                                       \
        return name##suffix arguments;                                                      \
    }
DRIVER_STREAM_CALLS(PER_THREAD_VARIANT)
DRIVER_LAUNCH_CALLS(PER_THREAD_VARIANT)

typedef void (*entry)(void);

struct row {
    const char *name;
    int since;    /* version of CUDA; 0: there is no such variant */
    int since_pt; /* the same of the variant for the per-thread default stream */
    entry function;
    entry function_pt;
};

#define PLAIN_ROW(name, suffix, since, parameters) {#name, since, 0, (entry)name##suffix, NULL},
#define STREAM_ROW(name, suffix, since, since_pt, suffix_pt, parameters, arguments) \
    {#name, since, since_pt, (entry)name##suffix, (entry)name##suffix##suffix_pt},
#define REFUSED_ROW(name, suffix, since) {#name, since, 0, (entry)name##suffix, NULL},
#define REFUSED_STREAM_ROW(name, suffix, since, since_pt, suffix_pt) \
    {#name, since, since_pt, (entry)name##suffix, (entry)name##suffix##suffix_pt},

static const struct row rows[] = {
    DRIVER_PLAIN_CALLS(PLAIN_ROW) DRIVER_CODE_CALLS(PLAIN_ROW) DRIVER_LAUNCH_CALLS(STREAM_ROW)
        DRIVER_OTHER_VERSIONS(PLAIN_ROW) DRIVER_STREAM_CALLS(STREAM_ROW)
            DRIVER_REFUSED_CALLS(REFUSED_ROW) DRIVER_REFUSED_STREAM_CALLS(REFUSED_STREAM_ROW)};

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result)
{
    bool wants_pt = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    int newest = 0;

    if (name == NULL || function == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *function = NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool is_pt = wants_pt && rows[i].function_pt != NULL;
        int since = is_pt ? rows[i].since_pt : rows[i].since;

        if (strcmp(rows[i].name, name) != 0) {
            continue;
        }
        if (since > version) {
            answer = newest == 0 ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : answer;
        } else if (since > newest) {
            newest = since;
            answer = CU_GET_PROC_ADDRESS_SUCCESS;
            *function = is_pt ? (void *)rows[i].function_pt : (void *)rows[i].function;
        }
    }
    if (result != NULL) {
        *result = answer;
    }
    return answer == CU_GET_PROC_ADDRESS_SUCCESS || result != NULL ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

static const struct {
    CUresult error;
    const char *name;
    const char *text;
} errors[] = {
#define ERROR_ROW(name, runtime_name, number, text) {name, #name, text},
    DRIVER_ERRORS(ERROR_ROW)};

static CUresult error_text(CUresult error, bool wants_name, const char **text)
{
    if (text == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *text = NULL;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].error == error) {
            *text = wants_name ? errors[i].name : errors[i].text;
        }
    }
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    return error_text(error, true, text);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    return error_text(error, false, text);
}
