#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starter_test.sh BIN TESTDATA: each kind of `pd-train --new`, with made-up data
# in the places that its comments name: its Makefile trains two steps,
# evaluates and exports. Nothing is overwritten.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0

fail() {
  echo "starter_test: $1" >&2
  failures=$((failures + 1))
}
# refuses PATTERN COMMAND...: exit status 2 with this in the message.
refuses() {
  local pattern=$1 got=0
  shift
  "$@" >out.log 2>err.log || got=$?
  [ $got -eq 2 ] || fail "'$*' exits $got; expected 2"
  grep -q -- "$pattern" err.log || fail "'$*' says '$(tail -n 1 err.log)'; expected '$pattern'"
}

# pictures FOLDER, rows FILE HEADER DIVISOR: made-up data. The last column is
# the row's number modulo DIVISOR.
pictures() {
  mkdir -p "$1/cat" "$1/dog"
  cp "$testdata/images/rgb.png" "$testdata/images/grey.jpg" "$1/cat"
  cp "$testdata/images/palette.png" "$testdata/images/rgb_420.jpg" "$1/dog"
}
rows() {
  mkdir -p "${1%/*}"
  awk -v header="$2" -v divisor="$3" 'BEGIN {
    print header
    for (i = 0; i < 40; ++i)
      printf "%g,%g,%g,%g,%d\n", i / 40, (i % 7) / 7, (i % 3) - 1, i % 2, i % divisor
  }' >"$1"
}
# clicks FILE: a user takes the items that leave the same rest.
clicks() {
  mkdir -p "${1%/*}"
  awk 'BEGIN {
    print "user,item,day,clicked"
    for (i = 0; i < 40; ++i)
      printf "user%d,item%d,day%d,%d\n", i % 7, i % 5, i % 3, i % 7 % 2 == i % 5 % 2
  }' >"$1"
}
# texts FOLDER: lines with a class in front of some words.
texts() {
  mkdir -p "$1"
  for i in $(seq 20); do
    printf 'good\tI liked it, the %d. time, a "lot!\nbad\tNever again\n' "$i"
  done >"$1/train.tsv"
  head -n 9 "$1/train.tsv" >"$1/eval.tsv"
}
# story FOLDER: running text.
story() {
  mkdir -p "$1"
  for i in $(seq 30); do
    printf 'Once upon a time there were %d bears, and they ate.\n' "$i"
  done >"$1/train.txt"
  head -n 9 "$1/train.txt" >"$1/eval.txt"
}
# sentences FOLDER: words with tags.
sentences() {
  mkdir -p "$1"
  for i in $(seq 10); do
    printf '%s\t%s\n' "Anna Karenina is in Moscow ." 'B-PER I-PER O O B-LOC O' \
      "He met Ivan $i \"" 'O O B-PER O O'
  done >"$1/train.tsv"
  head -n 9 "$1/train.tsv" >"$1/eval.tsv"
  printf '%s\n' B-PER I-PER B-LOC I-LOC O >"$1/tags.txt"
}
# voc FOLDER: pictures with masks of two classes, packed.
voc() {
  local top=VOCdevkit/VOC2012
  mkdir -p "$1" $top/JPEGImages $top/SegmentationClass $top/ImageSets/Segmentation
  for name in a b c; do
    cp "$testdata/images/grey.jpg" $top/JPEGImages/$name.jpg
    cp "$testdata/images/one_bit.png" $top/SegmentationClass/$name.png
  done
  printf '%s\n' a b >$top/ImageSets/Segmentation/trainval.txt
  echo c >$top/ImageSets/Segmentation/val.txt
  tar -cf "$1/voc.tar" VOCdevkit
}
# The data that a kind's first lines name.
data_for() {
  case $1 in
    image-classification) pictures data/train && pictures data/eval ;;
    language-model) story data ;;
    recommendation) clicks data/train.csv && clicks data/eval.csv ;;
    segmentation) voc data ;;
    sequence-labelling) sentences data ;;
    tabular-classification) rows data/train.csv x1,x2,x3,x4,class 3 && rows data/eval.csv x1,x2,x3,x4,class 3 ;;
    tabular-regression) rows data/train.csv x1,x2,x3,x4,y 9 && rows data/eval.csv x1,x2,x3,x4,y 9 ;;
    text-classification) texts data ;;
    *) return 1 ;;
  esac
}

pd-train -q --new list >kinds
[ "$(wc -l <kinds)" -ge 8 ] || fail "--new list prints '$(cat kinds)'"
while read -r kind about; do
  [ -n "$about" ] || fail "$kind: nothing says what it is for"
  pd-train -q --new "$kind" "deep/$kind" >/dev/null || fail "$kind: --new exits $?"
  # set -e holds in a process of its own only.
  export -f pictures rows clicks texts story sentences voc data_for
  testdata=$testdata bash -euc '
    cd "deep/$1"
    data_for "$1"
    make TRAINFLAGS="--steps 2 -q" >make.log 2>&1 || { tail -n 20 make.log; exit 1; }
    grep -q "\"loss\":" eval.json
    for made in model.onnx model.pdmodel model.pdiparams run/summary.json; do [ -s $made ]; done
    # What is up to date is left alone.
    make -q
    pd-eval -q -m model -c job.pbtxt' _ "$kind" >run.log 2>&1 ||
    fail "$kind does not run: $(tail -n 20 run.log)"
  cp "deep/$kind/job.pbtxt" before
  refuses 'is there already' pd-train --new "$kind" "deep/$kind"
  cmp -s before "deep/$kind/job.pbtxt" || fail "$kind: the job was overwritten"
done <kinds

mkdir half && touch half/Makefile
refuses "'half/Makefile' is there already" pd-train --new tabular-regression half
[ ! -e half/job.pbtxt ] || fail "half of a job was written"
refuses "did you mean 'tabular-regression'" pd-train --new tabular-regresion x
refuses 'DIR is missing' pd-train --new tabular-regression
refuses 'takes no DIR' pd-train --new list x
refuses 'only --new takes a DIR' pd-train -c job.pbtxt x
refuses '--out does not go with --new' pd-train --new tabular-regression x --out run
refuses 'cannot go together' pd-train --new tabular-regression x -c job.pbtxt
touch file
got=0
pd-train -q --new tabular-regression file/x 2>err.log || got=$?
[ $got -eq 3 ] || fail "a folder that cannot be made: exit $got"
pd-train -q --new list --format json | grep '^{"image-classification":"[^"]*",.*}$' >/dev/null || fail "--new list has no JSON"
[ $failures -eq 0 ]
