#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bad_input_test.sh BIN TESTDATA: every kind of bad input gives one message that
# names file and place, the documented exit status, and leaves good files whole.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cd "$top"
failures=0

# expect STATUS PATTERN COMMAND...
expect() {
  local want=$1 pattern=$2 got=0
  shift 2
  timeout 60 "$@" >out.txt 2>err.txt </dev/null || got=$?
  if [ $got -ne "$want" ] || ! grep -qE -- "$pattern" err.txt; then
    printf 'FAILED: %s\n  exit %s, expected %s; stderr should match: %s\n' \
      "$*" $got "$want" "$pattern" >&2
    sed 's/^/  | /' err.txt >&2
    failures=$((failures + 1))
  fi
}

job=$testdata/jobs/mlp_mnist.pbtxt
train=(pd-train -q -c "$job" --steps 2 --out new)
images=data.train.mnist.image_path
labels=data.train.mnist.label_path
real_images=$testdata/mnist/train-images-idx3-ubyte.gz
real_labels=$testdata/mnist/train-labels-idx1-ubyte.gz

# Data files.
expect 3 "none.gz'.*No such file" "${train[@]}" -o $images=none.gz
: >empty.gz
expect 3 "empty.gz'" "${train[@]}" -o $images=empty.gz
head -c 100000 "$real_images" >cut.gz
expect 3 "cut.gz'" "${train[@]}" -o $images=cut.gz
expect 3 "labels-idx1" "${train[@]}" -o $images="$real_labels"
gzip -dc "$real_labels" >labels
head -c 5000 labels >short
expect 3 "short'.*60000" "${train[@]}" -o $labels=short
head -c 3000 /dev/urandom >noise
expect 3 "noise'" "${train[@]}" -o $images=noise
printf '\013' | dd of=labels bs=1 seek=$((8 + 77)) conv=notrunc status=none
expect 3 "labels' record 77: label is 11" "${train[@]}" -o $labels=labels
expect 3 "directory" "${train[@]}" -o $images="$testdata"

# Jobs. The message starts with FILE:LINE:COLUMN or the override.
sed 's/learning_rate/learning_rat/; s/adam {}/adam { learning_rat: 1 }/' \
  "$job" >typo.pbtxt
expect 2 "typo.pbtxt:[0-9]+:[0-9]+: unknown field 'learning_rat'" \
  pd-train -q -c typo.pbtxt --out new
expect 2 "did you mean 'learning_rate'" \
  "${train[@]}" -o optimizer.adam.learning_rat=1
cat >misfit.pbtxt <<'J'
model {
  input { name: "x" shape: -1 shape: 4 }
  layer { name: "first" linear { out_features: 3 } }
  layer { name: "second" linear { in_features: 5 out_features: 2 } }
}
loss { mse_loss {} label: "y" }
optimizer { sgd {} }
data { train { npz { path: "d.npz" } batch_size: 2 } }
J
expect 2 "misfit.pbtxt:4:.*'second'.*5.*'first'.*\[-1, 3\]" \
  pd-train -q -c misfit.pbtxt --out new
sed 's/name: "second"/name: "second" input: "frist"/' misfit.pbtxt >input.pbtxt
expect 2 "input.pbtxt:4:[0-9]+:.*'frist'.*'first'" \
  pd-train -q -c input.pbtxt --out new
: >nothing.pbtxt
expect 2 "nothing.pbtxt" pd-train -q -c nothing.pbtxt --out new
expect 2 "" pd-train -q -c "$top" --out new
expect 2 "nowhere.pbtxt" pd-train -q -c nowhere.pbtxt --out new
expect 2 "threads" pd-train -c "$job" --out new --threads 0x2

# Places to write.
expect 3 "/proc" pd-train -q -c "$job" --steps 2 --out /proc/run
: >file
expect 3 "file" pd-train -q -c "$job" --steps 2 --out file/run
expect 3 "/dev/full" pd-train -q -c "$job" --steps 2 --out full \
  --log-json /dev/full -o train.log.every_steps=1

# Checkpoints: of another network, damaged, in use.
pd-train -q -c "$job" --steps 3 --out run >/dev/null
cp -r run good
expect 2 "run' holds checkpoints: --resume" pd-train -q -c "$job" --out run
expect 2 "run' was trained by another job: 'model.layer.fc1..linear.out_features' is 77, was" \
  pd-train -q -c "$job" --steps 4 --out run \
  --resume -o "model.layer[fc1].linear.out_features=77"
diff -r run/checkpoints good/checkpoints || failures=$((failures + 1))
step=run/checkpoints/step-3
for file in model.pdparams model.pdopt model.pdmodel state.json; do
  cp good/checkpoints/step-3/$file $step/$file
  size=$(stat -c %s $step/$file)
  truncate -s $((size / 2)) $step/$file
  expect 3 "$file' is damaged" pd-train -q -c "$job" --out run --resume
  expect 3 "$file' is damaged" pd-eval -q -m run
  cp good/checkpoints/step-3/$file $step/$file
done
printf 'X' | dd of=$step/model.pdparams bs=1 seek=9999 conv=notrunc status=none
expect 3 "model.pdparams' is damaged.*checksum" \
  pd-train -q -c "$job" --out run --resume
cp good/checkpoints/step-3/model.pdparams $step/
rm $step/model.pdopt
expect 3 "model.pdopt" pd-train -q -c "$job" --out run --resume
echo nonsense >run/latest
expect 3 "latest' is damaged" pd-train -q -c "$job" --out run --resume

# Models.
expect 3 "none' not found" pd-eval -q -m none -c "$job"
expect 3 "no model" pd-eval -q -m "$job" -c "$job"
expect 3 "" pd-eval -q -m "$top" -c "$job"
printf 'junk' >junk.pdmodel
expect 3 "junk.pdmodel" pd-export -q -m junk -o out
expect 2 "opset" pd-export -q -m good -o out --to onnx --opset 99
expect 3 "" pd-export -q -m good -o /proc/out/model
expect 3 "nothing|no variable|does not" pd-export -q -m good -o out --fetch nothing

# A full disk: what was there stays.
if mkdir small && mount -t tmpfs -o size=1m tmpfs small 2>/dev/null; then
  expect 3 "small.*No space left" \
    pd-train -q -c "$job" --steps 3 --out small/run
  pd-eval -q -m good >/dev/null
  umount small
fi

[ $failures -eq 0 ] && echo "every message as expected"
