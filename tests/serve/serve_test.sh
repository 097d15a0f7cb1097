#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# serve_test.sh BIN: pd-eval --serve as a process, asked by curl: JSON and
# bytes, several models, versions that appear under load, SIGHUP, limits, and
# the end by SIGTERM under load.
# shellcheck disable=SC2154 # variables of server.bash
set -euo pipefail

export PATH=$1:$PATH
# shellcheck source=/dev/null
. tests/serve/server.bash

refuse() {
  local expected=$1 got=0
  shift
  pd-eval "$@" >out.log 2>err.log || got=$?
  [ "$got" -eq "$expected" ] || fail "pd-eval $* exits $got, not $expected"
}

add() {
  mkdir -p "$2"
  cp "$testdata/deploy/$1.pdmodel" "$2/model.pdmodel"
  cp "$testdata/deploy/$1.pdiparams" "$2/model.pdiparams"
}

# A picture of ones, as JSON and as bytes.
ones=$(printf '1,%.0s' $(seq 783))1
printf '{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1,28,28],"data":[%s]}]}' \
  "$ones" >question.json
head=$(printf '%s' '{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1,28,28],' \
  '"parameters":{"binary_data_size":3136}}]}')
{
  printf '%s' "$head"
  for _ in $(seq 784); do printf '\0\0\200\077'; done
} >question.bin

add lenet zoo/digits/1
add cifar_resnet zoo/pictures/1
start -m zoo -m "extents=$testdata/deploy/open_extents"

status 200 "$url/v2/health/ready"
status 200 "$url/v2/models/pictures"
status 200 "$url/v2/models/extents/ready"
status 404 "$url/v2/models/nothing"
jq -e .error body >jq.log
status 200 "$url/v2/models/digits/infer" -d @question.json
jq -c '.outputs[0].data' body >from_json
status 200 "$url/v2/models/digits/infer" --data-binary @question.bin \
  -H "Inference-Header-Content-Length: ${#head}"
jq -c '.outputs[0].data' body >from_bytes
cmp from_json from_bytes
[ "$(jq -r '.outputs[0].shape | join(",")' body)" = 1,10 ] || fail "no 10 classes"
status 400 "$url/v2/models/digits/infer" -d '{"inputs":[]}'
status 400 "$url/v2/models/digits/infer" --data-binary @question.bin
status 200 -X POST "$url/v2/repository/index"
[ "$(jq length body)" = 3 ] || fail "the index has no three entries"

# Load from several clients, whose every answer has to be 200.
ask() {
  while [ ! -e "$1" ]; do
    code=$(curl -sS -o "body.$2" -w '%{http_code}' "$url/v2/models/digits/infer" \
      -d @question.json 2>"curl.$2") || code="curl $?: $(cat "curl.$2")"
    echo "$code"
  done >>"codes.$2"
}
clients=()
for i in 1 2 3; do
  ask no_more "$i" &
  clients+=($!)
done
version() { curl -sS "$url/v2/models/digits" | jq -r '.versions | join(",")'; }
await() {
  for _ in $(seq 600); do
    [ "$(version)" = "$1" ] && return
    sleep 0.1
  done
  fail "the versions are $(version), not $1"
}
add lenet zoo/digits/2
await 1,2
rm -r zoo/digits/1
await 2
add lenet zoo/digits/3
kill -HUP "$server"
await 2,3
status 200 -X POST "$url/v2/repository/models/digits/load"
status 200 "$url/v2/models/digits/versions/2/infer" -d @question.json
[ "$(jq -r .model_version body)" = 2 ] || fail "not version 2"
: >no_more
wait "${clients[@]}"
[ "$(sort -u codes.*)" = 200 ] || fail "answers: $(sort codes.* | uniq -c)"
curl -sS "$url/metrics" >metrics
grep -q '^pd_request_seconds_count{model="digits",version="3"} [1-9]' metrics ||
  fail "no requests of version 3 in /metrics"

# The end under load: an answer, or no connection at all (curl's status 7).
rm codes.* no_more
for i in 1 2 3; do
  ask gone "$i" &
  clients+=($!)
done
until [ "$(cat codes.* 2>/dev/null | wc -l)" -ge 10 ]; do sleep 0.05; done
stop
: >gone
wait
grep -h -v -e '^200$' -e '^curl 7:' codes.* && fail "requests were lost"

# gRPC beside HTTP: both addresses, and one that is taken.
if [ -e "$1/../lib/libpd_grpc.so" ]; then
  start -m "digits=$testdata/deploy/lenet.pdmodel" --grpc 127.0.0.1:0
  grep -q '^and on grpc://127.0.0.1:[1-9]' out.log || fail "$(cat out.log)"
  taken=${url#http://}
  status 200 "$url/v2/models/digits/infer" -d @question.json
  refuse 3 --serve 127.0.0.1:0 --grpc "$taken" -m "$testdata/deploy/lenet.pdmodel"
  stop
fi
refuse 2 --serve 127.0.0.1:0 --grpc 8001 -m "$testdata/deploy/lenet.pdmodel"
refuse 2 --grpc 127.0.0.1:0 -m x --feed z

# The session of the page, as it stands there but for the port.
cp "$testdata/deploy/lenet.pdmodel" "$testdata/deploy/lenet.pdiparams" .
port=$((20000 + $$ % 20000))
# session N: the page's session number N.
session() {
  awk -v n="$1" '/^```sh$/ { ++at; next } /^```/ { if (inside) exit } { inside = at == n }
    inside' "$page" | sed "s/8321/$port/; s/8322/$((port + 1))/" >session
  grep -q "$port" session || fail "SERVING.md has no session $1"
  bash -e session >session.log 2>err.log || fail "session $1 of SERVING.md"
}
session 1
grep -q '"model_version":"1","id":"1"' session.log || fail "$(cat session.log)"
if [ -e "$1/../lib/libpd_grpc.so" ] && curl --version | grep -q HTTP2; then
  cp "$proto" .
  session 2
  grep -q '^  *shape: 28$' session.log || fail "no metadata: $(cat session.log)"
  [ "$(grep -c '^ *fp32_contents: ' session.log)" -eq 10 ] ||
    fail "no ten classes over gRPC: $(cat session.log)"
fi

# Limits and wrong command lines.
start -m "$testdata/deploy/lenet.pdmodel" --max-request 1
head -c 1048577 /dev/zero >large
status 413 "$url/v2/models/lenet/infer" --data-binary @large
stop
refuse 2 --serve 8000 -m "$testdata/deploy/lenet.pdmodel"
refuse 2 --serve 127.0.0.1:0 -m "a/b=$testdata/deploy/lenet"
refuse 2 --serve 127.0.0.1:0 -m a=x -m a=y
refuse 2 -m x -m y --feed z
refuse 2 --max-batch 3 -m x --feed z
refuse 3 --serve 127.0.0.1:0 -m nothing.pdmodel
refuse 3 --serve 127.0.0.1:0 -m "$testdata/quant/lenet-logits.npz"
