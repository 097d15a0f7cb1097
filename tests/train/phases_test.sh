#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# phases_test.sh BIN TESTDATA: pd-train with phases and copies. A run that is
# stopped inside of an epoch and resumed ends with the bytes of one that was
# not; what cannot be used with phases is refused by name.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "phases_test: $*" >&2
  exit 1
}

cat >"$top/job.pbtxt" <<JOB
model {
  input { name: "x" shape: [-1, 3] }
  input { name: "z" shape: [-1, 2] }
  layer { name: "g.fc1" input: "z" linear { out_features: 6 } }
  layer { name: "g.norm" batch_norm1d {} }
  layer { dropout { p: 0.2 } }
  layer { name: "g.fc2" linear { out_features: 3 } }
  block {
    name: "critic"
    layer { linear { out_features: 5 weight_attr { name: "d.w1" }
                     bias_attr { name: "d.b1" } } }
    layer { relu {} }
    layer { linear { out_features: 1 weight_attr { name: "d.w2" }
                     bias_attr { name: "d.b2" } } }
  }
  layer { name: "real" input: "x" block { use: "critic" } }
  layer { name: "fake" input: "g.fc2" block { use: "critic" } }
  layer { name: "mean.fc1" input: "z" linear { out_features: 6 } }
}
loss { name: "real" input: "real" label: "one" bce_with_logits_loss {} }
loss { name: "fake" input: "fake" label: "zero" bce_with_logits_loss {} }
loss { name: "fooled" input: "fake" label: "one" bce_with_logits_loss {} }
phase {
  name: "d" loss: ["real", "fake"] parameters: "d.*" steps: 2 new_batch: true
  optimizer { adam { learning_rate: 0.01 } lr { exponential_decay { gamma: 0.97 } } }
}
phase {
  name: "g" loss: "fooled" parameters: "g.*"
  optimizer { momentum { learning_rate: 0.02 } }
}
copy { from: "g.fc1.*" to: "mean.fc1.*" tau: 0.1 every: 2 }
data {
  train {
    npz { path: "$2/phases/shared.npz" field { name: "x" } field { name: "z" }
          field { name: "one" } field { name: "zero" } }
    batch_size: 8 shuffle: true
  }
  eval {
    npz { path: "$2/phases/shared.npz" field { name: "x" } field { name: "z" }
          field { name: "one" } field { name: "zero" } }
    batch_size: 40
  }
}
train { epochs: 6 log { every_steps: 1 } }
JOB
train=(pd-train -q -c "$top/job.pbtxt" --threads 2)

# Five batches an epoch: two steps of two batches each; one is left out.
"${train[@]}" --out "$top/whole" >"$top/whole.txt"
[ "$(cat "$top/whole/latest")" = step-12 ] ||
  grep -q 'step-12$' "$top/whole/latest" || fail "$(cat "$top/whole/latest")"
grep -q '^{"step":12,"epoch":6,"loss":[0-9.]*,"phases":{"d":{"loss":[0-9.]*,"lr":0.00[0-9]*},"g":{"loss":[0-9.]*,"lr":0.02}}}$' \
  "$top/whole/log.jsonl" || fail "log: $(tail -4 "$top/whole/log.jsonl")"

# Steps 3 and 5 are the first of their epochs.
for steps in 3 5 12; do
  "${train[@]}" --out "$top/parts" --resume --steps $steps >/dev/null
done
for file in model.pdmodel model.pdparams model.pdopt; do
  cmp "$top/whole/checkpoints/step-12/$file" \
    "$top/parts/checkpoints/step-12/$file" || fail "$file differs"
done
grep '"phases"' "$top/whole/log.jsonl" >"$top/whole.log"
grep '"phases"' "$top/parts/log.jsonl" >"$top/parts.log"
cmp "$top/whole.log" "$top/parts.log" || fail "the logs differ"

# Another learning rate is gone on with, other parameters are not.
"${train[@]}" --out "$top/parts" --resume --steps 13 \
  -o train.epochs=7 -o 'phase[g].optimizer.momentum.learning_rate=0.01' \
  >/dev/null
grep -q '"changed":{"phase\[g\].optimizer.momentum.learning_rate"' \
  "$top/parts/log.jsonl" || fail "the change is not in the log"
if "${train[@]}" --out "$top/parts" --resume --steps 14 -o train.epochs=7 \
  -o 'phase[g].steps=3' >/dev/null 2>"$top/err.txt"; then
  fail "other phases were resumed"
fi
grep -q 'phase\[g\].steps' "$top/err.txt" || fail "$(cat "$top/err.txt")"

# Evaluation and the dry run take the job as any other.
pd-eval -q -m "$top/whole" >"$top/eval.txt" 2>&1 ||
  fail "pd-eval: $(cat "$top/eval.txt")"
"${train[@]}" --dry-run >"$top/dry.txt" || fail "--dry-run"
# The parts of a step add up to it.
grep -qE "^ +phase 'd', 2 runs a step: [0-9]+ operators, activations .*FLOPs$" "$top/dry.txt" ||
  fail "--dry-run: $(cat "$top/dry.txt")"
"${train[@]}" --dry-run --format json >"$top/dry.json" || fail "--dry-run"
jq -e '[.phases[] | .name, .runs] == ["d", 2, "g", 1]
  and ([.phases[].activation_bytes] | add) == .train.activation_bytes
  and ([.phases[] | .flops * .runs] | add) == .step_flops
  and (.phases | all(.operators > 10))' "$top/dry.json" >/dev/null ||
  fail "--dry-run: $(cat "$top/dry.json")"

# A step of the benchmark is two batches of 8 for one phase; the other goes on
# with the second.
"${train[@]}" --bench 0.1 >"$top/bench.txt" || fail "--bench"
jq -e '.batch == 8 and (.samples_per_s * .step_ms_median / 1000 | round) == 16' \
  "$top/bench.txt" >/dev/null || fail "--bench: $(cat "$top/bench.txt")"

# In float16 each phase has a factor of its own, which a checkpoint keeps.
amp=("${train[@]}" --amp O1 -o amp.incr_every_n_steps=5)
"${amp[@]}" --out "$top/amp" 2>"$top/amp.txt" >/dev/null
for steps in 7 12; do
  "${amp[@]}" --out "$top/amp-parts" --resume --steps $steps >/dev/null 2>&1
done
for file in model.pdparams model.pdopt; do
  cmp "$top/amp/checkpoints/step-12/$file" \
    "$top/amp-parts/checkpoints/step-12/$file" || fail "amp: $file differs"
done

# The look at every value changes none.
"${train[@]}" --out "$top/looked" --check-nan-inf >/dev/null ||
  fail "--check-nan-inf"
for file in model.pdparams model.pdopt; do
  cmp "$top/whole/checkpoints/step-12/$file" \
    "$top/looked/checkpoints/step-12/$file" || fail "--check-nan-inf: $file"
done

refused() { # WORDS ARGUMENTS...
  local words=$1 status=0
  shift
  "$@" >"$top/out.txt" 2>"$top/err.txt" || status=$?
  [ $status -eq 2 ] || fail "$* exits with $status: $(cat "$top/err.txt")"
  grep -q -- "$words" "$top/err.txt" || fail "$*: $(cat "$top/err.txt")"
}
pd-profile -q -c "$top/job.pbtxt" --timer-only >/dev/null || fail "pd-profile takes no phases"
echo "phases_test: fine"
