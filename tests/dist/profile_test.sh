#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# profile_test.sh BIN: several processes profile a job together: one trace with
# rows of all ranks, times that add up, for --processes and mpirun; and the
# prediction for more of them.
set -euo pipefail

export PATH=$1:$PATH
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
  echo "profile_test: $*" >&2
  exit 1
}
job=testdata/fleet/shards/picture.pbtxt
record=(pd-profile -q --scheduler "2,6" --roofline 0)
profile=("${record[@]}" -c "$job")

# check TRACE TABLES RANKS
check() {
  python3 - "$@" <<'PY'
import json
import re
import sys

trace_path, tables_path, ranks = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(trace_path) as f:
    events = json.load(f)["traceEvents"]
rows = {e["tid"]: e["args"]["name"] for e in events if e.get("ph") == "M" and e["name"] == "thread_name"}
complete = [e for e in events if e.get("ph") == "X"]


def covered(spans):
    total, end = 0, float("-inf")
    for begin, until in sorted(spans):
        if until > end:
            total += until - max(begin, end)
            end = until
    return total


def inside(spans, steps):
    return [(max(a, c), min(b, d)) for a, b in spans for c, d in steps if a < d and c < b]


text = open(tables_path).read()
table = dict()
lines = text[text.index("Ranks"):].splitlines()
for line in lines:
    words = line.split()
    if len(words) == 8 and words[0].isdigit():
        table[int(words[0])] = [float(w) for w in words[2:]]
assert sorted(table) == list(range(ranks)), text
for rank in range(ranks):
    own = [e for e in complete if rows[e["tid"]].startswith(f"rank {rank}: ")]
    names = {rows[e["tid"]] for e in own}
    assert {f"rank {rank}: main", f"rank {rank}: communication"} <= names, names
    steps = [(e["ts"], e["ts"] + e["dur"]) for e in own if e["cat"] == "ProfileStep"]
    assert len(steps) == 4, steps
    span = lambda kind: inside([(e["ts"], e["ts"] + e["dur"]) for e in own if e["cat"] == kind], steps)
    communication, computation = span("Communication"), span("Operator")
    both = covered(communication) + covered(computation) - covered(communication + computation)
    expected = [covered(steps), covered(communication), covered(computation), both]
    neither = covered(steps) - covered(communication + computation)
    for name, value, printed in zip(
            ("steps", "communication", "computation", "overlap", "neither"), expected + [neither], table[rank]):
        assert abs(value / 1000 - printed) < 0.02, (rank, name, value, printed)
    assert covered(communication) > 0 and covered(computation) > 0
    buckets = {e["name"] for e in own if e["name"].startswith("allreduce bucket")}
    assert buckets, own[:5]
    if rank == 0:
        summary = text[text.index("Distribution Summary"):]
        for name, value in zip(("ProfileStep", "Communication", "Computation", "Overlap"), expected):
            found = re.search(rf"^ *{name} +([0-9.]+) +([0-9.]+)", summary, re.M)
            assert abs(float(found[1]) - value / 1000) < 0.02, (name, found[0])
            assert abs(float(found[2]) - 100 * value / expected[0]) < 0.05, (name, found[0])
PY
}

"${profile[@]}" --processes 3 --trace "$top/three.json" >"$top/three"
check "$top/three.json" "$top/three" 3
# A trace that was written says the same.
pd-profile -q --load "$top/three.json" >"$top/loaded"
diff <(sed -n '/Ranks/,/^$/p' "$top/three") <(sed -n '/Ranks/,/^$/p' "$top/loaded") || fail "--load says otherwise"
if command -v mpirun >/dev/null; then
  mpirun --allow-run-as-root --oversubscribe -n 2 "${profile[@]}" --trace "$top/mpi.json" >"$top/mpi"
  check "$top/mpi.json" "$top/mpi" 2
fi
# Of shards that exchange numbers while they compute, turns stand for operators.
synced=("${record[@]}" -c testdata/fleet/shards/synced.pbtxt)
"${synced[@]}" --processes 2 --trace "$top/synced.json" >"$top/synced"
check "$top/synced.json" "$top/synced" 2
for event in "turn of a shard" "exchange of shards"; do
  grep -q "$event" "$top/synced.json" || fail "no $event"
done
# One process has no row of communication.
for one in profile synced; do
  declare -n command=$one
  "${command[@]}" >"$top/one"
  grep -q "Distribution Summary\|^-*Ranks" "$top/one" && fail "one process communicates"
done
pd-profile -q -c "$job" --timer-only --steps 12 --processes 2 >"$top/timer"
grep -q "batch_cost" "$top/timer" || fail "--timer-only: $(cat "$top/timer")"

# expect STATUS PATTERN COMMAND...
expect() {
  local wanted=$1 pattern=$2 status=0
  shift 2
  "$@" >/dev/null 2>"$top/err" || status=$?
  [ $status -eq "$wanted" ] || fail "$*: exit $status: $(cat "$top/err")"
  grep -q -- "$pattern" "$top/err" || fail "$*: no '$pattern': $(cat "$top/err")"
}
expect 2 "the job does not say how" pd-profile -q -c testdata/jobs/lenet_mnist.pbtxt --processes 2
expect 2 "cannot share" "${profile[@]}" -o distributed.shards=2 --processes 3

# The prediction: one process sends nothing, and a step is never shorter than
# what its buckets need on the link.
pd-profile -q -c "$job" --steps 10 --simulate nodes=64,link=10Mb,latency=1ms,overhead=0us --format json >"$top/simulated"
python3 - "$top/simulated" <<'PY'
import json
import sys

said = json.load(open(sys.argv[1]))
measured, predicted = said["measured"], said["predicted"]
assert [p["processes"] for p in predicted] == [1, 2, 4, 8, 16, 32, 64]
assert predicted[0]["exchange_ms"] == 0 and abs(predicted[0]["efficiency"] - 1) < 1e-6
size = sum(b["bytes"] for b in measured["buckets"])
for p in predicted[1:]:
    n = p["processes"]
    wire = 2 * size * (n - 1) / n * 8 / 10e6 * 1e3  # ms
    assert p["exchange_ms"] >= wire, p
    assert p["step_ms"] >= p["exchange_ms"], p
assert predicted[-1]["shards"] == 64
PY
expect 0 "leaves out what sync_batch_norm" pd-profile -q -c testdata/fleet/shards/synced.pbtxt --steps 3 \
  --simulate nodes=2,link=10Gb
expect 2 "nodes= is missing" pd-profile -c "$job" --simulate link=10Gb
expect 2 "no number with one of" pd-profile -c "$job" --simulate nodes=2,link=10
expect 2 "is given twice" pd-profile -c "$job" --simulate nodes=2,nodes=3,link=10Gb
expect 2 "'speed' is none of" pd-profile -c "$job" --simulate nodes=2,link=10Gb,speed=3
expect 2 "no 'distributed'" pd-profile -q -c testdata/jobs/lenet_mnist.pbtxt --simulate nodes=2,link=10Gb
echo "profile_test: passed"
