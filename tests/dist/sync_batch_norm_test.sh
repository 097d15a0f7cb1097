#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sync_batch_norm_test.sh BIN: shards whose batch norms take the statistics of
# the whole batch end where PaddlePaddle ended in one process with that batch,
# and where one shard ends; in 1, 2, 3 and 4 processes in the same bytes.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "sync_batch_norm_test: $*" >&2
  exit 1
}
# arrays RUN: its parameters and running statistics, as RUN.npz.
arrays() {
  pd-convert -q "$1/checkpoints/$(cat "$1/latest")/model.pdparams" "$1.npz" >/dev/null
}
same() {
  for file in model.pdparams model.pdopt; do
    cmp "$1/checkpoints/$(cat "$1/latest")/$file" \
      "$2/checkpoints/$(cat "$2/latest")/$file" || fail "$1 and $2 differ: $3"
  done
}
near() {
  arrays "$1"
  arrays "$2"
  python3 tests/dist/compare_states.py "$1.npz" "$2.npz" "$3" || fail "$1 and $2: $4"
}

# PaddlePaddle's numbers, of a whole batch of 16 records, by two and four shards.
job=testdata/fleet/dygraph/sync_batch_norm.pbtxt
for shards in 2 4; do
  for n in 1 2 3 4; do
    [ $n -le $shards ] || continue
    run=$top/golden.$shards.$n
    pd-train -q -c $job -o distributed.shards=$shards --processes $n --out "$run" >/dev/null
    same "$top/golden.$shards.1" "$run" "$shards shards in $n processes"
  done
  arrays "$top/golden.$shards.1"
  python3 tests/dist/compare_states.py "$top/golden.$shards.1.npz" \
    testdata/fleet/dygraph/sync_batch_norm_final.npz 1e-6 || fail "PaddlePaddle's numbers"
done

# Pictures; the last batch has five records: 2, 1, 1 and 1, or one in each of
# some shards and none in the others. A batch norm by shard stands beside those
# of all, and recomputation runs them twice.
picture=(-c testdata/fleet/shards/synced.pbtxt)
pd-train -q "${picture[@]}" -o distributed.shards=1 --out "$top/whole" >/dev/null
for n in 1 2 3 4; do
  pd-train -q "${picture[@]}" --processes $n --out "$top/picture.$n" >/dev/null
  same "$top/picture.1" "$top/picture.$n" "pictures in $n processes"
done
near "$top/picture.1" "$top/whole" 2e-5 "four shards and one"
few=(-o 'data.train.subset.range="0:18"')
pd-train -q "${picture[@]}" "${few[@]}" -o distributed.shards=1 --out "$top/few.whole" >/dev/null
for n in 1 4; do
  pd-train -q "${picture[@]}" "${few[@]}" --processes $n --out "$top/few.$n" >/dev/null
  same "$top/few.1" "$top/few.$n" "empty shards in $n processes"
done
near "$top/few.1" "$top/few.whole" 2e-5 "with empty shards"
# shellcheck disable=SC2034 # read by name
wide=(-o 'model.layer[conv].conv2d.out_channels=1500' -o train.steps=1)
# shellcheck disable=SC2034
mixed=(-o 'optimizer.recompute={ checkpoint: "conv" checkpoint: "linear" }'
  -o 'model.layer[second].batch_norm1d={}')
for what in wide mixed; do
  declare -n more=$what
  for n in 1 3; do
    pd-train -q "${picture[@]}" "${more[@]}" --processes $n --out "$top/$what.$n" >/dev/null
    same "$top/$what.1" "$top/$what.$n" "$what in $n processes"
  done
done
pd-train -q "${picture[@]}" "${wide[@]}" -o distributed.shards=1 --out "$top/wide.whole" >/dev/null
near "$top/wide.1" "$top/wide.whole" 2e-6 "many channels"

# Sharded states, and on in another number of processes.
stage=("${picture[@]}" -o distributed.sharding.stage=2 --out "$top/on")
pd-train -q "${stage[@]}" --processes 3 -o train.steps=4 >/dev/null
pd-train -q "${stage[@]}" --processes 2 --resume >/dev/null
same "$top/picture.1" "$top/on" "resumed"
echo "sync_batch_norm_test: passed"
