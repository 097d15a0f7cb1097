#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# json_test.sh BIN TESTDATA: with --format json a tool prints one JSON object on
# standard output, or nothing when it fails; jq reads it.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
ln -s "$testdata" testdata
failures=0
fail() {
  echo "json_test: $1" >&2
  failures=$((failures + 1))
}

# prints STATUS FILTER COMMAND...: it exits so, prints one object, and jq's
# FILTER is true of that.
prints() {
  local status=$1 filter=$2 got=0
  shift 2
  "$@" --format json >out.json 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got: $(tail -n 3 err.log)"
  jq -es "length == 1 and (.[0] | type == \"object\" and ($filter))" out.json >/dev/null 2>jq.log ||
    fail "'$*' prints '$(head -c 300 out.json)'; expected one object with $filter $(cat jq.log)"
}
# silent STATUS COMMAND...: an error prints nothing on standard output.
silent() {
  local status=$1 got=0
  shift
  "$@" --format json >out.json 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status"
  [ ! -s out.json ] || fail "'$*' fails and prints '$(head -c 300 out.json)'"
  grep 'error: ' err.log >/dev/null || fail "'$*' fails without a word"
}

job=testdata/jobs/lenet_mnist.pbtxt
model=testdata/formats/models/inference
for tool in pd-check-naninf pd-convert pd-eval pd-export pd-profile pd-quant pd-train; do
  prints 0 '.onednn != null' "$tool" --version
  silent 2 "$tool" --no-such-option
done
prints 0 '.steps == 3 and (.eval.loss | type == "number")' pd-train -c $job --out run --steps 3
prints 0 '.median_ms > 0 or .step_ms > 0 or length > 3' pd-train -c $job --bench 0.05
prints 0 '.["tabular-regression"] != null' pd-train --new list
prints 0 '.files | length == 2' pd-train --new tabular-regression own
prints 0 'length > 0' pd-train -c $job --summary
prints 0 'length > 0' pd-train -c $job --dry-run
prints 0 '.cpu.works and (.cpu.losses | length == 3) and .["2 processes"].works' pd-train --run-check
silent 2 pd-train -c $job --run-check
silent 2 pd-train -c $job --out run --steps 3
silent 2 pd-train -c own/nothing.pbtxt --out run2 -o no.such=1
prints 0 '.loss | type == "number"' pd-eval -m run
prints 0 'length > 0' pd-eval -m run --out predictions.npz
prints 0 '.loss != null and (.expect | length == 1 and .[0].ok)' pd-eval -m run --expect predictions.npz
prints 1 'length > 0' pd-eval -m run --require 'acc_top1>=1.5'
prints 0 'length > 3' pd-eval -m run --bench 0.05
silent 3 pd-eval -m nothing -c $job
prints 0 '.windows[0].coverage.rest_ms >= 0' pd-profile -c $job --scheduler 1,3 --roofline 0
prints 0 '.perf.batch_cost_s.median > 0' pd-profile -c $job --timer-only --steps 6
silent 2 pd-profile -c nothing
prints 0 'length > 0' pd-export -m run -o lenet
prints 0 'length > 0' pd-export -m run --to onnx -o lenet.onnx
silent 3 pd-export -m nothing -o x
prints 0 '.tensors | length > 0' pd-convert --inspect $model.pdmodel
prints 0 '.tensors != null' pd-convert run lenet.npz
prints 0 '.found == false' pd-check-naninf -c $job --steps 2
prints 1 '.found and .step >= 1 and .op != "" and (.inputs | length > 0)' pd-check-naninf -c $job --steps 9 -o optimizer.lr.linear_warmup.end_lr=1e31 -o optimizer.lr.linear_warmup.start_lr=1e30
prints 0 '.files | length == 2' pd-check-naninf run lenet.npz
silent 2 pd-check-naninf -c $job --watch nothing
silent 3 pd-check-naninf --bisect nothing
silent 3 pd-convert --inspect testdata/formats/malformed/npz_cut.npz
[ $failures -eq 0 ]
