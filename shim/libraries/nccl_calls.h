/* The functions of NCCL that the shim wraps, as a list, and their types as far as they are used.
   tests/shim/headers/signatures_check.cc compares them with NVIDIA's header where that is
   installed. */
#ifndef CAPU_SHIM_NCCL_CALLS_H
#define CAPU_SHIM_NCCL_CALLS_H

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

enum nccl_result { NCCL_SYSTEM_ERROR = 2, NCCL_INVALID_USAGE = 5 };

/* X(symbol, parameters, arguments, ranks) */
#define NCCL_CALLS(X)                                                                              \
    X(ncclCommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank),                 \
      (comm, ranks, id, rank), ranks)                                                              \
    X(ncclCommInitRankConfig,                                                                      \
      (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, void *config),                     \
      (comm, ranks, id, rank, config), ranks)                                                      \
    X(ncclCommInitRankScalable,                                                                    \
      (ncclComm_t * comm, int ranks, int rank, int ids, ncclUniqueId *list, void *config),         \
      (comm, ranks, rank, ids, list, config), ranks)                                               \
    X(ncclCommInitAll, (ncclComm_t * comms, int devices, const int *list), (comms, devices, list), \
      devices)

#endif
