#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job on texts of differing lengths: vocabulary and classes of the training
# set, buckets, padding, a record left out, standard input, and a run that is
# stopped and resumed in the middle of an epoch gives the same log.
#   text_job_test.sh BIN TESTDATA
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "text_job_test: $*" >&2; exit 1; }

# The last word says which class it is; lines have 2 to 8 words.
for i in $(seq 1 160); do
  words=""
  for _ in $(seq 1 $((1 + i * 7 % 7))); do words+="w$((i * 5 % 11)) "; done
  if ((i % 2)); then echo -e "good\t${words}yes"; else echo -e "bad\t${words}no"; fi
done >train.tsv
{ head -n 40 train.tsv; echo -e "bad\ttoo\tmany"; } >eval.tsv
rows='header: false field { name: "words" column: "1" text {} }
  field { name: "label" column: "0" categories {} }'
cat >job.pbtxt <<EOF
model {
  input { name: "words" shape: [-1, -1] dtype: int64 }
  layer { name: "e" embedding { num_embeddings: 32 embedding_dim: 8 } }
  layer { name: "m" mean { axis: 1 } }
  layer { name: "f" linear { out_features: 2 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { adam { learning_rate: 0.05 } }
data {
  train {
    tsv { path: "train.tsv" $rows }
    batch_size: 16
    shuffle: true
    bucket { field: "words" boundaries: [4, 6] }
    pad { field: "words" multiple_of: 2 }
  }
  eval { tsv { path: "eval.tsv" $rows } batch_size: 16 on_error: skip }
}
train { epochs: 6 log { every_steps: 1 } checkpoint { every_steps: 7 } }
EOF
"$bin/pd-train" -c job.pbtxt --out whole >/dev/null 2>err
grep -q "1 records were left out: 'eval.tsv':41:9:" err || fail "no word of the bad record"
grep -q '"skipped":{"set":"eval","records":1' whole/log.jsonl || fail "not in the log"
tail -n 1 whole/log.jsonl | grep -q '"acc":1.0' || fail "did not learn"

"$bin/pd-train" -c job.pbtxt --out threads -o data.train.num_workers=3 >/dev/null 2>&1
cmp whole/log.jsonl threads/log.jsonl || fail "workers change the result"

"$bin/pd-train" -c job.pbtxt --out parts -o train.steps=17 >/dev/null 2>&1 ||
  fail "the first part"
"$bin/pd-train" -c job.pbtxt --out parts --resume >/dev/null 2>&1 || fail "the second part"
diff <(grep '"lr"' whole/log.jsonl) <(grep '"lr"' parts/log.jsonl) ||
  fail "a resumed run goes another way"

if "$bin/pd-train" -c job.pbtxt --out in -o 'data.train.tsv.path[0]=-' <train.tsv >/dev/null 2>err; then
  fail "shuffled standard input"
fi
grep -q "standard input is taken in the order" err || fail "no word of the order"
"$bin/pd-train" -c job.pbtxt --out in -o 'data.train.tsv.path[0]=-' \
  -o data.train.shuffle=false -o data.eval= <train.tsv >/dev/null 2>&1 ||
  fail "standard input"
