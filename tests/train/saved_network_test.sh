#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# saved_network_test.sh BIN TESTDATA: a job that goes on from a saved network.
# The run keeps the network: when the file is gone it is resumed to the same
# bytes, evaluated, exported and gone on from.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
fail() {
  echo "saved_network_test: $1" >&2
  failures=$((failures + 1))
}
# says STATUS PATTERN COMMAND...: ends so, with this on an output.
says() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.log 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status: $(tail -n 2 err.log)"
  [ -z "$pattern" ] || grep -q -- "$pattern" out.log err.log || fail "'$*' does not say '$pattern' but: $(cat out.log err.log)"
}
# job NAME MODEL [GROUP]: a job in the folder jobs, whose trunk is MODEL.
job() {
  cat >"jobs/$1.pbtxt" <<END
model {
  input { name: "image" shape: [-1, 3, 12, 12] }
  layer { name: "trunk" model { $2 } }
  layer { name: "head" linear { out_features: 3 } }
  ${3:-}
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { adam { learning_rate: 0.01 } }
data {
  train { npz { path: "data.npz" } batch_size: 4 }
  eval { npz { path: "data.npz" } batch_size: 10 }
}
train { epochs: 2 evaluation { every_epochs: 0 } checkpoint { every_steps: 3 } }
END
}
losses() { grep -o '"loss":[-0-9.e]*' "$1/log.jsonl"; }
mkdir jobs
cp "$testdata"/saved_network/{data.npz,mobile.pdmodel,mobile.pdiparams,mobile.onnx} jobs
frozen='parameter_group { match: "trunk[.].*" trainable: false }'
cut='cut: "flatten_0.tmp_0"'

# Seen before it is trained.
job full "file: \"mobile.pdmodel\" $cut"
says 0 "trunk" pd-train -c jobs/full.pbtxt --summary
says 0 "^parameters *819 .*, 819 trainable" pd-train -c jobs/full.pbtxt --dry-run
job head "file: \"mobile.pdmodel\" $cut" "$frozen"
says 0 ", 21 trainable" pd-train -c jobs/head.pbtxt --dry-run

# A run that was never stopped, and one that goes on without the file.
says 0 "" pd-train -c jobs/full.pbtxt --out whole
says 0 "" pd-train -c jobs/full.pbtxt --out run --steps 5
mkdir gone
mv jobs/mobile.pd* gone
says 3 "jobs/mobile.pdmodel" pd-train -c jobs/full.pbtxt --out none
says 0 "" pd-train -c jobs/full.pbtxt --out run --resume
cmp whole/checkpoints/step-10/model.pdparams run/checkpoints/step-10/model.pdparams || fail "a resumed run ends otherwise"
says 0 "acc" pd-eval -m run
says 0 "" pd-eval -m run --format json
cp out.log of-run
for to in paddle onnx; do
  model=exported
  [ $to != onnx ] || model=exported.onnx
  says 0 "" pd-export -m run --to $to -o $model
  says 0 "" pd-eval -c run/job.pbtxt -m $model --format json
  diff <(grep -o '"acc":[0-9.]*' of-run) <(grep -o '"acc":[0-9.]*' out.log) || fail "$to answers otherwise"
done
says 0 "" pd-eval -m run --predict jobs/data.npz --out answers.csv
# Another begins with the run's job or its weights.
says 0 "" pd-train -c run/job.pbtxt --out anew
diff <(losses whole) <(losses anew) || fail "the run's job trains otherwise"
says 0 "taken" pd-train -c run/job.pbtxt --out weights --init-from run --steps 1
# The file lies elsewhere now: no other job.
job full "file: \"../gone/mobile.pdmodel\" $cut"
says 0 "" pd-train -c jobs/full.pbtxt --out run --resume -o train.epochs=3
# A file that is there is another network.
cp gone/mobile.pd* jobs
job full "file: \"mobile.pdmodel\" $cut"
says 2 "was trained by another job: .*model.layer.*model.file" pd-train -c jobs/full.pbtxt --out run --resume -o train.epochs=4

# A run as the network, cut at a layer; the older form; ONNX.
job onrun 'file: "../whole" cut: "head"'
says 0 "" pd-train -c jobs/onrun.pbtxt --out onrun
says 0 "trunk.trunk.conv2d_0.w_0" pd-convert --inspect onrun/checkpoints/step-10/model.pdparams
says 2 "there is no variable or layer 'haed', did you mean 'head'" pd-train -c jobs/onrun.pbtxt --out none -o 'model.layer[trunk].model.cut[0]=haed'
says 0 "" pd-convert jobs/mobile.pdmodel jobs/older --to paddle-legacy
job older "file: \"older\" $cut"
says 0 "" pd-train -c jobs/older.pbtxt --out older
diff <(losses whole) <(losses older) || fail "the older form trains otherwise"
job onnx 'file: "mobile.onnx" cut: "/features/features.6/Flatten_output_0"' "$frozen"
says 0 "" pd-train -c jobs/onnx.pbtxt --out onnx
rm jobs/mobile.onnx
says 0 "acc" pd-eval -m onnx

# In mixed precision, and with every value checked.
job full "file: \"mobile.pdmodel\" $cut"
says 0 "" pd-train -c jobs/full.pbtxt --out half --amp O1 --amp-dtype bfloat16 --steps 2
says 0 "" pd-train -c jobs/full.pbtxt --out checked --check-nan-inf --steps 2

# Damaged files are refused by name.
head -c 3000 gone/mobile.pdmodel >jobs/mobile.pdmodel
says 3 "jobs/mobile.pdmodel" pd-train -c jobs/full.pbtxt --out none
cp gone/mobile.pdmodel jobs
head -c 2000 gone/mobile.pdiparams >jobs/mobile.pdiparams
says 3 "jobs/mobile.pdiparams" pd-train -c jobs/full.pbtxt --out none
rm jobs/mobile.pdiparams
says 2 "jobs/mobile.pdmodel.*no value" pd-train -c jobs/full.pbtxt --out none

# Networks that branch and loop, and one of 16 bits: resumed without the file,
# exported, and gone on from.
for name in branch.pdmodel loop.pdmodel flow.onnx bf16.pdmodel; do
  kind=${name%.*}
  cp "$testdata/saved_network/$kind".* jobs
  job "$kind" "file: \"$name\""
  says 0 "acc" pd-train -c "jobs/$kind.pbtxt" --out "$kind"
  says 0 "" pd-train -c "jobs/$kind.pbtxt" --out "$kind-again" --steps 4
  rm jobs/"$kind".{onnx,pdmodel,pdiparams} 2>/dev/null || true
  says 0 "" pd-train -c "jobs/$kind.pbtxt" --out "$kind-again" --resume
  for file in model.pdparams model.pdopt; do
    cmp "$kind/checkpoints/step-10/$file" "$kind-again/checkpoints/step-10/$file" || fail "$kind: $file of a resumed run differs"
  done
  says 0 "" pd-eval -m "$kind" --out "$kind.npz"
  for to in paddle onnx; do
    model=$kind-model
    [ "$to" != onnx ] || model=$kind-model.onnx
    says 0 "" pd-export -m "$kind" --to "$to" -o "$model"
    says 0 "" pd-eval -c "$kind/job.pbtxt" -m "$model" --expect "$kind.npz" --rtol 1e-5 --atol 1e-5
  done
  job "on$kind" "file: \"../$kind\" cut: \"head\""
  says 0 "acc" pd-train -c "jobs/on$kind.pbtxt" --out "on$kind"
done
[ $failures -eq 0 ]
