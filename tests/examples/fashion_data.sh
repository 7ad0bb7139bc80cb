#!/bin/sh
# Runs train_fashion on wrong data: expects exit code 1 and a message with the file and the mistake.
#
# usage: fashion_data.sh WORK-FOLDER DATA-FOLDER PROGRAM [OPTION...]
# The options make a short run.
set -u
work=$1
data=$2
shift 2
rm -rf "$work" && mkdir -p "$work/data" || exit 1

# fresh: makes a folder with the original data
fresh() {
    rm -rf "$work/data"
    mkdir "$work/data" && ln -s "$data"/*.gz "$work/data/" || exit 1
}

# says CODE TEXT COMMAND...: trains on the folder as it is, expects this exit code and this text
says() {
    code=$1
    text=$2
    shift 2
    "$@" --data "$work/data" >"$work/out" 2>&1
    got=$?
    if [ $got -ne "$code" ] || ! grep -q -e "$text" "$work/out"; then
        echo "fashion_data.sh: exit code $got, not $code, or no '$text' in: $(cat "$work/out")"
        exit 1
    fi
    fresh
}

for name in t10k-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz; do
    bytes=$(($(wc -c <"$data/$name")))
    file=$work/data/$name
    fresh
    rm "$file"
    says 1 "$name: No such file" "$@"
    rm "$file" && mkdir "$file"
    says 1 "$name: is not a file of the MNIST format" "$@"
    rm "$file" && : >"$file"
    says 1 "$name: is not a file of the MNIST format" "$@"
    rm "$file" && head -c $((bytes / 2)) "$data/$name" >"$file"
    says 1 "$name: " "$@"
    # All items are there, but the checksum at the end is missing or wrong.
    rm "$file" && head -c $((bytes - 8)) "$data/$name" >"$file"
    says 1 "$name: ends too early" "$@"
    rm "$file" && head -c $((bytes - 8)) "$data/$name" >"$file" && printf 'wrong---' >>"$file"
    says 1 "$name: .*damaged gzip file" "$@"
    rm "$file" && gunzip -c "$data/$name" >"$file"
    says 0 'trained' "$@"
    gunzip -c "$data/$name" >"$work/plain" && printf x >>"$work/plain"
    rm "$file" && cp "$work/plain" "$file"
    says 1 "$name: goes on after its last item" "$@"
done
echo "wrong data are reported"
