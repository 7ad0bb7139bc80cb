#!/bin/bash
# results.sh ROOT: every page of docs/results names the command that prints its tables, the machine and
# the date; each command's program is one that the build files make; and tables of measurements stand
# nowhere else. Prints what is missing; fails on anything.
set -u
cd "$1" || exit 2
status=0

complain() {
    echo "$1"
    status=1
}

# The targets that bench/ makes: add_executable with a plain name, or with a variable of a foreach.
targets=$(for list in bench/*/CMakeLists.txt; do
    grep -oE 'add_executable\([a-z_]+( |\))' "$list" | sed -E 's/.*\(([a-z_]+).*/\1/'
    sed -nE 's/^ *foreach\([a-z]+ (IN ITEMS )?([a-z_ ]+)\).*/\2/p' "$list" | tr ' ' '\n' |
        while read -r name; do
            grep -oE 'add_executable\([a-z_]+\$\{[a-z]+\}' "$list" |
                sed -E "s/.*\(([a-z_]+)\\$.*/\1$name/"
        done
done)

pages=0
for page in docs/results/*.md; do
    [ "$(basename "$page")" != README.md ] || continue
    pages=$((pages + 1))
    grep -q '^| ' "$page" || complain "$page has no table"
    grep -qE '^Machine:|Machine( of all tables)?:' "$page" || complain "$page names no machine"
    grep -qE '20[0-9]{2}-[0-9]{2}-[0-9]{2}( at |; .* at )[0-9a-f]{7}' "$page" ||
        complain "$page: no table has the date and commit of its measurement"
    commands=$(sed -nE 's/.*`build\/bin\/([a-z_]+).*/\1/p' "$page" | sort -u)
    makes=$(sed -nE 's/^Command:.*`make ([a-z-]+).*/\1/p' "$page" | sort -u)
    [ -n "$commands$makes" ] || complain "$page names no command"
    for command in $commands; do
        grep -qx "$command" <<<"$targets" || complain "$page: no build file makes $command"
    done
    for target in $makes; do
        grep -q "^$target:" Makefile || complain "$page: the Makefile has no target $target"
    done
    grep -q "($(basename "$page"))" docs/results/README.md ||
        complain "docs/results/README.md does not list $(basename "$page")"
done
[ "$pages" -gt 0 ] || complain "docs/results has no pages"

# A row with three numbers or more is a result. machines.jsonl's own table stays with its description.
for document in README.md docs/*.md; do
    rows=$(grep -nE '^\|([^|]*\| *[-+]?[0-9][0-9.,]* *(%|ms|us|s)? *(\([^|]*)?){3,}' "$document" |
        grep -vE '^[0-9]+:\| [a-z0-9]+ \| (PCIe|SXM) \|')
    [ -z "$rows" ] || complain "$document: results belong into docs/results:
$rows"
done
exit $status
