# Source this file. has_only_numbers FILE: whether no loss in the file is NaN or infinite: two
# runs that both went wrong must not count as equal.
has_only_numbers() {
    [ -s "$1" ] && ! grep -qiE '(^|[^a-z])-?(nan|inf)' "$1"
}
