# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# server.bash: a server in a folder of its own, for tests that begin in the
# project's folder with `. tests/serve/server.bash`.
# shellcheck disable=SC2034 # variables are for these tests
set -euo pipefail
testdata=$PWD/testdata
page=$PWD/libcore/serve/SERVING.md
proto=$PWD/libcore/serve/grpc/kserve.proto
test=$(basename "$0" .sh)
work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
cd "$work"

fail() {
  echo "$test: $*" >&2
  cat err.log >&2 || true
  exit 1
}

# start ARGUMENT...: a server whose address is in $url.
start() {
  : >out.log
  pd-eval --serve 127.0.0.1:0 "$@" >out.log 2>err.log &
  server=$!
  for _ in $(seq 1200); do
    grep -q . out.log && break
    kill -0 "$server" 2>/dev/null || fail "the server has ended"
    sleep 0.1
  done
  url=$(sed -n 's/^serving on //p' out.log)
  [ -n "$url" ] || fail "no address: $(cat out.log)"
}

# stop: the end is in order, also where the signal comes twice.
stop() {
  local status=0
  kill -TERM "$server"
  kill -TERM "$server"
  wait "$server" || status=$?
  server=
  [ "$status" -eq 0 ] || fail "the server exits $status"
}

# status EXPECTED CURL-ARGUMENT...: the answer is left in body.
status() {
  local expected=$1 got
  shift
  got=$(curl -sS -o body -w '%{http_code}' "$@") || fail "curl $*"
  [ "$got" = "$expected" ] || fail "curl $* gives $got: $(head -c 300 body)"
}
