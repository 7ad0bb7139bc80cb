#!/bin/bash
# scripts/packages.sh PURPOSE...: makes sure that everything is installed that a purpose needs:
# lib (what is installed), build (everything), test, long (what only make test-long runs), bench, coverage,
# demo, parallel (programs of several processes). Of the benches only the linear-programming bound needs more than the build.
#
# Looks for the files and commands themselves, not for packages, so that tools from elsewhere count.
# Prints nothing if nothing is missing. Otherwise installs the Debian packages if it may (as root, or with
# sudo without a password). If it may not, prints the command that does, and fails.
set -u

# purpose, kind, name, Debian package
table="
lib command cc gcc
lib file /usr/include/stdlib.h libc6-dev
lib command make make
lib command cmake cmake
lib command ninja ninja-build
lib command ld binutils
lib command pkg-config pkg-config
lib library jansson libjansson-dev
lib file /usr/share/javascript/dygraphs/dygraph.min.js libjs-dygraphs
lib library ncursesw libncurses-dev
build library openblas libopenblas-dev
build library zlib zlib1g-dev
lib library libzstd libzstd-dev
lib library liblz4 liblz4-dev
parallel command mpicc libopenmpi-dev
parallel command mpirun openmpi-bin
test command mpicc libopenmpi-dev
test command mpirun openmpi-bin
test command c++ g++
test command clang clang
build library check check
long command chromium chromium
bench file /usr/include/glpk.h libglpk-dev
coverage command gcovr gcovr
demo command bible bible-kjv
demo file /usr/lib/bible.data bible-kjv-text
test command bible bible-kjv
test file /usr/lib/bible.data bible-kjv-text
demo file /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz dataset-fashion-mnist
test file /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz dataset-fashion-mnist
"

is_there() {
    case $1 in
    command) command -v "$2" >/dev/null 2>&1 ;;
    library) pkg-config --exists "$2" 2>/dev/null ;;
    file) [ -e "$2" ] ;;
    esac
}

missing_for() {
    local purpose kind name package wanted

    while read -r purpose kind name package; do
        for wanted in "$@"; do
            if [ "$purpose" = "$wanted" ] && ! is_there "$kind" "$name"; then
                echo "$package"
            fi
        done
    done <<<"$table" | sort -u | xargs
}

# Runs a command as root, with sudo if that needs no password.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

may_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; }
}

# Installs with the existing package lists; if that fails, with new ones.
install() {
    as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return 0
    as_root apt-get update -qq && as_root apt-get install -y -qq --no-install-recommends "$@"
}

missing=$(missing_for "$@")
[ -n "$missing" ] || exit 0

if may_install; then
    echo "installing: $missing"
    # shellcheck disable=SC2086 # words on purpose
    install $missing >&2
    missing=$(missing_for "$@")
    [ -n "$missing" ] || exit 0
fi
{
    echo "packages are missing; install them with"
    echo "    apt-get install --no-install-recommends $missing"
} >&2
exit 1
