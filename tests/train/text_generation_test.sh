#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# text_generation_test.sh BIN TESTDATA: the application text_generation learns,
# and a run goes on with lines of text: as text, as ids, and to a file of arrays.
set -euo pipefail

export PATH=$1:$PATH
job=$2/jobs/apps/text_generation/job.pbtxt
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
  echo "text_generation_test: $*" >&2
  exit 1
}
pd-train -q -c "$job" --out run --steps 30 -o data.eval= -o train.log.every_steps=1 \
  -o data.train.language_model.seq_len=32 >/dev/null
jq -c 'select(.loss) | .loss' run/log.jsonl |
  awk '{ x[NR] = $1 } END { exit !(x[1] > 4 && x[NR] < 3.4) }' ||
  fail "the losses go from $(jq -c 'select(.loss) | .loss' run/log.jsonl | sed -n '1p;$p' | xargs)"

printf 'Call me Ishmael.\nThe whale\n' >prompts.txt
short=(-o 'model.layer[text].generate.max_length=12')
pd-eval -q --predict -m run "${short[@]}" --format json prompts.txt >answers.jsonl
jq -r .text answers.jsonl | head -n 1 | grep -q '^Call me Ishmael\.' ||
  fail "the first text is $(head -n 1 answers.jsonl)"
jq -r .text answers.jsonl | tail -n 1 | grep -q '^The whale' ||
  fail "the second text is $(tail -n 1 answers.jsonl)"
# Both are as long as the longer one's beginning and what is written.
[ "$(jq -j '.text | length, " "' answers.jsonl)" = "28 28 " ] ||
  fail "the texts have $(jq -j '.text | length, " "' answers.jsonl)characters"

# The seed decides what is drawn, and the likeliest text needs none.
draw() { pd-eval -q --predict -m run "${short[@]}" --format json "$@" prompts.txt; }
[ "$(draw --seed 1)" = "$(draw --seed 1)" ] || fail "one seed draws two texts"
[ "$(draw --seed 1)" != "$(draw --seed 2)" ] || fail "two seeds draw one text"
search=(-o 'model.layer[text].generate.decode_strategy=beam_search')
[ "$(draw "${search[@]}" --seed 1)" = "$(draw "${search[@]}" --seed 2)" ] ||
  fail "a search draws"

pd-eval -q --predict -m run "${short[@]}" --out ids.npz prompts.txt
pd-convert --inspect ids.npz | grep -q 'int64' || fail "ids.npz holds no int64"

# An evaluation writes no texts, whose rows would run past the table of
# positions; where they are asked for, they end with it.
pd-eval -q -m run -c "$job" -o data.eval.subset.range=4264:4267 >evaluation.txt ||
  fail "no evaluation"
grep -q bits_per_character evaluation.txt || fail "$(cat evaluation.txt)"
pd-eval -q -m run -c "$job" -o data.eval.subset.range=4264:4267 --out texts.npz >evaluation.txt ||
  fail "no texts of whole rows"
pd-convert --inspect texts.npz | grep -q '\[3, 257\]' || fail "$(pd-convert --inspect texts.npz)"
