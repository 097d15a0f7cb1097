#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shards_test.sh BIN: a job with shards ends in the same bytes in 1, 2, 3 and 4
# processes, over Gloo and over MPI, and when it is stopped in 4 and goes on in
# 2; a wrong set-up is one message.
set -euo pipefail

export PATH=$1:$PATH
# Containers may forbid what Open MPI does by default.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
mpi=(mpirun --allow-run-as-root --oversubscribe --bind-to none)
has_mpi=no
"${mpi[@]}" -n 2 true >/dev/null 2>&1 && has_mpi=yes
echo "Open MPI starts processes here: $has_mpi"
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "shards_test: $*" >&2
  exit 1
}
# A convolution with batch norm and dropout, on crops and flips at random, with
# a smaller last batch; and a network with sequences of different lengths.
jobs=(testdata/fleet/shards/picture.pbtxt testdata/fleet/shards/text.pbtxt)
same() {
  for file in model.pdparams model.pdopt; do
    cmp "$1/checkpoints/$(cat "$1/latest")/$file" \
      "$2/checkpoints/$(cat "$2/latest")/$file" || fail "$1 and $2 differ: $3"
  done
}
for job in "${jobs[@]}"; do
  name=$(basename "$job" .pbtxt)
  pd-train -q -c "$job" --out "$top/$name.1" >/dev/null
  for n in 2 3 4; do
    pd-train -q -c "$job" --processes $n --out "$top/$name.$n" >/dev/null
    same "$top/$name.1" "$top/$name.$n" "$name in $n processes"
  done
  if [ "$has_mpi" = yes ]; then
    "${mpi[@]}" -n 2 \
      pd-train -q -c "$job" --out "$top/$name.mpi" >/dev/null
    same "$top/$name.1" "$top/$name.mpi" "$name through MPI"
  fi
  # Stopped in one number of processes, on in another.
  pd-train -q -c "$job" --processes 4 --out "$top/$name.on" -o train.steps=3 >/dev/null
  pd-train -q -c "$job" --processes 2 --out "$top/$name.on" -o train.steps=5 --resume >/dev/null
  pd-train -q -c "$job" --out "$top/$name.on" --resume >/dev/null
  same "$top/$name.1" "$top/$name.on" "$name, resumed"
done

# Gradients of several megabytes travel in buckets.
large=(-c "${jobs[0]}" -o "model.layer[conv].conv2d.out_channels=1000" -o train.steps=3)
pd-train -q "${large[@]}" --out "$top/large.1" >/dev/null
for n in 2 3; do
  pd-train -q "${large[@]}" --processes $n --out "$top/large.$n" >/dev/null
  same "$top/large.1" "$top/large.$n" "large gradients in $n processes"
done
pd-train -q "${large[@]}" --processes 2 --out "$top/large.one" -o distributed.fuse_grad_size_in_MB=1 >/dev/null
same "$top/large.1" "$top/large.one" "large gradients in buckets of another size"
grep -q '"communication_seconds"' "$top/large.2/summary.json" || fail "no time of communication"

# What a step sends is known before.
pd-train -q "${large[@]}" --dry-run >"$top/dry"
grep -qE '^shards +4, each with [0-9.]+ MB of gradients' "$top/dry" || fail "$(cat "$top/dry")"
grep -qE 'a step sends .* in each of 2 processes, .* in each of 4 processes' "$top/dry" || fail "$(cat "$top/dry")"

# refuses STATUS PATTERN COMMAND...
refuses() {
  local want=$1 pattern=$2 status=0
  shift 2
  "$@" >"$top/out" 2>"$top/err" || status=$?
  [ "$status" = "$want" ] || fail "exit $status, not $want: $* $(cat "$top/err")"
  grep -q -- "$pattern" "$top/err" || fail "no '$pattern': $(cat "$top/err")"
}
job=${jobs[0]}
refuses 2 "cannot share 4 shards" pd-train -q -c "$job" --processes 5 --out "$top/many"
refuses 2 "3 shards do not divide a batch of 8 records" \
  pd-train -q -c "$job" -o distributed.shards=3 --out "$top/odd"
refuses 2 "does not say how" \
  pd-train -q -c testdata/jobs/mlp_mnist.pbtxt --processes 2 --out "$top/none"
refuses 2 "PADDLE_TRAINER_ENDPOINTS" env PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=0 \
  pd-train -q -c "$job" --out "$top/env"
gloo() {
  env PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ENDPOINTS="127.0.0.1:$1,127.0.0.1:1" \
    PADDLE_TRAINER_ID="$2" "${@:3}"
}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
refuses 3 "rank 1 of 2 did not" gloo "$port" 0 \
  pd-train -q -c "$job" --out "$top/alone" --rendezvous-timeout 1
refuses 3 "does not answer" gloo "$port" 1 \
  pd-train -q -c "$job" --out "$top/alone" --rendezvous-timeout 1
# Another job in the other process.
gloo "$port" 1 pd-train -q -c "$job" -o train.seed=9 --out "$top/other" \
  --rendezvous-timeout 20 >/dev/null 2>&1 &
refuses 2 "differ in the job" gloo "$port" 0 \
  pd-train -q -c "$job" --out "$top/other" --rendezvous-timeout 20
wait || true
echo "shards_test: passed"
