#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# network_params_test.sh BIN TESTDATA: the .pdparams of a checkpoint is the
# whole network, running statistics too: evaluated alone with the job it gives
# what the run gives.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >job.pbtxt <<EOF
name: "small"
model {
  input { name: "image" shape: [-1, 1, 28, 28] }
  layer { conv2d { out_channels: 4 kernel_size: 5 stride: 3 } }
  layer { name: "norm" batch_norm2d {} }
  layer { relu {} }
  layer { flatten {} }
  layer { linear { out_features: 10 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { momentum { learning_rate: 0.01 } }
data {
  train {
    mnist {
      image_path: "$testdata/mnist/train-images-idx3-ubyte.gz"
      label_path: "$testdata/mnist/train-labels-idx1-ubyte.gz"
    }
    transform { to_tensor {} }
    batch_size: 32
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

pd-train -q -c job.pbtxt --out run --steps 5 >train.txt
params=run/checkpoints/step-5/model.pdparams
pd-eval -q -m run --format json | jq -S 'del(.model, .seconds, .records_per_s)' >run.json
pd-eval -q -m $params -c job.pbtxt --format json | jq -S 'del(.model, .seconds, .records_per_s)' >params.json
jq -e '.loss > 0' run.json >answer.txt
diff run.json params.json
# Momentum's velocities are not the network's.
pd-convert -q --inspect $params --format json >inspected.json
for name in norm._mean norm._variance norm.weight; do
  jq -e --arg name $name '[.. | .name? // empty] | index($name)' inspected.json >answer.txt
done
jq -e '[.. | .name? // empty] | map(select(test("velocity"))) | length == 0' inspected.json >answer.txt
