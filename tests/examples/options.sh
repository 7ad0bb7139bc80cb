#!/bin/sh
# Runs a training example with good and bad options. Checks the exit code, 0 (success), 1 (a failed
# run) or 2 (bad usage), and that an error names the option or the file.
#
# usage: options.sh WORK-FOLDER PROGRAM [OPTION...]
# The options make a short run.
set -u
work=$1
program=$2
shift
rm -rf "$work" && mkdir -p "$work" || exit 1

# expect CODE TEXT COMMAND...: runs the command, expects this exit code and this text in its output
expect() {
    code=$1
    text=$2
    shift 2
    "$@" >"$work/out" 2>&1
    got=$?
    if [ $got -ne "$code" ] || ! grep -q -e "$text" "$work/out"; then
        echo "options.sh: $*: exit code $got, not $code, or no '$text' in: $(cat "$work/out")"
        exit 1
    fi
}

expect 0 '--budget=SIZE' "$program" --help
expect 2 'not a whole number' "$program" --batch 0
expect 2 'not a whole number' "$program" --steps 12x
expect 2 'not a whole number' "$program" --seed -1
expect 2 '--budget lots' "$program" --budget lots
expect 2 'not a whole number' "$program" --budget %%
expect 2 '--mode fast' "$program" --mode fast
expect 2 '--effort most' "$program" --effort most
expect 2 'not a whole number' "$program" --validate 0
expect 2 '--device tpu' "$program" --device tpu
expect 2 '--dtype fp16' "$program" --dtype fp16
expect 2 'unrecognized option' "$program" --nonsense
expect 1 '/nowhere/losses' "$@" --loss-log /nowhere/losses
expect 1 '/nowhere/weights' "$@" --save /nowhere/weights
if grep -q 'trained' "$work/out"; then
    echo "options.sh: the program trains before it notices that it cannot save"
    exit 1
fi
printf 'kept' >"$work/kept"
expect 2 'not a whole number' "$@" --save "$work/kept" --steps 0
expect 1 'planner' "$@" --save "$work/kept" --planner nobody
expect 1 'planner' "$@" --save "$work/new" --planner nobody
expect 1 'planner' "$@" --loss-log "$work/kept" --planner nobody
# A disk without room for the weights. The host device keeps its memory in files, the sim device has none.
expect 0 'File too large' sh -c 'trap "" XFSZ; (ulimit -f 1; "$@"; echo "exit code $?") 2>&1 | cat' sh \
    "$@" --device sim --save "$work/kept"
grep -q 'exit code 1' "$work/out" || { echo "options.sh: a full disk is not an error"; exit 1; }
if [ "$(cat "$work/kept")" != kept ] || [ -e "$work/new" ] || [ -e "$work/kept.new" ]; then
    echo "options.sh: a failed run has changed or created the file named by --save"
    exit 1
fi
expect 1 '/nowhere/data' "$@" --data /nowhere/data
expect 1 'planner' "$@" --planner nobody
expect 1 'plan' "$@" --mode guided --plan /nowhere/plan
expect 1 'report' "$@" --report /nowhere/report
expect 1 'floor of' "$@" --budget 64KiB
if [ -w /dev/full ]; then
    expect 1 '/dev/full: No space left' "$@" --loss-log /dev/full
    expect 1 '/dev/full: No space left' "$@" --save /dev/full
fi

# The simulated device runs the same loop, without computing.
expect 0 'device sim' "$@" --device sim

# Without an option, the environment variable counts.
expect 0 'budget 900.0 MiB of the' env CAPUCHIN_BUDGET=900MiB "$@"
expect 0 'of a budget of 800.0 MiB' env CAPUCHIN_BUDGET=900MiB "$@" --budget 800MiB
expect 0 'trained' env CAPUCHIN_MODE=guided CAPUCHIN_WAIT_FOR_PLAN=1 "$@" --report "$work/guided"
grep -q '"mode":"guided"' "$work/guided" || { echo "options.sh: CAPUCHIN_MODE is ignored"; exit 1; }
expect 0 'trained' env CAPUCHIN_MODE=guided CAPUCHIN_WAIT_FOR_PLAN=1 "$@" --mode passive \
    --report "$work/passive"
grep -q '"mode":"guided"' "$work/passive" && { echo "options.sh: --mode does not override CAPUCHIN_MODE"; exit 1; }

# The log has one line per step, in the right format, and is the same when the run is repeated.
expect 0 'trained' "$@" --loss-log "$work/first"
expect 0 'trained' "$@" --loss-log "$work/second"
cmp "$work/first" "$work/second" || exit 1
if grep -v -q '^[0-9][0-9]* 0x[0-9]\.[0-9a-f]*p[+-][0-9]*$' "$work/first"; then
    echo "options.sh: a line of the log is not a step and a hexadecimal float"
    exit 1
fi
"$@" --seed 7 --loss-log "$work/other" >"$work/out" 2>&1 || exit 1
if cmp -s "$work/first" "$work/other"; then
    echo "options.sh: a different seed gave the same losses"
    exit 1
fi
echo "exit codes, errors and logs are as they should be"
