#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# profile_test.sh BIN TESTDATA: pd-profile on a job, a model and traces: what it
# prints and writes, its exit statuses, bad input, and being interrupted.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cd "$top"
failures=0
fail() {
  echo "profile_test: $1" >&2
  failures=$((failures + 1))
}

# expect STATUS PATTERN COMMAND...
expect() {
  local want=$1 pattern=$2 got=0
  shift 2
  timeout 120 "$@" >out.txt 2>err.txt </dev/null || got=$?
  if [ $got -ne "$want" ] || ! grep -qE -- "$pattern" out.txt err.txt; then
    fail "'$*' exits $got, expected $want; output should match: $pattern"
    tail -n 5 err.txt | sed 's/^/  | /' >&2
  fi
}

job=$testdata/jobs/lenet_mnist.pbtxt
run=(pd-profile -q -c "$job" --roofline 0.01)

# A job: every table that has rows, and files in every form.
expect 0 'Operator Summary' "${run[@]}" --scheduler 2,5 --trace a.json --html a.html --explain
for title in Device Overview Model Operator Kernel UserDefined Memory Perf; do
  grep -q -- "[-=]$title Summary[-=]" out.txt || fail "no $title Summary"
done
for title in Coverage Roofline Advice Implementations; do
  grep -q -- "-$title-" out.txt || fail "no $title"
done
grep -qE 'ProfileStep +3 ' out.txt || fail "not three steps"
jq -e '.traceEvents | map(select(.ph == "X" and .cat == "ProfileStep").name) == ["ProfileStep#2", "ProfileStep#3", "ProfileStep#4"]' a.json >/dev/null ||
  fail "a.json has other steps"
grep -q 'const data = {' a.html || fail "a.html has no data"
if grep -qE '(src|href)="?http' a.html; then fail "a.html needs the network"; fi
cp out.txt before.txt

# Phases: a step is all of them, and what follows it; the operators of a phase
# that runs twice in a step come twice.
cat >phases.pbtxt <<END
model {
  input { name: "image" shape: [-1, 1, 28, 28] }
  layer { name: "flat" flatten {} }
  layer { name: "one" linear { out_features: 10 } }
  layer { name: "shadow" input: "flat" linear { out_features: 10 } }
}
loss { name: "learn" input: "one" cross_entropy {} }
loss { name: "stay" input: "shadow" cross_entropy {} }
phase { name: "first" loss: "learn" parameters: "one.*" steps: 2 optimizer { sgd {} } }
phase { name: "second" loss: "stay" parameters: "shadow.*" optimizer { adam {} } }
data {
  train {
    mnist {
      image_path: "$(realpath "$testdata")/mnist/t10k-images-idx3-ubyte.gz"
      label_path: "$(realpath "$testdata")/mnist/t10k-labels-idx1-ubyte.gz"
    }
    transform { to_tensor {} }
    batch_size: 8
  }
}
train { epochs: 1 }
END
expect 0 'fused_gemm_epilogue' pd-profile -q -c phases.pbtxt --roofline 0 --scheduler 1,4 --format json
jq -e '.windows[0] | .steps == 3 and ([.operators[] | select(.name == "fused_gemm_epilogue").calls] == [9])' out.txt >/dev/null ||
  fail "phases: $(jq -c '.windows[0] | .steps, .operators' out.txt | head -c 600)"

# The same tables from the file, in every form.
expect 0 'Operator Summary' pd-profile -q --load a.json --explain
cmp -s before.txt out.txt || fail "--load a.json prints other tables"
for form in b.json.gz c.pb d.pb.gz; do
  expect 0 'Operator Summary' pd-profile -q --load a.json --explain --trace $form
  expect 0 'Operator Summary' pd-profile -q --load $form --explain
  cmp -s before.txt out.txt || fail "--load $form prints other tables"
done
gzip -t b.json.gz d.pb.gz || fail "no gzip files"
expect 0 'ops' pd-profile -q --load a.json --format json
jq -e '.windows | length == 1 and .[0].steps == 3 and (.[0].operators | length > 5)' out.txt >/dev/null || fail "--format json"
for key in CPUTotal CPUAvg CPUMax CPUMin GPUTotal GPUAvg GPUMax GPUMin; do
  expect 0 'Operator Summary' pd-profile -q --load a.json --sorted-by $key
done
for unit in s ms us ns; do
  expect 0 "Time unit: $unit\$" pd-profile -q --load a.json --time-unit $unit
done
expect 0 'Thread: main' pd-profile -q --load a.json --thread-sep
expect 0 '  fused_conv2d::' pd-profile -q --load a.json --op-detail

# PaddlePaddle's own trace.
expect 0 'matmul dygraph' pd-profile -q --load "$testdata/profile/paddle_trace.pb.gz"

# Comparing: a trace is as fast as itself; one whose times are a hundred times as
# long is not.
expect 0 'ProfileStep' pd-profile -q --load a.json --load a.json --fail-if-slower 5%
grep -qE 'ProfileStep .*\+0.00' out.txt || fail "a trace differs from itself"
expect 0 'Operator Summary' "${run[@]}" --scheduler 2,10 --trace e.json
jq '.traceEvents |= map(if .ts then .ts *= 100 else . end | if .dur then .dur *= 100 else . end)' e.json >slow.json
expect 1 'takes 9900.00 % more time' pd-profile -q --load e.json --load slow.json --fail-if-slower 5%
grep -qF '***' out.txt || fail "no mark at a change that is certain"
expect 0 'ProfileStep' pd-profile -q --load e.json --load slow.json --fail-if-slower 10000%
expect 0 'ProfileStep' pd-profile -q --load slow.json --load e.json --fail-if-slower 5%
expect 0 'enough_steps' pd-profile -q --load e.json --load slow.json --format json

# Times alone; cycles; a model.
expect 0 'Reader Ratio' pd-profile -q -c "$job" --timer-only --steps 12
if grep -q 'Operator Summary' out.txt; then fail "--timer-only records ops"; fi
expect 0 'Cycle 2: steps 5 to 5' "${run[@]}" --scheduler closed=1,ready=1,record=1,repeat=2,skip_first=0 --trace cycle.json.gz
gzip -t cycle-1.json.gz cycle-2.json.gz || fail "no trace of each cycle"
expect 0 'Operator Summary' pd-profile -q -m "$testdata/deploy/lenet" --feed "$testdata/deploy/lenet-feed.npz" --roofline 0
if grep -q 'Dataloader' out.txt; then fail "a model waits for data"; fi
if grep -q -- '-Roofline-' out.txt; then fail "--roofline 0 measures"; fi
expect 0 'refused by cpu:' pd-profile -q -m "$testdata/deploy/cifar_resnet" --feed "$testdata/deploy/cifar_resnet-feed.npz" \
  --scheduler 1,3 --roofline 0 --explain
expect 0 'lost' "${run[@]}" --scheduler 1,8 --buffer 64

# Bad input.
expect 3 "No such file|no/t.json" "${run[@]}" --trace no/t.json
expect 3 "no/p.html" "${run[@]}" --html no/p.html
expect 2 'nothing is recorded' "${run[@]}" --scheduler 5,5
expect 2 'record is 0' "${run[@]}" --scheduler closed=3,ready=1
expect 2 'neither START,END' "${run[@]}" --scheduler soon
expect 3 'nothing was recorded: there were 4 steps .train.steps is 4., and --scheduler 6,9 records from step 6' \
  "${run[@]}" --scheduler 6,9 -o train.steps=4
expect 0 'there were 4 steps .train.steps is 4.; --scheduler 2,9 goes on to step 8' \
  pd-profile -c "$job" --roofline 0 --scheduler 2,9 -o train.steps=4 --trace short.json
jq -e '.traceEvents | map(select(.cat == "ProfileStep")) | length == 2' short.json >/dev/null || fail "short.json"
head -c 3000 a.json >cut.json
expect 3 "'cut.json': column" pd-profile --load cut.json
head -c 3000 c.pb >cut.pb
expect 3 "'cut.pb': " pd-profile --load cut.pb
head -c 300 b.json.gz >cut.json.gz
expect 3 "'cut.json.gz': gzip data is truncated" pd-profile --load cut.json.gz
sed 's/"version":1/"version":9/' a.json >later.json
expect 3 'version 9; this build reads 1' pd-profile --load later.json
echo '{"traceEvents": []}' >other.json
expect 3 'no trace of pd-profile' pd-profile --load other.json
: >empty.json
expect 3 "'empty.json': " pd-profile --load empty.json
expect 3 'none.json' pd-profile --load none.json
expect 2 'needs two traces' pd-profile --load a.json --fail-if-slower 5%
expect 2 'no percentage' pd-profile --load a.json --load a.json --fail-if-slower much
expect 2 'two traces at most' pd-profile --load a.json --load a.json --load a.json
expect 2 'does not go with --load' pd-profile --load a.json -c "$job"
expect 2 'does not go with --timer-only' pd-profile -c "$job" --timer-only --trace t.json
expect 2 'say what to profile' pd-profile
expect 2 'feed FILE is missing' pd-profile -m "$testdata/deploy/lenet"
expect 2 "sorted-by" pd-profile --load a.json --sorted-by Time
expect 3 "no counter 'NO_SUCH_EVENT'" "${run[@]}" --counters NO_SUCH_EVENT

# Interrupted: what was recorded until then is a trace.
pd-profile -c "$job" -o train.epochs=100000000 --roofline 0 --scheduler 2,100000000 --trace stopped.json >stopped.txt 2>stopped.err &
pid=$!
# Half a second of work is more than it needs to begin.
for _ in $(seq 600); do
  if [ "$(awk '{ print int($14 / 50) }' "/proc/$pid/stat" 2>/dev/null || echo 9)" -gt 0 ]; then break; fi
  sleep 0.1
done
kill -TERM $pid  # a job in the background ignores SIGINT
got=0
wait $pid || got=$?
[ $got -eq 143 ] || fail "SIGTERM ends with $got: $(tail -n 2 stopped.err)"
if [ -e stopped.json ]; then
  jq -e '.traceEvents | length > 0' stopped.json >/dev/null || fail "stopped.json is no JSON"
elif ! grep -q 'before anything was recorded' stopped.err; then
  fail "nothing of the interrupted run was kept: $(tail -n 2 stopped.err)"
fi

[ $failures -eq 0 ] || exit 1
echo "profile_test: ok"
