#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# detection_test.sh BIN TESTDATA: a small YOLOv3, SSD and Faster R-CNN from
# training to boxes: average precision of what they find is among the results,
# boxes come out as lines of CSV and JSON, and exported models give the same,
# read from ONNX files too (tests/deploy/test_onnx_detection.cc has ONNX
# Runtime's answers).
set -euo pipefail

export PATH=$1:$PATH
jobs=$2/jobs/apps/detection
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
  echo "detection_test: $1" >&2
  exit 1
}

pd-train -c "$jobs/yolov3.pbtxt" --out yolo --steps 80 --require 'map>=0.3' >out.log 2>err.log || fail "training: $(tail -n 3 out.log err.log)"
pd-eval -q -m yolo --predict --out boxes.csv >out.log 2>err.log || fail "--predict: $(cat err.log)"
[ "$(head -n 1 boxes.csv)" = record,class,score,x1,y1,x2,y2 ] || fail "columns: $(head -n 1 boxes.csv)"
[ "$(wc -l <boxes.csv)" -gt 64 ] || fail "boxes.csv has $(wc -l <boxes.csv) lines"
pd-eval -q -m yolo --predict --out boxes.jsonl >out.log 2>err.log || fail "--predict: $(cat err.log)"
[ "$(wc -l <boxes.jsonl)" -eq 64 ] || fail "boxes.jsonl has $(wc -l <boxes.jsonl) lines"
head -n 1 boxes.jsonl | grep -qE '^\{"record":0,"boxes":\[\{"class":"[0-2]","number":[0-2],"score":' ||
  fail "boxes.jsonl: $(head -n 1 boxes.jsonl)"
if pd-eval -q -m yolo --predict --fetch found >out.log 2>err.log; then fail "--fetch of boxes: $(head -n 3 out.log)"; fi
grep -q "'found' is float32.* for 16 records; predictions have one row a record" err.log || fail "--fetch of boxes: $(cat err.log)"
status=0
pd-eval -q -m yolo --predict --out boxes.npz >out.log 2>err.log || status=$?
[ $status -eq 2 ] || fail "boxes.npz: exit status $status"
grep -q 'records differ in how many boxes' err.log || fail "boxes.npz: $(cat err.log)"

pd-train -c "$jobs/ssd.pbtxt" --out ssd --steps 48 --require 'map>=0.4' >out.log 2>err.log || fail "training: $(tail -n 3 out.log err.log)"
pd-eval -q -m ssd --predict --out boxes.csv >out.log 2>err.log || fail "ssd --predict: $(cat err.log)"
[ "$(head -n 1 boxes.csv)" = record,class,score,x1,y1,x2,y2 ] || fail "columns: $(head -n 1 boxes.csv)"
# The background is the last of four classes.
cut -d, -f2 boxes.csv | tail -n +2 | grep -qv '^[0-2]$' && fail "boxes.csv has a class that is none of three"
pd-export -q -m ssd -o paddle >out.log 2>err.log || fail "export: $(cat err.log)"
pd-export -q -m ssd --to onnx -o ssd.onnx >out.log 2>err.log || fail "export to ONNX: $(cat err.log)"
pd-eval -q -m paddle -c "$jobs/ssd.pbtxt" --predict --out other.csv >out.log 2>err.log || fail "paddle --predict: $(cat err.log)"
cmp -s boxes.csv other.csv || fail "the exported model gives other boxes: $(diff boxes.csv other.csv | head -n 3)"

# Sums in another order may turn the last of six digits.
same_boxes() {
  paste -d, "$1" "$2" | awk -F, 'NR > 1 {
    if (NF != 14 || $1 != $8 || $2 != $9) exit 1
    for (i = 3; i <= 7; ++i) if (($i - $(i + 7)) ^ 2 > 1e-8) exit 1 }'
}
pd-eval -q -m ssd.onnx -c "$jobs/ssd.pbtxt" --predict --out other.csv >out.log 2>err.log || fail "ssd.onnx --predict: $(cat err.log)"
same_boxes boxes.csv other.csv || fail "ssd.onnx gives other boxes: $(diff boxes.csv other.csv | head -n 3)"

# Faster R-CNN samples at random: a run that was stopped goes on with the same
# numbers. Only training reads the true boxes.
pd-train -c "$jobs/faster_rcnn.pbtxt" --out rcnn --steps 32 --require 'map>=0.3' >out.log 2>err.log || fail "training: $(tail -n 3 out.log err.log)"
pd-train -c "$jobs/faster_rcnn.pbtxt" --out parts --steps 16 >out.log 2>err.log || fail "16 steps: $(tail -n 3 err.log)"
pd-train -c "$jobs/faster_rcnn.pbtxt" --out parts --resume --steps 32 >out.log 2>err.log || fail "--resume: $(tail -n 3 err.log)"
for file in "$dir"/rcnn/checkpoints/step-32/*.pd*; do
  cmp -s "$file" "parts/checkpoints/step-32/$(basename "$file")" || fail "after --resume $(basename "$file") differs"
done
pd-eval -q -m rcnn --predict --out boxes.csv >out.log 2>err.log || fail "rcnn --predict: $(cat err.log)"
[ "$(wc -l <boxes.csv)" -gt 64 ] || fail "boxes.csv has $(wc -l <boxes.csv) lines"
cut -d, -f2 boxes.csv | tail -n +2 | grep -qv '^[0-2]$' && fail "boxes.csv has a class that is none of three"
pd-export -q -m rcnn -o rcnn_paddle >out.log 2>err.log || fail "export: $(cat err.log)"
grep -q 'inputs image,' out.log || fail "export: $(cat out.log)"
pd-eval -q -m rcnn_paddle -c "$jobs/faster_rcnn.pbtxt" --predict --out other.csv >out.log 2>err.log || fail "rcnn_paddle --predict: $(cat err.log)"
cmp -s boxes.csv other.csv || fail "the exported model gives other boxes: $(diff boxes.csv other.csv | head -n 3)"
pd-export -q -m rcnn --to onnx -o rcnn.onnx >out.log 2>err.log || fail "export to ONNX: $(cat err.log)"
pd-eval -q -m rcnn.onnx -c "$jobs/faster_rcnn.pbtxt" --predict --out other.csv >out.log 2>err.log || fail "rcnn.onnx --predict: $(cat err.log)"
same_boxes boxes.csv other.csv || fail "rcnn.onnx gives other boxes: $(diff boxes.csv other.csv | head -n 3)"
