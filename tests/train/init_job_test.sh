#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# init_job_test.sh BIN TESTDATA: a job that begins with others' weights. The
# sources are files of every kind, beside the job; they are read once, so the
# run goes on and is evaluated when they are gone.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
fail() {
  echo "init_job_test: $1" >&2
  failures=$((failures + 1))
}
# says STATUS PATTERN COMMAND...: ends so, with this on standard error.
says() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.log 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status: $(tail -n 2 err.log)"
  [ -z "$pattern" ] || grep -q -- "$pattern" err.log || fail "'$*' does not say '$pattern' but: $(cat err.log)"
}
# job NAME INIT [GROUP]: a job in the folder jobs.
job() {
  cat >"jobs/$1.pbtxt" <<END
model {
  input { name: "image" shape: [-1, 1, 28, 28] }
  layer { flatten {} }
  layer { name: "body" linear { out_features: 4 } }
  layer { name: "bn" batch_norm {} }
  layer { name: "mix" linear { out_features: 4 } }
  layer { name: "fc" linear { out_features: 10 } }
  ${3:-}
}
$2
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { sgd { learning_rate: 1e-30 } }
data {
  train {
    mnist {
      image_path: "$testdata/mnist/train-images-idx3-ubyte.gz"
      label_path: "$testdata/mnist/train-labels-idx1-ubyte.gz"
    }
    transform { to_tensor {} }
    batch_size: 16
  }
  eval {
    mnist {
      image_path: "$testdata/mnist/t10k-images-idx3-ubyte.gz"
      label_path: "$testdata/mnist/t10k-labels-idx1-ubyte.gz"
    }
    transform { to_tensor {} }
    batch_size: 500
  }
}
train { steps: 1 }
END
}
# tensors PREFIX: a line for each learned parameter, with numbers of its values.
tensors() {
  pd-convert -q --inspect "$1" --format json |
    jq -r '.tensors[] | "\(.name) \(.shape) \(.min) \(.max)"' | grep -v _mean | grep -v _variance | sort
}
mkdir jobs
cp "$testdata/formats/torch/checkpoint.pth" jobs/net.pth
names='rename { from: "module.*.running_mean" to: "*._mean" }
  rename { from: "module.*.running_var" to: "*._variance" }
  rename { from: "module.*" to: "*" }
  skip: "*.num_batches_tracked"'

# PyTorch's file, for ten classes in place of seven; the path starts at the job.
job torch "init { from: \"net.pth\" $names transpose: \"*.weight\" skip: \"fc.*\" missing: fail }"
says 0 "8 of 10 parameters taken; skipped: 'fc.bias', 'fc.weight'" pd-train -c jobs/torch.pbtxt --out torch
grep -q "of its entry 'model'" err.log || fail "the entry is not named: $(cat err.log)"
grep -q "begins\|initial values are kept\|nothing takes" err.log && fail "warns: $(cat err.log)"
for name in body.bias mix.weight; do
  diff <(tensors jobs/net.pth | grep "module.$name" | sed 's/.*module.//') \
    <(tensors torch/checkpoints/step-1/model.pdparams | grep "^$name") || fail "$name has other values"
done
# Without the file: the run goes on, is evaluated, and another begins with it.
mv jobs/net.pth gone.pth
says 0 "" pd-train -c jobs/torch.pbtxt --out torch --resume --steps 2
says 0 "" pd-eval -m torch
says 3 "jobs/net.pth" pd-train -c jobs/torch.pbtxt --out none
says 0 "10 of 10 parameters taken" pd-train -c jobs/torch.pbtxt --out again --init-from torch
mv gone.pth jobs/net.pth

# What does not fit is said with the source's place, and what to write there.
job turned "init { from: \"net.pth\" $names skip: \"fc.*\" }"
says 2 "jobs/turned.pbtxt:[0-9]*:1: '.*net.pth': 'body.weight' has shape \[4, 784\], the network's has \[784, 4\]; transpose: \"body.weight\" transposes it" \
  pd-train -c jobs/turned.pbtxt --out none
says 2 "transpose: \"body.weight\" transposes it" pd-train -c jobs/turned.pbtxt --dry-run
job square "init { from: \"net.pth\" $names skip: \"fc.*\" transpose: \"body.weight\" }"
says 0 "linear layers keep their weights as \[out, in\]; taken as they are: 'mix.weight'; transpose: 'mix.weight'" \
  pd-train -c jobs/square.pbtxt --out square
job head "init { from: \"net.pth\" $names transpose: \"*.weight\" }"
says 2 "'fc.weight' has shape \[4, 7\], the network's has \[4, 10\] (out_features: 7 makes it as there); skip: \"fc.\*\" keeps initial values there" \
  pd-train -c jobs/head.pbtxt --out none
job nothing "init { from: \"net.pth\" $names skip: \"haed.*\" }"
says 2 "jobs/nothing.pbtxt:.*skip: 'haed.\*' matches nothing" pd-train -c jobs/nothing.pbtxt --out none
job stars 'init { from: "net.pth" rename { from: "module.*" to: "x" } }'
says 2 "has 1 '\*' before the arrow and 0 behind it" pd-train -c jobs/stars.pbtxt --out none

# Parameters that the source lacks; two sources together lack none.
says 0 "" pd-convert -q --format json torch/checkpoints/step-1/model.pdparams jobs/all.npz
job part 'init { from: "all.npz" rename { from: "fc.*" to: "other.*" } missing: fail }'
says 2 "has no 'fc.bias', 'fc.weight'; skip: permits it" pd-train -c jobs/part.pbtxt --out none
says 0 "has no 'fc.bias', 'fc.weight': initial values are kept" pd-train -c jobs/part.pbtxt --out part -o 'init[0].missing=warn'
says 0 "8 of 10 parameters taken" pd-train -c jobs/part.pbtxt --out quiet -o 'init[0].missing=ignore'
grep -q "initial values are kept" err.log && fail "ignored names are named: $(cat err.log)"
job both 'init { from: "all.npz" rename { from: "fc.*" to: "other.*" } missing: fail }
init { from: "all.npz" skip: "body.*" }'
says 0 "8 of 10 parameters taken; skipped: 'body.bias', 'body.weight'" pd-train -c jobs/both.pbtxt --out both

# Sources of every kind give the same values. A step at a rate of 1e-30 moves
# zeros alone.
weights() { tensors "$1" | sed -E 's/[-0-9.]+e-3[0-9]/0/g'; }
cp -r torch jobs/run
pd-convert -q torch/checkpoints/step-1/model.pdparams jobs/all.safetensors >/dev/null
cp torch/checkpoints/step-1/model.pdparams jobs/all.pdparams
pd-export -q -m torch@step-1 --to onnx -o jobs/all.onnx >/dev/null
pd-export -q -m torch@step-1 --to paddle -o jobs/exported >/dev/null
for source in all.npz all.safetensors all.pdparams run run@step-1 all.onnx exported.pdmodel; do
  job each "init { from: \"$source\" missing: fail }"
  rm -rf each
  says 0 "10 of 10 parameters taken" pd-train -c jobs/each.pbtxt --out each --seed 3
  diff <(weights torch/checkpoints/step-1/model.pdparams) <(weights each/checkpoints/step-1/model.pdparams) >/dev/null ||
    fail "$source gives other values"
done

# A body that is frozen beside a head that learns.
job frozen 'init { from: "all.npz" skip: "fc.*" }' 'parameter_group { match: "(body|bn|mix)\\..*" trainable: false }'
says 0 "8 of 10" pd-train -c jobs/frozen.pbtxt --out frozen --steps 3 -o optimizer.sgd.learning_rate=0.5
diff <(tensors torch/checkpoints/step-1/model.pdparams | grep -v fc) <(tensors frozen/checkpoints/step-3/model.pdparams | grep -v fc) ||
  fail "what is frozen has changed"
job slow 'init { from: "all.npz" skip: "fc.*" }' 'parameter_group { match: "body\\..*" learning_rate: 0 }'
says 0 "8 of 10" pd-train -c jobs/slow.pbtxt --out slow --steps 3 -o optimizer.sgd.learning_rate=0.5
diff <(tensors torch/checkpoints/step-1/model.pdparams | grep body) <(tensors slow/checkpoints/step-3/model.pdparams | grep body) ||
  fail "what learns at rate 0 has changed"
diff <(tensors torch/checkpoints/step-1/model.pdparams | grep mix) <(tensors slow/checkpoints/step-3/model.pdparams | grep mix) >/dev/null &&
  fail "what learns has not changed"

# NaN in a file would be in every answer; infinities may be meant.
# numbers NAME BYTES: body.weight, [784, 4], of one number.
numbers() {
  local head='{"body.weight":{"dtype":"F32","shape":[784,4],"data_offsets":[0,12544]}}'
  {
    printf "\\x$(printf %02x ${#head})\\0\\0\\0\\0\\0\\0\\0%s" "$head"
    printf "$2%.0s" $(seq 3136)
  } >"jobs/$1.safetensors"
}
numbers nan '\xff\xff\xff\xff'
numbers inf '\x00\x00\x80\x7f'
job with_nan 'init { from: "nan.safetensors" missing: ignore }'
says 2 "jobs/with_nan.pbtxt:[0-9]*:[0-9]*: 'jobs/nan.safetensors' holds NaN, .*: 'body.weight' (3136 of 3136 values); skip: 'body.weight' keeps" \
  pd-train -c jobs/with_nan.pbtxt --out with_nan
[ ! -e with_nan/checkpoints ] || fail "a run begins with NaN"
job with_inf 'init { from: "inf.safetensors" missing: ignore }'
says 3 "'jobs/inf.safetensors' holds infinities: 'body.weight' (3136 of 3136 values)" \
  pd-train -c jobs/with_inf.pbtxt --out with_inf
says 3 "'body.weight' (3136 of 3136 values); --init-skip 'body.weight' keeps" \
  pd-train -c jobs/each.pbtxt -o 'init=' --init-from jobs/nan.safetensors --out nothing

# A run keeps its sources: others are another job.
says 2 "was trained by another job: 'init" \
  pd-train -c jobs/frozen.pbtxt --out frozen --resume --steps 4 -o 'init[0].missing=ignore' -o optimizer.sgd.learning_rate=0.5
[ $failures -eq 0 ]
