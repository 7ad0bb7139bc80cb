/* Finding the driver's calls, see driver_table.h. */
#include "tests/ptx/client/driver_table.h"

#include <dlfcn.h>
#include <stdbool.h>

typedef CUresult (*finder)(const char *name, void **function, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult *result);

static const struct {
    const char *name;
    size_t offset; /* in struct driver_table */
    int since;
    int since_pt; /* of the per-thread variant; 0: none */
} wanted[] = {
#define PLAIN_ROW(name, suffix, since, parameters) \
    {#name, offsetof(struct driver_table, name), since, 0},
#define STREAM_ROW(name, suffix, since, since_pt, suffix_pt, parameters, arguments) \
    {#name, offsetof(struct driver_table, name), since, since_pt},
    DRIVER_PLAIN_CALLS(PLAIN_ROW) DRIVER_CODE_CALLS(PLAIN_ROW) DRIVER_STREAM_CALLS(STREAM_ROW)
        DRIVER_LAUNCH_CALLS(STREAM_ROW)};

static bool find(finder get, struct driver_table *table, bool is_pt)
{
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        CUdriverProcAddressQueryResult result;
        int version = is_pt && wanted[i].since_pt != 0 ? wanted[i].since_pt : wanted[i].since;
        void **slot = (void **)((char *)table + wanted[i].offset);

        if (get(wanted[i].name, slot, version,
                is_pt ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                      : CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                &result) != CUDA_SUCCESS ||
            *slot == NULL) {
            return false;
        }
    }
    return true;
}

enum driver_table_state driver_table_open(struct driver_table *legacy,
                                          struct driver_table *per_thread)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    finder get = library != NULL ? (finder)dlsym(library, "cuGetProcAddress_v2") : NULL;

    if (get == NULL) {
        return DRIVER_TABLE_NO_DRIVER;
    }
    return find(get, legacy, false) && find(get, per_thread, true) ? DRIVER_TABLE_OPEN
                                                                   : DRIVER_TABLE_INCOMPLETE;
}
