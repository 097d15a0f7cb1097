#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pd-check-naninf, pd-quant and pd-profile, --check-nan-inf of pd-train and
# pd-eval, and pd-train --run-check, as whole processes on the fake driver, beside the CPU.
set -euo pipefail

bin=$1 testdata=$2 fakes=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
unset CUDA_VISIBLE_DEVICES
export FLAGS_cuda_dir=$fakes/good

fail() {
  echo "tools_test: $1" >&2
  cat "$dir/out" "$dir/err" >&2
  failures=$((failures + 1))
}

# expect STATUS PATTERN COMMAND...: the pattern is looked for in both outputs.
expect() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >"$dir/out" 2>"$dir/err" || got=$?
  [ "$got" -eq "$status" ] || fail "'$*' exits $got; expected $status"
  cat "$dir/out" "$dir/err" | grep -E -- "$pattern" >/dev/null || fail "'$*': no '$pattern'"
}
says() { grep -E -- "$1" "$dir/out" >/dev/null || fail "no '$1'"; }

if "$bin/pd-train" --version | grep -q '^  CUDA  *not built'; then
  echo "tools_test: SKIPPED, built without nvcc"
  exit
fi

job=(-c "$testdata/jobs/mlp_mnist.pbtxt" -o 'model.layer[fc1].linear.out_features=32'
  -o 'model.layer[fc2].linear.out_features=16' -o data.train.batch_size=64)
bad=(-o optimizer.adam.learning_rate=1e37)

# What works here: each GPU is a line, one that is too old is a "no".
FAKE_CUDA=gpus=2 expect 0 '^gpu:1 +works' "$bin/pd-train" --run-check
FAKE_CUDA=capability=61 expect 1 'capability 6\.1' "$bin/pd-train" --run-check
says '^gpu:0 +does not work: '
says '^cpu +works'

# The first NaN or Inf: the op and tensor of the CPU, in the GPU's words.
expect 0 'no NaN and no Inf in 3 steps' "$bin/pd-check-naninf" "${job[@]}" --steps 3 --device gpu
for device in cpu gpu; do
  expect 1 "op '.*' makes NaN or Inf" "$bin/pd-check-naninf" "${job[@]}" "${bad[@]}" --steps 4 --device $device
  grep -E '^(at step|.*===ERROR|in layer)' "$dir/out" >"$dir/$device.first"
done
says '^numel:[0-9]+ idx:[0-9]+ value:-?(nan|inf)$'
says '^In block 0, there has [0-9]+,[0-9]+,[0-9]+ nan,inf,num$'
cmp "$dir/cpu.first" "$dir/gpu.first" || fail "the GPU names another operator"
expect 1 'find nan or inf' "$bin/pd-train" "${job[@]}" "${bad[@]}" --out "$dir/bad" --steps 4 --check-nan-inf --device gpu
expect 0 'loss' "$bin/pd-train" "${job[@]}" --out "$dir/run" --steps 8 --check-nan-inf --device gpu
expect 0 'loss' "$bin/pd-eval" -m "$dir/run" --check-nan-inf --device gpu
expect 0 'step 3' "$bin/pd-check-naninf" "${job[@]}" --steps 4 --watch gradients,parameters --every 3 -v --device gpu

# Quantization: the ranges that the CPU finds.
"$bin/pd-export" -q -m "$dir/run" -o "$dir/net" >"$dir/out"
for device in cpu gpu; do
  expect 0 '' "$bin/pd-quant" -m "$dir/net" --calib "$dir/run/job.pbtxt" --batches 4 --algo abs_max \
    --compare "$dir/run/job.pbtxt" --format json -o "$dir/$device" --device $device
  cp "$dir/out" "$dir/$device.quant"
done
jq -en --slurpfile cpu "$dir/cpu.quant" --slurpfile gpu "$dir/gpu.quant" '
  $gpu[0].activations as $other | [$cpu[0].activations | to_entries[] | .value - $other[.key] | fabs] |
  length == 10 and max < 1e-5' >/dev/null || fail "the GPU finds other ranges"

# Profiles: what the GPU did, beside what the thread did. Without CUPTI, by
# operators.
profile=("$bin/pd-profile" "${job[@]}" --scheduler "1,5" --roofline 0 --device gpu)
expect 0 "shown by operators, not by kernels: CUPTI has no function 'cuptiGetVersion': '$fakes/old/libcupti.so.13'" \
  env FLAGS_cupti_dir="$fakes/old" "${profile[@]}" --trace "$dir/trace.json"
says 'Kernel Summary'
says '^  Kernel  +[1-9][0-9]* '
says '^cublaslt<fused_gemm_epilogue>  +[1-9]'
says '^copy:host<->device  +[1-9]'
jq -e '[.traceEvents[] | select(.cat == "Kernel")] | length > 20' "$dir/trace.json" >/dev/null ||
  fail "no kernels in the trace"
jq -e '[.traceEvents[] | select(.ph == "s" or .ph == "f")] | length > 40' "$dir/trace.json" >/dev/null ||
  fail "kernels are not tied to what started them"
expect 0 'cublaslt<fused_gemm_epilogue>' "$bin/pd-profile" --load "$dir/trace.json" --sorted-by GPUTotal

# With it, by kernels, each with an arrow from the call that started it.
expect 0 'Kernel Summary' env FLAGS_cupti_dir="$fakes/good" "${profile[@]}" --trace "$dir/kernels.json" --html "$dir/page.html"
says '^  Kernel  +[1-9][0-9]* '
says '^library\(float const\*\)  +[1-9]'
says '^MEMCPY_HtoD  +[1-9]'
! grep -F 'not by kernels' "$dir/err" >/dev/null || fail "CUPTI is there and not used"
jq -e '.traceEvents as $all |
  [$all[] | select(.cat == "Kernel") | select((.args.grid | length) == 3 and .args["registers per thread"] == 40) | .args.id] as $kernels |
  [$all[] | select(.cat == "CudaRuntime" and .args.id != null) | .args.id] as $calls |
  [$all[] | select(.ph == "f") | .id] as $arrows |
  ($kernels | length) > 40 and ($kernels - $calls) == [] and ($kernels - $arrows) == []' "$dir/kernels.json" >/dev/null ||
  fail "kernels are not tied to the calls that started them"
jq -e '.otherData.CUPTI | test("^130001 of ")' "$dir/kernels.json" >/dev/null || fail "CUPTI's version is missing"
expect 0 '^library\(float const' "$bin/pd-profile" --load "$dir/kernels.json" --sorted-by GPUTotal

# Convolutions by the algorithms that ran fastest, which a second run finds in
# the cache: nothing is written there again.
lenet=("$bin/pd-profile" -c "$testdata/jobs/lenet_mnist.pbtxt" -o data.train.batch_size=2 --timer-only --steps 2 --device gpu)
export XDG_CACHE_HOME=$dir/cache FLAGS_cudnn_exhaustive_search=1 FLAGS_cudnn_dir=$fakes/good
expect 0 'Perf Summary' "${lenet[@]}"
kept=$dir/cache/pdkit/convolutions.txt
# Two convolutions: both outputs and filters, one input.
[ "$(tail -n 1 "$kept")" = 'end 5' ] || fail "not five choices in '$kept'"
before=$(stat -c '%i %y' "$kept")
expect 0 'Perf Summary' "${lenet[@]}"
[ "$before" = "$(stat -c '%i %y' "$kept")" ] || fail "choices were made again"

[ $failures -eq 0 ]
