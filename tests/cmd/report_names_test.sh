#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pages show what people know: words instead of the numbers of tokens, masks as
# pictures, columns, files and classes by name, records of every class; and a
# run that goes on writes its page anew.
#   report_names_test.sh BIN TESTDATA
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "report_names_test: $*" >&2; exit 1; }
train() { "$bin/pd-train" -q "$@" >/dev/null 2>err || fail "pd-train $*: $(cat err)"; }
page() { "$bin/pd-eval" -q -m "$1" --report "$1.html" >/dev/null 2>err || fail "the page of $1: $(cat err)"; }
shows() { grep -qF -- "$2" "$1" || fail "$1 does not show: $2"; }

# Sixty rows, sorted by their class: the first ones are all of one.
{ echo 'age,income,kind'; for kind in ant bee 'cow, brown'; do for i in $(seq 20); do echo "$((20 + i)),$i.5,\"$kind\""; done; done; } >rows.csv
rows='csv { path: "rows.csv" field { name: "x" column: "*" } field { name: "kind" column: "kind" categories {} } } batch_size: 10'
cat >rows.pbtxt <<EOF
model { input { name: "x" shape: [-1, 2] } layer { linear { out_features: 3 } } }
loss { label: "kind" cross_entropy {} }
metric { label: "kind" accuracy {} }
optimizer { adam { learning_rate: 0.1 } }
data { train { $rows } eval { $rows } }
train { epochs: 1 }
EOF
train -c rows.pbtxt --out rows --report
page rows
for html in rows.html rows/report.html; do
  shows $html 'age: 21, income: 1.5'
  shows $html 'rows.csv:2"'
  shows $html '"truth":"bee"'
  shows $html '"truth":"cow, brown"'
done
# The page follows the run, without being asked for again.
grep -q '\[12,' rows/report.html && fail "the page is of a later step"
train -c rows.pbtxt --out rows --resume -o train.epochs=2
shows rows/report.html '[12,'

# A text is its words.
for i in $(seq 1 12); do printf '%s\tw%d w%d end\n' "$((i % 2))" $((i % 3)) $((i % 4)); done >texts.tsv
texts='tsv { path: "texts.tsv" header: false field { name: "words" column: "1" text {} } field { name: "label" column: "0" categories {} } } batch_size: 4'
cat >texts.pbtxt <<EOF
model { input { name: "words" shape: [-1, -1] dtype: int64 }
  layer { embedding { num_embeddings: 32 embedding_dim: 4 } } layer { mean { axis: 1 } } layer { linear { out_features: 2 } } }
loss { cross_entropy {} }
optimizer { adam {} }
data { train { $texts } eval { $texts } }
train { epochs: 1 }
EOF
train -c texts.pbtxt --out texts --report
page texts
for html in texts.html texts/report.html; do
  shows $html '["words","w1 w1 end"]'
  shows $html 'texts.tsv:1"'
done

# A class for each pixel is a picture, beside the one that is expected.
echo '{"image": [[[9, 0]], [[0, 9]], [[0, 0]]], "label": [[0, 1]]}' >pixels.jsonl
pixels='jsonl { path: "pixels.jsonl" field { name: "image" shape: [3, 1, 2] } field { name: "label" shape: [1, 2] dtype: int64 } }'
cat >pixels.pbtxt <<EOF
model { input { name: "image" shape: [-1, 3, 1, 2] } layer { conv2d { out_channels: 2 kernel_size: 1 } } }
loss { cross_entropy { axis: 1 } }
optimizer { adam {} }
data { train { $pixels } eval { $pixels } }
train { epochs: 1 }
EOF
train -c pixels.pbtxt --out pixels --report
page pixels
for html in pixels.html pixels/report.html; do
  shows $html '"truth_mask":"data:image/png;base64,'
  shows $html '"answer_mask":"data:image/png;base64,'
  shows $html 'of the pixels are right'
done
