#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# monitors_test.sh BIN TESTDATA: a run that stops early, on a plateau of its
# learning rate, ends in the same bytes when it was stopped and resumed at every
# evaluation; requirements decide the exit status.
set -euo pipefail

export PATH=$1:$PATH
job=$2/jobs/regression_csv.pbtxt
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cd "$top"
fail() {
  echo "monitors_test: $*" >&2
  exit 1
}

# A threshold of half the best value makes nearly every evaluation a plateau,
# whatever the last bits of the losses are. Evaluations within epochs.
sed -e 's/lr { by: epoch.*/lr { reduce_on_plateau { monitor: "mae" patience: 1 threshold: 0.5 factor: 0.3 cooldown: 1 } }/' \
  -e 's/learning_rate: 0.01/learning_rate: 0.1/' \
  -e 's/^train {/metric { label: "y" mae {} }\nmetric { label: "y" r2 {} }\ntrain {\n  early_stopping { monitor: "r2" patience: 4 min_delta: 0.001 }/' \
  -e "s|\.\./friedman|$2/friedman|" "$job" >job.pbtxt
train=(pd-train -c job.pbtxt --threads 1 -o train.evaluation.every_steps=20
  -o train.epochs=40 -o train.checkpoint.every_epochs=1
  -o train.checkpoint.keep_last=2)
"${train[@]}" --out whole >/dev/null 2>whole.txt || fail "$(cat whole.txt)"
grep -q "stopped early after step [0-9]*: 'r2' has not become better than" \
  whole.txt || fail "no early stop: $(cat whole.txt)"
grep -q '"stopped_early"' whole/summary.json || fail "the summary lacks it"
last=$(cat whole/latest)
end=${last#step-}
[ "$end" -gt 100 ] || fail "it stops at once, at $last"
rates=$(grep -o '"lr":[^,}]*' whole/log.jsonl | sort -u | wc -l)
[ "$rates" -ge 3 ] || fail "the rate has $rates values only"
best=$(grep -m1 '"best_step"' "whole/checkpoints/$last/state.json" | tr -dc 0-9)
[ -d "whole/checkpoints/step-$best" ] || fail "the best, $best, is gone"

# Stopped at many steps, among them those of evaluations and their neighbours.
for steps in 19 20 21 39 40 61 80 $((end - 20)) $((end - 1)); do
  "${train[@]}" --out parts --resume --steps "$steps" >/dev/null 2>&1
done
"${train[@]}" --out parts --resume >/dev/null 2>&1
[ "$(cat parts/latest)" = "$last" ] || fail "resumed, it ends at another step"
for file in model.pdparams model.pdopt; do
  cmp "whole/checkpoints/$last/$file" "parts/checkpoints/$last/$file" ||
    fail "$file differs"
done
# A finished run says so and stays as it is.
"${train[@]}" --out whole --resume >/dev/null 2>again.txt
grep -q "reached its end already" again.txt || fail "$(cat again.txt)"

# Requirements.
expect() {
  local want=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt </dev/null || got=$?
  [ $got -eq "$want" ] || fail "$*: exit $got, not $want: $(cat err.txt)"
  grep -qE -- "$pattern" out.txt err.txt ||
    fail "$*: no $pattern in $(cat out.txt err.txt)"
}
expect 0 "met    r2>=0.1" pd-eval -q -m whole --require 'r2>=0.1' \
  --require 'loss<1000'
expect 1 "1 of 2 requirements missed: mae<0 \(mae is" \
  pd-eval -q -m whole --require 'r2>=0.1' --require 'mae<0'
expect 1 '"requirements":\[\{"require":"mae<0","name":"mae","value":[0-9.]*,"met":false\}\]' \
  pd-eval -q -m whole --require 'mae<0' --format json
expect 2 "evaluation gives no 'acc'; there are loss, mae, r2" \
  pd-eval -q -m whole --require 'acc>0'
expect 2 "not of the form" pd-eval -q -m whole --require 'mae=0'
expect 2 "there are loss, mae, r2" pd-train -q -c job.pbtxt --out new \
  --require 'acc>0'
[ ! -e new ] || fail "it began before it knew"
expect 0 "" pd-train -q -c job.pbtxt --out new --steps 3 --require 'mae>0'
expect 1 "mae<0" pd-train -q -c job.pbtxt --out new --steps 4 --resume \
  --require 'mae<0'
expect 3 "pd-eval -m new" pd-train -q -c job.pbtxt --out new --steps 4 \
  --resume --require 'mae>0'
expect 2 "data.eval" pd-train -q -c job.pbtxt --out other -o data.eval= \
  -o train.early_stopping= -o optimizer.lr= --require 'loss<1'
echo "it ends at $last with $rates rates"
