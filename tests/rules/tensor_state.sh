#!/bin/bash
# tensor_state.sh ROOT: only runtime/tensor/tensor_state.c writes the state of a tensor, so every change is
# one of its named transitions. Prints each other line that assigns to a field of the state or to
# all of it, or takes its address, as FILE:LINE:TEXT, and fails on any. (The state of a record,
# which is an enum and not a struct, may be assigned.)
set -u
cd "$1" || exit 2

field='(->|\.)state\.(pages|contents|is_saved|departure)'
writes='[[:space:]]*(=[^=]|[-+*/|&^%]=|<<=|>>=|\+\+|--)'
whole='(->|\.)state[[:space:]]*=[[:space:]]*([^=[:space:]R]|R[^E])'
address='((^|[^&])&|\+\+|--)[[:space:]]*[A-Za-z_][][A-Za-z0-9_.>-]*(->|\.)state(\.[a-z_]+)?\>'

found=$(grep -rnE --include='*.[ch]' "$field$writes|$whole|$address" runtime |
    grep -vE '^runtime/tensor/tensor_state\.c:')
[ -z "$found" ] || echo "$found"
[ -z "$found" ]
