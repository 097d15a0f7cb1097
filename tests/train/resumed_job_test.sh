#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# resumed_job_test.sh BIN: a run keeps the job that it was begun with. --resume
# goes on with what no step computes with and with another learning rate, says
# what has changed, and refuses the rest; a finished run is not written to. Its
# checkpoints are models by RUN@best, RUN@step-N and their folders.
set -euo pipefail

export PATH=$1:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0

fail() {
  echo "resumed_job_test: $*" >&2
  failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: PATTERN is in what it prints.
expect() {
  local want=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt </dev/null || got=$?
  [ $got -eq "$want" ] || fail "$*: exit $got, not $want: $(cat err.txt)"
  [ -z "$pattern" ] || grep -qE -- "$pattern" out.txt err.txt || fail "$*: no $pattern in $(cat out.txt err.txt)"
}
# kept FOLDER COMMAND...: the command leaves every file's bytes as they are.
kept() {
  local folder=$1 before
  shift
  before=$(cd "$folder" && find . -type f | sort | xargs sha256sum)
  "$@"
  [ "$before" = "$(cd "$folder" && find . -type f | sort | xargs sha256sum)" ] ||
    fail "$*: '$folder' was written to"
}

awk 'BEGIN {
  print "a,b,y"
  for (i = 0; i < 60; ++i) printf "%g,%g,%d\n", i / 60, (i % 7) / 7, i % 3
}' >rows.csv
cat >job.pbtxt <<'J'
model {
  input { name: "x" shape: [-1, 2] }
  layer { name: "fc1" linear { out_features: 8 } }
  layer { name: "act" relu {} }
  layer { name: "fc2" linear { out_features: 3 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { adam { learning_rate: 0.01 } }
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
train { epochs: 3 checkpoint { keep_last: 0 best {} } log { every_steps: 1 } }
J
train=(pd-train -q -c job.pbtxt --threads 1)
"${train[@]}" --out run >/dev/null
grep -q '"eval"' run/summary.json || fail "no evaluation in the summary"

# The finished run, and a changed job.
sed 's/relu {}/gelu {}/' job.pbtxt >gelu.pbtxt
kept run expect 2 "'run' was trained by another job: 'model.layer\[act\]' is gelu \{\}, was relu \{\} \(gelu.pbtxt:4:[0-9]+\); .*another --out .*--init-from 'run'" \
  pd-train -q -c gelu.pbtxt --threads 1 --out run --resume
kept run expect 2 "'model.layer\[act\]' is gelu" \
  pd-train -q -c gelu.pbtxt --threads 1 --out run --resume --dry-run
kept run expect 2 "'optimizer' is sgd .*, was adam" \
  "${train[@]}" --out run --resume -o optimizer.sgd.learning_rate=0.1
kept run expect 2 "'data.train.batch_size' is 30, was 20 \(-o data.train.batch_size\)" \
  "${train[@]}" --out run --resume -o data.train.batch_size=30
kept run expect 2 "'train.seed' is 5" "${train[@]}" --out run --resume --seed 5
kept run expect 2 "'loss\[?[^ ]*' is " "${train[@]}" --out run --resume -o 'loss={mse_loss {}}'
# Nothing would be trained with the new rate.
kept run expect 2 "has reached its end at step 9.*'optimizer.adam.learning_rate' is 0.1, was 0.01.*train.epochs" \
  "${train[@]}" --out run --resume -o optimizer.adam.learning_rate=0.1
# The same job, and one that differs in what no step reads.
kept run expect 0 "nothing left to train after step 9" "${train[@]}" --out run --resume
kept run expect 0 '"eval":\{"records":60' "${train[@]}" --out run --resume --format json
kept run expect 0 "keeps the job that it has: 'train.log.every_steps' is 2, was 1" \
  pd-train -c job.pbtxt --threads 1 --out run --resume -o train.log.every_steps=2
kept run expect 2 "holds checkpoints" "${train[@]}" --out run

# Its weights fit the other network too, which evaluation says.
expect 0 "warning: 'run' was trained with another network: 'model.layer\[act\]' is gelu \{\}, was relu \{\} \(gelu.pbtxt" \
  pd-eval -q -m run -c gelu.pbtxt
expect 0 "^acc" pd-eval -q -m run -c job.pbtxt
[ ! -s err.txt ] || fail "the run's own network is another: $(cat err.txt)"

# What may change goes on, and is said.
cp -r run more
expect 0 "resume: 'train.epochs' is 4, was 3" \
  pd-train -c job.pbtxt --threads 1 --out more --resume -o train.epochs=4
grep -q 'epochs: 4' more/job.pbtxt || fail "the longer run's job"
[ "$(cat more/latest)" = step-12 ] || fail "it did not go on"
expect 0 "warning: --resume trains otherwise from here on: 'optimizer.adam.learning_rate' is 0.002, was 0.01" \
  "${train[@]}" --out more --resume -o train.epochs=5 -o optimizer.adam.learning_rate=0.002
grep -q '"changed":{"optimizer.adam.learning_rate":{"from":"0.01","to":"0.002"}}' more/log.jsonl ||
  fail "no word of the rate in the log"
grep '"step":13,' more/log.jsonl | grep -q '"lr":0.002' || fail "the rate of step 13"
# A run that was stopped is the same.
"${train[@]}" --out part --steps 4 >/dev/null
kept part expect 2 "'optimizer' is sgd" "${train[@]}" --out part --resume -o optimizer.sgd.learning_rate=0.1
expect 0 "" "${train[@]}" --out part --resume
cmp part/checkpoints/step-9/model.pdparams run/checkpoints/step-9/model.pdparams || fail "a resumed run ends elsewhere"
# Another result to follow starts anew; the old one's number means nothing.
expect 0 "the best result is looked for anew" pd-train -c job.pbtxt --threads 1 --out part --resume \
  -o train.epochs=4 -o train.checkpoint.best.metric=acc
grep -A3 '"best"' part/summary.json | grep -q '"metric": "acc"' || fail "$(cat part/summary.json)"
# A folder that moved goes on; its files are gone from where they were.
mkdir moved && cp job.pbtxt rows.csv moved && cp -r run moved/run
(cd moved && sed -i "s#$dir/rows.csv#/gone/rows.csv#" run/job.pbtxt)
expect 0 "" pd-train -q -c moved/job.pbtxt --threads 1 --out moved/run --resume -o train.epochs=4

# Checkpoints by name.
best=$(sed -n '/"best"/,/}/s/.*"step": \([0-9]*\).*/\1/p' run/summary.json)
[ -d "run/checkpoints/step-$best" ] || fail "the summary's best step is '$best'"
for step in "$best" 3; do
  for tool in "pd-eval -q --format json -m" "pd-convert -q --inspect"; do
    $tool "run@step-$step" >by_name.txt || fail "$tool run@step-$step"
    $tool "run/checkpoints/step-$step" >by_folder.txt || fail "$tool run/checkpoints/step-$step"
    grep -v -e '^ *checkpoint ' -e '^run@' -e '^run/' by_name.txt >a.txt || true
    grep -v -e '^ *checkpoint ' -e '^run@' -e '^run/' by_folder.txt >b.txt || true
    sed 's/,"seconds":[0-9.e-]*//' a.txt | cmp - <(sed 's/,"seconds":[0-9.e-]*//' b.txt) || fail "$tool of step $step"
  done
  pd-export -q -m "run@step-$step" -o "named$step" >/dev/null || fail "export of a name"
  pd-export -q -m "run/checkpoints/step-$step/" -o "folder$step" >/dev/null || fail "export of a folder"
  cmp "named$step.pdiparams" "folder$step.pdiparams" || fail "another step was exported"
done
cmp -s named3.pdiparams "named$best.pdiparams" && [ "$best" != 3 ] && fail "all steps are one"
pd-export -q -m run@best -o best >/dev/null
cmp best.pdiparams "named$best.pdiparams" || fail "run@best is not the best"
for step in best step-6; do
  pd-convert -q "run@$step" "$step.npz" >/dev/null || fail "pd-convert run@$step"
done
python3 - <<'P'
import struct
data = b"".join(struct.pack("<ff", i / 4, -i / 3) for i in range(4))
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }"
header += " " * (63 - (10 + len(header)) % 64) + "\n"
import zipfile
with zipfile.ZipFile("feed.npz", "w") as z:
    z.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
P
expect 0 "" pd-eval -q -m run@best --feed feed.npz --out a.npz
expect 0 "" pd-eval -q -m best --feed feed.npz --out b.npz
expect 0 "" pd-quant -q -m run@best --calib feed.npz -o int8
expect 0 "" pd-profile -q -m run@step-3 --feed feed.npz --scheduler 1,2
expect 0 "" pd-check-naninf -q -m run@best --feed feed.npz
expect 0 "" "${train[@]}" --out from --init-from run@best --steps 1
expect 3 "no checkpoint of step 4; there are step-3, step-6, step-9" pd-eval -q -m run@step-4
expect 3 "expected 'run@best' or 'run@step-N'; there are step-3" pd-eval -q -m run@last
"${train[@]}" --out without --steps 3 -o train.checkpoint.best= >/dev/null
expect 3 "followed no result" pd-export -q -m without@best -o x
cp -r run/checkpoints/step-6 alone
expect 2 "say with -c whose network" pd-eval -q -m alone
expect 0 "acc" pd-eval -q -m alone -c job.pbtxt

# A damaged newest checkpoint names the one before.
truncate -s 100 run/checkpoints/step-9/model.pdparams
expect 3 "is damaged.*'run@step-6' is the checkpoint before, and whole" pd-eval -q -m run
expect 3 "is damaged.*remove 'run/checkpoints/step-9' and 'run/latest', and --resume goes on" \
  "${train[@]}" --out run --resume
rm -r run/checkpoints/step-9 run/latest
expect 0 "" "${train[@]}" --out run --resume
cmp run/checkpoints/step-9/model.pdparams more/checkpoints/step-9/model.pdparams || fail "it went on elsewhere"
[ $failures -eq 0 ]
