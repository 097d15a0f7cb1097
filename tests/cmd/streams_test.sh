#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# streams_test.sh BIN TESTDATA: `-` is standard input or output wherever an
# option says so, and refused everywhere else. Each option that writes is tried
# with standard output as pipe, file, terminal, /dev/null and closed, as root
# and as another user; /dev is the same afterwards.
#
# A mistake here could replace the machine's own devices, so all of it runs in a
# mount namespace with a /dev of its own, and not at all where there is none.
set -euo pipefail

bin=$1
testdata=$2
if [ -z "${PD_STREAMS_INSIDE:-}" ]; then
  enter=(unshare -m)
  [ "$(id -u)" -eq 0 ] || enter=(unshare -Urm)
  top=$(mktemp -d)
  trap 'rm -rf "$top"' EXIT
  mkdir "$top/dev" "$top/work"
  chmod 755 "$top"
  # A /dev of the devices that programs need, by the same links as the real one.
  # shellcheck disable=SC2016
  setup='mount --make-rprivate / && mount -t tmpfs -o mode=755 none "$1" &&
    for d in null zero full random urandom tty; do
      touch "$1/$d" && mount --bind "/dev/$d" "$1/$d" || exit 1
    done
    mkdir "$1/pts" "$1/shm" && mount -t devpts -o newinstance,ptmxmode=0666 none "$1/pts" &&
    ln -s pts/ptmx "$1/ptmx" && ln -s /proc/self/fd "$1/fd" &&
    for i in 0:stdin 1:stdout 2:stderr; do
      ln -s "/proc/self/fd/${i%%:*}" "$1/${i#*:}" || exit 1
    done
    mount --rbind "$1" /dev && touch /dev/pd-streams-test && rm /dev/pd-streams-test'
  if ! "${enter[@]}" bash -c "$setup" setup "$top/dev" 2>"$top/why"; then
    echo "streams_test: SKIPPED, no mount namespace of one's own: $(cat "$top/why")"
    exit 0
  fi
  [ ! -e /dev/pd-streams-test ] || exit 1
  "${enter[@]}" bash -c "{ $setup; } && shift && exec env PD_STREAMS_INSIDE=1 \"\$@\"" \
    setup "$top/dev" "$0" "$bin" "$testdata" "$top/work"
  exit
fi

top=$3
export PATH=$bin:$PATH OMP_NUM_THREADS=1
failures=0
fail() {
  echo "streams_test: $*" >&2
  failures=$((failures + 1))
}

# Kinds, numbers and links of everything in /dev.
devices() {
  find /dev -maxdepth 1 -printf '%y %i %m %u %f %l\n' | sort
}
before=$(devices)

# --- What the options are tried on.
cd "$top"
lenet=$testdata/deploy/lenet
feed=$lenet-feed.npz
linreg=$testdata/train/linreg_sgd
cat >job.pbtxt <<J
model {
  input { name: "x" shape: [-1, 10] }
  layer { name: "y_hat" linear { out_features: 1 } }
}
loss { label: "y" mse_loss {} }
optimizer { sgd { learning_rate: 0.01 } }
data {
  train { csv { path: "train.csv" field { name: "x" column: "x1:x10" } field { name: "y" column: "y" } } batch_size: 4 }
  eval { csv { path: "train.csv" field { name: "x" column: "x1:x10" } field { name: "y" column: "y" } } batch_size: 8 }
}
train { log { every_steps: 1 } }
J
head -n 9 "$testdata/friedman/train.csv" >train.csv
pd-train -q -c job.pbtxt --out run >/dev/null
pd-profile -q -c job.pbtxt --scheduler 0,2 --roofline 0 --trace trace.json >/dev/null
echo '{}' >none.lod.json
# Two rows of thirteen zeros.
{
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 13), }"
  head -c 104 /dev/zero
} >x.npy
pd-convert x.npy x.npz >/dev/null
pd-convert run weights.pdparams >/dev/null
printf '[{}%s]' "$(printf ', {}%.0s' {1..19})" >steps.lod.json # of 20 steps
chmod -R go+rX .

# --- Options that write: "OPTION KIND COMMAND", where OUT in the command is
# where to write. KIND: text, bytes, or page, which differs from run to run.
writes=(
  "pd-convert:OUT text pd-convert $lenet.pdmodel OUT --to text"
  "pd-convert:OUT bytes pd-convert $lenet.pdiparams OUT --to npz --program $lenet.pdmodel"
  "pd-convert:OUT bytes pd-convert $lenet.pdmodel OUT --to pdmodel"
  "pd-eval:--out bytes pd-eval -q -m $lenet --feed $feed --out OUT"
  "pd-eval:--report page pd-eval -q -m $top/run --report OUT"
  "pd-export:--out text pd-export -m $lenet --to dot -o OUT"
  "pd-export:--out bytes pd-export -m $lenet --to onnx -o OUT"
  "pd-quant:--out bytes pd-quant -q -m $lenet --weight-only --to onnx -o OUT"
  "pd-quant:--report page pd-quant -q -m $lenet --calib $feed --latency 0.01 -o q/int8 --report OUT"
  "pd-profile:--trace text pd-profile -q --load $top/trace.json --trace OUT"
  "pd-profile:--html page pd-profile -q --load $top/trace.json --html OUT"
  "pd-train:--log-json text rm -rf r && pd-train -q -c $top/job.pbtxt --out r --log-json OUT"
)

# --- Options that read: "OPTION FILE COMMAND"; the file comes by `-`.
reads=(
  "pd-train:--config job.pbtxt pd-train -q -c - --out r --steps 1"
  "pd-train:--program $linreg/main.pdmodel pd-train -q --program - --init $linreg/init --batches $linreg/batches.npz --steps 2 --loss mean_0.tmp_0"
  "pd-train:--startup $linreg/startup.pdmodel pd-train -q --program $linreg/main.pdmodel --startup - --batches $linreg/batches.npz --steps 2 --loss mean_0.tmp_0"
  "pd-train:--batches $linreg/batches.npz pd-train -q --program $linreg/main.pdmodel --init $linreg/init --batches - --steps 2 --loss mean_0.tmp_0"
  "pd-train:--lod steps.lod.json pd-train -q --program $linreg/main.pdmodel --init $linreg/init --batches $linreg/batches.npz --lod - --steps 2 --loss mean_0.tmp_0"
  "pd-eval:--config job.pbtxt pd-eval -q -m run -c -"
  "pd-eval:--feed $feed pd-eval -q -m $lenet --feed -"
  "pd-eval:--lod none.lod.json pd-eval -q -m $lenet --feed $feed --lod -"
  "pd-eval:--startup $linreg/startup.pdmodel pd-eval -q -m $linreg/test.pdmodel --startup - --feed $top/x.npz --fetch fc_0.tmp_1"
  "pd-eval:FILE train.csv pd-eval -q --predict -m run -"
  "pd-export:--config job.pbtxt pd-export -c - --to dot -o net.dot"
  "pd-export:--verify $feed pd-export -m $lenet -o e --verify -"
  "pd-quant:--config job.pbtxt pd-quant -q -m weights.pdparams -c - --weight-only -o q8"
  "pd-quant:--compare job.pbtxt pd-quant -q -m run --weight-only --compare - -o q8"
  "pd-profile:--config job.pbtxt pd-profile -q -c - --timer-only --steps 2"
  "pd-profile:--feed $feed pd-profile -q -m $lenet --feed - --timer-only --steps 2"
  "pd-profile:--lod none.lod.json pd-profile -q -m $lenet --feed $feed --lod - --timer-only --steps 2"
  "pd-profile:--load trace.json pd-profile -q --load -"
  "pd-convert:IN $lenet.pdmodel pd-convert - got.txt --to text"
  "pd-convert:--inspect $feed pd-convert --inspect -"
  "pd-check-naninf:--config job.pbtxt pd-check-naninf -q -c - --steps 1"
  "pd-check-naninf:--feed $feed pd-check-naninf -q -m $lenet --feed -"
  "pd-check-naninf:--lod none.lod.json pd-check-naninf -q -m $lenet --feed $feed --lod -"
  "pd-check-naninf:--startup $linreg/startup.pdmodel pd-check-naninf -q -m $linreg/test.pdmodel --startup - --feed $top/x.npz --fetch fc_0.tmp_1"
  "pd-check-naninf:FILE $feed pd-check-naninf -q -"
)

# --- Every option that says that it takes a stream is in a table, and one that
# does not say so refuses it.
options() { # TOOL WORD: the names of those whose help names the stream
  "$1" --help | awk -v word="$2" '
    function done_() { if (text ~ "; - is standard " word) print name }
    /^  (    )?-|^  [A-Z]+( |$)/ { done_(); text = ""; name = $1
      if (name ~ /^-[a-z],?$/ && $2 ~ /^--/) name = $2 }
    { for (i = 1; i <= NF; ++i) text = text " " $i }
    END { done_() }'
}
for tool in pd-train pd-eval pd-export pd-quant pd-profile pd-convert pd-check-naninf; do
  for name in $(options $tool output); do
    printf '%s\n' "${writes[@]}" | grep -q -- "^$tool:$name " || fail "$tool $name writes and is not tried"
  done
  for name in $(options $tool input); do
    printf '%s\n' "${reads[@]}" | grep -q -- "^$tool:$name " || fail "$tool $name reads and is not tried"
  done
done
[ "$(options pd-convert output)$(options pd-convert input | wc -l)" = OUT2 ] || fail "the help is not understood"

refused() { # PATTERN COMMAND...: a wrong command line, and no file called "-"
  local got=0 pattern=$1
  shift
  "$@" >out.txt 2>err.txt </dev/null || got=$?
  if [ $got -ne 2 ] || ! grep -q -- "$pattern" err.txt; then fail "'$*' exits $got: $(cat err.txt)"; fi
  [ -z "$(find . -maxdepth 1 -name '-*')" ] || fail "'$*' made a file"
}
no_stream="takes no standard stream"
refused "$no_stream" pd-train -c job.pbtxt --out -
refused "$no_stream" pd-train -c job.pbtxt --out r2 --init-from -
refused "$no_stream" pd-train --program "$linreg/main.pdmodel" --init - --batches b --loss l
refused "$no_stream" pd-train --program "$linreg/main.pdmodel" --init i --batches b --loss l --save -
refused "$no_stream" pd-train --new tabular-regression -
refused "$no_stream" pd-train --new tabular-regression x --data - --target y
refused "$no_stream" pd-train -c job.pbtxt --bench 0 --dump-passes -
refused "$no_stream" pd-eval -m - --feed "$feed"
refused "$no_stream" pd-quant -m "$lenet" --calib - -o q
refused "$no_stream" pd-eval -m "$lenet" --feed "$feed" --expect -
refused "$no_stream" pd-convert "$lenet.pdiparams" w.npz --program -
refused "$no_stream" pd-check-naninf -m "$lenet" --feed "$feed" --dump -
refused "several files" pd-export -m "$lenet" -o -
refused "several files" pd-export -m "$lenet" --to paddle-legacy -o -
refused "several files" pd-quant -m "$lenet" --weight-only -o -
refused "cannot both be '-'" pd-profile --load trace.json --trace - --html -
refused "cannot both be '-'" pd-eval -m "$lenet" --feed - --lod -
refused "takes one file" pd-profile -q -c job.pbtxt --scheduler closed=0,ready=0,record=1,repeat=2 --roofline 0 --trace -
refused "takes one file" pd-profile -q -c job.pbtxt --scheduler closed=0,ready=0,record=1,repeat=2 --roofline 0 --trace /dev/stdout

# --- Reading, from a pipe.
for row in "${reads[@]}"; do
  read -r option file command <<<"$row"
  case $command in *" r "*) rm -rf r ;; esac
  got=0
  # shellcheck disable=SC2002 # a pipe is another thing than a file
  cat "$file" | bash -c "$command" >out.txt 2>err.txt || got=$?
  [ $got -eq 0 ] || fail "$option -: '$command' exits $got: $(cat err.txt)"
done
grep -q conv2d got.txt || fail "pd-convert - read something else"

# --- Writing.
# expect STATUS GOT NAME
expect() {
  [ "$2" -eq "$1" ] || fail "$3: exits $2, expected $1: $(cat err.txt)"
}
# same KIND GOT NAME: the bytes are those of the file that a path gives.
same() {
  case $1 in
    page) head -c 9 "$2" | grep -qi '^<!doctype' || fail "$3: no page" ;;
    *) cmp "$2" want || fail "$3: other bytes than in a file" ;;
  esac
}
try_writes() { # USER COMMAND...: in a folder of the user's own
  local user=$1 option kind command status got
  shift
  for row in "${writes[@]}"; do
    read -r option kind command <<<"$row"
    local name="$user: $option - (${command%% OUT*})"
    got=0
    "$@" bash -c "${command//OUT/want}" >/dev/null 2>err.txt || got=$?
    expect 0 $got "$name, a file of its own"
    [ ! -e want.pdmodel ] || mv want.pdmodel want # that form gives its files their ending
    command=${command//OUT/-}
    got=0
    "$@" bash -c "set -o pipefail; { $command; } | cat >got" 2>err.txt || got=$?
    expect 0 $got "$name, a pipe"
    same "$kind" got "$name, a pipe"
    got=0
    "$@" bash -c "$command" >got 2>err.txt || got=$?
    expect 0 $got "$name, a file"
    same "$kind" got "$name, a file"
    got=0
    "$@" bash -c "echo head; $command" >got 2>err.txt || got=$?
    expect 0 $got "$name, a file that goes on"
    [ "$(head -n 1 got)" = head ] || fail "$name: what stood there is lost"
    tail -n +2 got >got2
    same "$kind" got2 "$name, a file that goes on"
    got=0
    "$@" bash -c "$command" >/dev/null 2>err.txt || got=$?
    expect 0 $got "$name, /dev/null"
    got=0
    "$@" bash -c "$command >&-" 2>err.txt || got=$?
    expect 3 $got "$name, closed"
    status=0
    [ "$kind" != bytes ] || status=3
    got=0
    rm -f err.txt # another user's
    "$@" script -qec "bash -c '{ $command; } 2>err.txt'" /dev/null </dev/null >got || got=$?
    expect $status $got "$name, a terminal"
    [ $status -eq 0 ] || { grep -q 'is a terminal' err.txt && [ ! -s got ]; } ||
      fail "$name, a terminal: $(cat err.txt)"
    [ "$(devices)" = "$before" ] || fail "$name: /dev is another one"
  done
  # The names that the system has for standard output are not replaced either,
  # nor are a device and a link to one.
  ln -s /dev/stdout "link"
  for place in /dev/stdout /dev/fd/1 /proc/self/fd/1 link; do
    "$@" bash -c "pd-convert $lenet.pdmodel $place --to text" >got 2>err.txt || fail "$user: $place: $(cat err.txt)"
    sed '/^wrote /d' got | cmp - <(pd-convert "$lenet.pdmodel" - --to text) || fail "$user: $place: other bytes"
  done
  [ -h link ] || fail "$user: the link is gone"
  "$@" bash -c "pd-convert $lenet.pdmodel /dev/null --to pdmodel && pd-convert $lenet.pdiparams /dev/null --to npz &&
    pd-eval -q -m $lenet --feed $feed --out /dev/null && pd-profile -q --load $top/trace.json --trace /dev/null" \
    >/dev/null 2>err.txt || fail "$user: /dev/null: $(cat err.txt)"
  for command in "pd-export -m $lenet -o /dev/null" "pd-convert $lenet /dev/stdout --to paddle" \
    "pd-quant -q -m $lenet --weight-only -o /dev/null"; do
    got=0
    "$@" bash -c "$command" >/dev/null 2>err.txt || got=$?
    if [ $got -eq 0 ] || ! grep -q "several" err.txt; then fail "$user: '$command' exits $got: $(cat err.txt)"; fi
  done
  [ "$(devices)" = "$before" ] || fail "$user: /dev is another one: $(diff <(echo "$before") <(devices))"
}

mkdir as-root && cd as-root
try_writes root
cd "$top"
if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$bin/pd-eval" -a -r "$feed" 2>/dev/null; then
  mkdir as-nobody && chmod 777 as-nobody && cd as-nobody
  try_writes nobody setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/
else
  echo "streams_test: another user is not tried: none can be had, or it cannot read $bin"
fi
[ $failures -eq 0 ]
