#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# starter_test.sh BIN TESTDATA: each kind of `pd-train --new`, with made-up data
# in the places that its comments name: its Makefile trains two steps,
# evaluates and exports. Nothing is overwritten. With --data a job is made for
# a table, a text or a folder of pictures, and runs.
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
# boxes FOLDER: pictures and Pascal VOC's files of boxes of three classes.
boxes() {
  for set in train eval; do
    mkdir -p "$1/$set"
    cp -r "$testdata/boxes/voc/JPEGImages" "$1/$set/images"
    cp -r "$testdata/boxes/voc/Annotations" "$1/$set/boxes"
  done
}
# backwards FOLDER: sentences and the same from the end to the beginning.
backwards() {
  mkdir -p "$1"
  for i in $(seq 40); do
    echo "$((i % 5)) plus $((i % 7)) is not $i"
  done >"$1/train.source"
  awk '{ for (i = NF; i > 1; --i) printf "%s ", $i; print $1 }' "$1/train.source" >"$1/train.target"
  for part in source target; do head -n 9 "$1/train.$part" >"$1/eval.$part"; done
}
# named FILE HEADER REST: a table of pictures, with the rest of each row.
named() {
  mkdir -p "${1%/*}/all"
  echo "$2" >"$1"
  for picture in rgb.png grey.jpg palette.png rgb_420.jpg; do
    cp "$testdata/images/$picture" "${1%/*}/all"
    echo "all/$picture$3" >>"$1"
  done
}
# usual FOLDER: rows whose second number is twice the first; not all to judge by.
usual() {
  mkdir -p "$1"
  awk 'BEGIN { print "a,b,c"; for (i = 0; i < 60; ++i) printf "%g,%g,%g\n", i / 60, i / 30, (i % 7) / 7 }' >"$1/train.csv"
  awk 'BEGIN {
    print "a,b,c,unusual"
    for (i = 0; i < 30; ++i) printf "%g,%g,%g,%d\n", i / 30, i % 5 ? i / 15 : 3 - i / 10, (i % 7) / 7, i % 5 == 0
  }' >"$1/eval.csv"
}
# The data that a kind's first lines name.
data_for() {
  case $1 in
    anomaly) usual data ;;
    detection) boxes data ;;
    gan | image-classification | image-search) pictures data/train && pictures data/eval ;;
    keypoints)
      for set in train eval; do named data/$set.csv picture,x1,y1,x2,y2 ,0.3,0.4,0.7,0.4; done
      ;;
    language-model | text-generation) story data ;;
    ocr)
      for set in train eval; do named data/$set.tsv $'picture\ttext' $'\tCall me "Ishmael".'; done
      ;;
    recommendation) clicks data/train.csv && clicks data/eval.csv ;;
    reinforcement) cc -O2 -o environment "$testdata/jobs/apps/actor_critic/cartpole.c" -lm ;;
    segmentation) voc data ;;
    sequence-labelling) sentences data ;;
    tabular-classification) rows data/train.csv x1,x2,x3,x4,class 3 && rows data/eval.csv x1,x2,x3,x4,class 3 ;;
    tabular-regression) rows data/train.csv x1,x2,x3,x4,y 9 && rows data/eval.csv x1,x2,x3,x4,y 9 ;;
    text-classification) texts data ;;
    translation) backwards data ;;
    *) return 1 ;;
  esac
}

pd-train -q --new list >kinds
[ "$(wc -l <kinds)" -ge 17 ] || fail "--new list prints '$(cat kinds)'"
while read -r kind about; do
  [ -n "$about" ] || fail "$kind: nothing says what it is for"
  pd-train -q --new "$kind" "deep/$kind" >/dev/null || fail "$kind: --new exits $?"
  # set -e holds in a process of its own only.
  export -f pictures rows clicks texts story sentences voc boxes backwards named usual data_for
  testdata=$testdata bash -euc '
    cd "deep/$1"
    data_for "$1"
    make TRAINFLAGS="--steps 2 -q" >make.log 2>&1 || { tail -n 20 make.log; exit 1; }
    grep -q "\"loss\":" eval.json
    for made in model.onnx model.pdmodel model.pdiparams run/summary.json; do [ -s $made ]; done
    # What is up to date is left alone.
    make -q
    # An exported network does not act in environments, nor has it the inner
    # layers that these kinds are judged by.
    case $1 in
      image-search | reinforcement | text-generation | translation) ;;
      *) pd-eval -q -m model -c job.pbtxt && pd-eval -q -m model ;;
    esac' _ "$kind" >run.log 2>&1 ||
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
pd-train -q --new list --format json | grep '^{"anomaly":"[^"]*",.*}$' >/dev/null || fail "--new list has no JSON"
# --data: a job for these data that runs as it stands. Other than the kinds'
# made-up ones: texts among the columns, empty cells, no header, tabs.
mkdir own
awk 'BEGIN {
  print "age,city,height,kind,price"
  for (i = 0; i < 60; ++i)
    printf "%s,%s,%g,%s,%g\n", i % 9 ? 20 + i % 40 : "", substr("RomeParisOslo", 1 + i % 3 * 4, 4), 1.5 + i % 7 / 10, i % 2 ? "yes" : "no", i * 1.5
}' >own/people.csv
awk 'BEGIN { for (i = 0; i < 40; ++i) printf "%d\t%g\t%g\n", i % 3, i / 40, i % 7 }' >own/plain.tsv
awk 'BEGIN { for (i = 0; i < 40; ++i) printf "%s\tsome words %d\n", i % 2 ? "good" : "bad", i }' >own/opinions.tsv
clicks own/clicks.csv
pictures own/few
for i in 1 2 3; do
  for file in own/few/*/*; do
    to=${file/few/pictures}
    mkdir -p "${to%/*}"
    cp "$file" "${to%/*}/$i${to##*/}"
  done
done
story own
# made KIND NAME ARGUMENT...: makes own/NAME, trains two steps of it, evaluates.
made() {
  local kind=$1 name=$2
  shift 2
  pd-train -q --new "$kind" "jobs/$name" "$@" >made.txt || { fail "$name: --new --data exits $?"; return; }
  pd-train -q -c "jobs/$name/job.pbtxt" --out "jobs/$name/run" --steps 2 >out.log 2>err.log ||
    { fail "$name does not run: $(tail -n 5 err.log)"; return; }
  pd-eval -q -m "jobs/$name/run" --format json | jq -e '.loss > 0' >/dev/null || fail "$name is not evaluated"
  (cd "jobs/$name" && make -n train >/dev/null) || fail "$name has no Makefile"
}
made tabular-regression people --data own/people.csv --target price
grep -q 'column: \["city", "kind"\]' jobs/people/job.pbtxt || fail "texts are not found: $(cat jobs/people/job.pbtxt)"
grep -q 'empty cells of "age" count as 0' made.txt || fail "empty cells are not mentioned: $(cat made.txt)"
grep -q '^# .*made for the 60 rows of' jobs/people/job.pbtxt || fail "the job does not say what it is for"
made tabular-classification kinds --data own/people.csv --target kind
grep -q 'out_features: 2' jobs/kinds/run/job.pbtxt || fail "there are not two classes"
made tabular-classification plain --data own/plain.tsv --target 0
grep -q 'header: false' jobs/plain/job.pbtxt || fail "a table without names has names"
made tabular-classification absolute --data "$dir/own/plain.tsv" --target 0
made recommendation clicks --data own/clicks.csv --target clicked
made text-classification opinions --data own/opinions.tsv --target 0
made image-classification pictures --data own/pictures
made language-model story --data own/train.txt
# The held-out fifth is none of what is learnt from.
pd-eval -q -m jobs/people/run --format json | jq -e '.records == 12' >/dev/null || fail "not a fifth is evaluated"
refuses_data() {
  local status=$1 pattern=$2 got=0
  shift 2
  pd-train -q --new "$@" >out.log 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "--new $*: exit $got; expected $status"
  grep -q -- "$pattern" err.log || fail "--new $* says '$(cat err.log)'; expected '$pattern'"
  [ ! -e none ] || fail "--new $* left something behind"
}
refuses_data 2 "takes no --data" segmentation none --data own
refuses_data 2 "TARGET\|--target COLUMN is missing" tabular-regression none --data own/people.csv
refuses_data 2 "takes no --target" language-model none --data own/train.txt --target x
refuses_data 2 "'--target' needs option '--data'" tabular-regression none --target x
refuses_data 2 "no column 'prise'; its first line has \"age\", \"city\"" tabular-regression none --data own/people.csv --target prise
refuses_data 3 "own/people.csv':2: column 'kind' holds .*tabular-classification predicts classes" tabular-regression none --data own/people.csv --target kind
refuses_data 3 "60 different values in 60 rows.*tabular-regression predicts numbers" tabular-classification none --data own/people.csv --target price
refuses_data 3 "must hold 1 and 0" recommendation none --data own/people.csv --target price
refuses_data 3 "" tabular-regression none --data own/nothing.csv --target x
[ $failures -eq 0 ]
