#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quant_aware_test.sh BIN TESTDATA: a job with quant { } goes on from a float
# run, is stopped and resumed without a trace, and is exported with integers
# that answer as the run does.
set -euo pipefail

export PATH=$1:$PATH
job=$2/jobs/lenet_quant.pbtxt
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
  echo "quant_aware_test: $1" >&2
  exit 1
}
# says STATUS TEXT COMMAND...: it exits so, with these words.
says() {
  local status=$1 text=$2 got=0
  shift 2
  "$@" >out.log 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status: $(tail -n 2 err.log)"
  cat out.log err.log | grep -F -- "$text" >/dev/null || fail "'$*' does not say '$text': $(tail -n 2 err.log)"
}
# accuracy MODEL: of the first 1000 test pictures.
accuracy() {
  pd-eval -q -m "$1" -c "$job" -o data.eval.subset.range=:1000 --format json 2>/dev/null | jq -r .acc
}

train=(pd-train -q -c "$job" --threads 2 -o data.eval= -o train.checkpoint.every_steps=20)
"${train[@]}" -o quant= --out float --steps 60 >/dev/null 2>&1
"${train[@]}" --init-from float --out whole --steps 40 >/dev/null 2>&1
"${train[@]}" --init-from float --out half --steps 20 >/dev/null 2>&1
"${train[@]}" --out half --steps 40 --resume >/dev/null
for file in model.pdmodel model.pdparams model.pdopt; do
  cmp whole/checkpoints/step-40/$file half/checkpoints/step-40/$file || fail "a resumed run has another $file"
done

pd-export -q -m whole -o linear >/dev/null
pd-export -q -m whole --to paddle-fake -o fake >/dev/null
pd-export -q -m whole --to onnx -o whole.onnx >/dev/null
pd-convert --inspect linear.pdmodel --format json 2>/dev/null | jq -e '.ops | .quantize_linear == 10 and .dequantize_linear == 15 and (keys | map(select(startswith("fake"))) | length == 0)' >/dev/null || fail "the exported model has other operators"
pd-convert --inspect linear.pdmodel --format json 2>/dev/null | jq -e '[.tensors[] | select(.dtype == "int8")] | length == 5' >/dev/null || fail "there are no int8 weights"
[ "$(stat -c %s linear.pdiparams)" -lt "$(($(stat -c %s fake.pdiparams) * 27 / 100))" ] || fail "the weights are not quartered"
want=$(accuracy whole)
jq -en "$want > 0.7" >/dev/null || fail "nothing was learned: accuracy $want"
for model in linear fake whole.onnx; do
  jq -en "($(accuracy $model) - $want) | fabs < 0.005" >/dev/null || fail "$model has another accuracy than $want"
done

# Products in halves, roundings to integers in float32.
"${train[@]}" --init-from float --out mixed --steps 40 --amp O1 --amp-dtype bfloat16 >/dev/null 2>&1
pd-export -q -m mixed -o mixed8 >/dev/null
jq -en "$(accuracy mixed8) > $want - 0.05" >/dev/null || fail "mixed precision learns less: $(accuracy mixed8), not $want"
half=$(pd-eval -q -m whole -c "$job" -o data.eval.subset.range=:1000 --amp O2 --amp-dtype bfloat16 --format json 2>/dev/null | jq -r .acc)
jq -en "($half - $want) | fabs < 0.02" >/dev/null || fail "in halves the accuracy is $half, not $want"

says 2 "did you mean 'fc3'" "${train[@]}" -o quant.skip=fc_3 --out x
says 2 "'weight_bits'" "${train[@]}" -o quant.weight_bits=33 --out x
says 2 'trained with quant' pd-export -m float --to paddle-fake -o x
says 3 'quantized already' pd-quant -m whole --weight-only -o x
"${train[@]}" -o quant.activation_bits=4 --out bits4 --steps 5 >/dev/null
says 0 'activations have 4 bits' pd-export -m bits4 -o simulated
says 3 'needs integers' pd-export -m bits4 --to onnx -o x.onnx
