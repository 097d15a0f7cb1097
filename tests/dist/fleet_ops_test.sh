#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fleet_ops_test.sh BIN: every collective operator in 2 and 4 processes gives
# what PaddlePaddle gives in as many.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
passed=0
for archive in testdata/fleet/ops/*.zip; do
  op=$(basename "$archive" .zip)
  python3 -m zipfile -e "$archive" "$top/$op"
  for folder in "$top/$op"/*; do
    world=$(jq .world "$folder/case.json")
    mapfile -t rings < <(jq -r --argjson world "$world" '[.rings[] | to_entries[]
      | select(.value | length < $world)
      | "\(.key)=\(.value | map(tostring) | join(","))"] | unique | .[]' \
      "$folder/case.json")
    options=()
    for ring in ${rings[@]+"${rings[@]}"}; do options+=(--ring "$ring"); done
    read -r rtol atol < <(jq -r '"\(.rtol) \(.atol)"' "$folder/case.json")
    if ! pd-eval -q --processes "$world" --threads 1 \
      -m "$folder/rank%r/program.pdmodel" --feed "$folder/rank%r/feed.npz" \
      --expect "$folder/rank%r/expect.npz" --rtol "$rtol" --atol "$atol" \
      ${options[@]+"${options[@]}"} >"$top/out" 2>&1; then
      echo "fleet_ops_test: $op, $(basename "$folder"):" >&2
      cat "$top/out" >&2
      exit 1
    fi
    passed=$((passed + 1))
  done
done
[ "$passed" -gt 100 ] || {
  echo "fleet_ops_test: $passed cases; expected more than 100" >&2
  exit 1
}
echo "$passed cases"
