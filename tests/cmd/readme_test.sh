#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme_test.sh BIN ROOT: runs the README's Makefile and its CI script as they
# are printed, and makes each fail.
set -euo pipefail

export PATH=$1:$PATH
root=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
fail() {
  echo "readme_test: $1" >&2
  tail -n 20 "$dir/log" >&2
  failures=$((failures + 1))
}

# block TITLE: the lines that are set in under this heading.
block() {
  sed -n "/^## $1\$/,/^## /s/^    //p; /^## $1\$/,/^## /s/^\$//p" "$root/README.md"
}

mkdir "$dir/make" "$dir/ci"
ln -s "$root/testdata" "$dir/make"
ln -s "$root/testdata" "$dir/ci"

cd "$dir/make"
block 'In a Makefile' >Makefile
[ "$(wc -l <Makefile)" -gt 10 ] || fail "the README shows no Makefile"
make TRAINFLAGS='--steps 50 -q' ACCURACY=0.2 >"$dir/log" 2>&1 || fail "make fails"
[ -s lenet.onnx ] || fail "make makes no lenet.onnx"
make -q TRAINFLAGS='--steps 50 -q' || fail "make does it again"
rm metrics.json
if make ACCURACY=1.5 >"$dir/log" 2>&1; then fail "a missed accuracy does not stop make"; fi
[ ! -e metrics.json ] || fail "a missed accuracy leaves metrics.json"

cd "$dir/ci"
block 'In CI' >ci.sh
[ "$(wc -l <ci.sh)" -gt 5 ] || fail "the README shows no script"
bash ci.sh >"$dir/log" 2>&1 || fail "the script exits $?"
[ "$(wc -l <metrics.json)" -eq 1 ] || fail "metrics.json has not one line"
sed -e 's/>=0.9/>=1.5/' -e 's/--out run/--out run2/' ci.sh >missed.sh
status=0
bash missed.sh >"$dir/log" 2>&1 || status=$?
[ $status -eq 1 ] || fail "a missed accuracy exits $status"
[ $failures -eq 0 ]
