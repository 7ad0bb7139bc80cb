#!/bin/bash
# scripts/gpu_report.sh [--json] FOLDER...: one page on what gpu_check.sh found, from the gpu_check.jsonl
# of one run or of several that together are one (--call 1, 2 and 3): what passed, what failed and what was
# skipped, with the reasons, and the figures next to those predicted. Without --json a page like those in
# docs/results. Exit code: 0 nothing failed, 1 something failed, 2 bad usage.
set -u

usage() {
    sed -n '2,/^set -u/{/^#/s/^# \{0,1\}//p}' "$0"
}

json=
case ${1:-} in
--json) json=1; shift ;;
--help) usage; exit 0 ;;
esac
[ $# -gt 0 ] || { usage >&2; exit 2; }
lines=$(mktemp) || exit 2
trap 'rm -f "$lines"' EXIT
for folder; do
    [ -r "$folder/gpu_check.jsonl" ] || { echo "gpu_report.sh: $folder has no gpu_check.jsonl" >&2; exit 2; }
    sed 's/": /":/g; s/, "/,"/g' "$folder/gpu_check.jsonl" >>"$lines" # as python writes it, and as we do
done

# of KEY...: the lines that begin with one of these keys, as JSON.
of() {
    local key

    for key; do
        grep "^{\"$key\":" "$lines"
    done
}

# value KEY: the value of a key in each line of the input; nothing where a line has none.
value() {
    sed -nE 's/.*"'"$1"'":("([^"]*)"|([^,}]*)).*/\2\3/p'
}

count() {
    of part | grep -c "\"result\":\"$1\""
}

# Facts would fill pages; they are in the JSON.
passed=$(count ok)
failed=$(count FAILED)
skipped=$(count skipped)
if [ -n "$json" ]; then
    list() { of "$1" | paste -sd, -; }
    printf '{"passed":%s,"failed":%s,"skipped":%s,"runs":[%s],"steps":[%s],"claims":[%s],"facts":[%s],"benches":[%s]}\n' \
        "$passed" "$failed" "$skipped" "$(list machine)" "$(list part)" "$(list claim)" "$(list fact)" "$(list bench)"
    [ "$failed" -eq 0 ]
    exit
fi

# table TITLE HEADER: prints the rows of the input under a title and a header; nothing if there are none.
table() {
    local rows

    rows=$(cat)
    [ -n "$rows" ] || return
    printf '\n## %s\n\n| %s |\n%s\n%s\n' "$1" "$2" "$(sed 's/[^|]*/ --- /g; s/^/|/; s/$/|/' <<<"$2")" "$rows"
}

first=$(of machine | head -n 1)
echo "# GPU check: $passed passed, $failed failed, $skipped skipped"
printf '\nMachine: %s; %s; %s.\n' "$(value machine <<<"$first" | xargs)" "$(value host <<<"$first")" "$(value gpu <<<"$first")"
printf '\nCommand: `make gpu-check` (%s). Measured %s at %s. cuBLAS: %s.\n' "$(of machine | value options | paste -sd/ -)" \
    "$(value date <<<"$first")" "$(value commit <<<"$first")" "$(value cublas <<<"$first")"

of part | sed -nE 's/.*"part":"([^"]*)","name":"([^"]*)","result":"(FAILED|skipped)","seconds":[^,]*,"detail":"(.*)"\}/| \3 | \1 | \2 | \4 |/p' |
    sort | table "What failed or was skipped" "result | part | step | why"

of part | awk -F'"' '{ n[$4]++; ok[$4] += $12 == "ok"; split($15, s, /[:,]/); t[$4] += s[2]; if (n[$4] == 1) order[++parts] = $4 }
    END { for (i = 1; i <= parts; i++) printf "| %s | %d of %d | %d |\n", order[i], ok[order[i]], n[order[i]], t[order[i]] }' |
    table "What passed" "part | passed | seconds"

of claim | sed -nE 's/.*"claim":"([^"]*)","value":([^,]*),"limit":([^,]*),"unit":"([^"]*)","verdict":"([^"]*)".*/| \1 | \2 \4 | \3 | \5 |/p' |
    table "Claims" "claim | measured | limit | verdict"

# A row of a bench: nanoseconds as milliseconds, with the distance from the prediction.
of bench | grep '"bench":"budgets"' | awk '
    function get(key,    text) {
        if (!match($0, "\"" key "\":(\"[^\"]*\"|[^,}]*)")) return ""
        text = substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
        gsub(/"/, "", text)
        return text
    }
    function ms(text) { return text ~ /^[0-9]+$/ ? sprintf("%.2f", text / 1e6) : "-" }
    {
        measured = get("iteration_ns"); predicted = get("predicted_ns")
        if (get("mode") == "off") off[get("model")] = measured
        base = off[get("model")]
        printf "| %s | %s | %s %% | %s | %s | %s | %s |\n", get("model"), get("mode"), get("percent"), ms(measured), ms(predicted),
            (measured ~ /^[0-9]+$/ && predicted ~ /^[0-9]+$/ ? sprintf("%+.1f %%", (measured / predicted - 1) * 100) : "-"),
            (measured ~ /^[0-9]+$/ && base > 0 ? sprintf("%+.1f %%", (measured / base - 1) * 100) : "-")
    }' | table "Training in less memory" "model | mode | of what it needs | measured ms | predicted ms | measured to predicted | slower than without a limit"

of bench | sed -nE 's/.*"bench":"batches","model":"([^"]*)","mode":"([^"]*)","budget":"([^"]*)","batch":([^,]*),"([a-z]*)_per_s":([^,}]*).*/| \1 | \2 | \3 | \4 | \6 \5\/s |/p' |
    table "The largest batches" "model | mode | budget | batch | speed"

of bench | grep '"bench":"pytorch"' | sed -E 's/[{}"]//g; s/bench:pytorch,//; s/,/ | /g; s/^/| /; s/$/ |/; s/[a-z_]*://g' |
    table "PyTorch" "$(of bench | grep -m1 '"bench":"pytorch"' | sed -E 's/[{}]//g; s/"bench":"pytorch",//; s/"([a-z_]*)":("[^"]*"|[^,]*)/\1/g; s/,/ | /g')"

[ "$failed" -eq 0 ]
