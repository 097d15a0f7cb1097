#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sparse_gradients_test.sh BIN: tables of which shards look up other rows end
# where one process without shards does, and where a dense gradient does, in the
# same bytes in 1, 2, 3 and 4 processes, with states and gradients divided too.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "sparse_gradients_test: $*" >&2
  exit 1
}
same() {
  for file in model.pdparams model.pdopt; do
    cmp "$1/checkpoints/$(cat "$1/latest")/$file" \
      "$2/checkpoints/$(cat "$2/latest")/$file" || fail "$1 and $2 differ: $3"
  done
}
# all NAME ARGUMENT...: the bytes of one process in others, by each division.
all() {
  local name=$1 n stage
  shift
  pd-train -q "$@" --out "$top/$name" >/dev/null
  for n in 2 3 4; do
    pd-train -q "$@" --processes $n --out "$top/$name.$n" >/dev/null
    same "$top/$name" "$top/$name.$n" "$name in $n processes"
  done
  for stage in 1 2; do
    pd-train -q "$@" --processes 2 -o distributed.sharding.stage=$stage \
      --out "$top/$name.stage$stage" >/dev/null
    same "$top/$name" "$top/$name.stage$stage" "$name, stage $stage"
  done
}
# near RUN ARRAYS LIMIT
near() {
  pd-convert -q "$1/checkpoints/$(cat "$1/latest")/model.pdparams" "$1.npz" >/dev/null
  python3 tests/dist/compare_states.py "$1.npz" "$2" "$3" || fail "$1 and $2"
}
job=(-c testdata/fleet/dygraph/embedding.pbtxt)
# beside NAME RUN ARGUMENT...: what RUN has ends near another training.
beside() {
  local name=$1 run=$2
  shift 2
  pd-train -q "$@" --out "$top/$name" >/dev/null
  near "$top/$name" "$top/$name.npz" 1e-9
  near "$top/$run" "$top/$name.npz" 2e-6
}
all adam "${job[@]}" -o distributed.shards=4
beside alone adam "${job[@]}" -o distributed=
# Rows that were not looked up stay as they are; a clip by the norm of all
# gradients; rows of sequences, whose number grows, in sharded batches of which
# the last lacks shards.
all lazy "${job[@]}" -o distributed.shards=4 -o optimizer.adam.lazy_mode=true \
  -o 'optimizer.grad_clip={ by_global_norm { clip_norm: 0.1 } }'
beside lazy.alone lazy "${job[@]}" -o distributed= -o optimizer.adam.lazy_mode=true \
  -o 'optimizer.grad_clip={ by_global_norm { clip_norm: 0.1 } }'
text=(-c testdata/fleet/shards/text.pbtxt -o 'model.layer[0].embedding.sparse=true')
all text "${text[@]}"
clear=("${job[@]}" -o distributed.shards=4 -o 'optimizer.adam=')
all momentum "${clear[@]}" -o 'optimizer.momentum={ learning_rate: 0.05 }' \
  -o optimizer.weight_decay.l2_decay.coeff=0.01
all sgd "${clear[@]}" -o 'optimizer.sgd={ learning_rate: 0.1 }'
beside dense sgd "${clear[@]}" -o 'optimizer.sgd={ learning_rate: 0.1 }' \
  -o 'model.layer[table].embedding.sparse=false'
merged=("${clear[@]}" -o 'optimizer.sgd={ learning_rate: 0.1 }' -o 'optimizer.gradient_merge={ k_steps: 2 }')
all merged "${merged[@]}"

# On in another number of processes.
run=("${text[@]}" --out "$top/on")
pd-train -q "${run[@]}" --processes 4 -o train.steps=3 >/dev/null
pd-train -q "${run[@]}" --processes 2 --resume >/dev/null
same "$top/text" "$top/on" "resumed"
pd-convert --inspect "$top/text/checkpoints/$(cat "$top/text/latest")/model.pdopt" | grep -q GRAD &&
  fail "a checkpoint holds gradients"
echo "sparse_gradients_test: passed"
