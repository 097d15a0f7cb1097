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
grep -q "\"acc\":1.0" <<<"$(tail -n 1 whole/log.jsonl)" || fail "did not learn"

# Vectors are shown with their words.
"$bin/pd-train" -c job.pbtxt --out shown -o train.steps=2 --log visualdl --log tensorboard >/dev/null 2>&1 ||
  fail "logs"
{ cat shown/vocabularies/words.txt; seq 17 31; } | diff - shown/embeddings/e/metadata.tsv ||
  fail "the projector's words"
[ "$(wc -l <shown/vocabularies/words.txt)" -eq 17 ] || fail "how many words there are"
# In VisualDL's record each label is a string of its own.
for word in '<unk>' w10 yes; do
  grep -qaF "$word" shown/vdlrecords.*.log || fail "VisualDL's log without '$word'"
done

"$bin/pd-train" -c job.pbtxt --out threads -o data.train.num_workers=3 >/dev/null 2>&1
cmp whole/log.jsonl threads/log.jsonl || fail "workers change the result"

"$bin/pd-train" -c job.pbtxt --out parts -o train.steps=17 >/dev/null 2>&1 ||
  fail "the first part"
"$bin/pd-train" -c job.pbtxt --out parts --resume >/dev/null 2>&1 || fail "the second part"
diff <(grep '"lr"' whole/log.jsonl) <(grep '"lr"' parts/log.jsonl) ||
  fail "a resumed run goes another way"

# Words keep their numbers: another training file now would give others.
head -n 4 parts/vocabularies/words.txt | diff - <(printf '%s\n' '<pad>' '<unk>' '<s>' '</s>') ||
  fail "the run's words"
diff parts/vocabularies/label.txt <(printf 'bad\ngood\n') || fail "the run's classes"
"$bin/pd-eval" -m parts --out before.npz >before 2>/dev/null || fail "evaluation"
mv train.tsv kept.tsv
sed 's/^good/agood/; s/no$/zzz zzz zzz/' kept.tsv >train.tsv
"$bin/pd-eval" -m parts --out after.npz >after 2>/dev/null || fail "evaluation without the file"
cmp before after || fail "the run forgot its words"
cmp before.npz after.npz || fail "the run forgot its words"
if "$bin/pd-train" -c job.pbtxt --out parts --resume -o train.epochs=7 >/dev/null 2>err; then
  fail "a class that the run does not know"
fi
grep -q "train.tsv':1:1: .*'agood' is no class of field 'label'" err || fail "no word of the class"
sed 's/no$/zzz zzz zzz/' kept.tsv >train.tsv
"$bin/pd-train" -c job.pbtxt --out parts --resume -o train.epochs=7 >/dev/null 2>&1 ||
  fail "words that the run does not know"
if grep -q zzz parts/vocabularies/words.txt; then fail "the run's words have changed"; fi
"$bin/pd-train" -c job.pbtxt --out anew -o train.epochs=1 >/dev/null 2>&1
grep -q zzz anew/vocabularies/words.txt || fail "a new run's words"
rm train.tsv
"$bin/pd-eval" -m anew >/dev/null 2>&1 || fail "evaluation without a file"
# Characters that end lines or mean something in the list.
for i in $(seq 1 20); do printf 'a\tb\\c\r\n\001\177 d\xc3\xa9%s\n' "$i"; done >letters.txt
set='language_model { path: "letters.txt" seq_len: 8 text { tokenizer: character } }'
cat >letters.pbtxt <<EOF
model {
  input { name: "input" shape: [-1, 8] dtype: int64 }
  layer { name: "e" embedding { num_embeddings: 32 embedding_dim: 4 } }
  layer { name: "f" linear { out_features: 32 } }
}
loss { cross_entropy {} }
optimizer { adam {} }
data { train { $set batch_size: 8 } eval { $set batch_size: 8 } }
train { epochs: 1 }
EOF
"$bin/pd-train" -c letters.pbtxt --out letters >/dev/null 2>&1 || fail "characters"
grep -qxF '\011' letters/vocabularies/input.txt || fail "a tab's line"
"$bin/pd-eval" -m letters >before 2>/dev/null || fail "evaluation of characters"
mv letters.txt moved.txt
"$bin/pd-eval" -m letters -o 'data.eval.language_model.path[0]=moved.txt' >after 2>/dev/null ||
  fail "characters without the file"
cmp before after || fail "the run forgot its characters"
# A damaged list of words is said.
printf 'cut' >anew/vocabularies/words.txt
if "$bin/pd-eval" -m anew >/dev/null 2>err; then fail "a damaged vocabulary"; fi
grep -q "anew/vocabularies/words.txt': line 1 has no end" err || fail "no word of the damage"
mv kept.tsv train.tsv

if "$bin/pd-train" -c job.pbtxt --out in -o 'data.train.tsv.path[0]=-' <train.tsv >/dev/null 2>err; then
  fail "shuffled standard input"
fi
grep -q "standard input is taken in the order" err || fail "no word of the order"
"$bin/pd-train" -c job.pbtxt --out in -o 'data.train.tsv.path[0]=-' \
  -o data.train.shuffle=false -o data.eval= <train.tsv >/dev/null 2>&1 ||
  fail "standard input"
