#!/bin/bash
# map.sh ROOT: the table "Where is ...?" of docs/design.md names functions that are defined in the files
# it names, and the files that documents name exist. Prints what is wrong; fails on anything.
set -u
cd "$1" || exit 2
status=0

complain() {
    echo "$1"
    status=1
}

# defines FILE NAME: the file has a definition, not only a declaration or a call, of the function: a line
# that begins a declaration and has NAME( in it, and a brace before the next semicolon.
defines() {
    awk -v name="$2" '
        !inside && $0 ~ "^[a-z].*[ *]" name "\\(" { inside = 1 }
        inside && /;[ \t]*$/ { inside = 0 }
        inside && /\{/ { found = 1; exit }
        END { exit !found }
    ' "$1"
}

# Checks the check.
probe=$(mktemp) || exit 2
printf 'int declared(int a,\n             int b);\nstatic int *defined(int a,\n                   int b)\n{\n    return called(a);\n}\n' >"$probe"
defines "$probe" defined || complain "map.sh: a definition is not found"
! defines "$probe" declared || complain "map.sh: a declaration passes for a definition"
! defines "$probe" called || complain "map.sh: a call passes for a definition"
rm -f "$probe"

rows=0
while IFS='|' read -r _ question file names _; do
    file=$(tr -d ' `' <<<"$file")
    rows=$((rows + 1))
    [ -f "$file" ] || { complain "docs/design.md:$question: there is no $file"; continue; }
    for name in $(tr -d '`,' <<<"$names"); do
        defines "$file" "$name" || complain "docs/design.md:$question: $file does not define $name"
    done
done < <(sed -n '/^| where … |/,/^$/p' docs/design.md | tail -n +3 | grep '^|')
[ "$rows" -ge 15 ] || complain "docs/design.md: the map has only $rows rows"

# Paths in backticks are from the root or from include/; bare file names are anywhere.
for document in README.md CONTRIBUTING.md docs/*.md docs/results/*.md; do
    for path in $(grep -oE '`[a-z_]+/[a-zA-Z0-9_/.-]+\.(c|h|cu|cuh|sh|py|jsonl|md)`' "$document" | tr -d '`' | sort -u); do
        [ -e "$path" ] || [ -e "include/$path" ] || complain "$document: there is no $path"
    done
    for name in $(grep -oE '`[a-z_0-9]+\.(c|h|cu|cuh|sh|py|jsonl)`' "$document" | tr -d '`' | sort -u); do
        [ -n "$(find . -name build -prune -o -name "$name" -print -quit)" ] ||
            complain "$document: there is no file $name"
    done
done
exit $status
