#!/bin/bash
# limits.sh ROOT WORK: the time limits of gpu_check.sh. A `timeout` that runs nothing adds to a clock what
# the command would take at most; so each of the three calls is tried in a moment with programs that all
# hang, all fail, or all take almost as long as they may. Each call must end within nine minutes, and say
# of each of its parts how it went.
set -u
. "$(dirname "$0")/../../support/effort.sh"
root=$1
work=$2

fail() {
    echo "limits.sh: $*"
    exit 1
}

rm -rf "$work" && mkdir -p "$work/bundle/bin" "$work/bundle/data" "$work/tools" || exit 1
export CHECK_CLOCK=$work/clock
export CALLS=$work/calls
export HOW
cat >"$work/tools/timeout" <<'END'
#!/bin/bash
[ "$1" = -k ] || exit 125
kill_after=$2 seconds=$3
shift 3
case "$*" in
*--probe | *--cublas) took=$seconds code=0 ;; # otherwise the check ends at once
*)
    case $HOW in
    hang) took=$((seconds + kill_after)) code=137 ;; # it ignores the first signal
    fail) took=$((seconds * 9 / 10)) code=1 ;;
    last) took=$((seconds - 1)) code=0 ;;
    esac
    ;;
esac
echo $(($(<"$CHECK_CLOCK") + took)) >"$CHECK_CLOCK"
echo "$seconds $*" >>"$CALLS"
exit $code
END
for tool in compute-sanitizer nvidia-smi; do
    printf '#!/bin/sh\nexit 1\n' >"$work/tools/$tool"
done
for program in gpu_facts gpu_claims train_gpt train_fashion train_cnn capuchin drop_in_cuda_plain drop_in_cuda_drop_in \
    kernels_gpu_test device_contract_gpu_test budgets.sh batches.sh; do
    printf '#!/bin/sh\nexit 1\n' >"$work/bundle/bin/$program"
done
chmod +x "$work"/{tools,bundle/bin}/*
echo text >"$work/bundle/data/text.txt"
touch "$work/bundle/data/fashion"

# parts_of CALL: the parts that the script says belong to it.
parts_of() {
    sed -n "s/^call_$1=\(.*\)/\1/p" "$root/scripts/gpu_check.sh" | tr ',' ' '
}

ways=hang
runs_all_cases && ways="hang fail last"
for HOW in $ways; do
    for call in 1 2 3; do
        echo 0 >"$CHECK_CLOCK"
        : >"$CALLS"
        # As docs/gpu.md has it, by a relative path.
        (cd "$root" && PATH=$work/tools:$PATH scripts/gpu_check.sh --bin "$work/bundle" --out "$work/out" --call $call \
            >"$work/log" 2>&1)
        took=$(<"$CHECK_CLOCK")
        [ "$took" -le 540 ] || fail "call $call takes $took s if all programs $HOW: $(cat "$CALLS")"
        [ "$took" -ge 400 ] || fail "call $call takes only $took s if all programs $HOW: was anything run? $(cat "$work/log")"
        [ "$(grep -c . "$CALLS")" -gt 4 ] || fail "call $call ran nothing: $(cat "$work/log")"
        for part in $(parts_of $call); do
            grep -q "\"part\":\"$part\"," "$work/out/gpu_check.jsonl" || fail "call $call does not say how $part went: $(cat "$work/log")"
        done
        [ -s "$work/out/report.md" ] || fail "call $call made no page"
    done
done

# The three calls are a whole run.
[ "$(for call in 1 2 3; do parts_of $call; done | tr ' ' '\n' | sort | xargs)" = \
    "$("$root/scripts/gpu_check.sh" --list | tr ' ' '\n' | sort | xargs)" ] || fail "the calls leave a part out"
echo "each call ends in time"
