#!/bin/bash
# directions.sh ROOT: checks which room includes which. Prints each violation as FILE:LINE: reason, and
# fails if there is one.
#
# Also checks that CUDA headers appear only in device/cuda*, kernels/*.cu[h] and examples/*.cu[h], that MPI's
# appears only in parallel, capuchin/parallel.h and examples, that policy uses no clock and no threads, and that only names declared in public headers begin with capu_.
set -u
cd "$1" || exit 2

public=$(mktemp) || exit 2
found=$(mktemp) || exit 2
trap 'rm -f "$public" "$found"' EXIT
grep -rhoE '\bcapu_[a-z0-9_]+' include | sort -u >"$public"

list() {
    local folder
    for folder in include base device allocator policy runtime parallel kernels examples models interpose shim tools tests/unit; do
        [ -d "$folder" ] && find "$folder" -name '*.[ch]' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh'
    done | sort
}

# Lines "FILE:LINE:HEADER", quotes and brackets kept on the header.
list | xargs grep -nHE '^[[:space:]]*#[[:space:]]*include' /dev/null |
    sed -E 's/^([^:]*:[0-9]+:).*include[[:space:]]*([<"][^>"]*[>"]).*/\1\2/' |
    awk -F: '
    BEGIN {
        may["include"] = "capuchin"
        may["base"] = "base"
        may["device"] = "capuchin base device"
        may["allocator"] = "capuchin base device allocator"
        may["policy"] = "capuchin base policy"
        may["runtime"] = "capuchin base device allocator policy runtime"
        may["parallel"] = "capuchin parallel"
        may["kernels"] = "capuchin kernels"
        may["examples"] = "capuchin kernels examples"
        may["models"] = "capuchin base policy models"
        may["interpose"] = "capuchin base interpose"
        may["shim"] = "capuchin base interpose shim"
        may["tools"] = "capuchin base policy models interpose tools"
        # Within a room, a folder includes itself and those before it.
        folders["policy"] = "format model lower place bound search baselines"
        folders["runtime"] = "context tensor op lanes iteration guide record strict residency follow plan issue api"
        folders["interpose"] = "ptx flow image slice period"
        folders["shim"] = "driver core launch graph copies libraries exports"
        folders["tools"] = "output view report predict page top command"
    }
    # The place of a word in a list, from 1 on; 0: it is not there.
    function rank(list, one,    words, n, i) {
        n = split(list, words, " ")
        for (i = 1; i <= n; i++) if (words[i] == one) return i
        return 0
    }
    function bad(reason) { print $1 ":" $2 ": " reason }
    {
        split($1, part, "/")
        room = part[1]
        is_test = room == "tests"
        if (is_test) room = part[3]
        name = substr($3, 2, length($3) - 2)
        is_cuda = name ~ /^(cuda|cublas|cudnn|curand|nvml|nvtx|nvToolsExt|nvrtc)/
        if (is_cuda) {
            if ($1 !~ /^device\/cuda/ && $1 !~ /^kernels\/[^\/]*\.cuh?$/ && $1 !~ /^examples\/.*\.cuh?$/)
                bad("CUDA header " name " outside device/cuda*, kernels/*.cu[h] and examples/*.cu[h]")
            next
        }
        if (substr($3, 1, 1) == "<") {
            if (name ~ /^capuchin\// && room == "include") bad("public headers include each other in quotes")
            if (!is_test && room == "policy" && name ~ /^(time|uv|pthread|unistd|signal|fcntl)\.h$|^sys\//)
                bad("policy is pure, but includes " name)
            if (name == "mpi.h" && room != "parallel" && room != "examples" && $1 != "include/capuchin/parallel.h")
                bad("mpi.h outside parallel, capuchin/parallel.h and examples")
            if (name == "uv.h" && room != "runtime") bad("uv.h outside runtime")
            next
        }
        if (!(room in may)) next
        if (split(name, path, "/") == 1) { bad("\"" name "\" names no room"); next }
        if (is_test && path[1] == "tests") next
        if (room == "shim" && name == "runtime/api/describe.h") next # the internal interface for it
        if (rank(may[room], path[1]) == 0) bad(room " may not include " name)
        if (!is_test && path[1] == room && room in folders && rank(folders[room], path[2]) > rank(folders[room], part[2]))
            bad(room "/" part[2] " may not include " name)
    }' >"$found"

# Names with capu_ that are not public.
list | grep -v -e '^include/' -e '^tests/' | xargs grep -noHE '\bcapu_[a-z0-9_]+' /dev/null |
    awk -F: 'NR == FNR { public[$1] = 1; next }
             !($3 in public) { print $1 ":" $2 ": " $3 " is not public" }' "$public" - >>"$found"

cat "$found"
[ ! -s "$found" ]
