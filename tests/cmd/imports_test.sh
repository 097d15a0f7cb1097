#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# imports_test.sh BIN TESTDATA: models of other frameworks, exported by pd-export
# in each form, answer as the original does.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
fail() {
  echo "imports_test: $1" >&2
  failures=$((failures + 1))
}

# The model and its recorded inputs; the answers beside these are the other tests'.
models="torch_export/cnn.pt2 torch_export/cnn.npz
torch_script/lenet_trace.pt torch_script/lenet.npz
keras/cnn.keras keras/cnn.keras.npz
keras/cnn.h5 keras/cnn.h5.npz
tflite/cnn.tflite tflite/cnn.tflite.npz
tensorflow/convnet.pb tensorflow/convnet.npz"
while read -r model inputs; do
  pd-eval -q -m "$testdata/$model" --feed "$testdata/$inputs" --out "$dir/said.npz" >/dev/null 2>"$dir/err" ||
    fail "$model: $(cat "$dir/err")"
  for to in paddle onnx; do
    out=$dir/exported
    [ $to = paddle ] || out=$dir/exported.onnx
    pd-export -q -m "$testdata/$model" --to $to -o "$out" >/dev/null 2>"$dir/err" ||
      { fail "$model to $to: $(cat "$dir/err")"; continue; }
    pd-eval -q -m "$out" --feed "$testdata/$inputs" --expect "$dir/said.npz" --rtol 1e-5 --atol 1e-6 >"$dir/out" 2>&1 ||
      fail "$model as $to: $(cat "$dir/out")"
  done
done <<<"$models"
[ $failures -eq 0 ]
