#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The names of classes are the run's: a set that lacks a class keeps the others'
# numbers, an unknown class is an error, empty folders are mentioned, tables and
# JSON say names, and the columns of '*' are found by name.
#   class_names_test.sh BIN TESTDATA
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "class_names_test: $*" >&2; exit 1; }

# picture FILE R G B: 4 x 4 pixels of one colour.
picture() {
  mkdir -p "$(dirname "$1")"
  { printf 'P6 4 4 255\n'; for _ in $(seq 16); do printf '%b' "\\x$2\\x$3\\x$4"; done; } >"$1"
}
for i in $(seq 10 25); do
  for set in train eval; do
    picture "$set/blue/$i.ppm" 00 "$i" e0
    picture "$set/green/$i.ppm" "$i" e0 00
    picture "$set/red/$i.ppm" e0 00 "$i"
  done
done
mkdir train/empty
cat >job.pbtxt <<'EOF'
model {
  input { name: "image" shape: [-1, 3, 4, 4] }
  layer { name: "flat" flatten {} }
  layer { name: "fc" linear { out_features: 4 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { adam { learning_rate: 0.05 } }
data {
  train { dataset_folder { root: "train" } transform { to_tensor {} } batch_size: 8 shuffle: true }
  eval { dataset_folder { root: "eval" } transform { to_tensor {} } batch_size: 8 }
}
train { epochs: 8 }
EOF
"$bin/pd-train" -c job.pbtxt --out run >/dev/null 2>err || fail "training: $(cat err)"
grep -q "warning: 'train': 1 of 4 folders hold no images: 'empty'" err || fail "no word of the empty folder"
grep -q "warning: 'eval' has no folder for 1 of 4 classes: 'empty'" err || fail "no word of the missing folder"
printf 'blue\nempty\ngreen\nred\n' | diff - run/classes/label.txt || fail "the stored classes"

# Without 'blue', 'green' was class 0 by its own numbering.
rm -r eval/blue
"$bin/pd-eval" -m run --format json -q >eval.json || fail "evaluation without a class"
grep -q '"acc":1.0,' eval.json || fail "classes have moved: $(cat eval.json)"
grep -q '"confusion":\[\[0,0,0,0\],\[0,0,0,0\],\[0,0,16,0\],\[0,0,0,16\]\]' eval.json || fail "the table: $(cat eval.json)"
grep -q '"classes":\["blue","empty","green","red"\]' eval.json || fail "the names in JSON: $(cat eval.json)"
"$bin/pd-eval" -m run >text 2>err || fail "evaluation"
grep -q "eval' has no folder for 2 of 4 classes: 'blue', 'empty'" err || fail "no word of missing folders"
grep -qE "^ +blue +empty +green +red$" text || fail "the table's columns: $(cat text)"
grep -qE "^green +\. +\. +16 +\.$" text || fail "the table's rows: $(cat text)"
# The run knows its classes, whatever becomes of the training set.
mv train moved
"$bin/pd-eval" -m run --format json -q >again || fail "evaluation without the training set"
sed 's/"seconds":[^,]*//' eval.json >first
sed 's/"seconds":[^,]*//' again >second
cmp first second || fail "another result"
mv moved train

# A model that somebody exported takes the numbers of the job's training set.
"$bin/pd-export" -m run --to paddle -o exported >/dev/null 2>&1
"$bin/pd-eval" -m exported -c job.pbtxt --format json -q | grep -q '"acc":1.0,' || fail "the exported model"
mv train moved
if "$bin/pd-eval" -m exported -c job.pbtxt >/dev/null 2>err; then fail "numbers without names"; fi
grep -q "data.train, which numbers the classes, cannot be read" err || fail "why there are no numbers: $(cat err)"
mv moved train

# A class that the run does not know, with pictures and without.
mkdir eval/yellow
"$bin/pd-eval" -m run >/dev/null 2>err || fail "an empty unknown folder"
picture eval/yellow/1.ppm e0 e0 00
if "$bin/pd-eval" -m run >/dev/null 2>err; then fail "an unknown class"; fi
grep -q "eval/yellow' is no class that training knows; the classes are 'blue', 'empty', 'green', 'red'" err ||
  fail "what is said of the unknown class: $(cat err)"
mkdir -p train/yellow && cp eval/yellow/1.ppm train/yellow
if "$bin/pd-train" -c job.pbtxt --out run --resume -o train.epochs=9 >/dev/null 2>err; then fail "an unknown class on resuming"; fi
grep -q "train/yellow' is no class" err || fail "resuming: $(cat err)"
rm -r eval/yellow train/yellow

# Two folders one after the other are numbered as one.
mkdir parts && mkdir parts/a parts/b && mv train/blue train/red parts/a && mv train/green parts/b
sed 's|train { dataset_folder { root: "train" }|train { concat { dataset { dataset_folder { root: "parts/a" } } dataset { dataset_folder { root: "parts/b" } } }|; s/out_features: 4/out_features: 3/' job.pbtxt >concat.pbtxt
"$bin/pd-train" -c concat.pbtxt --out concat >/dev/null 2>err || fail "folders in a row: $(cat err)"
printf 'blue\ngreen\nred\n' | diff - concat/classes/label.txt || fail "the classes of folders in a row"
tail -n 1 concat/log.jsonl | grep -q '"acc":1.0' || fail "folders in a row mix classes"

# Rows: the names of categories, the columns of '*' in another order, numbers
# that another set calls otherwise.
{ echo 'x1,x2,x3,kind'; for i in $(seq 40); do echo "$((i % 7)),0.$((i % 9)),-$((i % 3)),b c"; echo "-$((i % 7 + 3)),0.$((i % 5)),$((i % 4)),a"; done; } >rows.csv
{ echo 'kind,x3,x1,x2'; for i in $(seq 8); do echo "b c,-$((i % 3)),$((i % 7)),0.1"; done; } >other.csv
fields='field { name: "x" column: "*" } field { name: "kind" column: "kind" categories { unknown: true } }'
cat >rows.pbtxt <<EOF
model { input { name: "x" shape: [-1, 3] } layer { linear { out_features: 3 } } }
loss { label: "kind" cross_entropy {} }
metric { label: "kind" accuracy {} }
optimizer { adam { learning_rate: 0.1 } }
data { train { csv { path: "rows.csv" $fields } batch_size: 8 } eval { csv { path: "rows.csv" $fields } batch_size: 8 } }
train { epochs: 6 }
EOF
"$bin/pd-train" -c rows.pbtxt --out rows >/dev/null 2>err || fail "rows: $(cat err)"
printf '(other)\na\nb c\n' | diff - rows/classes/kind.txt || fail "the classes of rows"
printf 'x1\nx2\nx3\n' | diff - rows/columns/x.txt || fail "the columns of rows"
cp rows.csv plain.csv
"$bin/pd-eval" -m rows --out plain.npz -q >/dev/null || fail "rows"
{ echo 'note,kind,x3,x2,x1'; tail -n +2 rows.csv | awk -F, '{print "n," $4 "," $3 "," $2 "," $1}'; } >moved.csv
sed -i 's/^n,/7,/' moved.csv
"$bin/pd-eval" -m rows -o 'data.eval.csv.path[0]=moved.csv' --expect plain.npz --rtol 0 --atol 0 -q >/dev/null ||
  fail "columns in another order"
"$bin/pd-eval" -m rows -o 'data.eval.csv.path[0]=other.csv' | grep -qE "^b c +\. +\. +8$" || fail "the names of rows"
if "$bin/pd-eval" -m rows -o 'data.eval.csv.field[1].categories={ value: ["a", "b c"] }' >/dev/null 2>err; then fail "other numbers for the classes"; fi
grep -q "the classes of field 'kind' are 'a', 'b c'; training's are '(other)', 'a', 'b c'" err || fail "other numbers: $(cat err)"
