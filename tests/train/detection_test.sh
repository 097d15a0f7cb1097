#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# detection_test.sh BIN TESTDATA: a small YOLOv3 and a small SSD from training to
# boxes: average precision of what multiclass_nms gives is among the results,
# boxes come out as lines of CSV and JSON, and the exported SSD gives the same.
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
