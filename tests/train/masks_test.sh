#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# masks_test.sh BIN TESTDATA: the classes of masks have Pascal VOC's names where
# the pictures are Pascal VOC's, else none; a head that does not fit the numbers
# in masks is found before the first step; any label that a head has no output
# for is an error with layer, record, number and what to do.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0

fail() {
  echo "masks_test: $*" >&2
  failures=$((failures + 1))
}
# expect STATUS PATTERN COMMAND...: PATTERN is in stderr.
expect() {
  local want=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt </dev/null || got=$?
  [ $got -eq "$want" ] || fail "$*: exit $got, not $want: $(cat err.txt)"
  [ -z "$pattern" ] || grep -qE -- "$pattern" err.txt || fail "$*: no $pattern in $(cat err.txt)"
}
# archive FILE NAME...: pictures of 31 x 23 pixels with masks of 0 to 15.
archive() {
  local file=$1 top=VOCdevkit/VOC2012 name
  shift
  rm -rf VOCdevkit
  mkdir -p $top/JPEGImages $top/SegmentationClass $top/ImageSets/Segmentation
  for name; do
    cp "$testdata/images/rgb_444.jpg" "$top/JPEGImages/$name.jpg"
    cp "$testdata/images/palette.png" "$top/SegmentationClass/$name.png"
    echo "$name" >>$top/ImageSets/Segmentation/trainval.txt
  done
  tar -cf "$file" VOCdevkit
}
archive own.tar cat1 2007_000039
archive alike.tar 2007_000032 2011_123456
voc=$testdata/datasets/voc2012/VOCtrainval_11-May-2012.tar

cat >job.pbtxt <<'J'
model {
  input { name: "image" shape: [-1, 3, 6, 6] }
  layer { name: "head" conv2d { out_channels: 16 kernel_size: 1 } }
}
loss { cross_entropy { axis: 1 ignore_index: 255 } }
optimizer { sgd { learning_rate: 0.01 } }
data {
  train {
    voc2012 { data_file: "own.tar" }
    transform { resize { size: [6, 6] } }
    transform { to_tensor {} }
    batch_size: 2
  }
}
J
head="model.layer[head].conv2d.out_channels"
set=data.train.voc2012
for way in "--dry-run" "--out run"; do
  read -ra how <<<"$way"
  train=(pd-train -q -c job.pbtxt "${how[@]}")
  rm -rf run
  expect 0 "" "${train[@]}"
  [ ! -s err.txt ] || fail "a good job is warned of: $(cat err.txt)"
  [ ! -e run/classes ] || fail "names of classes from nowhere: $(cat run/classes/*)"
  rm -rf run
  expect 0 "warning: job.pbtxt:3:3: layer 'head' has 18 outputs, but the largest class number in field 'label' of data.train is 15: the others" \
    "${train[@]}" -o "$head=18"
  rm -rf run
  expect 2 "job.pbtxt:3:3: layer 'head' has 12 outputs, but field 'label' holds class 15 in data.train, 'own.tar': member '.*cat1.jpg' \(record 0\): it needs 16, or the label is wrong" \
    "${train[@]}" -o "$head=12"
  # Numbers that mark pixels of no class.
  sed 's/ ignore_index: 255//' job.pbtxt >none.pbtxt
  expect 2 "none.pbtxt:3:3: layer 'head' has 21 outputs, but field 'label' holds class 255 in data.train, .*: 255 marks pixels that nobody knows the class of; 'ignore_index: 255'" \
    pd-train -q -c none.pbtxt "${how[@]}" -o "$head=21" -o $set.data_file="$voc"
  sed 's/cross_entropy.*255/nll_loss { ignore_index: 255/' job.pbtxt >nll.pbtxt
  expect 0 "" pd-train -q -c nll.pbtxt "${how[@]}" -o "$head=21" -o $set.data_file="$voc"
  rm -rf run
  # Pascal VOC's pictures have its names, whatever the archive is called.
  cp "$voc" pictures.tar
  expect 0 "" "${train[@]}" -o "$head=21" -o $set.data_file=pictures.tar
  [ ! -s err.txt ] || fail "a head for Pascal VOC is warned of: $(cat err.txt)"
  [ ! -e run ] || [ "$(sed -n '1p;21p' run/classes/label.txt)" = $'background\ntvmonitor' ] || fail "not the names of Pascal VOC"
  rm -rf run
  expect 2 "layer 'head' has 20 outputs, but field 'label' of data.train has 21 classes: it needs 21" \
    "${train[@]}" -o "$head=20" -o $set.data_file=pictures.tar
done
# What is called as Pascal VOC's pictures has Pascal VOC's classes.
expect 2 "of data.train has 21 classes: it needs 21" pd-train -q -c job.pbtxt --dry-run -o $set.data_file=alike.tar
rm -rf run
archive wrong.tar 2007_000032 2011_123456
wrong=VOCdevkit/VOC2012/SegmentationClass/2007_000032.png
cp "$testdata/images/grey.png" $wrong
cp "$testdata/images/grey.jpg" VOCdevkit/VOC2012/JPEGImages/2007_000032.jpg
tar -cf wrong.tar VOCdevkit
expect 3 "wrong.tar': member '$wrong' \(record 0\) holds class [0-9]+ at row [0-9]+, column [0-9]+; the classes are 'background', 'aeroplane', .*\(21 classes\), or 255" \
  pd-train -q -c job.pbtxt --out run -o "$head=21" -o $set.data_file=wrong.tar

# Labels that nobody looked at: the last of 200001 rows; -1 in the first ones.
awk 'BEGIN { print "x,label"; for (i = 0; i < 200000; ++i) print i % 7 "," i % 3; print "1,9" }' >rows.csv
cat >rows.pbtxt <<'J'
model {
  input { name: "x" shape: [-1, 1] }
  layer { name: "scores" linear { out_features: 3 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { sgd { learning_rate: 0.01 } }
data { train { csv { path: "rows.csv" field { name: "x" column: "x" } field { name: "label" column: "label" dtype: int64 } } batch_size: 20000 } }
J
expect 0 "" pd-train -q -c rows.pbtxt --dry-run
late="rows.pbtxt:3:3: layer 'scores' has 3 outputs, but field 'label' holds class 9 in 'rows.csv':200002: it needs 10, or the label is wrong"
expect 3 "step 11: $late" pd-train -q -c rows.pbtxt --out late
expect 3 "step 11: $late" pd-train -q -c rows.pbtxt --out late2 -o loss[0].cross_entropy.weight='[1, 1, 2]'
expect 3 "step 11: $late" pd-train -q -c rows.pbtxt --out late3 -o loss[0].cross_entropy.label_smoothing=0.1
head -n 9 rows.csv >few.csv
pd-train -q -c rows.pbtxt --out few -o data.train.csv.path[0]=few.csv 2>err.txt >/dev/null || fail "few rows: $(cat err.txt)"
expect 3 "layer 'scores' has 3 outputs, but field 'label' holds class 9 in .*rows.csv" pd-eval -q -m few \
  -o 'data.eval={csv { path: "rows.csv" field { name: "x" column: "x" } field { name: "label" column: "label" dtype: int64 } } batch_size: 5000}'
sed -i '3s/,.*/,-1/' few.csv
expect 2 "layer 'scores' has 3 outputs, but field 'label' holds class -1 in data.train, 'few.csv'.*: classes count from 0; 'ignore_index: -1' in loss and metrics leaves it out" \
  pd-train -q -c rows.pbtxt --dry-run -o data.train.csv.path[0]=few.csv
expect 0 "" pd-train -q -c rows.pbtxt --out ignored -o data.train.csv.path[0]=few.csv -o loss[0].cross_entropy.ignore_index=-1 \
  -o metric[0].accuracy.ignore_index=-1
[ $failures -eq 0 ]
