#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# naninf_test.sh BIN TESTDATA: pd-check-naninf in its modes, and --check-nan-inf
# of pd-train and pd-eval: what they name, and the exit statuses.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
ln -s "$testdata" testdata
failures=0

# expect STATUS PATTERN COMMAND...: the exit status, and a line of either output.
expect() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.log 2>err.log </dev/null || got=$?
  if [ $got -ne "$status" ] || ! cat out.log err.log | grep -E -- "$pattern" >/dev/null; then
    echo "naninf_test: '$*' exits $got; expected $status and '$pattern'" >&2
    cat out.log err.log >&2
    failures=$((failures + 1))
  fi
}
# says PATTERN: the last command's standard output has such a line.
says() {
  grep -E -- "$1" out.log >/dev/null || {
    echo "naninf_test: no '$1' in:" >&2
    cat out.log >&2
    failures=$((failures + 1))
  }
}

# names_first: the last command named the operator and tensor that 'first' has.
names_first() {
  sed -n 's/^PreconditionNotMetError: //p' out.log | cmp - first || failures=$((failures + 1))
}

check() { pd-check-naninf -q "$@"; }
job=testdata/jobs/lenet_mnist.pbtxt
rate=optimizer.lr.linear_warmup
bad=(-c "$job" -o "$rate.end_lr=1e31" -o "$rate.start_lr=1e30")

# Phases: both runs of the first one are clean in every step, the second one's
# rate drives its own network to infinity.
cat >phases.pbtxt <<JOB
model {
  input { name: "x" shape: [-1, 3] }
  input { name: "z" shape: [-1, 2] }
  layer { name: "d.fc" input: "x" linear { out_features: 1 } }
  layer { name: "g.fc" input: "z" linear { out_features: 1 } }
}
loss { name: "real" input: "d.fc" label: "one" bce_with_logits_loss {} }
loss { name: "far" input: "g.fc" label: "one" mse_loss {} }
phase { name: "d" loss: "real" parameters: "d.*" steps: 2 new_batch: true optimizer { sgd { learning_rate: 0.1 } } }
phase { name: "g" loss: "far" parameters: "g.*" optimizer { sgd { learning_rate: 0.1 } } }
data {
  train {
    npz { path: "testdata/phases/shared.npz" field { name: "x" } field { name: "z" } field { name: "one" } }
    batch_size: 8
  }
}
train { epochs: 2 seed: 1 }
JOB
phases=(-c phases.pbtxt -o 'phase[g].optimizer.sgd.learning_rate=1e30')
expect 0 'no NaN and no Inf in 3 steps' check -c phases.pbtxt --steps 3
for how in '' '--every 2' '--every 7' '--watch loss'; do
  # shellcheck disable=SC2086
  expect 1 "step 2: phase 'g': op '.*' makes NaN or Inf" check "${phases[@]}" $how
  says "^at step 2, phase 'g', epoch 1, batch 4$"
done
expect 1 '"job_phase":"g"' check "${phases[@]}" --format json
expect 1 "step 2: phase 'g': op '.*' makes NaN or Inf" pd-train -q "${phases[@]}" --out out --check-nan-inf
rm -rf out phases.pbtxt

# A training: clean, and driven to infinity.
expect 0 'no NaN and no Inf in 3 steps' check -c "$job" --steps 3
[ "$(ls)" = $'err.log\nout.log\ntestdata' ] || { echo "naninf_test: files were written: $(ls)" >&2; failures=$((failures + 1)); }
expect 1 "op '.*' makes NaN or Inf" check "${bad[@]}" --steps 5
says '^numel:[0-9]+ index:[0-9]+ value:-?(nan|inf|[0-9.]+)$'
says '^In cpu, there has [0-9]+,[0-9]+,[0-9]+ nan,inf,num$'
says '^PreconditionNotMetError: ===ERROR: in \[op=.*\] \[tensor=.*\] find nan or inf===$'
says '^at step 2, epoch 1, batch 2$'
says "^in layer '"
says '^the batch holds the records '
says '^likely cause: '
sed -n 's/^PreconditionNotMetError: //p' out.log >first
# The same step and op with a look at every fourth step, and at gradients alone.
for how in '--every 4' '--watch loss --every 3'; do
  # shellcheck disable=SC2086
  expect 1 'makes NaN' check "${bad[@]}" --steps 8 $how
  says '^at step 2, epoch 1, batch 2$'
  names_first
done
expect 0 'step 4:  loss [0-9.]+  gradients norm [0-9.e-]+, largest [0-9.e-]+ in' \
  check -c "$job" --steps 4 --watch gradients,loss --every 2
expect 2 "'nothing' is none of" check -c "$job" --watch nothing

# pd-train says the same.
expect 1 "step 2: op" pd-train -q "${bad[@]}" --steps 5 --out spoilt --check-nan-inf
names_first
expect 1 "step 2: op" env FLAGS_check_nan_inf=1 pd-train -q "${bad[@]}" --steps 5 --out spoilt2
expect 2 'PADDLE_INF_NAN_SKIP_ROLE' env PADDLE_INF_NAN_SKIP_ROLE=all FLAGS_check_nan_inf=1 pd-train -q "${bad[@]}" --out spoilt3
# Nothing but updates is looked at: what goes bad is found there later.
expect 1 'op=' env PADDLE_INF_NAN_SKIP_ROLE=forward,backward,loss pd-check-naninf -q "${bad[@]}" --steps 5
says '\(optimize\)'

# The operator alone.
expect 1 'saved' check "${bad[@]}" --steps 5 --dump culprit
expect 0 'elements agree' pd-eval -m culprit/op.pdmodel --feed culprit/inputs.npz --expect culprit/outputs.npz --equal-nan
expect 1 'find nan or inf' pd-eval -q -m culprit/op.pdmodel --feed culprit/inputs.npz --check-nan-inf
names_first
expect 1 'find nan or inf' check -m culprit/op.pdmodel --feed culprit/inputs.npz
expect 1 'saved' check -m culprit/op.pdmodel --feed culprit/inputs.npz --dump again
for file in inputs.npz outputs.npz; do cmp "culprit/$file" "again/$file" || failures=$((failures + 1)); done
expect 3 'dump' check -m culprit/op.pdmodel --feed culprit/inputs.npz --dump /proc/no/such

# Files.
expect 1 'find nan or inf' check culprit/outputs.npz
expect 0 'no NaN and no Inf' check testdata/formats/models/inference.pdmodel
expect 3 'nothing' check culprit/inputs.npz nothing
expect 2 'FILE' check
expect 2 'exclude' check -c "$job" culprit/inputs.npz
expect 2 'for operators' check culprit/inputs.npz --dump x
expect 0 'float16: ' check -c "$job" --steps 1 --half

# A bad label: record 7 (from 0) of the data.
sed '9s/,[^,]*$/,3e38/' testdata/friedman/train.csv >train.csv
sed 's#\.\./friedman/train#train#; s#\.\./friedman#testdata/friedman#' testdata/jobs/regression_csv.pbtxt >label.pbtxt
expect 1 "makes NaN or Inf" check -c label.pbtxt --steps 200
says '^its rows are bad for the records 7$'
says "^likely cause: bad label: the fed 'y' reaches 3e\\+38"
expect 1 'makes NaN' check -c label.pbtxt --steps 200 --format json
jq -e '.found and .bad_records == [7] and (.records | index(7)) != null and .inputs_clean' out.log >/dev/null ||
  { echo "naninf_test: JSON: $(cat out.log)" >&2; failures=$((failures + 1)); }

# A run that goes bad after a good checkpoint.
sed '/^optimizer {/,/^}/d' "$job" | sed 's#\.\./#testdata/#' >base.pbtxt
cat base.pbtxt - >turn.pbtxt <<END
optimizer { momentum { momentum: 0.9 } lr { piecewise_decay { boundaries: [5] values: [0.01, 1e30] } } }
END
expect 0 '' pd-train -q -c turn.pbtxt --out run --steps 4 -o train.checkpoint.every_steps=2
expect 1 "at step 7, epoch 1, batch 7" check --bisect run --steps 20
expect 1 "at step 7, epoch 1, batch 7" check -c turn.pbtxt --steps 20
expect 0 'no NaN and no Inf' check run
expect 3 'no checkpoint' check --bisect testdata
[ $failures -eq 0 ]
