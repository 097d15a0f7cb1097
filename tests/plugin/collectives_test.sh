#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# collectives_test.sh BUILD: collective operators and messages between 2 and 4
# processes, each with a device, give what PaddlePaddle gives, and each function
# of the driver's table of collectives is called.
set -euo pipefail

build=$1
export PATH=$build/bin:$PATH
plugin=$build/tests/plugin/plugins/libfiles_device.so
top=$(mktemp -d)
touch "$top/begin"
trap 'rm -rf "$top"' EXIT
fail() {
  echo "collectives_test: $1" >&2
  exit 1
}
export FILES_DEVICE_LOG=$top/calls
passed=0
# run NAME FOLDER: one of PaddlePaddle's cases.
run() {
  local world rtol atol rings option options=()
  world=$(jq .world "$2/case.json")
  mapfile -t rings < <(jq -r --argjson world "$world" '[.rings[] | to_entries[]
    | select(.value | length < $world)
    | "\(.key)=\(.value | map(tostring) | join(","))"] | unique | .[]' \
    "$2/case.json")
  for option in ${rings[@]+"${rings[@]}"}; do options+=(--ring "$option"); done
  read -r rtol atol < <(jq -r '"\(.rtol) \(.atol)"' "$2/case.json")
  pd-eval -q --processes "$world" --threads 1 --plugin "$plugin" --device files \
    -m "$2/rank%r/program.pdmodel" --feed "$2/rank%r/feed.npz" \
    --expect "$2/rank%r/expect.npz" --rtol "$rtol" --atol "$atol" \
    ${options[@]+"${options[@]}"} >"$top/out" 2>&1 || fail "$1, $(basename "$2"): $(cat "$top/out")"
  # The driver knows no sums of 16 bits.
  [[ $2 = *16* ]] || ! grep -q 'the host does it' "$top/out" || fail "$1, $(basename "$2"): $(cat "$top/out")"
  passed=$((passed + 1))
}
for op in "${@:2}"; do
  archive=testdata/fleet/ops/$op.zip
  python3 -m zipfile -e "$archive" "$top/$op"
  for folder in "$top/$op"/*; do run "$op" "$folder"; done
done
# Without a function of its own, all_to_all is a group of messages.
: >"$top/calls_in_groups"
for folder in "$top"/alltoall/*; do
  FILES_DEVICE_GROUPS=1 FILES_DEVICE_LOG=$top/calls_in_groups run "alltoall in groups" "$folder"
done
for name in xccl_all_reduce xccl_reduce xccl_broadcast xccl_all_gather xccl_reduce_scatter xccl_all_to_all xccl_send xccl_recv xccl_group_start xccl_group_end; do
  grep -qx "$name" "$top/calls" || fail "$name is not called"
done
for name in xccl_group_start xccl_send xccl_recv xccl_group_end; do
  grep -qx "$name" "$top/calls_in_groups" || fail "$name is not called for alltoall"
done
! grep -q xccl_all_to_all "$top/calls_in_groups" || fail "the table has xccl_all_to_all"
left=$(find /tmp -maxdepth 1 -name 'files_device.*' -newer "$top/begin" | wc -l)
[ "$left" = 0 ] || fail "$left groups were not left"
echo "$passed cases"
