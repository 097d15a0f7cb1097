#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# derivatives_test.sh BIN TESTDATA: gradients of gradients, jvp, Jacobians and
# Hessians of pd-eval against PaddlePaddle's and formulas; what their results are
# called; mistakes; a gradient as a layer of a job that trains and resumes.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
cases=$testdata/gradients/derivatives
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0

fail() {
  echo "derivatives_test: $1" >&2
  cat out.log err.log >&2
  failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: the exit status, and a line of either output.
expect() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.log 2>err.log </dev/null || got=$?
  if [ $got -ne "$status" ] || ! cat out.log err.log | grep -E -- "$pattern" >/dev/null; then
    fail "'$*' exits $got; expected $status and '$pattern'"
  fi
}

# Every case of testdata, to the last digits of float64.
tried=0
while read -r model expected options; do
  # shellcheck disable=SC2086
  expect 0 . pd-eval -m "$cases/$model.pdmodel" --feed "$cases/$model.feed.npz" $options \
    --expect "$cases/$expected" --rtol 1e-11 --atol 1e-12
  tried=$((tried + 1))
done <"$cases/cases.txt"
[ $tried -gt 30 ] || fail "only $tried cases in cases.txt"

# `expect` calls it.
# shellcheck disable=SC2317
run() {
  local model=$1
  shift
  pd-eval -m "$cases/$model.pdmodel" --feed "$cases/$model.feed.npz" "$@"
}

# Results are called as their variables and, unless a result is already, NAME@GRAD.
expect 0 '^x@GRAD float64\[3\]$' run cube --grad tmp_1 --wrt x
expect 0 '^grad/grad/x@GRAD float64\[3\]$' run cube --grad tmp_1 --grad x@GRAD --wrt x
cp "$cases/cube.feed.npz" feed.npz
# A program that has x@GRAD already: the new one is grad/grad/x@GRAD there.
expect 0 '^x@GRAD float64\[3\] = grad/grad/x@GRAD$' \
  pd-eval -m "$cases/with_gradients.pdmodel" --feed feed.npz --grad tmp_1 --wrt x
expect 0 '"x@GRAD":.*"variable": ?"grad/grad/x@GRAD"' \
  pd-eval -m "$cases/with_gradients.pdmodel" --feed feed.npz --grad tmp_1 --wrt x --format json
expect 0 "'x@GRAD' is the program's variable 'grad/grad/x@GRAD'" \
  pd-eval -m "$cases/with_gradients.pdmodel" --feed feed.npz --grad tmp_1 --wrt x --out named.npz
expect 0 'x@GRAD' pd-convert --inspect named.npz
expect 0 'grad/grad/x@GRAD' pd-convert --inspect named.npz
# Its own x@GRAD is a variable like any other until a result has the name.
expect 0 . pd-eval -m "$cases/with_gradients.pdmodel" --feed feed.npz --grad x@GRAD --wrt x \
  --out second.npz
expect 0 . pd-eval -m "$cases/cube.pdmodel" --feed feed.npz --grad tmp_1 --grad x@GRAD --wrt x \
  --out both.npz
expect 0 . pd-eval -m "$cases/with_gradients.pdmodel" --feed feed.npz --grad tmp_1 --grad x@GRAD \
  --wrt x --out chain.npz
expect 0 . pd-eval -m "$cases/cube.pdmodel" --feed feed.npz --fetch tmp_1 --out value.npz
expect 0 '^tmp_1@JVP float64\[3\]$' run cube --jvp tmp_1 --wrt x
expect 0 '^tmp_1@JACOBIAN float64\[3, 3\]$' run cube --jacobian tmp_1 --wrt x
expect 0 '^sum_0.tmp_0@HESSIAN float64\[6, 6\]$' run scalar --hessian sum_0.tmp_0 --wrt x,z

# Mistakes.
expect 2 "'yy' is not a variable of '.*cube.pdmodel'" run cube --grad yy --wrt x
expect 2 "--wrt: 'xs' is not a variable .*; the nearest is 'x'" run cube --jvp tmp_1 --wrt xs
expect 2 "'ct' for 'tmp_1' is no array of the feed" run cube --grad tmp_1=ct --wrt x
expect 2 "'c' is \[2, 2\] and 'x' is \[2, 3\]" run product --jvp tmp_0 --wrt x=c,w
expect 2 "'sum_0.tmp_0' does not depend on 'z'" run with_integers --grad sum_0.tmp_0 --wrt z
expect 2 "--wrt: 'n' is int64; expected a variable of floating-point numbers" \
  run with_integers --jacobian sum_0.tmp_0 --wrt n
expect 2 'a Hessian is of an output of one element' run cube --hessian tmp_1 --wrt x
expect 2 'a Hessian is of an output of one element for each record' \
  run records --hessian tanh_0.tmp_0 --wrt x --batched
expect 2 'expected one number of records' run product --jacobian tmp_0 --wrt x,w --batched
expect 2 'it is of one' run product --hessian tmp_0,x --wrt x
expect 2 "names 'x' twice" run cube --grad tmp_1 --wrt x,x
expect 2 'names no variable' run cube --grad , --wrt x
expect 2 'for 3 of --grad; expected one, or one for each' \
  run cube --grad tmp_1 --grad x@GRAD --grad x@GRAD --wrt x --wrt x
expect 2 . run cube --grad tmp_1 --jvp tmp_1 --wrt x
expect 2 'batched is for' run cube --grad tmp_1 --wrt x --batched
expect 2 '--wrt is for' run cube --wrt x
expect 2 'several are for --grad' run cube --jvp tmp_1 --wrt x --wrt x
expect 2 . run cube --jacobian tmp_1
expect 2 . pd-eval -m "$cases/cube.pdmodel" --jacobian tmp_1 --wrt x
# A matrix of 8 TB.
expect 2 'a matrix of shape \[1000000, 1000000\]' \
  pd-eval -m "$cases/large.pdmodel" --feed "$cases/large.feed.npz" --jacobian tanh_0.tmp_0 --wrt x

# The penalty of a Wasserstein GAN on a network's slope: two equal trainings end
# in equal bytes, one of them stopped and resumed, and evaluation has the penalty.
cat >job.pbtxt <<JOB
model {
  input { name: "x" shape: [-1, 10] }
  layer { name: "fc1" linear { out_features: 16 } }
  layer { tanh {} }
  layer { name: "y_hat" linear { out_features: 1 } }
  layer { name: "slope" grad { outputs: "y_hat" inputs: "x" } }
  layer { square {} }
  layer { sum { axis: 1 } }
  layer { sqrt {} }
  layer { scale { bias: -1 } }
  layer { name: "penalty" square {} }
  output: "y_hat"
}
loss { input: "y_hat" label: "y" mse_loss {} weight: 0.01 }
loss { input: "penalty" value {} }
optimizer { adam { learning_rate: 0.01 } }
data {
  train {
    csv {
      path: "$testdata/friedman/train.csv"
      field { name: "x" column: "x1:x10" mean: 0.5 std: 0.2887 }
      field { name: "y" column: "y" }
    }
    batch_size: 32
  }
  eval {
    csv {
      path: "$testdata/friedman/eval.csv"
      field { name: "x" column: "x1:x10" mean: 0.5 std: 0.2887 }
      field { name: "y" column: "y" }
    }
    batch_size: 100
  }
}
train { epochs: 1000 checkpoint { every_steps: 10 } log { every_steps: 1 } }
JOB
expect 0 . pd-train -q -c job.pbtxt --out whole --steps 60
expect 0 . pd-train -q -c job.pbtxt --out parts --steps 30
expect 0 . pd-train -q -c job.pbtxt --out parts --steps 60 --resume
cmp whole/checkpoints/step-60/*.pdparams parts/checkpoints/step-60/*.pdparams || fail 'a resumed run differs'
expect 0 '^loss' pd-eval -m whole -q
# Without its weight on the answers the penalty alone is learned: slopes of length 1.
expect 0 . pd-train -q -c job.pbtxt --out slopes --steps 600 -o loss[0].weight=0
expect 0 . pd-eval -m slopes -q --require 'loss<0.02'
# bad PATTERN PATH=VALUE...: the job with these changes is refused.
bad() {
  local pattern=$1 change options=()
  shift
  for change in "$@"; do options+=(-o "model.layer[3].grad.$change"); done
  expect 2 "$pattern" pd-train -c job.pbtxt --out bad --dry-run "${options[@]}"
}
bad "'nothing'" outputs=nothing
bad 'would be zero' outputs=fc1 inputs=y_hat
bad "'outputs' 1; expected as many" 'grad_outputs=["fc1", "fc1"]'
bad 'which .* gives' grad_outputs=fc1

exit $((failures > 0))
