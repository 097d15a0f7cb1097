#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# failures_test.sh BIN: a process that is killed, stopped or fails is named by
# the others, which end with status 3; what was saved is whole, and the run goes
# on to the bits of one that was not disturbed.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "failures_test: $*" >&2
  exit 1
}
job=testdata/fleet/shards/picture.pbtxt
train=(pd-train -q -c "$job" -o train.epochs=60 -o train.log.every_steps=1
  -o train.checkpoint.every_steps=10 -o train.checkpoint.keep_last=2)
"${train[@]}" --out "$top/whole" >/dev/null

port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# start OUT: three processes in the background; their numbers are in $pids.
start() {
  local at
  at=$(port)
  pids=()
  for rank in 0 1 2; do
    env PADDLE_TRAINERS_NUM=3 PADDLE_TRAINER_ID=$rank \
      PADDLE_TRAINER_ENDPOINTS="127.0.0.1:$at,127.0.0.1:1,127.0.0.1:2" \
      "${train[@]}" --out "$1" --resume --silence-timeout 5 \
      >/dev/null 2>"$top/err$rank" &
    pids+=($!)
  done
}
# expect RANK PATTERN: that process ends with status 3 and says so.
expect() {
  local status=0
  wait "${pids[$1]}" || status=$?
  [ $status -eq 3 ] || fail "rank $1: exit $status: $(cat "$top/err$1")"
  grep -q -- "$2" "$top/err$1" || fail "rank $1: no '$2': $(cat "$top/err$1")"
}
# Waits until the run has a checkpoint that it had not.
await_step() {
  local before=$1
  for _ in $(seq 1 1200); do
    [ "$(cat "$top/run/latest" 2>/dev/null)" != "$before" ] && return
    sleep 0.05
  done
  fail "no step was saved: $(cat "$top"/err*)"
}

for how in KILL STOP; do
  for victim in 1 0; do
    before=$(cat "$top/run/latest" 2>/dev/null || true)
    start "$top/run"
    await_step "$before"
    kill -$how "${pids[$victim]}"
    for rank in 0 1 2; do
      [ $rank = $victim ] || expect $rank "rank $victim on .* is gone"
    done
    kill -KILL "${pids[$victim]}" 2>/dev/null || true
    wait "${pids[$victim]}" 2>/dev/null || true
  done
done
start "$top/run"
for rank in 0 1 2; do
  wait "${pids[$rank]}" || fail "rank $rank: $(cat "$top/err$rank")"
done
for file in model.pdparams model.pdopt; do
  cmp "$top/whole/checkpoints/$(cat "$top/whole/latest")/$file" \
    "$top/run/checkpoints/$(cat "$top/run/latest")/$file" || fail "the end differs"
done

# --processes ends all when one ends, and its own end is theirs.
pd-train -q -c "$job" -o train.epochs=2000 --processes 2 --out "$top/launched" \
  >/dev/null 2>"$top/err" &
launcher=$!
for _ in $(seq 1 200); do
  child=$(pgrep -P $launcher | tail -n 1 || true)
  [ -n "$child" ] && break
  sleep 0.05
done
sleep 1
kill -KILL "$child"
status=0
wait $launcher || status=$?
[ $status -eq 3 ] || fail "the launcher: exit $status: $(cat "$top/err")"
grep -q "was ended by signal 9" "$top/err" || fail "the launcher: $(cat "$top/err")"
pgrep -f "$top/launched" && fail "a process is left"
# SIGTERM saves and says where the run goes on.
pd-train -q -c "$job" -o train.epochs=2000 --processes 2 --out "$top/stopped" \
  >/dev/null 2>"$top/err" &
launcher=$!
for _ in $(seq 1 1200); do
  [ -s "$top/stopped/log.jsonl" ] && break
  sleep 0.05
done
kill -TERM $launcher
status=0
wait $launcher || status=$?
[ $status -eq 143 ] || fail "SIGTERM: exit $status: $(cat "$top/err")"
[ -e "$top/stopped/latest" ] || fail "SIGTERM: nothing was saved"

# A collective operation that one process does not come to.
python3 -m zipfile -e testdata/fleet/ops/c_allreduce_sum.zip "$top/sum"
python3 -m zipfile -e testdata/fleet/ops/c_identity.zip "$top/identity"
mkdir "$top/odd"
cp -r "$top/sum/float32_w2/rank0" "$top/odd/rank0"
cp -r "$top/identity/float32_w2/rank1" "$top/odd/rank1"
status=0
timeout 60 pd-eval -q --processes 2 -m "$top/odd/rank%r/program.pdmodel" \
  --feed "$top/odd/rank%r/feed.npz" --fetch out_out --collective-timeout 2 \
  >/dev/null 2>"$top/err" || status=$?
[ $status -eq 3 ] || fail "an operation without rank 1: exit $status: $(cat "$top/err")"
grep -qE "rank 1 on .* has (come to its end|ended with an error).*c_allreduce_sum" "$top/err" ||
  fail "an operation without rank 1: $(cat "$top/err")"
echo "failures_test: passed"
