#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pipe_test.sh BIN TESTDATA: training on records that a program writes gives the
# numbers that the same records of a table give, and goes on inside an epoch; a
# look at a job starts no program; a program that fails or is waited for in vain
# ends the training as it should, and nothing of it is left.
set -euo pipefail

export PATH=$1:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir job elsewhere
failures=0

fail() {
  echo "pipe_test: $*" >&2
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
# npy DESCR SHAPE BYTES: an array as numpy.save writes it; bytes for printf.
npy() {
  printf '\223NUMPY\001\000v\000'
  printf '%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
  # shellcheck disable=SC2059
  printf "$3"
}

# Seven records of two small numbers and a class, as a table and as arrays.
one='\000\000\200\077' two='\000\000\000\100' half='\000\000\000\077'
zero='\000\000\000\000'
values=("$one$two" "$half$one" "$two$zero" "$zero$half" "$one$one" "$two$half" "$half$half")
rows=("1,2" "0.5,1" "2,0" "0,0.5" "1,1" "2,0.5" "0.5,0.5")
echo a,b,c >job/t.csv
for i in "${!rows[@]}"; do
  echo "${rows[i]},$((i % 3))" >>job/t.csv
  npy '<f4' '(2,)' "${values[i]}" >"job/x$i.npy"
  npy '<i8' '(1,)' "\\00$((i % 3))\\000\\000\\000\\000\\000\\000\\000" >"job/y$i.npy"
done

cat >job/base.txt <<'J'
model {
  input { name: "x" shape: [-1, 2] }
  layer { name: "head" linear { out_features: 3 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { sgd { learning_rate: 0.1 } }
train { epochs: 3 seed: 5 log { every_steps: 1 } checkpoint { every_steps: 1 keep_last: 20 } }
J
fields='field { name: "x" shape: [2] } field { name: "label" dtype: int64 num_classes: 3 }'
# shellcheck disable=SC2016
command='echo $PD_SET $PD_EPOCH >>ran; for i in 0 1 2 3 4 5 6; do cat x$i.npy y$i.npy; done'
cat job/base.txt - >job/pipe.pbtxt <<J
data {
  train { pipe { command: "$command" $fields } batch_size: 2 }
  eval { pipe { command: "$command" $fields } batch_size: 2 }
}
J
cat job/base.txt - >job/table.pbtxt <<'J'
data {
  train {
    csv { path: "t.csv" field { name: "x" column: "a:b" } field { name: "label" column: "c" dtype: int64 } }
    batch_size: 2
  }
  eval { csv { path: "t.csv" } batch_size: 2 }
}
J
expect 0 "" pd-train -q -c job/table.pbtxt --out table

# A look starts nothing.
expect 0 "" pd-train -q -c job/pipe.pbtxt --dry-run
grep -q 'a stream of records, in batches of 2: x float32\[2, 2\]' out.txt ||
  fail "--dry-run: $(cat out.txt)"
expect 0 "" pd-train -q -c job/pipe.pbtxt --dry-run --format json
grep -qE '"records": ?null' out.txt || fail "--dry-run --format json: $(cat out.txt)"
expect 0 "" pd-train -q -c job/pipe.pbtxt --summary
[ ! -e job/ran ] || fail "a look ran the program: $(cat job/ran)"

# The same records give the same training, from whatever folder.
same() {
  cmp table/log.jsonl "$1/log.jsonl" || fail "the log of $1 differs"
  cmp "table/checkpoints/$(cat table/latest)/model.pdparams" \
    "$1/checkpoints/$(cat "$1/latest")/model.pdparams" || fail "the weights of $1 differ"
}
cd elsewhere
expect 0 "" pd-train -q -c ../job/pipe.pbtxt --out ../run
cd ..
same run
grep -qx 'train 2' job/ran || fail "no third epoch: $(cat job/ran)"
grep -qx 'eval 0' job/ran || fail "no evaluation: $(cat job/ran)"
# What a run keeps finds the program's folder, too; it does not run for a look.
rm job/ran
expect 0 "" pd-eval -q -m run -c run/job.pbtxt
grep -qE "^records +7" out.txt || fail "pd-eval: $(cat out.txt)"
grep -qx 'eval 0' job/ran || fail "pd-eval did not run it"
rm job/ran
expect 0 "" pd-train -q -c run/job.pbtxt --summary
[ ! -e job/ran ] || fail "--summary of a run ran the program"

# Each step can be gone on from.
for steps in 1 2 3 4 5 6 8; do
  rm -rf run
  expect 0 "" pd-train -q -c job/pipe.pbtxt --out run --steps $steps
  expect 0 "" pd-train -q -c job/pipe.pbtxt --out run --resume
  cmp "table/checkpoints/$(cat table/latest)/model.pdparams" \
    "run/checkpoints/$(cat run/latest)/model.pdparams" || fail "after $steps steps: other weights"
done

# What cannot be.
set=data.train
expect 2 "records come in the order of the stream" \
  pd-train -q -c job/pipe.pbtxt --out no -o $set.shuffle=true
expect 2 "'subset' chooses records by number" \
  pd-train -q -c job/pipe.pbtxt --out no -o $set.subset.range=0:2
sed 's/out_features: 3/out_features: @classes(label)/; s/num_classes: 3//' job/pipe.pbtxt >job/open.pbtxt
expect 2 "a stream is not read to count the classes of field 'label'; say num_classes" \
  pd-train -q -c job/open.pbtxt --out no
expect 3 "program 'no-such-program-7' record 0: it ended with status 127.*" \
  pd-train -q -c job/pipe.pbtxt --out no1 -o $set.pipe.command=no-such-program-7
expect 3 "the training set gives no batch of 2 records" \
  pd-train -q -c job/pipe.pbtxt --out no2 -o $set.pipe.command=true
expect 3 "record 1: it ended with status 5" pd-train -q -c job/pipe.pbtxt --out no3 \
  -o $set.pipe.command='cat x0.npy y0.npy; echo why >&2; exit 5'
grep -q '  why' err.txt || fail "no last words: $(cat err.txt)"
expect 3 "it has written nothing for 0.2 seconds" pd-train -q -c job/pipe.pbtxt --out no4 \
  -o $set.pipe.command='sleep 1000' -o $set.pipe.timeout=0.2

# An endless program and --steps; a number of records makes its epochs.
endless='while cat x1.npy y1.npy; do :; done'
expect 0 "" pd-train -q -c job/pipe.pbtxt --out endless --steps 5 -o $set.pipe.command="$endless"
expect 0 "" pd-train -q -c job/pipe.pbtxt --out counted -o $set.pipe.command="$endless" \
  -o $set.pipe.records=3
grep -c '"loss"' counted/log.jsonl >/dev/null || fail "nothing was logged"
[ "$(cat counted/latest)" = step-6 ] || fail "three epochs of 2 batches: $(cat counted/latest)"

# A signal ends it while it waits for a record, and the program with it.
for signal in INT TERM; do
  rm -rf waiting job/pid
  # shellcheck disable=SC2016
  stuck='echo $$ >pid; cat x0.npy y0.npy x1.npy y1.npy; exec sleep 1000'
  # A background job ignores SIGINT unless it is a job of its own.
  set -m
  pd-train -q -c job/pipe.pbtxt --out waiting -o $set.pipe.command="$stuck" \
    >out.txt 2>err.txt </dev/null &
  trainer=$!
  set +m
  until [ -s job/pid ] && [ -s waiting/latest ]; do sleep 0.05; done
  kill -$signal $trainer
  status=0
  wait $trainer || status=$?
  [ $status -eq $((128 + $(kill -l $signal))) ] ||
    fail "$signal: exit $status: $(cat err.txt)"
  ! kill -0 "$(cat job/pid)" 2>/dev/null || fail "$signal left the program"
done

[ $failures -eq 0 ] || exit 1
echo "pipe_test: ok"
