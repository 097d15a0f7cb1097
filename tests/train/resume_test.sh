#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# resume_test.sh BIN TESTDATA: a run that is killed again and again at random
# moments and resumed must end with the same bytes, weights and log, as one that
# was never stopped; SIGTERM and SIGINT save and say so by their exit status.
set -euo pipefail

export PATH=$1:$PATH
job=$2/jobs/mlp_mnist.pbtxt
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
# A schedule and a smaller last batch make state that could be lost.
train=(pd-train -q -c "$job" --threads 2 -o train.epochs=2
  -o data.train.batch_size=1900 -o train.log.every_steps=1
  -o train.checkpoint.every_steps=3 -o train.checkpoint.keep_last=2
  -o optimizer.lr.exponential_decay.gamma=0.97)
fail() {
  echo "resume_test: $*" >&2
  exit 1
}

began=$(date +%s%N)
"${train[@]}" --out "$top/whole" >"$top/whole.txt"
whole_ms=$((($(date +%s%N) - began) / 1000000))

# Killed at random moments, including between the files of a checkpoint.
kills=0
RANDOM=${SEED:=$(date +%N | sed 's/^0*//')}
echo "seed $SEED"
for attempt in $(seq 1 40); do
  "${train[@]}" --out "$top/killed" --resume >/dev/null 2>"$top/err.txt" &
  pid=$!
  # Somewhere in the first two thirds of what a whole run takes.
  ms=$((whole_ms / 10 + RANDOM % (whole_ms / 2 + 1)))
  sleep "$((ms / 1000)).$(printf '%03d' $((ms % 1000)))"
  if kill -KILL $pid 2>/dev/null; then kills=$((kills + 1)); fi
  status=0
  wait $pid 2>/dev/null || status=$?
  [ $status -eq 0 ] && break
  [ $status -eq 137 ] || fail "exit $status: $(cat "$top/err.txt")"
done
"${train[@]}" --out "$top/killed" --resume >/dev/null
echo "killed $kills times in $attempt attempts"
[ $kills -gt 0 ] || fail "no run was killed"

same() {
  local last
  last=$(cat "$top/whole/latest")
  [ "$(cat "$top/$1/latest")" = "$last" ] || fail "$1 ends at another step"
  for file in model.pdmodel model.pdparams model.pdopt; do
    cmp "$top/whole/checkpoints/$last/$file" \
      "$top/$1/checkpoints/$last/$file" || fail "$file of $1 differs"
  done
  cmp "$top/whole/log.jsonl" "$top/$1/log.jsonl" || fail "log of $1 differs"
}
same killed

# Signals: finish the step, save, exit 128 + number; then go on.
for signal in INT TERM; do
  rm -rf "$top/signal"
  # A background job ignores SIGINT unless it is a job of its own.
  set -m
  "${train[@]}" --out "$top/signal" >/dev/null 2>"$top/err.txt" &
  pid=$!
  set +m
  until [ -s "$top/signal/log.jsonl" ]; do sleep 0.02; done
  kill -$signal $pid
  status=0
  wait $pid || status=$?
  expected=$((128 + $(kill -l $signal)))
  if [ $status -ne 0 ]; then # 0: it was done before the signal came
    [ $status -eq $expected ] || fail "SIG$signal gives exit $status"
    [ -f "$top/signal/latest" ] || fail "SIG$signal saved nothing"
  fi
  "${train[@]}" --out "$top/signal" --resume >/dev/null
  same signal
done

# The history of a quasi-Newton method goes on, too.
newton=("${train[@]}" -o optimizer= -o optimizer.lbfgs.max_iter=2
  -o optimizer.lbfgs.history_size=3
  -o optimizer.lbfgs.line_search_fn=strong_wolfe)
"${newton[@]}" --out "$top/newton" --steps 8 >/dev/null
"${newton[@]}" --out "$top/resumed" --steps 5 >/dev/null
"${newton[@]}" --out "$top/resumed" --resume --steps 8 >/dev/null
for file in model.pdparams model.pdopt; do
  cmp "$top/newton/checkpoints/step-8/$file" \
    "$top/resumed/checkpoints/step-8/$file" || fail "$file of lbfgs differs"
done

# Only the weights: the optimizer starts anew, so another one may follow.
"${train[@]}" --out "$top/weights" --steps 4 >/dev/null
pd-convert -q "$top/weights" "$top/before.npz" >/dev/null
"${train[@]}" --out "$top/weights" --resume --weights-only --steps 5 \
  -o optimizer= -o optimizer.sgd.learning_rate=1e-30 >/dev/null
pd-convert -q "$top/weights" "$top/after.npz" >/dev/null
python3 - "$top/before.npz" "$top/after.npz" <<'PYTHON' || fail "--weights-only"
import sys, zipfile
before, after = (zipfile.ZipFile(name) for name in sys.argv[1:])
weights = [n for n in after.namelist() if n.endswith((".weight.npy", ".bias.npy"))]
assert weights and all(before.read(n) == after.read(n) for n in weights)
assert any("moment" in n for n in before.namelist())
assert not any("moment" in n for n in after.namelist())
PYTHON
"${train[@]}" --out "$top/weights" --weights-only >/dev/null 2>&1 &&
  fail "--weights-only without --resume is taken"
true
