#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# huge_job_test.sh BIN TESTDATA: jobs whose sizes overflow or are larger than
# memory are refused at their place, with exit status 2, before anything is
# computed; a network of many layers is not one of them.
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
  "$@" >out.txt 2>err.txt </dev/null || got=$?
  if [ $got -ne "$want" ] || ! grep -qE -- "$pattern" err.txt out.txt; then
    printf 'FAILED: %s\n  exit %s, expected %s; the output should match: %s\n' \
      "$*" $got "$want" "$pattern" >&2
    sed 's/^/  | /' err.txt >&2
    failures=$((failures + 1))
  fi
}

# job LAYERS...: a job over ten numbers whose layers are these.
job() {
  cat <<J
model {
  input { name: "x" shape: [-1, 10] }
$(printf '  %s\n' "$@")
  layer { name: "last" linear { out_features: 1 } }
}
loss { label: "y" mse_loss {} }
optimizer { sgd { learning_rate: 0.01 } }
data {
  train {
    csv {
      path: "$testdata/friedman/train.csv"
      field { name: "x" column: "x1:x10" }
      field { name: "y" column: "y" }
    }
    batch_size: 32
  }
}
J
}

most=9223372036854775807
n=0
while IFS= read -r layer; do
  n=$((n + 1))
  job "layer { name: \"big\" $layer }" >huge$n.pbtxt
  for how in "--summary" "--dry-run" "--out new"; do
    # shellcheck disable=SC2086
    expect 2 "^pd-train: .*huge$n.pbtxt:3:[0-9]+: " \
      pd-train -q --memory-limit 4G -c huge$n.pbtxt $how
  done
done <<L
linear { out_features: $most }
linear { out_features: 4611686018427387904 }
linear { out_features: 4611686018427387908 }
linear { out_features: 100000000000 }
embedding { num_embeddings: 4611686018427387904 embedding_dim: 4 }
embedding { num_embeddings: 2305843009213693952 embedding_dim: 8 }
embedding { num_embeddings: 4294967296 embedding_dim: 4294967296 }
lstm { hidden_size: 4611686018427387904 }
multi_head_attention { embed_dim: $most num_heads: 1 }
bilinear { in1_features: 10 in2_features: $most out_features: 4 }
conv2d { out_channels: $most kernel_size: 3 }
reshape { shape: [-1, $most] }
L
[ ! -e new ] || { echo "FAILED: a refused job left a run" >&2; failures=1; }

# Sizes of the data's side.
job >plain.pbtxt
expect 2 "batch_size" pd-train -q -c plain.pbtxt --dry-run \
  -o data.train.batch_size=$most

# The option itself, and what it refuses by name.
for size in "" x -1 0 1Q 1e30; do
  expect 2 "memory-limit" pd-train -q -c plain.pbtxt --dry-run \
    --memory-limit="$size"
done
for size in 64M 64m 64MB 64MiB 0.5G 67108864; do
  expect 0 "" pd-train -q -c plain.pbtxt --dry-run --memory-limit "$size"
done
job 'layer { name: "wide" linear { out_features: 1000000 } }' >wide.pbtxt
expect 2 "wide.pbtxt:3:.*'wide.weight'.*limit is 16.0 MB" \
  pd-train -q -c wide.pbtxt --dry-run --memory-limit 16M

# Twenty thousand layers are many, not too many.
mapfile -t many < <(yes 'layer { relu {} }' | head -20000)
job "${many[@]}" >many.pbtxt
expect 0 "" pd-train -q -c many.pbtxt --dry-run

[ $failures -eq 0 ] || exit 1
echo "huge_job_test: passed"
