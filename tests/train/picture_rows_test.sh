#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# picture_rows_test.sh BIN TESTDATA: rows that name pictures train as a folder of
# the same pictures does, and pairs of pictures and masks as the archive of the
# same pairs; what is evaluated and predicted; errors with their places.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0

fail() {
  echo "picture_rows_test: $*" >&2
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
same() {
  cmp "$1/log.jsonl" "$2/log.jsonl" || fail "the logs of $1 and $2 differ"
  cmp "$1/checkpoints/$(cat "$1/latest")/model.pdparams" \
    "$2/checkpoints/$(cat "$2/latest")/model.pdparams" || fail "the weights of $1 and $2 differ"
}

mkdir -p set/ant set/bee
cp "$testdata"/images/{rgb.png,rgb_444.jpg} set/ant
cp "$testdata"/images/{grey.png,rgb_420.jpg,rgb.bmp} set/bee
{
  echo file,kind
  (cd set && printf '%s\n' ./*/* | LC_ALL=C sort | sed 's,^\./\([a-z]*\)/.*,&\,\1,; s,^\./,,')
} >set/rows.csv
sed -n 's,^\([a-z]*\)/\(.*\)\,.*,{"at": {"file": "\1/\2"}\, "kind": "\1"},p' set/rows.csv >set/rows.jsonl

job() {
  cat <<J
model {
  input { name: "image" shape: [-1, 3, 8, 8] }
  layer { flatten {} }
  layer { name: "head" linear { out_features: 2 } }
}
loss { cross_entropy {} }
metric { accuracy {} }
optimizer { sgd { learning_rate: 0.01 } }
train { epochs: 2 seed: 3 log { every_steps: 1 } }
data {
  train {
    $1
    transform { random_resized_crop { size: [8] } }
    transform { random_horizontal_flip {} }
    transform { to_tensor {} }
    batch_size: 2 shuffle: true
  }
  eval { $2 transform { resize { size: [8, 8] } } transform { to_tensor {} } batch_size: 2 }
}
J
}
job 'dataset_folder { root: "set" extensions: [".png", ".jpg", ".bmp"] }' \
  'dataset_folder { root: "set" extensions: [".png", ".jpg", ".bmp"] }' >folder.pbtxt
job 'csv { path: "set/rows.csv"
  field { name: "image" column: "file" picture {} }
  field { name: "label" column: "kind" categories {} } }' \
  'csv { path: "set/rows.csv" }' >csv.pbtxt
job 'jsonl { path: "set/rows.jsonl"
  field { name: "image" path: "at.file" picture {} }
  field { name: "label" path: "kind" categories {} } }' \
  'jsonl { path: "set/rows.jsonl" }' >jsonl.pbtxt
for kind in folder csv jsonl; do
  expect 0 "" pd-train -q -c $kind.pbtxt --out $kind
done
same folder csv
same folder jsonl

# Without its labels a table is predicted on, and so is a picture.
cut -d, -f1 set/rows.csv >set/new.csv
expect 0 "" pd-eval -q --predict -m csv set/new.csv --out new.csv
[ "$(wc -l <new.csv)" -eq 6 ] || fail "predictions of a table: $(cat new.csv)"
expect 0 "" pd-eval -q --predict -m csv set/ant/rgb.png --out one.csv

field='data.train.csv.field'
expect 2 "field 'image' is a picture, whose pixels are uint8" \
  pd-train -q -c csv.pbtxt --out no -o "${field}[0].dtype=float32"
echo "ant/none.png,ant" >>set/rows.csv
expect 3 "rows.csv':7:1: field 'image': cannot open '.*set/ant/none.png'" \
  pd-train -q -c csv.pbtxt --out no
expect 0 "none.png" pd-train -c csv.pbtxt --out skipped -o data.train.on_error=skip \
  -o data.eval.on_error=skip

# Masks: the same pairs in Pascal VOC's archive, in folders and in rows.
top=VOCdevkit/VOC2012
mkdir -p $top/JPEGImages $top/SegmentationClass $top/ImageSets/Segmentation pairs/images pairs/masks
echo '{"image": "images/a.jpg", "label": "masks/a.png"}' >pairs/rows.jsonl
echo '{"image": "images/b.jpg", "label": "masks/b.png"}' >>pairs/rows.jsonl
for name in a b; do
  cp "$testdata/images/rgb_444.jpg" $top/JPEGImages/$name.jpg
  cp "$testdata/images/palette.png" $top/SegmentationClass/$name.png
  cp "$testdata/images/rgb_444.jpg" pairs/images/$name.jpg
  cp "$testdata/images/palette.png" pairs/masks/$name.png
  echo $name >>$top/ImageSets/Segmentation/trainval.txt
done
tar -cf own.tar VOCdevkit
masks() {
  cat <<J
model {
  input { name: "image" shape: [-1, 3, 6, 6] }
  layer { name: "head" conv2d { out_channels: ${2:-16} kernel_size: 1 } }
}
loss { cross_entropy { axis: 1 ignore_index: 255 } }
optimizer { sgd { learning_rate: 0.01 } }
train { epochs: 2 seed: 3 log { every_steps: 1 } }
data {
  train {
    $1
    transform { random_crop { size: [6, 6] } }
    transform { random_vertical_flip {} }
    transform { to_tensor {} }
    batch_size: 2
  }
}
J
}
masks 'voc2012 { data_file: "own.tar" }' >voc.pbtxt
masks 'image_mask_folder { images: "pairs/images" masks: "pairs/masks" num_classes: 16 }' '@classes' >pairs.pbtxt
masks 'jsonl { path: "pairs/rows.jsonl" field { name: "image" picture {} }
  field { name: "label" picture { mask: true } } }' >rows.pbtxt
for kind in voc pairs rows; do
  expect 0 "" pd-train -q -c $kind.pbtxt --out $kind
done
same voc pairs
same voc rows
expect 3 "holds class 1[0-9] at row .*; the classes are 0 to 9, or 255" pd-train -q -c pairs.pbtxt \
  --out no -o data.train.image_mask_folder.num_classes=10 -o model.layer[head].conv2d.out_channels=16
rm pairs/masks/b.png
expect 3 "1 of 2 pictures in '.*pairs/images' have no mask in '.*pairs/masks': 'b'" \
  pd-train -q -c pairs.pbtxt --out no

[ $failures -eq 0 ] || exit 1
echo "picture_rows_test: ok"
