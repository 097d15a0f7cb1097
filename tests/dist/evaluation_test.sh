#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# evaluation_test.sh BIN: an evaluation in several processes has the results of
# one to the bit: losses, metrics, tables, predictions, records left out.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "evaluation_test: $*" >&2
  exit 1
}
# Lines without a column: two of them make up whole batches.
awk '{print} NR == 2 || NR == 7 || NR == 8 || NR == 20 {print "torn"}' \
  testdata/fleet/shards/sentences.tsv >"$top/torn.tsv"
job=testdata/fleet/shards/text.pbtxt
pd-train -q -c $job --out "$top/run" >/dev/null
run=$top/run
# results OUT PROCESSES [OPTIONS]: but for what a clock says.
results() {
  local out=$1 processes=$2 status=0
  shift 2
  pd-eval -m "$run" --processes "$processes" --format json --out "$out.npz" "$@" \
    >"$out.json" 2>"$out.err" || status=$?
  sed -E 's/"seconds":[^,}]*//' "$out.json" >"$out"
  grep -E 'left out|torn' "$out.err" | sed -E 's/^(rank [0-9]+: )?//' >>"$out" || true
  echo "status $status" >>"$out"
}
# same NAME [OPTIONS]
same() {
  local name=$1
  shift
  results "$top/$name.1" 1 "$@"
  for n in 2 3 4; do
    results "$top/$name.$n" $n "$@"
    cmp "$top/$name.1" "$top/$name.$n" || fail "$name in $n processes: $(cat "$top/$name.$n.err")"
    cmp "$top/$name.1.npz" "$top/$name.$n.npz" || fail "predictions of $name in $n processes"
  done
}
same plain -o data.eval.batch_size=7
torn=(-o "data.eval.tsv.path=$top/torn.tsv" -o data.eval.on_error=skip)
same torn "${torn[@]}" -o data.eval.batch_size=2
grep -q '4 records' "$top/torn.3" || fail "records left out: $(cat "$top/torn.3")"
# Pictures are read with their batches: one of one record has none then.
mkdir -p "$top"/pictures/{0,1}
for i in 1 2 3 4 5; do
  cp testdata/images/rgb.png "$top/pictures/0/$i.png"
  cp testdata/images/grey.png "$top/pictures/1/$i.png"
done
head -c 100 testdata/images/rgb.png >"$top/pictures/0/4.png"
cat >"$top/pictures.pbtxt" <<END
model {
  input { name: "image" shape: [-1, 3, 8, 8] }
  layer { flatten {} }
  layer { linear { out_features: 2 } }
  layer { softmax {} }
}
loss { cross_entropy { use_softmax: false } }
metric { accuracy {} }
metric { auc {} }
optimizer { sgd { learning_rate: 0.01 } }
data {
  train {
    dataset_folder { root: "$top/pictures" }
    transform { resize { size: 8 size: 8 } }
    transform { to_tensor {} }
    batch_size: 4
    on_error: skip
  }
  eval {
    dataset_folder { root: "$top/pictures" }
    transform { resize { size: 8 size: 8 } }
    transform { to_tensor {} }
    batch_size: 1
    on_error: skip
  }
}
train { epochs: 1 }
distributed { shards: 2 }
END
for n in 1 2; do
  pd-train -q -c "$top/pictures.pbtxt" --processes $n --out "$top/pictures.run$n" >/dev/null 2>"$top/err" ||
    fail "$(cat "$top/err")"
  [ "$(grep -c 'data.eval: 1 records were left out' "$top/err")" = 1 ] || fail "$(cat "$top/err")"
  sed -n '/"eval"/p' "$top/pictures.run$n/log.jsonl" >"$top/log.$n"
done
cmp "$top/log.1" "$top/log.2" || fail "the log of an evaluation in two processes"
run=$top/pictures.run1
same pictures
run=$top/run
# More processes than batches, and a requirement that is not met.
same few -o data.eval.batch_size=30 --require 'acc>=1.5'
grep -q 'status 1' "$top/few.4" || fail "status: $(cat "$top/few.4")"
status=0
pd-eval -q -m "$top/run" --processes 2 --bench 1 >"$top/out" 2>&1 || status=$?
[ $status = 2 ] || fail "--bench ends with status $status"
grep -q 'start one for --bench' "$top/out" || fail "--bench: $(cat "$top/out")"
echo "evaluation_test: passed"
