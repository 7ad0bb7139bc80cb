#!/bin/bash
# scripts/ranks.sh COUNT PROGRAM [ARGUMENT...]: runs a program as COUNT ranks on this machine, under Open
# MPI's mpirun. There may be more ranks than cores. Threads are not bound to one core, because each rank
# has several. Root may do it, as in containers; for the same reason ranks copy through shared memory and
# not from each other's, which containers often forbid. Each rank uses its share of the cores for kernels
# unless KERNELS_THREADS says otherwise. Exit code 77: there is no mpirun, by which tests are skipped.
set -u
count=${1:?usage: ranks.sh COUNT PROGRAM [ARGUMENT...]}
shift
command -v mpirun >/dev/null || {
    echo "ranks.sh: there is no mpirun; install openmpi-bin" >&2
    exit 77
}
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism:-none}
share=$(($(nproc) / count))
export KERNELS_THREADS=${KERNELS_THREADS:-$((share > 0 ? share : 1))}
exec mpirun --oversubscribe --bind-to none -n "$count" "$@"
