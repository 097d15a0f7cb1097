#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fleet_training_test.sh BIN: trainings that PaddlePaddle's fleet wrote, in as
# many processes: losses and the state after the last step are PaddlePaddle's.
# One of them through MPI too.
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
  echo "fleet_training_test: $*" >&2
  exit 1
}

# train CASE RANKS COMMAND...: runs the programs in $top/CASE.
train() {
  local case=$1 loss folder=$top/$1
  shift
  loss=$(jq -r '[.ranks[].loss | select(. != null)] | unique | join(",")' "$folder/case.json")
  "$@" pd-train -q --threads 1 "${processes[@]}" --program "$folder/rank%r/main.pdmodel" \
    --startup "$folder/rank%r/startup.pdmodel" --init "$folder/rank%r/init" \
    --batches "$folder/rank%r/batches.npz" --loss "$loss" --save "$folder/out%r" \
    --log-json "$folder/log%r.jsonl" >"$folder/out" 2>&1 || fail "$case: $(cat "$folder/out")"
}

# check CASE: losses by pd-train's log, states by pd-convert and pd-eval.
check() {
  local folder=$top/$1 ranks
  ranks=$(jq '.ranks | length' "$folder/case.json")
  for ((r = 0; r < ranks; r++)); do
    if [ -e "$folder/rank$r/losses.npy" ] &&
      [ "$(jq -r ".ranks[$r].loss" "$folder/case.json")" != null ]; then
      jq -s '[.[].loss] | flatten' "$folder/log$r.jsonl" >"$folder/losses$r.json"
    fi
    for form in pdparams pdopt; do
      for side in "rank$r/final" "out$r"; do
        pd-convert -q "$folder/$side.$form" "$folder/$side.$form.npz" >/dev/null
      done
    done
  done
  python3 tests/dist/compare_states.py "$folder" || fail "$1"
}

for archive in testdata/fleet/train/*.zip; do
  name=$(basename "$archive" .zip)
  python3 -m zipfile -e "$archive" "$top/$name"
  processes=(--processes "$(jq .world "$top/$name/case.json")")
  train "$name"
  check "$name"
done
if [ "$has_mpi" = yes ]; then
  for name in dp4_mlp_adam_groups pp2_mlp_1f1b; do
    processes=()
    train "$name" "${mpi[@]}" \
      -n "$(jq .world "$top/$name/case.json")"
    check "$name"
  done
fi
echo "fleet_training_test: passed"
