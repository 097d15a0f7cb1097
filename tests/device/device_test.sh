#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --device, --devices and --version with fakes of NVIDIA's libraries.
set -euo pipefail

demo=$1 fakes=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0

# expect STATUS PATTERN COMMAND...: the pattern is looked for in all output.
expect() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >"$dir/out" 2>&1 || got=$?
  if [ "$got" -ne "$status" ] || ! grep -q -- "$pattern" "$dir/out"; then
    echo "device_test: '$*' exits $got, expected $status and '$pattern':" >&2
    cat "$dir/out" >&2
    failures=$((failures + 1))
  fi
}

run() {
  local kind=$1 fake=$2
  shift 2
  env -u CUDA_VISIBLE_DEVICES FAKE_CUDA="$fake" FLAGS_cuda_dir="$fakes/$kind" \
    FLAGS_cudnn_dir="$fakes/$kind" "$demo" "$@"
}

# Folders without the libraries: what is missing and where it was looked for.
expect 3 "'--device gpu:1': there is no gpu:1; expected gpu:0$" run good 'gpus=1' -c job --device gpu:1
expect 3 "libcuda.so.1' shows no GPU$" run good 'gpus=0 init=100' -c job --device gpu
expect 3 "shows no GPU$" run good 'list=100' -c job --device gpu:0
expect 3 "(CUDA_VISIBLE_DEVICES is '')$" env CUDA_VISIBLE_DEVICES= FAKE_CUDA=gpus=0 \
  FLAGS_cuda_dir="$fakes/good" "$demo" -c job --device gpu:0
expect 3 "does not start: cuInit: CUDA_ERROR_FAKE (it is a fake)$" run good 'init=999' -c job --device gpu
expect 3 "the NVIDIA driver has no function 'cuGetErrorName': .*is too old or damaged$" run old '' -c job --device gpu
expect 3 'Fake GPU 0 has compute capability 6.1 (Pascal; .*CUDA10, CUDA11); expected 7.5\|no kernels for GPUs' \
  run good 'capability=61' -c job --device gpu
for wrong in gpu: gpu:-1 gpu:x gpu0 gpu:1:2 gpu:99999999999 GPU; do
  expect 2 'is none of auto, cpu, gpu, gpu:N' "$demo" -c job --device "$wrong"
done
expect 0 '^device: cpu, ' run good '' -c job --device cpu

# Lists are printed whatever else is missing.
expect 0 '^  gpu:1  *Fake GPU 1, 3.0 GiB, compute capability 9.0 (Hopper)' run good gpus=2 --devices
expect 0 '^  driver  *.*CUDA 13.0, .*good/libcuda.so.1$' run good '' --devices
expect 0 '^  cuBLASLt  *13.0.2, .*good/libcublasLt.so.13$' run good '' --version
expect 0 '^  cuDNN  *9.19.2, .*good/libcudnn.so.9$' run good '' --version
expect 0 '^  cuDNN  *cuDNN .* has version 8.9.7; expected 9$' \
  env FLAGS_cuda_dir="$fakes/good" FLAGS_cudnn_dir="$fakes/old" "$demo" --devices
expect 0 '^  GPU  *none$' run good gpus=0 --version
expect 0 '^  GPU  *cuDeviceGetCount: CUDA_ERROR_FAKE' run good list=3 --devices
expect 0 '"compute_capability": "7.5"' run good capability=75 --devices --format json
expect 0 '"packages": "CUDA10, CUDA11"\|"paddle_packages": "CUDA10, CUDA11"' run good capability=75 --version --format json
expect 0 '"driver": "the NVIDIA driver has no function' run old '' --devices --format json
# With a driver of this machine the last ones would find it.
if ! ldconfig -p | grep -q libcuda.so.1 && [ ! -e /usr/local/nvidia/lib64 ]; then
  expect 3 "'--device gpu': the NVIDIA driver is not there: no libcuda.so.1 in $dir (FLAGS_cuda_dir), " \
    env FLAGS_cuda_dir="$dir" "$demo" -c job --device gpu
  expect 0 '^  GPU  *none: the NVIDIA driver is not there: ' env -u FLAGS_cuda_dir "$demo" --version
fi

[ $failures -eq 0 ]
