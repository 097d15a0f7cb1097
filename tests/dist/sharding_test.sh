#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sharding_test.sh BIN: training that divides states (stage 1) and gradients
# (stage 2) over processes ends in the bytes of one process that divides nothing;
# each process holds what the arithmetic says; a run goes on in other numbers of
# processes.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "sharding_test: $*" >&2
  exit 1
}
same() {
  for file in model.pdparams model.pdopt; do
    cmp "$1/checkpoints/$(cat "$1/latest")/$file" \
      "$2/checkpoints/$(cat "$2/latest")/$file" || fail "$1 and $2 differ: $3"
  done
}
# divides NAME STAGES PROCESSES ARGUMENT...
divides() {
  local name=$1 stages=$2 processes=$3
  shift 3
  pd-train -q "$@" --out "$top/$name" >/dev/null
  for stage in $stages; do
    for n in $processes; do
      pd-train -q "$@" -o distributed.sharding.stage="$stage" --processes "$n" \
        --out "$top/$name.$stage.$n" >/dev/null
      same "$top/$name" "$top/$name.$stage.$n" "$name, stage $stage in $n processes"
    done
  done
}
picture=testdata/fleet/shards/picture.pbtxt
mlp=testdata/fleet/shards/mlp.pbtxt

# Adam behind a clip by the norm of all gradients; sequences; other optimizers,
# with averages of parameters, decay, and gradients merged over steps.
divides picture "1 2" "2 3 4" -c $picture
divides text "1 2" 2 -c testdata/fleet/shards/text.pbtxt
clear=(-c "$mlp" -o 'optimizer.adam=')
divides lamb "1 2" 3 "${clear[@]}" -o 'optimizer.lamb={ learning_rate: 0.01 }'
divides lars 2 2 "${clear[@]}" -o 'optimizer.lars_momentum={ learning_rate: 0.1 }' \
  -o 'optimizer.weight_decay.l2_decay.coeff=0.01'
divides averages "1 2" 2 "${clear[@]}" -o 'optimizer.adamax={ learning_rate: 0.01 }' \
  -o 'optimizer.exponential_moving_average={ decay: 0.9 }' -o 'optimizer.look_ahead={ k: 2 }'
divides recomputed 2 2 -c $mlp -o 'optimizer.recompute={ checkpoint: "b" }'
divides merged "1 2" 2 -c $mlp -o 'optimizer.gradient_merge={ k_steps: 2 }'
divides clipped 1 3 -c $mlp -o 'optimizer.gradient_merge={ k_steps: 2 }' \
  -o 'optimizer.grad_clip.by_global_norm.clip_norm=0.5'
# Several buckets, whose parameters are updated while others travel.
wide=(-c "$mlp" -o 'model.layer[a].linear.out_features=6000' -o train.steps=3
  -o distributed.fuse_grad_size_in_MB=1 -o optimizer.weight_decay.l1_decay.coeff=0.001)
divides wide "1 2" 2 "${wide[@]}"
pd-train -q "${wide[@]}" --processes 3 --out "$top/wide.whole" >/dev/null
same "$top/wide" "$top/wide.whole" "several buckets, in 3 processes"
FLAGS_benchmark=1 pd-train "${wide[@]}" -v --processes 2 --out "$top/parts" >"$top/out" 2>&1
[ "$(grep -c "plan 'update'" "$top/out")" = 4 ] || fail "not two parts in each process: $(cat "$top/out")"

# Stopped in one number of processes, on in another.
run=$top/on
stage=(-c "$picture" -o distributed.sharding.stage=2 --out "$run")
pd-train -q "${stage[@]}" --processes 4 -o train.steps=3 >/dev/null
pd-train -q "${stage[@]}" --processes 2 -o train.steps=5 --resume >/dev/null
pd-train -q "${stage[@]}" --processes 3 -o train.steps=7 --resume >/dev/null
pd-train -q "${stage[@]}" --resume >/dev/null
same "$top/picture" "$run" "resumed"

# Adam has two moments of each parameter and two powers; a process has those of
# the parameters that it got, the largest first, when it had the least.
for stage in 1 2; do
  for n in 2 4; do
    divides "bytes$stage$n" "$stage" "$n" -c "$mlp"
    python3 - "$top/bytes$stage$n.$stage.$n/summary.json" "$stage" "$n" <<'END' || fail "bytes held"
import json, sys
path, stage, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path, encoding="utf-8") as f:
    held = json.load(f)["held"]
cells = 8 * 8  # of the pooled picture
sizes = sorted([cells * 64] + [64 * 64] * 3 + [64] * 4, reverse=True)
shares = [[] for _ in range(n)]
for size in sizes:
    min(shares, key=lambda s: sum(4 * (3 * x + 2) for x in s)).append(size)
states = [sum(4 * (2 * x + 2) for x in s) for s in shares]
assert [h["states"] for h in held] == states, (held, states)
assert max(states) <= sum(states) / n + 8 * sizes[0] + 8
rest = 64  # bytes: the loss, in a line of the cache, beside the gradients
whole = 4 * sum(sizes)
gradients = [4 * sum(s) for s in shares] if stage == 2 else [whole] * n
for h, want in zip(held, gradients):
    # Each gradient begins at a line of the cache.
    assert want <= h["gradients"] <= want + 64 * len(sizes) + rest, (held, gradients)
END
  done
done

# The same is known before.
pd-train -q -c $mlp -o distributed.sharding.stage=1 --dry-run --format json 2>/dev/null >"$top/dry"
python3 - "$top/dry" <<'END' || fail "dry run: $(cat "$top/dry")"
import json, sys
with open(sys.argv[1], encoding="utf-8") as f:
    sent = json.load(f)["distributed"]["sent"]
weight, bias = 4 * (2 * 64 * 64 + 2), 4 * (2 * 64 + 2)
assert [s["states"] for s in sent] == [2 * (weight + bias), weight + bias], sent
END

# refuses PATTERN COMMAND...
refuses() {
  local pattern=$1 status=0
  shift
  "$@" >"$top/out" 2>"$top/err" || status=$?
  [ $status = 2 ] || fail "exit $status, not 2: $* $(cat "$top/err")"
  grep -q -- "$pattern" "$top/err" || fail "no '$pattern': $(cat "$top/err")"
}
refuses "distributed.sharding.stage" pd-train -q -c $mlp -o distributed.sharding.stage=4 --out "$top/bad"
refuses "stage 2 gives to one process; stage 1 has it in" pd-train -q -c $mlp --processes 2 \
  -o distributed.sharding.stage=2 -o 'optimizer.gradient_merge={ k_steps: 2 }' \
  -o 'optimizer.grad_clip.by_global_norm.clip_norm=0.5' --out "$top/bad"
echo "sharding_test: passed"
