#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples_test.sh PD-MAN BIN TESTDATA: runs the examples of the man pages, in
# the order of a user's work, in one new folder where testdata/ is.
set -euo pipefail

pd_man=$1
export PATH=$2:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ln -s "$3" "$dir/testdata"
cd "$dir"

# What the examples of one tool make, those of the next use.
order=(pd-train pd-eval pd-export)
mapfile -t tools < <(
  printf '%s\n' "${order[@]}" | grep -xF -f <("$pd_man" --list) || true
  "$pd_man" --list | grep -vxF -f <(printf '%s\n' "${order[@]}") || true
)
failures=0
for tool in "${tools[@]}"; do
  while IFS=$'\t' read -r status command; do
    got=0
    bash -c "set -o pipefail; $command" >out.log 2>err.log </dev/null || got=$?
    if [ "$got" -ne "$status" ]; then
      echo "$tool: '$command' exits $got; its manual says $status" >&2
      cat err.log >&2
      failures=$((failures + 1))
    fi
  done < <("$pd_man" --examples "$tool")
done
[ $failures -eq 0 ]
