#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quant_test.sh BIN TESTDATA: pd-quant writes models that pd-eval runs with
# nearly the float model's answers, and says what it cannot do.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
fail() {
  echo "quant_test: $1" >&2
  failures=$((failures + 1))
}
# says STATUS TEXT COMMAND...: it exits so, with these words.
says() {
  local status=$1 text=$2 got=0
  shift 2
  "$@" >out.log 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status: $(tail -n 2 err.log)"
  cat out.log err.log | grep -F -- "$text" >/dev/null || fail "'$*' does not say '$text': $(tail -n 2 err.log)"
}
# holds FILTER FILE: jq finds it true.
holds() {
  jq -e "$1" "$2" >/dev/null || fail "'$1' is not true of $(head -c 400 "$2")"
}

lenet=$testdata/deploy/lenet
feed=$testdata/deploy/lenet-feed.npz
pd-eval -q -m "$lenet" --feed "$feed" --out float.npz >/dev/null

# Both forms of PaddlePaddle, and weights alone.
pd-quant -q -m "$lenet" --calib "$feed" --algo abs_max -o linear --format json --report page.html >linear.json
holds '.quantized | length == 5' linear.json
holds '.float | length == 0' linear.json
holds '.activations.x > 0 and .activations.x == .scales.x' linear.json
holds '.weights["conv2d_0.w_0"] | length == 6' linear.json
holds '.parameter_bytes < 0.27 * .parameter_bytes_before' linear.json
holds '[.errors[].sqnr_db] | min > 20' linear.json
grep -c '<figure>' page.html >/dev/null || fail "the page shows no histogram"
pd-quant -q -m "$lenet" --calib "$feed" --algo abs_max --to paddle-fake -o fake >/dev/null
pd-quant -q -m "$lenet" --weight-only -o weights8 >/dev/null
pd-quant -q -m "$lenet" --weight-only --bits 16 -o weights16 >/dev/null
for bits in 8 16; do
  pd-quant -q -m "$lenet" --weight-only --bits $bits --to paddle-lite -o lite$bits --format json >lite.json
  holds '.quantized | length == 5' lite.json
done
pd-convert --inspect lite16.pdmodel --format json >ops.json
holds '.ops.mul == 3 and .ops.matmul_v2 == null and .ops.dequantize_linear == null' ops.json
holds '[.tensors[] | select(.dtype == "int16")] | length == 5' ops.json
says 2 'for --weight-only' pd-quant -m "$lenet" --calib "$feed" --to paddle-lite -o x
says 2 'is for activations' pd-quant -m "$lenet" --weight-only --to paddle-fake -o x
says 2 'weights of 16 bits' pd-quant -m "$lenet" --weight-only --bits 16 --to onnx -o x
pd-convert --inspect linear.pdmodel --format json >ops.json
holds '.ops.quantize_linear == 18 and .ops.dequantize_linear == 23' ops.json
pd-convert --inspect fake.pdmodel --format json >ops.json
holds '.ops.fake_quantize_moving_average_abs_max == 5 and .ops.fake_channel_wise_dequantize_max_abs == 5' ops.json
for model in linear:1 fake:1 weights8:1 weights16:0.01 lite8:1 lite16:0.01; do
  pd-eval -q -m "${model%:*}" --feed "$feed" --expect float.npz --rtol 0 --atol "${model#*:}" >/dev/null || fail "${model%:*} answers otherwise"
done
for model in linear fake weights8 weights16 lite16; do
  for level in O1 O2; do
    pd-eval -q -m $model --feed "$feed" --expect float.npz --rtol 0 --atol 1 --amp $level --amp-dtype bfloat16 >/dev/null ||
      fail "$model answers otherwise in mixed precision ($level)"
  done
done
pd-quant -q -m "$lenet" --calib "$feed" --to onnx -o lenet.onnx >/dev/null
says 0 'QuantizeLinear' grep -a -o 'QuantizeLinear' lenet.onnx
says 0 '"dtype":"int8"' pd-convert --inspect lenet.onnx --format json

# Batch norms become part of scales; what was found before it is reported.
cifar=$testdata/deploy/cifar_resnet
pd-eval -q -m "$cifar" --feed "$cifar-feed.npz" --out cifar.npz >/dev/null
for keep in '' --keep-batch-norms; do
  pd-quant -q -m "$cifar" --calib "$cifar-feed.npz" --algo abs_max $keep -o "norms$keep" --format json >"norms$keep.json"
  pd-convert --inspect "norms$keep.pdmodel" --format json >"ops$keep.json"
  pd-eval -q -m "norms$keep" --feed "$cifar-feed.npz" --expect cifar.npz --rtol 0 --atol 1 >/dev/null || fail "norms$keep answers otherwise"
done
holds '.parameter_bytes < 0.265 * .parameter_bytes_before' norms.json
holds '.ops.batch_norm == null' ops.json
holds '.ops.batch_norm == 9' ops--keep-batch-norms.json
holds '.activations["conv2d_0.tmp_0"] and .scales["conv2d_0.tmp_0"] == null' norms.json
[ "$(jq -cS '[.activations, .weights]' norms.json)" = "$(jq -cS '[.activations, .weights]' norms--keep-batch-norms.json)" ] ||
  fail "folding changes what was found"
says 2 'does not go with --equalize' pd-quant -m "$cifar" --calib "$cifar-feed.npz" --keep-batch-norms --equalize -o x

# Ranges found when the model runs.
pd-quant -q -m "$lenet" --dynamic -o dynamic --format json >dynamic.json
holds '.quantized | length == 3' dynamic.json
holds '.float | map(.why) == ["it is no linear layer", "it is no linear layer"]' dynamic.json
holds '.parameter_bytes < 0.3 * .parameter_bytes_before' dynamic.json
pd-eval -q -m dynamic --feed "$feed" --expect float.npz --rtol 0 --atol 1 >/dev/null || fail "dynamic answers otherwise"
says 3 'no linear and no recurrent layer' pd-quant -m "$lenet" --dynamic --skip 'matmul*' -o x
says 2 'for --to paddle and --to onnx' pd-quant -m "$lenet" --dynamic --to paddle-fake -o x
pd-quant -q -m "$lenet" --dynamic --to onnx -o dynamic.onnx >/dev/null
says 0 'MatMulInteger' grep -a -o 'MatMulInteger' dynamic.onnx
pd-eval -q -m dynamic.onnx --feed "$feed" --expect float.npz --rtol 0 --atol 1 >/dev/null || fail "dynamic ONNX answers otherwise"
cat >lstm.pbtxt <<END
model { input { name: "x" shape: [-1, 4, 3] } layer { lstm { hidden_size: 5 } } layer { linear { out_features: 2 } } }
END
pd-export -q -c lstm.pbtxt -o lstm >/dev/null
says 3 'cannot be written as ONNX; --to paddle can hold it' pd-quant -m lstm --dynamic --to onnx -o x
says 2 'or --dynamic' pd-quant -m "$lenet" --dynamic --weight-only -o x

# Skipping, and ranges.
pd-quant -q -m "$lenet" --calib "$feed" --algo min_max --skip 'conv2d_0*' --skip linear_2.w_0 -o part --format json >part.json
holds '.quantized | length == 3' part.json
holds '.float | map(.why) == ["skipped by '"'conv2d_0*'"'", "skipped by '"'linear_2.w_0'"'"]' part.json
holds '.activations.x | length == 2 and .[0] < .[1]' part.json

# Learned roundings, equalised layers, weights of 16 bits by their mse.
pd-quant -q -m "$lenet" --calib "$feed" --round adaround --equalize --skip linear_0.w_0 --latency 0.05 -o learned --format json >learned.json
holds '.roundings | length == 4' learned.json
holds '[.roundings[] | .learned <= .nearest] | all' learned.json
holds '[.roundings[] | .learned < 0.5 * .nearest] | any' learned.json
holds '.latency.before_ms > 0 and .latency.after_ms > 0 and .calibration_s > 0' learned.json
pd-eval -q -m learned --feed "$feed" --expect float.npz --rtol 0 --atol 1 >/dev/null || fail "learned roundings answer otherwise"

# A search: what is clipped to half its size costs points; the least sensitive
# operators alone do not. Nothing may cost less than nothing.
cat >job.pbtxt <<END
model {
  input { name: "image" shape: [-1, 1, 28, 28] }
  layer { name: "flatten" flatten {} }
  layer { name: "fc" linear { out_features: 10 } }
}
metric { accuracy {} }
data {
  eval {
    mnist {
      image_path: "$testdata/mnist/t10k-images-idx3-ubyte.gz"
      label_path: "$testdata/mnist/t10k-labels-idx1-ubyte.gz"
    }
    transform { to_tensor {} }
    transform { normalize { mean: 0.5 std: 0.5 } }
    batch_size: 500
  }
}
END
search=(pd-quant -q -m "$lenet" --calib "$feed" --algo hist --compare job.pbtxt)
"${search[@]}" --percentile 0.6 --max-drop 0.5 -o mixed --format json >mixed.json
holds '.metric.drop_points <= 0.5 and (.search | length) > 1' mixed.json
holds '.search[0].left == 0 and .search[0].drop_points > 0.5' mixed.json
holds '(.sensitivity | length) == 5 and ([.sensitivity[].sqnr_db] | . == sort)' mixed.json
holds '(.quantized | length) > 0 and (.float | length) > 0' mixed.json
holds '[.float[].why == "sensitive: see --max-drop"] | all' mixed.json
says 1 'while anything is quantized' "${search[@]}" --percentile 0.5 --max-drop 0 -o none
[ ! -e none.pdmodel ] || fail "a search in vain has written something"

# The same without labels: how far answers are above their noise.
noisy=(pd-quant -m "$lenet" --calib "$feed" --algo hist --percentile 0.9)
says 0 '--min-sqnr 20 leaves' "${noisy[@]}" -o noisy
"${noisy[@]}" -q --min-sqnr 20 -o near --format json >near.json
holds '.errors[-1] | .output == "save_infer_model/scale_0.tmp_0" and .sqnr_db >= 20' near.json
holds '(.quantized | length) > 0 and (.float | length) > 0' near.json
holds '[.float[].why == "sensitive: see --min-sqnr"] | all' near.json
says 1 'is below 120 dB' "${noisy[@]}" --min-sqnr 120 -o none
says 2 'not both' "${search[@]}" --max-drop 1 --min-sqnr 20 -o none

# Pictures become what the model is fed as the job's transforms say, whether it
# is the run's, stands beside an exported model, or is given. The largest value of
# these is 192, the smallest 96: (192 / 255 - 0.5) / 0.25 = 1.01176.
mkdir -p shots/a shots/b
printf 'P6 2 1 255\n\300\200\140\200\200\200' >shots/a/1.ppm
printf 'P6 2 1 255\n\200\200\200\200\300\200' >shots/b/1.ppm
cat >shots.pbtxt <<END
model {
  input { name: "image" shape: [-1, 3, 1, 2] }
  layer { name: "conv" conv2d { out_channels: 4 kernel_size: 1 } }
  layer { name: "flat" flatten {} }
  layer { name: "fc" linear { out_features: 2 } }
}
loss { cross_entropy {} }
optimizer { sgd {} }
data {
  train {
    dataset_folder { root: "shots" }
    transform { to_tensor {} }
    transform { normalize { mean: [0.5, 0.5, 0.5] std: [0.25, 0.25, 0.25] } }
    batch_size: 1
  }
  eval {
    dataset_folder { root: "shots" }
    transform { to_tensor {} }
    transform { normalize { mean: [0.5, 0.5, 0.5] std: [0.25, 0.25, 0.25] } }
    batch_size: 2
  }
}
train { epochs: 1 }
END
pd-train -q -c shots.pbtxt --out seen >/dev/null
pd-export -q -m seen -o seen_net >/dev/null
for source in "-m seen" "-m seen_net"; do
  # shellcheck disable=SC2086
  pd-quant -q $source --algo abs_max -o shots8 --format json shots/a/1.ppm shots/b >shots.json
  holds '.calibration.records == 2 or .records == 2' shots.json
  holds '.activations.image > 1.0117 and .activations.image < 1.0118' shots.json
done
pd-quant -q -m seen_net --calib shots --batch 1 --algo abs_max -o shots8 --format json >shots.json
holds '.activations.image > 1.0117 and .activations.image < 1.0118 and .batches == 2' shots.json
pd-eval -q --predict -m shots8 -c seen/job.pbtxt shots >/dev/null || fail "the quantized model answers nothing"
rm seen_net.preprocess.pbtxt
says 2 "'seen_net.preprocess.pbtxt' is not there" pd-quant -m seen_net -o x shots
pd-quant -q -m seen_net -c seen/job.pbtxt --algo abs_max -o shots8 --format json shots >shots.json
holds '.activations.image > 1.0117 and .activations.image < 1.0118' shots.json
says 2 'leave one out' pd-quant -m seen --calib shots -o x shots
says 3 "'nowhere'" pd-quant -m seen -o x nowhere

# What is wrong is said.
says 3 'quantized already' pd-quant -m linear --calib "$feed" -o x
says 3 'quantized already' pd-quant -m lite8 --weight-only -o x
says 3 'quantized already' pd-quant -m fake --calib "$feed" -o x
says 2 "did you mean 'conv2d'" pd-quant -m "$lenet" --calib "$feed" --skip conv3d -o x
says 2 "--skip 'nope'" pd-quant -m "$lenet" --weight-only --skip nope -o x
says 2 "--skip 'nope'" pd-quant -m "$lenet" --dynamic --skip nope -o x
says 2 'no job says how they become what it is fed' pd-quant -m "$lenet" --calib "$testdata" -o x
cp "$lenet.pdmodel" own.pdmodel
cp "$lenet.pdiparams" own.pdiparams
says 2 'would write over the model' pd-quant -m own --calib "$feed" -o "$dir/own"
says 2 'would write over the model' pd-quant -m own.pdmodel --weight-only -o own.pdmodel
cmp own.pdmodel "$lenet.pdmodel" || fail "the model was written over"
head -c 2000 "$feed" >cut.npz
says 3 "'cut.npz'" pd-quant -m "$lenet" --calib cut.npz -o x
mkdir pictures
says 2 "has no 'data.train'" pd-quant -m "$lenet" --calib job.pbtxt -o x
cat >folder.pbtxt <<END
model {
  input { name: "x" shape: [-1, 1, 28, 28] }
  layer { name: "flatten" flatten {} }
}
data {
  train {
    image_folder { root: "pictures" }
    transform { to_tensor {} }
    batch_size: 4
  }
}
END
says 3 "'pictures'" pd-quant -m "$lenet" --calib folder.pbtxt -o x
says 2 'either with --calib' pd-quant -m "$lenet" -o x
says 2 '--bias-correction chooses' pd-quant -m "$lenet" --calib "$feed" --round adaround --bias-correction -o x
says 2 'is for activations' pd-quant -m "$lenet" --weight-only --round adaround -o x
says 2 'is for activations' pd-quant -m "$lenet" --weight-only --algo KL -o x
says 3 'no-such.npz' pd-quant -m "$lenet" --calib no-such.npz -o x
says 3 "array 'x' is float32[3, 3, 32, 32]; the model declares float32[-1, 1, 28, 28]" pd-quant -m "$lenet" --calib "$testdata/deploy/cifar_resnet-feed.npz" -o x
[ ! -e x.pdmodel ] || fail "something was written in spite of an error"
[ $failures -eq 0 ]
