#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kernels_page_test.sh SOURCE BUILD COMPILER: the kernel of KERNELS.md compiles
# as it stands there, and a tool trains on a device whose addresses the host
# cannot follow, to the numbers of the host.
set -euo pipefail

source=$1
build=$2
compiler=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "kernels_page_test: $1" >&2
  exit 1
}
flags=(-O1 -shared -fPIC -Wall -Wextra -Werror "-I$build/paddle_compat")
sed -n "/^\`\`\`cpp\$/,/^\`\`\`\$/p" "$source/libcore/plugin/KERNELS.md" | sed '1d;$d' >"$dir/dot.cc"
"$compiler" -std=c++14 "${flags[@]}" "$dir/dot.cc" -o "$dir/dot.so" || fail "the page's kernel does not compile"
"$compiler" -std=c++17 "${flags[@]}" "$source/tests/plugin/small_device.cc" -o "$dir/small.so" ||
  fail "the small device does not compile"
cp "$source/testdata/housing/housing.data" "$dir"
cd "$dir"
export PATH=$build/bin:$PATH
cat >job.pbtxt <<'JOB'
name: "housing"
model {
  input { name: "feature" shape: [-1, 13] }
  layer { name: "fc1" linear { out_features: 16 } }
  layer { op { type: "relu" } }
  layer { name: "fc2" linear { out_features: 1 } }
}
loss { label: "target" mse_loss {} }
metric { label: "target" mse {} }
optimizer { adam { learning_rate: 0.01 } }
data {
  train {
    uci_housing { data_file: "housing.data" mode: train }
    batch_size: 32
    shuffle: true
  }
  eval {
    uci_housing { data_file: "housing.data" mode: test }
    batch_size: 102
  }
}
train { epochs: 20 seed: 3 }
JOB
pd-train --plugin ./small.so --device small:3 -c job.pbtxt --out there >out 2>log || fail "training on the device: $(tail -3 log)"
grep -q "this line is not a tool's output" out && fail "the driver's line is in the tool's output"
grep -q 'device: small:3 v7' log || fail "the log does not name the device: $(cat log)"
mkdir drivers
cp small.so drivers
pd-eval -m there --require "mse<=60" >out 2>log || fail "what was trained on the device: $(cat out log)"
CUSTOM_DEVICE_ROOT=drivers pd-eval --device small -m there --require "mse<=60" >out 2>log ||
  fail "evaluation on the device: $(cat out log)"

# The driver's own profiler, in the trace of a tool.
pd-profile --plugin ./small.so --device small:3 -c job.pbtxt --steps 6 --scheduler 2,5 --trace trace.json >out 2>log ||
  fail "the profile of a training on the device: $(cat log)"
for word in 'small:3 stream 7' small_product small_launch; do
  grep -q "$word" trace.json || fail "the trace lacks $word"
done
grep -q small_product out || fail "the tables lack the driver's kernel: $(cat out)"
grep -q early_copy trace.json && fail "the trace has an event from before its window"
grep -q "device 'small'.* 1 events of its profiler end" log || fail "the event outside of the window is not told: $(cat log)"
"$compiler" -std=c++17 -DPD_WITHOUT_COLLECT -w "${flags[@]}" "$source/tests/plugin/small_device.cc" -Wno-error -o "$dir/mute.so" ||
  fail "the device without collected traces does not compile"
pd-profile --plugin ./mute.so --device small:3 -c job.pbtxt --steps 3 --scheduler 1,3 --trace trace.json >out 2>log ||
  fail "the profile of a training on the mute device: $(cat log)"
grep -q "lacks 'profiler_collect_trace_data'" log || fail "the missing function is not named: $(cat log)"
grep -q '"small:3 v7"' trace.json || fail "steps of the mute device are not traced"

# What there is.
pd-eval --plugin ./small.so --devices >out 2>log || fail "the list of devices: $(cat out log)"
grep -q "small:0 .*small:0 v7, 0.1 GiB, 0.1 GiB free, driver 5, runtime 12, capability 70, of plug-in './small.so'" out || fail "device 0 is not listed: $(cat out)"
grep -q 'small:3' out || fail "device 3 is not listed: $(cat out)"
CUSTOM_DEVICE_ROOT=drivers pd-train --devices --format json >out 2>log || fail "the list as JSON: $(cat out log)"
grep -q '"device": "small:3"' out || fail "JSON does not list device 3: $(cat out)"
grep -q '"driver_version": 5' out || fail "JSON does not tell the driver's version: $(cat out)"
CUSTOM_DEVICE_ROOT=nowhere pd-train --devices >out 2>log || fail "a list without plug-ins: $(cat out log)"
grep -q "plug-ins .*nowhere" out || fail "the list does not say why there are no plug-ins: $(cat out)"


# Errors, and their statuses.
status=0
pd-eval --device small -m there 2>log || status=$?
[ $status = 2 ] || fail "a type that nobody drives gives status $status"
status=0
pd-eval --plugin ./small.so --device small:1 -m there 2>log || status=$?
[ $status = 3 ] || fail "a device that is not there gives status $status"
grep -q 'has no device 1; it has 0, 3' log || fail "the error does not name the devices: $(cat log)"
