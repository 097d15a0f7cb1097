#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# data_parallel_test.sh BIN: a job with two shards ends where PaddlePaddle's
# DataParallel ended in two processes, batch norm's statistics by shard too.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
for name in plain batch_norm; do
  for processes in 1 2; do
    run=$top/$name.$processes
    pd-train -q -c "testdata/fleet/dygraph/$name.pbtxt" --processes $processes --out "$run" >/dev/null
    pd-convert -q "$run/checkpoints/$(cat "$run/latest")/model.pdparams" "$run.npz" >/dev/null
    python3 tests/dist/compare_states.py "$run.npz" "testdata/fleet/dygraph/${name}_final.npz" 1e-6 || {
      echo "data_parallel_test: $name in $processes processes" >&2
      exit 1
    }
  done
done
echo "data_parallel_test: passed"
