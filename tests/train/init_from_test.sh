#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# init_from_test.sh BIN TESTDATA: a new head on old weights. A network of the
# zoo is trained; another one takes its weights under other names, leaves the
# head out, and reads a layer inside of it. What does not fit is named with what
# to do about it.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
fail() {
  echo "init_from_test: $1" >&2
  failures=$((failures + 1))
}
# says STATUS PATTERN COMMAND...: ends so, with this on standard error.
says() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.log 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status: $(tail -n 2 err.log)"
  grep -q -- "$pattern" err.log || fail "'$*' does not say '$pattern' but: $(cat err.log)"
}
# job NAME LAYERS: a job of these layers.
job() {
  cat >"$1.pbtxt" <<EOF
model {
  input { name: "image" shape: [-1, 1, 28, 28] }
  $2
}
loss { cross_entropy {} }
metric { accuracy {} }
# A rate so small that weights stay what they are.
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
EOF
}
# tensors RUN: a line for each parameter, with numbers of its values.
tensors() {
  pd-convert -q --inspect "$1/checkpoints/step-1/model.pdparams" --format json |
    jq -r '.tensors[] | "\(.name) \(.shape) \(.min) \(.max) \(.mean)"' | sort
}

job old 'layer { name: "net" block { use: "lenet" set: "num_classes=10" } }'
pd-train -q -c old.pbtxt --out old --steps 1 -o optimizer.sgd.learning_rate=0.1 >/dev/null

# The same network for other classes: both parameters, both shapes, the remedy.
job other 'layer { name: "net" block { use: "lenet" set: "num_classes=14" } }'
says 3 "'net.fc.2.bias' has shape \[10\], the network's has \[14\]; 'net.fc.2.weight' has shape \[84, 10\], the network's has \[84, 14\] (out_features: 10 makes it as there); --init-skip 'net.fc.2.\*' keeps" \
  pd-train -c other.pbtxt --out other --steps 1 --init-from old
says 0 "8 of 10 parameters taken" \
  pd-train -c other.pbtxt --out other --steps 1 --init-from old --init-skip 'net.fc.2.*'
diff <(tensors old | grep -v fc.2) <(tensors other | grep -v fc.2) >/dev/null || fail "weights below the new head differ"
# A head of the same shape is left out as well.
job same 'layer { name: "net" block { use: "lenet" set: "num_classes=10" } }'
says 0 "8 of 10 parameters taken; skipped: 'net.fc.2.bias', 'net.fc.2.weight'" \
  pd-train -c same.pbtxt --out same --steps 1 --seed 7 --init-from old --init-skip 'net.fc.2.*'
diff <(tensors old | grep -v fc.2) <(tensors same | grep -v fc.2) >/dev/null ||
  fail "weights that were taken differ"
diff <(tensors old | grep fc.2.weight) <(tensors same | grep fc.2.weight) >/dev/null &&
  fail "the head was taken too"

# The same out of the run's ONNX file, where each parameter has its own name, the
# biases of convolutions too.
pd-export -q -m old --to onnx -o old.onnx >/dev/null
says 0 "'old.onnx': 8 of 10 parameters taken; skipped: 'net.fc.2.bias', 'net.fc.2.weight'" \
  pd-train -c other.pbtxt --out from_onnx --steps 1 --init-from old.onnx --init-skip 'net.fc.2.*'
diff <(tensors old | grep -v fc.2) <(tensors from_onnx | grep -v fc.2) >/dev/null ||
  fail "weights of the ONNX file differ"

# Under another name, headless, with a head of its own; the old head is left.
job headless 'layer { name: "body" block { use: "lenet" set: "num_classes=0" } }
  layer { flatten {} }
  layer { name: "head" linear { out_features: 10 } }'
says 0 "4 of 6 parameters taken; skipped: 'head.bias', 'head.weight'" \
  pd-train -c headless.pbtxt --out headless --steps 1 --init-from old --init-rename 'net.*=>body.*' --init-skip 'head.*' --init-skip 'body.fc.*'
diff <(tensors old | grep features | sed s/^net/body/) <(tensors headless | grep features) >/dev/null ||
  fail "renamed weights differ"
says 0 "has no 'head.bias', 'head.weight': initial values are kept" \
  pd-train -c headless.pbtxt --out warned --steps 1 --init-from old --init-rename 'net.*=>body.*'
grep -q "nothing takes the values of 'body.fc.0.bias'" err.log || fail "what is left is not named: $(cat err.log)"

# A layer inside of the network is read; what nobody reads any more is kept.
job inner 'layer { name: "body" block { use: "lenet" } }
  layer { name: "head" input: "body.flatten" linear { out_features: 10 } }'
says 0 "10 of 12 parameters taken" \
  pd-train -c inner.pbtxt --out inner --steps 1 --init-from old --init-rename 'net.*=>body.*' --init-skip 'head.*'
pd-eval -q -m inner --format json | jq -e '.loss > 0' >/dev/null || fail "it is not evaluated"
says 2 "reads 'body.flaten'; no layer before it and no input has that name, did you mean 'body.flatten'?" \
  pd-train -c inner.pbtxt --dry-run -o 'model.layer[head].input=body.flaten'

# What is asked for must be there, and said rightly.
says 2 "'haed.\*' matches nothing" pd-train -c inner.pbtxt --out x --init-from old --init-skip 'haed.*'
says 2 "'a.\*=>b.\*' matches nothing" pd-train -c inner.pbtxt --out x --init-from old --init-rename 'a.*=>b.*'
says 2 "is not 'A=>B'" pd-train -c inner.pbtxt --out x --init-from old --init-rename 'a'
says 2 'has 1 .* before the arrow and 0 behind it' pd-train -c inner.pbtxt --out x --init-from old --init-rename 'a.*=>b'
says 2 "option '--init-skip' needs option '--init-from'" pd-train -c inner.pbtxt --out x --init-skip 'a'
says 3 "holds no parameter of this network: it has .*'x.features.0.bias'.*--init-rename" \
  pd-train -c inner.pbtxt --out x --init-from old --init-rename 'net.*=>x.*'
[ $failures -eq 0 ]
