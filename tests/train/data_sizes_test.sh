#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# data_sizes_test.sh BIN: a job that leaves sizes, means and deviations
# to its data. The run keeps them: evaluation, export and what goes on with the
# run need no training data for them, and give what a job with NumPy's numbers
# gives.
set -euo pipefail

export PATH=$1:$PATH
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
fail() {
  echo "data_sizes_test: $1" >&2
  failures=$((failures + 1))
}
says() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.log 2>err.log || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status: $(tail -n 2 err.log)"
  grep -q -- "$pattern" err.log || fail "'$*' does not say '$pattern' but: $(cat err.log)"
}

mkdir data
# 30 rows of three kinds; c is large and varies little.
awk 'BEGIN {
  split("ash oak elm", kinds, " ")
  print "a,b,c,kind"
  for (i = 0; i < 30; ++i)
    printf "%g,%d,%d,%s\n", (i * 7) % 10 / 4, i * i % 11, 1000000 + i % 5, kinds[i % 3 + 1]
}' >data/train.csv
head -n 12 data/train.csv >data/eval.csv
cat >job.pbtxt <<'EOF'
name: "trees"
model {
  input { name: "x" shape: [-1, @columns] }
  layer { name: "fc" linear { out_features: @classes } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { sgd { learning_rate: 0.5 } }
data {
  train {
    csv {
      path: "data/train.csv"
      field { name: "x" column: "*" standardize: true }
      field { name: "label" column: "kind" categories {} }
    }
    batch_size: 30
  }
  eval { csv { path: "data/eval.csv" } batch_size: 30 }
}
train { epochs: 9 }
EOF
# np.loadtxt("train.csv", ...).mean(0), .std(0)
sed -e 's/@columns/3/; s/@classes/3/' \
  -e 's/standardize: true/mean: [1.125, 3.933333333333333, 1000002.0] std: [0.7180703308172536, 2.768071932270226, 1.4142135623730951]/' job.pbtxt >typed.pbtxt
losses() { jq -c 'select(.loss) | [.step, .loss]' "$1/log.jsonl"; }

says 0 '@classes is 3, @columns is 3' pd-train -c job.pbtxt --out run --steps 6 -o train.log.every_steps=1
pd-train -q -c typed.pbtxt --out typed --steps 6 -o train.log.every_steps=1 >/dev/null
[ "$(losses run | wc -l)" -ge 6 ] || fail "no losses in run/log.jsonl"
diff <(losses run) <(losses typed) || fail "NumPy's means and deviations give other losses"
grep -q 'shape: \[-1, 3\]' run/job.pbtxt || fail "run/job.pbtxt does not hold the number of columns"
grep -q '@' run/job.pbtxt && fail "run/job.pbtxt leaves something open"
grep -q 'standardize: true' run/job.pbtxt || fail "run/job.pbtxt forgets why it has means"

# Without the training data.
mv data/train.csv hidden.csv
pd-eval -q -m run --format json | jq -S 'del(.model, .seconds, .records_per_s)' >run.json
pd-eval -q -m typed --format json | jq -S 'del(.model, .seconds, .records_per_s)' >typed.json
jq -e '.loss > 0 and .records == 11' run.json >/dev/null || fail "nothing is evaluated: $(cat run.json)"
cmp -s run.json typed.json || fail "evaluation differs: $(cat run.json typed.json)"
pd-export -q -m run -o model >/dev/null || fail "pd-export needs the training data"
# What the run's training set had goes before anything else's.
sed 's/@columns/3/; s/@classes/3/' job.pbtxt >scaled.pbtxt
pd-eval -q -m run -c scaled.pbtxt --format json | jq -S 'del(.model, .seconds, .records_per_s)' >scaled.json
cmp -s run.json scaled.json || fail "with the job beside the run: $(cat scaled.json)"
says 3 "hidden\|train.csv" pd-eval -q -m run -c job.pbtxt
mv hidden.csv data/train.csv

# On with the run: as if it had not stopped.
pd-train -q -c job.pbtxt --out whole --steps 9 >/dev/null
pd-train -q -c job.pbtxt --out run --steps 9 --resume >/dev/null
cmp whole/checkpoints/step-9/model.pdparams run/checkpoints/step-9/model.pdparams || fail "a resumed run ends otherwise"

# What cannot be looked up is said at its place in the job.
sed 's/@classes/@classes(kinds)/' job.pbtxt >wrong.pbtxt
says 2 "wrong.pbtxt:4:31: data.train has no field 'kinds'; it has 'x', 'label'" pd-train -c wrong.pbtxt --dry-run
[ $failures -eq 0 ]
