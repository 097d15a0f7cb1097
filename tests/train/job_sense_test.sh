#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# job_sense_test.sh BIN: what a job says in vain, or what does not fit its data,
# is said before the first step, with its place; several processes are refused;
# messages are printed once and where they belong.
set -euo pipefail

export PATH=$1:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0

fail() {
  echo "job_sense_test: $*" >&2
  failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: PATTERN is in stderr.
expect() {
  local want=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt </dev/null || got=$?
  [ $got -eq "$want" ] || fail "$*: exit $got, not $want: $(cat err.txt)"
  [ -z "$pattern" ] || grep -qE -- "$pattern" err.txt || fail "$*: no $pattern in $(cat err.txt)"
}

awk 'BEGIN {
  print "a,b,y"
  for (i = 0; i < 60; ++i) printf "%g,%g,%d\n", i / 60, (i % 7) / 7, i % 3
}' >rows.csv
cat >job.pbtxt <<'J'
model {
  input { name: "x" shape: [-1, 2] }
  layer { name: "fc1" linear { out_features: 8 } }
  layer { relu {} }
  layer { name: "head" linear { out_features: 3 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { sgd { learning_rate: 0.1 } }
data {
  train {
    csv {
      path: "rows.csv"
      field { name: "x" column: ["a", "b"] }
      field { name: "label" column: "y" dtype: int64 }
    }
    batch_size: 20
  }
  eval {
    csv {
      path: "rows.csv"
      field { name: "x" column: ["a", "b"] }
      field { name: "label" column: "y" dtype: int64 }
    }
    batch_size: 60
  }
}
train { epochs: 4 }
J
dry=(pd-train -q -c job.pbtxt --dry-run)

# Several processes.
expect 2 "PADDLE_TRAINER_ID is missing" env PADDLE_TRAINERS_NUM=2 pd-train -q -c job.pbtxt --out run
expect 2 "PADDLE_TRAINER_ID is missing" env PADDLE_TRAINERS_NUM=2 "${dry[@]}"
expect 2 "PADDLE_TRAINERS_NUM is 'x'" env PADDLE_TRAINERS_NUM=x pd-train -q -c job.pbtxt --out run
[ ! -e run ] || fail "it began to write"
expect 0 "" env PADDLE_TRAINERS_NUM=1 "${dry[@]}"
expect 2 "^pd-train: error: [^ ]* -o data.train.distributed: a data set's 'distributed' leaves records out" \
  "${dry[@]}" -o 'data.train.distributed={}'
sed 's/batch_size: 60/& distributed { num_replicas: 2 rank: 1 }/' job.pbtxt >part.pbtxt
expect 2 "part.pbtxt:25:20: a data set's 'distributed' leaves records out" pd-train -q -c part.pbtxt --out run

# What can hardly be meant is said, and trained.
expect 0 "" "${dry[@]}"
[ ! -s err.txt ] || fail "a good job is warned of: $(cat err.txt)"
# warns PATTERN OVERRIDE...: in a dry run, its JSON, and a run.
warns() {
  local pattern=$1 overrides=()
  shift
  for one in "$@"; do overrides+=(-o "$one"); done
  expect 0 "warning: $pattern" "${dry[@]}" "${overrides[@]}"
  "${dry[@]}" "${overrides[@]}" --format json 2>/dev/null | grep -qE '"warnings":\["' || fail "$pattern: not in the JSON"
  rm -rf warned
  expect 0 "warning: $pattern" pd-train -q -c job.pbtxt --out warned --steps 2 "${overrides[@]}"
  [ "$(grep -cE -- "$pattern" err.txt)" -eq 1 ] || fail "$pattern: not once"
}
warns "job.pbtxt:5:3: layer 'head' has 7 outputs, but the largest class number in field 'label' of data.train is 2: the others" \
  'model.layer[head].linear.out_features=7'
warns ".*the learning rate is 0 in every step" optimizer.sgd.learning_rate=0
warns ".*T_max is 3 and the training has 4 epochs: the learning rate rises again after 3" \
  'optimizer.lr={by: epoch cosine_annealing_decay {T_max: 3}}'
warns ".*the schedule does nothing" 'optimizer.lr={by: epoch multi_step_decay {milestones: [9]}}'
warns ".*warmup_steps is 20 and the training has 12 steps" \
  'optimizer.lr={linear_warmup {warmup_steps: 20 start_lr: 0 end_lr: 0.1}}'
warns ".*there is no data.eval: nothing is kept as the best" 'train.checkpoint.best={}' data.eval= metric=
warns ".*there is one, at the end" 'train.checkpoint.best={}' train.evaluation.every_epochs=0
warns "-o train.early_stopping: early_stopping waits for 9 comparisons without success and there are 4" \
  'train.early_stopping={patience: 9}'
expect 0 "" "${dry[@]}" -o 'optimizer.lr={by: epoch cosine_annealing_decay {T_max: 4}}' -o 'train.checkpoint.best={}'
[ ! -s err.txt ] || fail "the starters' way is warned of: $(cat err.txt)"

# A head with too few outputs, and data that does not fit, with their places.
for way in --dry-run "--out run"; do
  read -ra how <<<"$way"
  expect 2 "job.pbtxt:5:3: layer 'head' has 2 outputs, but field 'label' holds class 2 in data.train, 'rows.csv':4: it needs 3" \
    pd-train -q -c job.pbtxt "${how[@]}" -o 'model.layer[head].linear.out_features=2'
  sed 's/out_features: 3/out_features: 2/' job.pbtxt >few.pbtxt
  expect 2 "few.pbtxt:5:3: layer 'head' has 2 outputs, .*it needs 3" pd-train -q -c few.pbtxt "${how[@]}"
  sed 's/shape: \[-1, 2\]/shape: [-1, 5]/' job.pbtxt >wide.pbtxt
  expect 2 "wide.pbtxt:2:21: data.train: the network is fed 'x' as float32\[20, 5\]; the data set gives float32\[20, 2\]" \
    pd-train -q -c wide.pbtxt "${how[@]}"
  sed 's/input { name: "x"/input { name: "z"/' job.pbtxt >name.pbtxt
  expect 2 "name.pbtxt:2:11: data.train: the network is fed 'z'; the data set has 'x', 'label'" \
    pd-train -q -c name.pbtxt "${how[@]}"
  sed 's/loss { cross_entropy {}/& label: "w"/; s/accuracy {}/& label: "w"/' job.pbtxt >label.pbtxt
  expect 2 "label.pbtxt:7:25: data.train: the network is fed 'w'" pd-train -q -c label.pbtxt "${how[@]}"
  sed '20,$s/column: \["a", "b"\]/column: "a"/' job.pbtxt >eval.pbtxt
  expect 2 "eval.pbtxt:2:21: data.eval: the network is fed 'x' as" pd-train -q -c eval.pbtxt "${how[@]}"
done
[ ! -e run ] || fail "it began to write"

# Command lines.
expect 2 "option '-o': 'train.epochs' has no value; expected one word: 'train.epochs=VALUE'" \
  pd-train -q -c job.pbtxt -o train.epochs 3 --out run
expect 2 "option '-o': 'train.epochs' has no value" pd-eval -q -m run -c job.pbtxt -o train.epochs 3

# Said once, and of a device only where something is computed.
pd-train -c job.pbtxt --out run >out.txt 2>err.txt
[ "$(cat out.txt err.txt | grep -c "saved.*step-12")" -eq 1 ] || fail "saved, more than once: $(cat out.txt err.txt)"
grep -q "saved 'run/checkpoints/step-9'" err.txt || fail "a checkpoint in between is not said"
grep -q '^device: ' err.txt || fail "no word of the device"
for idle in "pd-train --new tabular-regression new" "pd-train --networks" "pd-train -c job.pbtxt --summary" \
  "pd-convert --inspect run" "pd-convert run x.npz" "pd-export -m run -o exported"; do
  $idle >/dev/null 2>err.txt || fail "$idle"
  if grep -q '^device:' err.txt; then fail "$idle names a device"; fi
done
expect 2 "none of auto, cpu" pd-convert --inspect run --device tpu
expect 0 "^device: " pd-eval -m run

# The answers of a metric are a field, or what a layer makes of inputs.
awk 'BEGIN { print "a,b,y,s"; for (i = 0; i < 30; ++i) printf "%g,%g,%d,%g\n", i / 8, i % 7, i % 3, i / 8 + i % 7 }' >sums.csv
sed -e 's/rows.csv/sums.csv/; s/field { name: "x"/field { name: "s" column: "s" } &/' \
  -e 's/^metric.*/metric { name: "by_field" input: "head_sum" label: "s" mse {} } metric { name: "by_layer" input: "head_sum" label: "sum" mse {} }/' \
  -e 's/^  layer { name: "head".*/&\n  layer { name: "head_sum" sum { axis: 1 keepdim: true } }\n  layer { name: "sum" input: "x" sum { axis: 1 keepdim: true } }\n  output: "head"/' job.pbtxt >sums.pbtxt
expect 0 "" pd-train -q -c sums.pbtxt --out sums
pd-eval -q -m sums --format json >out.txt
jq -e '(.by_field - .by_layer | fabs) < 1e-5 and .by_field > 0' out.txt >/dev/null || fail "a layer as label: $(cat out.txt)"
expect 2 "sums.pbtxt:[0-9]+:[0-9]+: metric 'by_layer': the data set has no field 'some', which holds the labels, nor the network such a layer" \
  pd-train -q -c sums.pbtxt --out no -o 'metric[1].label=some'

# Records that --steps leaves in the middle of an epoch.
{ cat rows.csv; echo "1,2,x"; } >bad.csv
sed 's/rows.csv/bad.csv/; s/batch_size: 20/& on_error: skip/' job.pbtxt >skip.pbtxt
expect 0 "data.train: 1 records were left out" pd-train -q -c skip.pbtxt --out skip --steps 2 \
  -o data.eval.csv.path=rows.csv
grep -q '"skipped":{"set":"train","records":1' skip/log.jsonl || fail "no word of skipped records in the log"
[ $failures -eq 0 ]
