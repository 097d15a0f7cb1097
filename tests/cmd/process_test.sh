#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exit statuses, signals, pipes and the OpenMP environment of a tool's process.
set -euo pipefail

demo=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
  echo "process_test: $1" >&2
  cat "$dir/err" >&2
  failures=$((failures + 1))
}

# expect STATUS PATTERN COMMAND...: the pattern is looked for in stderr.
expect() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >"$dir/out" 2>"$dir/err" || got=$?
  [ "$got" -eq "$status" ] || fail "'$*' exits $got; expected $status"
  [ -z "$pattern" ] || grep -q -- "$pattern" "$dir/err" || fail "'$*': stderr has no '$pattern'"
}

run=("$demo" -c job -q)
expect 0 '^device: cpu, ' "$demo" -c job
expect 0 '' "${run[@]}" --end "done"
expect 1 '^pd-demo: 2 of 3 arrays differ$' "${run[@]}" --end no
expect 2 "error: InvalidArgumentError: job.pbtxt:12:9: unknown field 'x'" "${run[@]}" --end job
expect 3 '  \[operator < softmax > error\]' "${run[@]}" --end work
expect 3 'ResourceExhaustedError: out of memory' "${run[@]}" --end memory
expect 3 'ResourceExhaustedError: something would be larger than any memory$' "${run[@]}" --end length
expect 3 'a library failed in a way that nobody expected; this is a bug of pdkit$' "${run[@]}" --end range
expect 3 "NotFoundError: cannot use '/nowhere/file': No such file or directory$" "${run[@]}" --end folder
expect 2 "did you mean '--steps'?" "${run[@]}" --stpes 3
expect 3 'UnavailableError: ' env FLAGS_cuda_dir=/nowhere "${run[@]}" --device gpu:99
expect 2 'is none of auto, cpu' "${run[@]}" --device tpu
expect 2 "did you mean 'FLAGS_check_nan_inf'?" "${run[@]}" --flags check_nan_in=1
expect 0 '' "${run[@]}" --flags check_nan_inf=true,use_mkldnn=false
# Flags that have nothing to switch: a warning each, once, with the reason.
expect 0 "warning: FLAGS_rpc_deadline=9 changes nothing: there is no parameter server here" \
  env FLAGS_rpc_deadline=8 "${run[@]}" --flags rpc_deadline=9
[ "$(grep -c rpc_deadline "$dir/err")" -eq 1 ] || fail "a flag without effect is not said once"
expect 2 "FLAGS_eager_delete_tensor_gb is 'x'; expected a number" \
  env FLAGS_eager_delete_tensor_gb=x "${run[@]}"
expect 0 "unknown flag 'FLAGS_check_nan_nif', did you mean 'FLAGS_check_nan_inf'?" \
  env FLAGS_check_nan_nif=1 "${run[@]}"
expect 0 "unknown flag 'FLAGS_zzzzzzzz'$" env FLAGS_zzzzzzzz=1 "${run[@]}"
expect 0 'changes nothing' "${run[@]}" --flags FLAGS_allocator_strategy=naive_best_fit
expect 0 '' "$demo" --list-flags
grep -q '^FLAGS_rpc_deadline=180000  (integer, nothing to switch)$' "$dir/out" || fail "--list-flags"
FLAGS_benchmark=1 "$demo" --list-flags --format json >"$dir/out"
python3 - "$dir/out" <<'END' || fail "--list-flags --format json"
import json, sys
flags = {f["name"]: f for f in json.load(open(sys.argv[1]))}
assert len(flags) >= 54
assert flags["FLAGS_benchmark"]["value"] is True and flags["FLAGS_benchmark"]["default"] is False
assert flags["FLAGS_memory_fraction_of_eager_deletion"]["max"] == 1
assert all(f["text"] and f["state"] in ("works", "nothing to switch") for f in flags.values())
END
expect 0 '^device: cpu, 1 thread ' env FLAGS_paddle_num_threads=1 OMP_NUM_THREADS=2 "$demo" -c job
expect 2 "FLAGS_conv_workspace_size_limit is '-5'; expected an integer of at least 0" \
  env FLAGS_conv_workspace_size_limit=-5 "${run[@]}"
expect 2 "expected an integer of at least 1" "${run[@]}" --flags multiple_of_cupti_buffer_size=0
expect 0 '' env -u FLAGS_check_nan_inf "${run[@]}"
[ ! -s "$dir/err" ] || fail "words about flags that nobody gave"
expect 2 "FLAGS_check_nan_inf is 'maybe'" env FLAGS_check_nan_inf=maybe "${run[@]}"
expect 2 'cannot go together' "${run[@]}" -v
expect 0 '' "$demo" --help
grep -q '^usage: pd-demo -c JOB' "$dir/out" || fail "--help has no usage"
expect 0 '' "$demo" --version --format json
grep -q '"onednn"' "$dir/out" || fail "--version --format json has no oneDNN"

# Standard output that cannot be written is never a success.
got=0
"${run[@]}" >/dev/full 2>"$dir/err" || got=$?
[ $got -eq 3 ] || fail "/dev/full: exit $got"
grep -q 'standard output: No space left' "$dir/err" || fail "/dev/full: no reason"
got=0
"$demo" --help >/dev/full 2>"$dir/err" || got=$?
[ $got -eq 3 ] || fail "--help to /dev/full: exit $got"
{
  got=0
  "${run[@]}" --steps 200000 2>"$dir/err" || got=$?
  echo $got >"$dir/status"
} | head -n 1 >/dev/null
[ "$(cat "$dir/status")" -eq 3 ] || fail "closed pipe: exit $(cat "$dir/status")"
grep -q 'Broken pipe' "$dir/err" || fail "closed pipe: no reason"

# listens PID: waits until the process is the tool, no longer the shell or env,
# catches SIGTERM (bit 14 of the mask) and sleeps, which its steps do: a signal
# before the first step ends the run at once. Builds differ much in their start.
listens() {
  local mask
  while [ -d "/proc/$1" ]; do
    mask=$(sed -n 's/^SigCgt:\s*//p' "/proc/$1/status")
    if [ "$(cat "/proc/$1/comm")" = pd-demo ] && [ $((0x$mask & 0x4000)) -ne 0 ] &&
      grep -q '^State:.S' "/proc/$1/status"; then
      return
    fi
    sleep 0.02
  done
  fail "it ended before a signal came"
}

# A signal ends the run after the step; a second one ends it at once. The
# shell makes background jobs ignore SIGINT, so env sets it back.
stop() {
  local signal=$1 status=$2 got=0
  env --default-signal=INT "${run[@]}" --steps 1000 --step-ms 20 >"$dir/out" 2>"$dir/err" &
  local pid=$!
  listens $pid
  kill "-$signal" $pid
  wait $pid || got=$?
  [ $got -eq "$status" ] || fail "SIG$signal: exit $got"
  grep -q "^pd-demo: stopped by SIG$signal after step [0-9]*$" "$dir/err" ||
    fail "SIG$signal: no word about it"
  # The last line of the output is that of the step that it names.
  [ "$(tail -n 1 "$dir/out")" = "$(sed 's/.*after //' "$dir/err")" ] ||
    fail "SIG$signal: the step's result is missing"
}
stop INT 130
stop TERM 143
env --default-signal=INT "${run[@]}" --step-ms 20000 >"$dir/out" 2>"$dir/err" &
pid=$!
listens $pid
kill -TERM $pid
# Two that wait together would be one.
while grep -qE '^(SigPnd|ShdPnd):\s*0*[1-9a-f]' "/proc/$pid/status"; do sleep 0.02; done
kill -TERM $pid
got=0
wait $pid || got=$?
[ $got -eq 143 ] || fail "second signal: exit $got"
[ ! -s "$dir/err" ] || fail "second signal: the run ended as if by the first"
env --ignore-signal=INT "${run[@]}" --steps 20 --step-ms 20 >"$dir/out" 2>"$dir/err" &
pid=$!
listens $pid
kill -INT $pid
wait $pid || fail "an ignored SIGINT ended the run"

# libgomp sees our spin count, and the user's own where there is one.
spins() {
  env OMP_DISPLAY_ENV=verbose "$@" "${run[@]}" 2>&1 >/dev/null |
    sed -n "s/.*GOMP_SPINCOUNT = '\(.*\)'/\1/p"
}
[ "$(spins)" = 3000 ] || fail "GOMP_SPINCOUNT is $(spins)"
[ "$(spins GOMP_SPINCOUNT=77)" = 77 ] || fail "the user's GOMP_SPINCOUNT is lost"
[ "$(spins OMP_WAIT_POLICY=passive)" = 0 ] || fail "the user's OMP_WAIT_POLICY is lost"

[ $failures -eq 0 ]
