#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pd-train and pd-eval as whole processes on the fake driver: losses,
# evaluations and checkpoints are the CPU's but for rounding, what was trained
# on one goes on on the other, and what cannot be is refused.
set -euo pipefail

bin=$1 testdata=$2 fakes=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
unset CUDA_VISIBLE_DEVICES
export FLAGS_cuda_dir=$fakes/good

fail() {
  echo "train_test: $1" >&2
  cat "$dir/err" >&2
  failures=$((failures + 1))
}

# expect STATUS PATTERN COMMAND...: the pattern is looked for in stderr.
expect() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >"$dir/out" 2>"$dir/err" || got=$?
  [ "$got" -eq "$status" ] || fail "'$*' exits $got; expected $status"
  grep -q -- "$pattern" "$dir/err" || fail "'$*': stderr has no '$pattern'"
}

job=(-c "$testdata/jobs/mlp_mnist.pbtxt" -o 'model.layer[fc1].linear.out_features=32'
  -o 'model.layer[fc2].linear.out_features=16' -o data.train.batch_size=32
  -o train.log.every_steps=1 -o train.evaluation.every_steps=4)
if "$bin/pd-train" --version | grep -q '^  CUDA  *not built'; then
  expect 3 'this build has no kernels for GPUs' "$bin/pd-train" "${job[@]}" --out "$dir/gpu" --device gpu
  echo "train_test: SKIPPED, built without nvcc"
  [ $failures -eq 0 ]
  exit
fi

# train RUN DEVICE STEPS: its numbers, one a line, go to RUN.numbers.
train() {
  local run=$1 device=$2 steps=$3
  shift 3
  "$bin/pd-train" "${job[@]}" --out "$dir/$run" --steps "$steps" --device "$device" "$@" \
    --log-json - 2>"$dir/err" |
    sed -n 's/.*"step":\([0-9]*\).*"loss":\([-0-9.e]*\).*/\1 \2/p' >"$dir/$run.numbers" ||
    fail "training on $device"
}

# same A B: as many numbers, equal to 1e-4.
same() {
  paste "$dir/$1.numbers" "$dir/$2.numbers" |
    awk 'NF != 4 || $1 != $3 || $2 - $4 > 1e-4 || $4 - $2 > 1e-4 { bad = 1 }
      END { exit bad || NR < 3 }' || {
    paste "$dir/$1.numbers" "$dir/$2.numbers" >&2
    fail "the losses of $1 and $2 differ"
  }
}

train cpu cpu 6
train gpu gpu 6
[ "$(head -n 1 "$dir/err")" = 'device: gpu:0, Fake GPU 0, 3.0 GiB, compute capability 9.0' ] ||
  fail "no word about the GPU"
[ "$(wc -l <"$dir/gpu.numbers")" -eq 8 ] || fail "not six steps and two evaluations"
same cpu gpu
# The same job gives the same bits.
train again gpu 6
cmp "$dir/gpu.numbers" "$dir/again.numbers" || fail "another run, other losses"
cmp "$dir"/{gpu,again}/checkpoints/step-6/model.pdparams || fail "another run, other parameters"
# Three steps there, three here, and the other way round.
tail -n 5 "$dir/cpu.numbers" >"$dir/last.numbers"  # of steps 4, 5 and 6
for first in cpu gpu; do
  second=$([ $first = cpu ] && echo gpu || echo cpu)
  train "$first$second" "$first" 3
  train "$first$second" "$second" 6 --resume
  same last "$first$second"
done

# float16: runs go ahead too, and what becomes of the loss's factor is told of the right steps.
for device in cpu gpu; do
  train "half.$device" $device 6 -o amp.level=O1 -o amp.dtype=float16 -o amp.incr_every_n_steps=2
  sed -n 's/.*\(step [0-9]*: the loss is scaled by .*\)/\1/p' "$dir/err" >"$dir/half.$device.scales"
  grep -c 'computed through float32' "$dir/err" >>"$dir/half.$device.warnings" || true
done
same half.cpu half.gpu
[ "$(wc -l <"$dir/half.cpu.scales")" -eq 3 ] || fail "the factor has not grown three times"
cmp "$dir"/half.{cpu,gpu}.scales || fail "the loss is scaled otherwise"
[ "$(cat "$dir/half.cpu.warnings") $(cat "$dir/half.gpu.warnings")" = '1 0' ] || fail "warnings about this CPU"

# Evaluation: the numbers of both sides, and predictions.
results() { "$bin/pd-eval" -q -m "$dir/gpu" --format json "$@" | sed 's/"seconds":[^,}]*//'; }
results --device gpu >"$dir/eval.gpu"
results --device cpu >"$dir/eval.cpu"
grep -o '"acc[^,}]*' "$dir/eval.gpu" | cmp - <(grep -o '"acc[^,}]*' "$dir/eval.cpu") ||
  fail "the accuracies differ"
"$bin/pd-eval" -q -m "$dir/gpu" --out "$dir/cpu.npz" --device cpu >"$dir/out"
expect 0 '^device: gpu:0, ' "$bin/pd-eval" -m "$dir/gpu" --device gpu --amp O1
! grep -q 'computed through float32' "$dir/err" || fail "pd-eval warns about a CPU that does not compute"
expect 0 '^device: gpu:0, ' "$bin/pd-eval" -m "$dir/gpu" --expect "$dir/cpu.npz" --device gpu --rtol 1e-4 --atol 1e-5
expect 0 '^device: gpu:0, ' "$bin/pd-eval" -m "$dir/gpu" --bench 0.01 --device gpu
grep -q '"peak_device_mb":0\.[0-9]*[1-9]' "$dir/out" || fail "--bench does not say what memory it took"
expect 0 '^device: gpu:0, ' "$bin/pd-train" "${job[@]}" --bench 0.01 --device gpu

# The choice is the first line of the log; nobody is moved to a GPU unasked.
expect 0 '^device: cpu, ' "$bin/pd-train" "${job[@]}" --dry-run --device auto
expect 3 "'--device gpu:7': there is no gpu:7; expected gpu:0$" \
  "$bin/pd-train" "${job[@]}" --out "$dir/none" --device gpu:7
expect 2 "'gpu:x' is none of auto, cpu, gpu, gpu:N" "$bin/pd-eval" -m "$dir/gpu" --device gpu:x
# Too little memory: how much, for what, and what would help.
FAKE_CUDA=memory=1 expect 3 'gpu:0 has [0-9]* of 1 MiB free; .* the largest tensors of the step are .*; a smaller batch' \
  "$bin/pd-train" "${job[@]}" -o data.train.batch_size=2000 --out "$dir/small" --steps 1 --device gpu
[ ! -e "$dir/none" ] || fail "a run that did not start left a folder"

[ $failures -eq 0 ]
