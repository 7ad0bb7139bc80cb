#!/bin/bash
# environment.sh ROOT: the library reads the environment in a few places, which know what leads to a path.
# Any other variable could name a file, which must not count in a set-user-ID program: base/environment.h.
# Prints each other line that calls getenv, as FILE:LINE:TEXT, and fails on any.
set -u
cd "$1" || exit 2

found=$(grep -rnE --include='*.[ch]' '(^|[^_[:alnum:]])(secure_)?getenv *\(' \
    base device allocator policy runtime interpose shim parallel |
    grep -vE '^(base/environment\.[ch]|(runtime/context/config|parallel/group|shim/driver/settings)\.c):|getenv\("CAPUCHIN_DEVICE"\)')
[ -z "$found" ] || echo "$found"
[ -z "$found" ]
