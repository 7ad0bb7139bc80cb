#!/bin/bash
# tables.sh ROOT: compares the tables of the documents with the source. docs/errors.md must have exactly
# the codes of capuchin/status.h, docs/configuration.md the fields of capu_config and the settings that
# runtime/context/config.c knows, docs/report.md the counters of both report.h and the fields of capu_stall,
# and docs/models.md the machines of models/machines.jsonl. Prints and fails on any difference.
set -u
cd "$1" || exit 2
status=0

# same WHAT DOCUMENT SOURCE: checks that both texts have the same lines, in any order.
same() {
    local difference
    [ -n "$3" ] || { echo "$1: the source has none, is this test out of date?"; status=1; }
    difference=$(diff <(sort <<<"$2") <(sort <<<"$3") | grep '^[<>]')
    [ -z "$difference" ] || {
        echo "$1 ('<' the document, '>' the source):"
        echo "$difference"
        status=1
    }
}

same "errors.md" \
    "$(sed -nE 's/^\| `CAPU_([A-Z_]+)` \| (-?[0-9]+) \| ([^|]*[^ |]) \|.*/\1, \2, "\3"/p' docs/errors.md)" \
    "$(sed -nE 's/^ *X\(([A-Z_]+), (-?[0-9]+), ("[^"]*")\).*/\1, \2, \3/p' include/capuchin/status.h)"

# setting, field if it has one, and kind
same "configuration.md, settings" \
    "$(sed -nE 's/^\| `([a-z0-9_]+)` \| (`([a-z0-9_]+)` )?\| ([a-z]+) .*/\1 \3 \4/p' docs/configuration.md)" \
    "$(sed -nE 's/^ *FIELD\(([a-z0-9_]+), "CAPUCHIN_([A-Z0-9_]+)", FIELD_([A-Z]+)\),.*/\L\2 \1 \L\3/p
                s/^ *SETTING\([a-z0-9_]+, "CAPUCHIN_([A-Z0-9_]+)", FIELD_([A-Z]+)\),.*/\L\1  \L\2/p' \
        runtime/context/config.c)"

same "configuration.md, fields" \
    "$(sed -nE 's/^\| (`[a-z0-9_]+` )?\| `([a-z0-9_]+)` \|.*/\2/p' docs/configuration.md)" \
    "$(sed -n '/^typedef struct capu_config {/,/^} capu_config;/p' include/capuchin/context.h |
        sed -nE 's/^    [a-z].*[ *]([a-z0-9_]+)(\[[0-9]+\])?;.*/\1/p' | grep -vxE 'size|reserved|given|settings')"

same "report.md" \
    "$(sed -nE 's/^\| `([a-z0-9_]+)` \| (count|ns|bytes) \|.*/\1 \2/p' docs/report.md)" \
    "$(grep -ohE '^ *X\([a-z0-9_]+, (count|ns|bytes)' include/capuchin/report.h policy/format/report.h |
        sed -E 's/^ *X\(([a-z0-9_]+), /\1 /')"

same "report.md, stalls" \
    "$(sed -nE '/^\| key of a stall/,/^$/s/^\| `([a-z_]+)` .*/\1/p' docs/report.md)" \
    "$(sed -n '/^typedef struct capu_stall {/,/^} capu_stall;/p' include/capuchin/report.h |
        sed -nE 's/^    [a-z][^;]*[ *]([a-z_]+);.*/\1/p')"

# Rates, in units of 10^11 operations and 10^9 bytes per second, of the machines that have them.
same "models.md" \
    "$(sed -nE 's/^\| ([a-z0-9]+) \| (PCIe|SXM) \| ([0-9.-]+) \| ([0-9.-]+) \| ([0-9.-]+) \| ([0-9.-]+) \| ([0-9]+) \| ([0-9]+) \| ([0-9]+) \|$/\1 \3 \4 \5 \6 \7 \8 \9/p' \
        docs/models.md | sed -E 's/ -//g; s/\.//g')" \
    "$(sed -E 's/.*"name":"([a-z0-9]+)"(.*)/\1 \2/; s/"(memory_bytes|d2h_bytes_per_s|h2d_bytes_per_s|copy_latency_ns|launch_ns)":[0-9]+,?//g; s/"text":.*//; s/"[a-z0-9]+_flops_per_s":([0-9]+)00000000000/\1/g; s/"memory_bytes_per_s":([0-9]+)000000000/\1/; s/"[a-z_]+"://g; s/,/ /g; s/ +/ /g; s/ $//' \
        models/machines.jsonl)"
exit $status
