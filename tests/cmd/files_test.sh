#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files_test.sh BIN TESTDATA: files that cannot be replaced, remains of killed
# processes, names that are no UTF-8, data that have no end, limits of file
# sizes and of memory.
set -euo pipefail

export PATH=$1:$PATH OMP_NUM_THREADS=2
testdata=$2
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cd "$top"
failures=0
fail() {
  echo "files_test: $*" >&2
  failures=$((failures + 1))
}
expect() { # STATUS PATTERN COMMAND...: the pattern is looked for in stderr
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt </dev/null || got=$?
  if [ $got -ne "$status" ] || { [ -n "$pattern" ] && ! grep -Eq -- "$pattern" err.txt; }; then
    fail "'$*' exits $got, expected $status and '$pattern': $(cat err.txt)"
  fi
}

lenet=$testdata/deploy/lenet
resnet=$testdata/deploy/cifar_resnet
linreg=$testdata/train/linreg_sgd
saved=(pd-train -q --program "$linreg/main.pdmodel" --init "$linreg/init" --batches "$linreg/batches.npz"
  --loss mean_0.tmp_0)
cat >job.pbtxt <<J
model {
  input { name: "x" shape: [-1, 10] }
  layer { name: "y_hat" linear { out_features: 1 } }
}
loss { label: "y" mse_loss {} }
optimizer { sgd { learning_rate: 0.01 } }
data {
  train { csv { path: "train.csv" field { name: "x" column: "x1:x10" } field { name: "y" column: "y" } } batch_size: 4 }
}
train { log { every_steps: 1 } }
J
head -n 9 "$testdata/friedman/train.csv" >train.csv

# --- A program and its parameters are replaced together, or neither is. A mount
# point is a file that cannot be renamed over; the last rename is the program's.
ns=(unshare -m)
[ "$(id -u)" -eq 0 ] || ns=(unshare -Urm)
pinned() { # FILE COMMAND...: runs with FILE as a mount point
  # shellcheck disable=SC2016
  "${ns[@]}" bash -c 'mount --make-rprivate / && mount --bind "$1" "$1" || exit 99
    shift; exec "$@"' pinned "$@"
}
mkdir pair
sums() { find "$1" -type f -exec cksum {} + | sort -k3; }
if ! pinned job.pbtxt true 2>why; then
  echo "files_test: pairs SKIPPED, no mount namespace of one's own: $(cat why)"
else
  pd-export -m "$lenet" -o pair/m >/dev/null
  "${saved[@]}" --steps 1 --save pair/s >/dev/null
  pd-convert "$lenet.pdmodel" pair/l --to paddle-legacy >/dev/null
  pd-convert "$lenet.pdmodel" pair/j --to paddle-legacy-joint >/dev/null
  sums pair >before
  while read -r file command; do
    # shellcheck disable=SC2086
    expect 3 "cannot replace 'pair/.*$(basename "$file")'" pinned "$file" $command
    sums pair | diff before - >&2 || fail "'$command' with '$file' left other files"
  done <<L
pair/m.pdmodel pd-export -m $resnet -o pair/m
pair/m.pdiparams pd-export -m $resnet -o pair/m
pair/m.pdmodel pd-quant -q -m $lenet --weight-only -o pair/m
pair/m.pdmodel pd-convert $resnet.pdmodel pair/m.pdmodel --to paddle
pair/l/__model__ pd-convert $resnet.pdmodel pair/l --to paddle-legacy
pair/l/__model__ pd-export -m $resnet --to paddle-legacy -o pair/l
pair/j/__params__ pd-convert $resnet.pdmodel pair/j --to paddle-legacy-joint
pair/s.pdmodel ${saved[*]} --steps 2 --save pair/s
pair/s.pdopt ${saved[*]} --steps 2 --save pair/s
L
  pd-export -m "$resnet" -o pair/m >/dev/null
  cmp pair/m.pdiparams "$resnet.pdiparams" || fail "the pair is not replaced when it can be"
  pd-eval -q -m pair/m --feed "$resnet-feed.npz" >/dev/null || fail "the new pair does not run"
fi

# --- A link stays, and what it points to is replaced.
mkdir store linked
: >store/w.npz
ln -s ../store/w.npz linked/w.npz
ln -s ../store/m.pdmodel linked/m.pdmodel
pd-convert "$lenet.pdiparams" linked/w.npz >/dev/null
pd-export -m "$lenet" -o linked/m >/dev/null
for link in w.npz m.pdmodel; do
  { [ -h linked/$link ] && [ -s store/$link ]; } || fail "$link: the link is gone, or its target is not written"
done

# --- What killed processes left goes with the next run on the same files.
: >pair/e.pdmodel.pdkit-new.tmpAbC123
: >pair/w.npz.tmpAbC123
: >pair/mine.npz.tmpAbC123
pd-export -m "$lenet" -o pair/e >/dev/null
pd-convert "$lenet.pdiparams" pair/w.npz >/dev/null
[ "$(find pair -name '*.tmp*' -printf '%f\n')" = mine.npz.tmpAbC123 ] || fail "remains: $(ls pair)"
pd-train -q -c job.pbtxt --out run --steps 1 >/dev/null
touch run/latest.tmpAbC123 run/job.pbtxt.tmpAbC123 run/report.html.tmpAbC123
mkdir run/checkpoints/.step-1.old
pd-train -q -c job.pbtxt --out run --steps 2 --resume >/dev/null
[ -z "$(find run -name '*.tmp*' -o -name '.step*')" ] || fail "remains of a run: $(find run)"

# --- A path of any bytes.
odd=$'r\xff\xfe'
expect 0 '' pd-train -q -c job.pbtxt --out "$odd" --steps 1
jq -e .checkpoint "$odd/summary.json" >/dev/null || fail "no summary of a run with an odd name"
expect 0 '' pd-train -q -c job.pbtxt --out "$odd" --steps 2 --resume --format json
jq -e '.steps == 2' out.txt >/dev/null || fail "odd name: $(cat out.txt)"
expect 0 '' pd-export -m "$lenet" -o "$odd/m" --format json
expect 0 '' pd-quant -q -m "$lenet" --weight-only -o "$odd/q" --format json
expect 0 '' pd-convert "$odd/m.pdiparams" "$odd/w.npz" --format json
expect 0 '' pd-eval -q -m "$odd/m" --bench 0 --format json
expect 0 '' pd-train --new tabular-regression "$odd/new" --format json

# --- What has no end is refused, or read as far as there is something.
mkfifo pipe
expect 3 "'/dev/zero' is a device" pd-convert --inspect /dev/zero
expect 3 "'/dev/zero' is a device" pd-convert /dev/zero got.npz
expect 3 "'/dev/urandom' is a device" pd-eval -m "$lenet" --feed /dev/urandom
expect 3 "'/dev/zero' is a device" pd-check-naninf /dev/zero
sed 's:train.csv:/dev/zero:' job.pbtxt >zero.pbtxt
expect 3 "'/dev/zero' is a device" pd-train -q -c zero.pbtxt --out zero
expect 2 "/dev/zero" pd-train -q -c /dev/zero --out zero
expect 3 "'pipe' is a pipe, and nobody opened it" pd-convert --inspect pipe
cat "$lenet.pdiparams" >pipe &
expect 0 '' pd-convert --inspect pipe
expect 0 '' pd-convert --inspect <(cat "$lenet.pdiparams")

# --- A limit of the size of files is an error of its own, not a signal.
limited() { # BLOCKS COMMAND...
  local blocks=$1
  shift
  (ulimit -f "$blocks" && exec "$@")
}
expect 3 "cannot write 'big.npz': File too large" limited 8 pd-convert "$lenet.pdiparams" big.npz
expect 3 "File too large" limited 8 pd-export -m "$lenet" -o big
expect 3 "File too large" limited 1 pd-train -q -c job.pbtxt --out big --steps 2
expect 3 "File too large" limited 8 pd-eval -q -m "$lenet" --feed "$lenet-feed.npz" --fetch conv2d_0.tmp_0 --out big.npz
[ -z "$(find . -maxdepth 1 -name 'big*' -type f)" ] || fail "half a file is left: $(ls -d big*)"

# --- A limit of memory: whatever it is, the work is done or the message says
# what there is too little of. A sanitizer's own memory is far beyond any limit.
if grep -aq __asan_init "$(command -v pd-eval)"; then
  echo "files_test: limits of memory SKIPPED, a sanitizer needs more than any"
else
  done_=0 short=0
  for mb in $(seq 104 8 200); do
    for command in "pd-eval -q -m $lenet --feed $lenet-feed.npz --threads 2" \
      "pd-train -q -c $testdata/jobs/lenet_quant.pbtxt --bench 0 --threads 3"; do
      got=0
      # shellcheck disable=SC2086
      (ulimit -v $((mb * 1024)) && exec $command) >out.txt 2>err.txt </dev/null || got=$?
      case $got in
        0) done_=$((done_ + 1)) ;;
        3)
          short=$((short + 1))
          grep -Eq "ResourceExhaustedError.*memory" err.txt || fail "$mb MB, '$command': $(cat err.txt)"
          ;;
        127) grep -q "loading shared libraries" err.txt || fail "$mb MB, '$command' exits 127: $(cat err.txt)" ;;
        *) fail "$mb MB, '$command' exits $got: $(cat err.txt)" ;;
      esac
    done
  done
  if [ $short -eq 0 ]; then fail "no limit was too low, $done_ runs were done"; fi
fi

[ $failures -eq 0 ]
