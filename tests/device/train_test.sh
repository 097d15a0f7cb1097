#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pd-train and pd-eval as whole processes on the stand-in for a GPU: the losses
# are the CPU's but for rounding, what was trained on one goes on on the other,
# and what cannot be is refused.
set -euo pipefail

bin=$1 testdata=$2 fakes=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
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

job=$testdata/jobs/mlp_mnist.pbtxt
if "$bin/pd-train" --version | grep -q '^  CUDA  *not built'; then
  expect 3 'this build has no kernels for GPUs' "$bin/pd-train" -c "$job" --out "$dir/gpu" --device gpu
  echo "train_test: SKIPPED, built without nvcc"
  [ $failures -eq 0 ]
  exit
fi

train() {
  local run=$1 device=$2 steps=$3
  shift 3
  "$bin/pd-train" -c "$job" --out "$dir/$run" --steps "$steps" --device "$device" "$@" \
    --log-json - 2>"$dir/err" | sed -n 's/.*"loss": *\([-0-9.e]*\).*/\1/p' >"$dir/$run.losses" ||
    fail "training on $device"
}

# same A B: as many numbers, equal to 1e-4.
same() {
  paste "$dir/$1.losses" "$dir/$2.losses" |
    awk 'NF != 2 || $1 - $2 > 1e-4 || $2 - $1 > 1e-4 { bad = 1 } END { exit bad || NR == 0 }' || {
    paste "$dir/$1.losses" "$dir/$2.losses" >&2
    fail "the losses of $1 and $2 differ"
  }
}

train cpu cpu 6
train gpu gpu 6
grep -q '^device: gpu:0, Fake GPU 0, ' "$dir/err" || fail "no word about the GPU"
same cpu gpu
# Three steps there, three here, and the other way round.
train here cpu 3
train here gpu 6 --resume
cp "$dir/here.losses" "$dir/second.losses"
tail -n 3 "$dir/cpu.losses" >"$dir/last.losses"
same last second
train there gpu 3
train there cpu 6 --resume
cp "$dir/there.losses" "$dir/second.losses"
same last second

# Too little memory: how much, for what, and what would help.
FAKE_CUDA=memory=1 expect 3 'gpu:0 has [0-9]* of 1 MiB free; ' \
  "$bin/pd-train" -c "$job" --out "$dir/small" --steps 1 --device gpu
expect 3 'FLAGS_check_nan_inf does not look at values on a GPU' \
  "$bin/pd-train" -c "$job" --out "$dir/nan" --steps 1 --device gpu --flags check_nan_inf=1
expect 3 'pd-profile computes on the CPU only' "$bin/pd-profile" -c "$job" --device gpu

[ $failures -eq 0 ]
