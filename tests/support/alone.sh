#!/bin/bash
# alone.sh COMMAND...: runs a test, with folders of its own for temporary files and for sockets, so that neither
# other tests nor other programs of the user are seen by it. Check's limits are for an idle machine: on a busy
# one each thread may wait for many others.
set -u
# Short, since the path of a socket has at most 107 bytes.
folder=$(mktemp -d "${TMPDIR:-/tmp}/capu-XXXXXX") || exit 2
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' TERM INT
# Programs that run as another user reach what they are given there.
chmod 711 "$folder" && mkdir -m 700 "$folder/run" || exit 2
# What the tests compile once is shared.
export PTX_CACHE=${PTX_CACHE:-${TMPDIR:-/tmp}/capuchin-ptx-$(id -u)}
export XDG_RUNTIME_DIR=$folder/run TMPDIR=$folder
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-10}
"$@"
