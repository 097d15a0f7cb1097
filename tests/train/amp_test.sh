#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# amp_test.sh BIN TESTDATA: mixed precision from the commands. Losses stay near
# float32's; a run that is stopped and resumed ends in the same bytes; steps
# whose gradients overflow change nothing and are no errors; models evaluate in
# halves; wrong arguments are named.
set -euo pipefail

export PATH=$1:$PATH
job=$2/jobs/lenet_mnist.pbtxt
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cd "$top"
fail() {
  echo "amp_test: $*" >&2
  exit 1
}
train=(pd-train -q -c "$job" --threads 2 -o data.train.batch_size=32
  -o data.eval.batch_size=1000 -o train.log.every_steps=1
  -o train.checkpoint.keep_last=0)
brain=(--amp-dtype bfloat16)
# The usual first scale of the loss, 32768, overflows in the first steps.
half=(--amp O1 -o amp.init_loss_scaling=128)

"${train[@]}" --out full --steps 30 >full.txt
"${train[@]}" --out o1 --steps 30 --amp O1 "${brain[@]}" >o1.txt
"${train[@]}" --out o2 --steps 30 --amp O2 "${brain[@]}" >o2.txt
"${train[@]}" --out half --steps 30 "${half[@]}" >half.txt

# Losses of every step. bfloat16 has 8 significant bits, float16 11; what is
# random in training (the order of batches) is the same.
losses() { grep -o '"loss":[^,}]*' "$1/log.jsonl" | cut -d: -f2; }
near() {
  paste <(losses full) <(losses "$1") | awk -v most="$2" '
    NF < 2 { next }
    { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d; ++n
      if ($1 != $2) ++other }
    END { printf "%d losses, %d differ, by %g at most\n", n, other, worst
          exit !(n >= 30 && other > 10 && worst <= most) }' ||
    fail "the losses of $1 are not float32's within $2"
}
near o1 0.08
near o2 0.12
near half 0.02
grep -q 'cast' o1/checkpoints/step-30/model.pdmodel || fail "no casts in O1"

# What a checkpoint holds is float32: it resumes to the same bytes, and goes on
# without mixed precision too.
resumed() {
  local name=$1
  shift
  "${train[@]}" --out "$name" --steps 13 "$@" >/dev/null
  "${train[@]}" --out "$name" --steps 30 "$@" --resume >/dev/null
}
resumed o1-again --amp O1 "${brain[@]}"
resumed half-again "${half[@]}"
for pair in o1 half; do
  for file in model.pdparams model.pdopt; do
    cmp "$pair/checkpoints/step-30/$file" "$pair-again/checkpoints/step-30/$file" ||
      fail "$file of $pair differs after a resume"
  done
done
pd-convert --inspect o1/checkpoints/step-30/model.pdparams | grep -q bfloat16 &&
  fail "O1 saves halves"

# Gradients overflow: the scale falls until they fit, and only then something is
# learned. --check-nan-inf has nothing to say of it.
wide=(-o amp.init_loss_scaling=1e12 -o amp.decr_every_n_nan_or_inf=1
  -o amp.decr_ratio=0.01)
pd-train -c "$job" --threads 2 -o train.checkpoint.every_steps=1 -o train.checkpoint.keep_last=0 --out over \
  --steps 8 --amp O1 "${wide[@]}" --check-nan-inf >/dev/null 2>over.txt ||
  fail "an overflow is an error: $(cat over.txt)"
grep -q 'step 1: NaN or Inf in the gradients again; the loss is scaled by 1e+10' \
  over.txt || fail "the scale is not said: $(cat over.txt)"
cmp -s over/checkpoints/step-1/model.pdparams \
  over/checkpoints/step-2/model.pdparams || fail "an overflow changed a parameter"
cmp -s over/checkpoints/step-7/model.pdparams \
  over/checkpoints/step-8/model.pdparams && fail "nothing was learned"

# An evaluation in halves.
pd-eval -m o1 -c "$job" -q --out full.npz >eval.txt
pd-eval -m o1 -c "$job" -q --amp O1 "${brain[@]}" --expect full.npz --rtol 0.05 \
  --atol 0.2 >/dev/null || fail "bfloat16 evaluates to other outputs"
pd-eval -m o1 -c "$job" -q --amp O2 "${brain[@]}" --expect full.npz --rtol 0 \
  --atol 0 >/dev/null && fail "bfloat16 gives the bits of float32"

expect() {
  local status=$1 text=$2 got=0
  shift 2
  "$@" >/dev/null 2>said.txt || got=$?
  if [ "$got" -ne "$status" ] || ! grep -q -- "$text" said.txt; then
    fail "'$*' exits $got with: $(cat said.txt)"
  fi
}
expect 2 "O0, O1" "${train[@]}" --out x --amp O3
expect 2 "needs option '--amp'" "${train[@]}" --out x --amp-dtype bfloat16
expect 2 "float16, bfloat16\|float16 or bfloat16" "${train[@]}" --out x --amp O1 --amp-dtype float8
expect 2 "both name the op 'relu'" "${train[@]}" --out x --amp O1 \
  --amp-white-list relu --amp-black-list tanh,relu
expect 2 "did you mean 'softmax'" "${train[@]}" --out x --amp O1 \
  --amp-black-list softmx
expect 2 "takes no dynamic loss scaling" "${train[@]}" --out x --amp O1 \
  "${brain[@]}" -o amp.use_dynamic_loss_scaling=true
expect 2 "incr_ratio" "${train[@]}" --out x --amp O1 -o amp.incr_ratio=1
expect 2 "found in float32" pd-train -q -c "${job%/*}/lenet_quant.pbtxt" \
  --out x --amp O1 "${brain[@]}" \
  --amp-white-list fake_quantize_dequantize_abs_max
expect 2 "for a job" pd-train --program x --batches x --loss x --init x --amp O1
expect 2 "did you mean" pd-eval -m o1 -c "$job" --amp O1 --amp-white-list softmx
[ ! -e x ] || fail "a wrong argument leaves a run behind"
echo "amp_test: passed"
