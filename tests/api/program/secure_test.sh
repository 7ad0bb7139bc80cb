#!/bin/bash
# secure_test.sh PROGRAM LIBRARY SHIM: a program with rights that its caller does not have takes no file,
# folder, plug-in or socket from the environment. Runs PROGRAM (secure_program) set-user-ID root, with file
# capabilities, and without either, which shows that the variables count otherwise.
set -eu
program=$1
library=$2
shim=$3
failed=0

skip() {
    echo "skipped: $*"
    exit 77
}

complain() {
    echo "$*"
    failed=1
}

[ "$(id -u)" = 0 ] || skip "only root can install a set-user-ID program"
command -v setpriv >/dev/null || skip "there is no setpriv (util-linux)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
umask 022

# What the program's owner has, and what its caller has.
mkdir -m 700 "$work/root"
mkdir -m 777 "$work/own" "$work/own/plugins" "$work/own/run"
chmod 777 "$work/own" "$work/own/plugins" "$work/own/run"
for file in report trace plan; do
    echo "of root" >"$work/root/$file"
done
cp "$library" "$work/own/plugins/libcapuchin-cuda13.so"
cp "$library" "$work/own/libcuda.so.1"
cp "$program" "$work/program"

# as_caller PROGRAM ARGUMENTS...: by a user without rights, who sets every variable that names a path.
as_caller() {
    setpriv --reuid 65534 --regid 65534 --clear-groups env \
        CAPUCHIN_REPORT="$files/report" CAPUCHIN_TRACE="$files/trace" CAPUCHIN_PLAN="$files/plan" \
        CAPUCHIN_PLUGIN_FOLDER="$work/own/plugins" CAPUCHIN_BUDGET=64MiB CAPUCHIN_TOP=1 \
        XDG_RUNTIME_DIR="$work/own/run" CAPU_RUN_MODE=off CAPU_RUN_DRIVER="$work/own/libcuda.so.1" \
        SECURE_MARK="$work/own/mark" "$@" 2>&1 || true
}

forget() {
    rm -rf "$work/own/mark" "$work"/own/run/*
}

# is_untouched WHAT: nothing of the caller's has been used.
is_untouched() {
    [ "$(cat "$work"/root/*)" = $'of root\nof root\nof root' ] || complain "$1: a file of root's was replaced"
    [ ! -e "$work/own/mark" ] || complain "$1: a library of the caller's was loaded"
    [ -z "$(ls -A "$work/own/run")" ] || complain "$1: a socket was created in the caller's folder"
    forget
}

# With the rights of its caller the program takes all of them.
mkdir -m 777 "$work/own/files"
chmod 777 "$work/own/files"
files=$work/own/files
output=$(as_caller "$work/program" host)
grep -q "^report=$files/report trace=$files/trace plan=$files/plan plugins=$work/own/plugins budget=67108864" \
    <<<"$output" || complain "without rights of its own: $output"
[ -s "$files/report" ] && [ -s "$files/trace" ] || complain "the report and the trace were not written"
[ -d "$work/own/run/capuchin" ] || complain "no socket was created in the runtime folder"
forget
as_caller "$work/program" cuda >/dev/null
[ -e "$work/own/mark" ] || complain "the plug-in was not loaded"
forget
if [ -n "$shim" ]; then
    as_caller "$work/program" host "$shim" >/dev/null
    [ -e "$work/own/mark" ] || complain "the driver was not loaded"
fi
forget

# is_careful WHAT: none of them, with rights of its own. The budget still counts.
files=$work/root
is_careful() {
    output=$(as_caller "$work/program" host ${shim:+"$shim"})
    grep -q '^secure=1$' <<<"$output" || return 1
    grep -q '^report=none trace=none plan=none plugins=none budget=67108864' <<<"$output" ||
        complain "$1: $output"
    is_untouched "$1"
    output=$(as_caller "$work/program" cuda)
    grep -q '^error=' <<<"$output" || complain "$1, on cuda: $output"
    is_untouched "$1, on cuda"
    # A link to the program in a folder of the caller's, where a plug-in is, too.
    ln "$work/program" "$work/own/plugins/program"
    as_caller "$work/own/plugins/program" cuda >/dev/null
    rm "$work/own/plugins/program"
    is_untouched "$1, through a hard link"
}

chmod 4755 "$work/program"
is_careful "set-user-ID" || skip "set-user-ID programs get no rights here"
chmod 0755 "$work/program"
if command -v setcap >/dev/null && setcap cap_dac_override+ep "$work/program" 2>/dev/null; then
    is_careful "with file capabilities" || complain "file capabilities gave no rights: $output"
fi
exit $failed
