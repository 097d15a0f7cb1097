#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# launch_test.sh BIN: --processes files the lines of every rank, shows those of
# rank 0, prints the block of paddle.distributed.launch, and starts those that
# are left again, to the bits of a run that was not disturbed.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "launch_test: $*" >&2
  exit 1
}
job=testdata/fleet/shards/picture.pbtxt
logs=$top/run/log

# Each rank has the lines of its own; the terminal's are rank 0's.
pd-train -v -c "$job" -o train.epochs=2 --processes 3 --out "$top/run" >/dev/null 2>"$top/err"
sed -n '/^----- Configuration Arguments -----$/,/^-----$/p' "$top/err" |
  sed -e 's/: .*//' -e 's/: *$//' >"$top/keys"
printf '%s\n' '----- Configuration Arguments -----' gpus heter_worker_num heter_workers \
  http_port ips log_dir nproc_per_node server_num servers training_script \
  training_script_args worker_num workers '-----' | diff - "$top/keys" ||
  fail "another block of arguments"
grep -qx "log_dir: $logs" "$top/err" || fail "the block has another log_dir"
grep -qx "nproc_per_node: 3" "$top/err" || fail "the block has another nproc_per_node"
for rank in 0 1 2; do
  [ "$(grep -c '^step 10: evaluated' "$logs/workerlog.$rank")" = 1 ] ||
    fail "workerlog.$rank: $(cat "$logs/workerlog.$rank")"
done
[ "$(grep -c 'step 10: evaluated' "$top/err")" = 1 ] || fail "other ranks' lines are shown: $(cat "$top/err")"
grep -q $'\x1e' "$top/err" "$logs"/* && fail "a mark is left"
# A run that goes on adds to its files, another one begins them anew.
pd-train -q -c "$job" -o train.epochs=3 --processes 2 --resume --out "$top/run" >/dev/null
grep -q '^step 10: evaluated' "$logs/workerlog.1" || fail "--resume has lost lines"

# A mistake is told by each rank, and leaves no folder; where one is asked for,
# it has the mistake.
status=0
pd-train -c "$job" -o train.epochz=2 --processes 2 --out "$top/none" 2>"$top/err" || status=$?
[ $status -eq 2 ] || fail "a mistake: exit $status"
grep -q "^rank 1: .*did you mean 'epochs'" "$top/err" || fail "rank 1 is silent: $(cat "$top/err")"
[ ! -e "$top/none" ] || fail "a mistake has made a folder"
pd-train -c "$job" -o train.epochz=2 --processes 2 --out "$top/none" --log-dir "$top/lines" 2>/dev/null || true
grep -q "did you mean 'epochs'" "$top/lines/workerlog.0" "$top/lines/workerlog.1" || fail "--log-dir is empty"
# A folder that cannot be made does not stop the work.
touch "$top/file"
pd-train -q -c "$job" -o train.epochs=1 --processes 2 --out "$top/odd" --log-dir "$top/file/log" \
  >/dev/null 2>"$top/err" || fail "without --log-dir: $(cat "$top/err")"

# A rank is killed twice: three processes, then two, then one.
train=(pd-train -c "$job" -o train.epochs=60 -o train.checkpoint.every_steps=5
  -o train.checkpoint.keep_last=2)
"${train[@]}" -q --out "$top/whole" >/dev/null
"${train[@]}" --processes 3 --max-restarts 2 --out "$top/again" >/dev/null 2>"$top/err" &
launcher=$!
ranks() { pgrep -P $launcher | wc -l; }
# kill_rank RANK PROCESSES: when so many run and a checkpoint was written.
kill_rank() {
  local before=$3
  for _ in $(seq 1 2400); do
    if [ "$(ranks)" = "$2" ] && [ "$(cat "$top/again/latest" 2>/dev/null)" != "$before" ]; then
      for pid in $(pgrep -P $launcher); do
        if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "PADDLE_TRAINER_ID=$1"; then
          kill -KILL "$pid"
          return
        fi
      done
    fi
    sleep 0.02
  done
  fail "no rank $1 of $2 with a checkpoint: $(cat "$top/err")"
}
kill_rank 1 3 ""
for _ in $(seq 1 2400); do
  grep -q "2 of 3 are started again (restart 1 of 2)" "$top/err" && break
  sleep 0.02
done
kill_rank 0 2 "$(cat "$top/again/latest")"
wait $launcher || fail "the run did not come to its end: $(cat "$top/err")"
grep -q "1 of 2 are started again (restart 2 of 2)" "$top/err" || fail "the second restart: $(cat "$top/err")"
grep -q "2 of 3 are started again" "$top/again/log/workerlog.2" || fail "workerlog.2 says nothing of it"
for file in model.pdparams model.pdopt; do
  cmp "$top/whole/checkpoints/$(cat "$top/whole/latest")/$file" \
    "$top/again/checkpoints/$(cat "$top/again/latest")/$file" || fail "the end differs"
done
# More failures than restarts end the run.
status=0
"${train[@]}" --processes 2 --max-restarts 0 --out "$top/short" >/dev/null 2>"$top/err" &
launcher=$!
mkdir -p "$top/short"
for _ in $(seq 1 2400); do
  [ -e "$top/short/latest" ] && break
  sleep 0.02
done
kill -KILL "$(pgrep -P $launcher | tail -n 1)"
wait $launcher || status=$?
[ $status -eq 3 ] || fail "without restarts: exit $status"
# Nothing is started again after a signal to the launcher.
"${train[@]}" --processes 2 --max-restarts 9 --out "$top/stopped" >/dev/null 2>"$top/err" &
launcher=$!
for _ in $(seq 1 2400); do
  [ -e "$top/stopped/latest" ] && break
  sleep 0.02
done
last=$(pgrep -P $launcher | tail -n 1)
kill -KILL "$last"
kill -TERM $launcher
wait $launcher && fail "a stopped run has exit 0"
grep "started again" "$top/err" && fail "a stopped run goes on"
# One process files nothing.
status=0
"${train[@]}" --log-dir "$top/nowhere" --out "$top/alone" >/dev/null 2>"$top/err" || status=$?
[ $status -eq 2 ] || fail "--log-dir without --processes: exit $status"
grep -q "option '--log-dir' needs option '--processes'" "$top/err" || fail "--log-dir: $(cat "$top/err")"
echo "launch_test: passed"
