#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# boxes_test.sh BIN TESTDATA: jobs over files of boxes (Pascal VOC's, COCO's and
# a field of arrays), batches of pairs of one class, and word vectors as first
# values of an embedding: they train, evaluate and go on after a break, and a
# job that is wrong is told where.
set -euo pipefail

export PATH=$1:$PATH
boxes=$2/boxes
detection=$2/jobs/apps/detection
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
fail() {
  echo "boxes_test: $1" >&2
  failures=$((failures + 1))
}
# says STATUS PATTERN COMMAND...: ends so, with this in what it writes.
says() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.log 2>err.log </dev/null || got=$?
  [ $got -eq "$status" ] || fail "'$*' exits $got; expected $status: $(tail -n 3 out.log err.log)"
  [ -z "$pattern" ] || grep -qE -- "$pattern" out.log err.log || fail "'$*' does not say '$pattern' but: $(cat out.log err.log)"
}

# One scale of YOLOv3, whose boxes are given by their centres.
cat >yolo.pbtxt <<J
model {
  input { name: "image" shape: [-1, 3, 32, 32] }
  layer { conv_norm_activation { out_channels: 8 stride: 2 } }
  layer { conv_norm_activation { out_channels: 8 stride: 2 } }
  layer { conv_norm_activation { out_channels: 8 stride: 2 } }
  layer { name: "out" conv2d { out_channels: 16 kernel_size: 1 } }
  layer { name: "boxes" yolo_box { anchors: [10, 14, 20, 28] class_num: 3 conf_thresh: 0.01 downsample_ratio: 8 img_size: 1 clip_bbox: false } }
  layer { name: "scores" input: "boxes:scores" transpose { perm: [0, 2, 1] } }
  layer { input: ["boxes", "scores"] multiclass_nms { score_threshold: 0.01 nms_top_k: 50 keep_top_k: 10 background_label: -1 } }
}
loss {
  input: "out"
  label: "gt_label"
  yolo_loss { anchors: [10, 14, 20, 28] anchor_mask: [0, 1] class_num: 3 ignore_thresh: 0.7 downsample_ratio: 8 }
}
metric {
  name: "map"
  label: "gt_label"
  mean_average_precision { box_format: cxcywh difficult: "difficult" evaluate_difficult: false }
}
optimizer { adam { learning_rate: 0.01 } }
data {
  train {
    voc_detection { root: "$boxes/voc" max_boxes: 6 }
    boxes { format: cxcywh }
    transform { random_resized_crop { size: [32, 32] scale: [0.5, 1] } }
    transform { random_horizontal_flip {} }
    transform { to_tensor {} }
    batch_size: 2
    shuffle: true
  }
  eval {
    coco_detection { images: "$boxes/voc/JPEGImages" annotations: "$boxes/instances.json" max_boxes: 6 }
    transform { resize { size: [32, 32] } }
    transform { to_tensor {} }
    batch_size: 2
  }
}
train { seed: 3 epochs: 3 checkpoint { every_steps: 1 keep_last: 1 } }
J
says 0 'map' pd-train -c yolo.pbtxt --out whole
# Transforms of an epoch that is gone on with move boxes as those of one without
# a break.
says 0 '' pd-train -q -c yolo.pbtxt --out part --steps 3
says 0 '' pd-train -q -c yolo.pbtxt --out part --resume
last=$(cat whole/latest)
cmp "whole/checkpoints/$last/model.pdparams" "part/checkpoints/$last/model.pdparams" || fail "a run that was gone on with differs"
[ "$(cat whole/classes/gt_label.txt)" = "$(printf 'bicycle\nbird\ndog')" ] || fail "classes: $(cat whole/classes/gt_label.txt)"
says 0 '' pd-eval -q -m whole --predict "$boxes/voc/JPEGImages/000005.png" --out found.jsonl
grep -q '"boxes":\[' found.jsonl || fail "found.jsonl: $(cat found.jsonl)"

# Arrays whose boxes are declared: training moves them, evaluation needs not.
sed -e "s|npz { path: \"|&$detection/|" \
  -e 's/ *transform { to_tensor {} }/boxes { field: "gt_centre" format: cxcywh } transform { random_horizontal_flip {} }&/' \
  "$detection/yolov3.pbtxt" >arrays.pbtxt
says 0 '2 steps in' pd-train -c arrays.pbtxt --steps 2 --out arrays -o data.eval= -o train.log.every_steps=1
[ "$(jq -c 'select(.loss > 0)' arrays/log.jsonl | wc -l)" = 2 ] || fail "arrays: $(cat arrays/log.jsonl)"

# Messages about what is wrong have its place.
says 2 'yolo.pbtxt:[0-9]+:[0-9]+: root is given' pd-train -c yolo.pbtxt --out no -o "data.train.voc_detection.list='x'"
says 3 "'.*000002.xml':10: 'bicycle' is no class of this data set; they are 'dog', 'bird'" \
  pd-train -c yolo.pbtxt --out no -o "data.train.voc_detection.class=['dog', 'bird']"
says 2 "the classes of field 'gt_label' are 'background'" pd-train -c yolo.pbtxt --out no -o data.eval.coco_detection.background=true
says 2 "yolo.pbtxt:[0-9]+:[0-9]+: .*has no field 'box'" pd-train -c yolo.pbtxt --out no -o "data.train.boxes.field='box'"
says 0 'pictures with more than 2 boxes: 1; boxes left out: 1 \(max_boxes: 3 takes all\)' \
  pd-train -c yolo.pbtxt --out few -o data.train.voc_detection.max_boxes=2 -o data.eval= --steps 1
says 3 "cannot open '.*/ImageSets/Main/val.txt'" pd-train -c yolo.pbtxt --out no -o "data.train.voc_detection.image_set='val'"

# Pairs of one class.
awk 'BEGIN { for (i = 0; i < 30; ++i) print i % 5 "," i ",0.5" }' >pairs.csv
cat >pairs.pbtxt <<J
model {
  input { name: "x" shape: [-1, 2] }
  layer { linear { out_features: 5 } }
}
loss { cross_entropy {} }
optimizer { sgd { learning_rate: 0.001 } }
data { train {
  csv { path: "pairs.csv" header: false
    field { name: "x" column: "1:2" } field { name: "label" column: "0" dtype: int64 num_classes: 5 } }
  batch_size: 8
  sampler { per_class {} }
} }
train { epochs: 3 checkpoint { every_steps: 1 keep_last: 1 } }
J
says 0 '' pd-train -q -c pairs.pbtxt --out pairs
says 0 '' pd-train -q -c pairs.pbtxt --out again --steps 4
says 0 '' pd-train -q -c pairs.pbtxt --out again --resume
last=$(cat pairs/latest)
[ "$last" = step-9 ] || fail "pairs end at $last"
cmp "pairs/checkpoints/$last/model.pdparams" "again/checkpoints/$last/model.pdparams" || fail "pairs that were gone on with differ"
says 2 'pairs.pbtxt:[0-9]+:[0-9]+: batches of 7 records cannot hold 2 records of each' pd-train -c pairs.pbtxt --out no -o data.train.batch_size=7

# Word vectors.
printf 'the white whale\t1\na ship at sea\t0\nthe sea\t0\nwhale ahoy\t1\n' >texts.tsv
printf 'whale 1 2 3\nsea -1 0.5 4\nthe 0 0 1\nship 2 2 2\n' >vectors.txt
cat >words.pbtxt <<J
model {
  input { name: "text" shape: [-1, -1] dtype: int64 }
  layer { name: "words" embedding { num_embeddings: @vocabulary(text) embedding_dim: 3 padding_idx: 0 } }
  layer { mean { axis: 1 } }
  layer { linear { out_features: 2 } }
}
init { from: "vectors.txt" word_vectors { parameter: "words.weight" field: "text" } }
loss { cross_entropy {} }
optimizer { sgd { learning_rate: 0 } }
data { train {
  tsv { path: "texts.tsv" header: false
    field { name: "text" column: "0" text {} } field { name: "label" column: "1" dtype: int64 num_classes: 2 } }
  batch_size: 4
} }
train { epochs: 1 }
J
says 0 "word vectors from '.*vectors.txt': 4 of 8 words of field 'text' taken into 'words.weight'" pd-train -c words.pbtxt --out words
grep -q "has no vector for 4 of 8 words of field 'text': 'a', 'ahoy', 'at', 'white': their initial values are kept" err.log ||
  fail "missing words: $(cat err.log)"
says 2 "words.pbtxt:7:1: '.*vectors.txt' has no vector for 4 of 8 words" pd-train -c words.pbtxt --out no -o init.missing=fail
says 2 "words.pbtxt:7:1: '.*' has 3 numbers for each word; parameter 'words.weight' has 4" \
  pd-train -c words.pbtxt --out no -o 'model.layer[words].embedding.embedding_dim=4'
says 2 'rename, skip and transpose are for models' pd-train -c words.pbtxt --out no -o "init.skip='words.*'"
says 0 "4 of 8 words" pd-train -c words.pbtxt --dry-run
[ $failures -eq 0 ]
