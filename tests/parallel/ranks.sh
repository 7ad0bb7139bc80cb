#!/bin/bash
# ranks.sh COUNT PROGRAM [ARGUMENT...]: runs a program as so many ranks on this machine, for at most 40 s.
set -u
command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed"; exit 77; }
# Containers and CI run as root; there are more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset "${!CAPUCHIN_@}"
exec timeout -k 5 40 mpirun --oversubscribe --bind-to none -n "$@"
