#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# apps_value_loss_test.sh BIN TESTDATA: the applications whose losses are
# computed by layers learn: the variational autoencoder and the triplets of
# metric learning. The autoencoder draws in training and not in evaluation.
set -euo pipefail

export PATH=$1:$PATH
jobs=$2/jobs/apps
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
  echo "apps_value_loss_test: $*" >&2
  exit 1
}
# losses NAME STEPS: trains, and prints the means of the first and of the last
# five losses.
losses() {
  pd-train -q -c "$jobs/$1/job.pbtxt" --out "$1" --steps "$2" -o data.eval= \
    -o data.train.batch_size=64 -o train.log.every_steps=1 >/dev/null
  jq -c 'select(.loss) | .loss' "$1/log.jsonl" |
    awk '{ x[NR] = $1 } END { for (i = 1; i <= 5; ++i) { a += x[i]; b += x[NR + 1 - i] }
           print a / 5, b / 5 }'
}
# learns NAME STEPS FIRST LAST: losses begin above FIRST and end below LAST.
learns() {
  local first last
  read -r first last <<<"$(losses "$1" "$2")"
  awk -v a="$first" -v b="$last" -v from="$3" -v to="$4" 'BEGIN { exit !(a > from && b < to) }' ||
    fail "the losses of $1 go from $first to $last, not from $3 to $4"
}

# 784 pixels of log 2 at first; a decoder that always gives the mean of all
# pictures costs 206.
learns vae 60 400 260
evaluate() {
  pd-eval -q -m vae -c "$jobs/vae/job.pbtxt" --format json --seed "$1" | jq .loss
}
[ "$(evaluate 1)" = "$(evaluate 2)" ] || fail "evaluation draws"

# 0.5 is the margin: the loss of vectors that are all one.
learns metric_learning 300 0.5 0.25
