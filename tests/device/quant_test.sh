#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pd-quant as a whole process on the fake driver: it finds the CPU's
# scales, and what it has written in any form runs there with integers and gives
# the CPU's answers.
set -euo pipefail

bin=$1 testdata=$2 fakes=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
unset CUDA_VISIBLE_DEVICES
export PATH=$bin:$PATH FLAGS_cuda_dir=$fakes/good FLAGS_cudnn_dir=$fakes/good

fail() {
  echo "quant_test: $1" >&2
  tail -n 5 err >&2
  failures=$((failures + 1))
}

if pd-quant --version | grep -q '^  CUDA  *not built'; then
  echo "quant_test: SKIPPED, built without nvcc"
  exit
fi

lenet=$testdata/deploy/lenet cifar=$testdata/deploy/cifar_resnet

# same MODEL FEED: it answers on the GPU as on the CPU, and no integer product
# is left to the CPU.
same() {
  pd-eval -q -m "$1" --feed "$2" --out cpu.npz --device cpu >out 2>err || fail "$1 on the CPU"
  rm -rf passes
  pd-eval -m "$1" --feed "$2" --expect cpu.npz --rtol 1e-4 --atol 1e-4 --device gpu:0 --dump-passes passes >out 2>err ||
    fail "$1 answers otherwise on the GPU"
  [[ "$1" = weights* ]] || grep -qE 'int8_(dynamic_)?matmul' passes/*merge_updates.txt || fail "$1: no product of integers"
  grep -q '^device: gpu:0, ' err || fail "$1: no word about the GPU"
  if grep -E 'run on the CPU.*(int8|quantize)' err; then fail "$1: integers on the CPU"; fi
}
# quantize MODEL NAME OPTION...: on both; what is found is the same.
quantize() {
  local model=$1 name=$2
  shift 2
  for device in cpu gpu:0; do
    pd-quant -m "$model" "$@" --format json -o "$name.${device%:0}" --device "$device" >"${device%:0}.json" 2>err ||
      fail "pd-quant $* --device $device"
  done
  # Sums in another order: a last bit of a range, no more.
  jq -en --slurpfile cpu cpu.json --slurpfile gpu gpu.json '
    def found: [.activations, .weights] | [.. | numbers];
    [($cpu[0] | found), ($gpu[0] | found)] |
    (.[0] | length) > 0 and (transpose | all((.[0] - .[1] | fabs) <= 1e-5 * (1 + (.[0] | fabs))))' >/dev/null ||
    fail "pd-quant $*: the GPU finds other scales"
}

quantize "$lenet" linear --calib "$lenet-feed.npz" --algo abs_max --report page.html --latency 0.02
jq -e '[.errors[].sqnr_db] | min > 20' gpu.json >/dev/null || fail "the GPU measures large errors"
grep -c '<figure>' page.html >/dev/null || fail "the page shows no histogram"
quantize "$lenet" kl --calib "$lenet-feed.npz" --algo KL
quantize "$lenet" fake --calib "$lenet-feed.npz" --algo abs_max --to paddle-fake
quantize "$lenet" dynamic --dynamic
quantize "$lenet" weights --weight-only
quantize "$lenet" weights16 --weight-only --bits 16
quantize "$lenet" learned --calib "$lenet-feed.npz" --algo abs_max --round adaround
quantize "$lenet" kept --calib "$lenet-feed.npz" --algo abs_max --min-sqnr 24
for name in linear kl fake dynamic weights weights16 learned kept; do same "$name.gpu" "$lenet-feed.npz"; done
quantize "$cifar" norms --calib "$cifar-feed.npz" --algo abs_max
quantize "$cifar" apart --calib "$cifar-feed.npz" --algo abs_max --keep-batch-norms
for name in norms apart; do same "$name.gpu" "$cifar-feed.npz"; done

[ $failures -eq 0 ]
