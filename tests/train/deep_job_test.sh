#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deep_job_test.sh BIN TESTDATA: networks of tens of thousands of layers, deep
# and wide, are planned, and summed up, to the last parameter.
set -euo pipefail

export PATH=$1:$PATH
testdata=$2
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cd "$top"
failures=0

# job FILE: a job over ten numbers with the layers on standard input.
job() {
  {
    echo 'model { input { name: "x" shape: [-1, 10] }'
    cat
    cat <<J
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
  } >"$1"
}

# parameters FILE COUNT: --dry-run and --summary count so many.
parameters() {
  local how got
  for how in --dry-run --summary; do
    got=0
    pd-train -q -c "$1" $how >out.txt 2>err.txt </dev/null || got=$?
    if [ $got -ne 0 ] || ! grep -iqE "^(total )?(parameters|params)[: ]+$2\b" out.txt
    then
      echo "FAILED: $1 $how: exit $got; expected $2 parameters" >&2
      tail -n 3 out.txt err.txt >&2
      failures=$((failures + 1))
    fi
  done
}

# A chain: 20,000 layers of 10 x 10 and 10, and the last.
for ((i = 0; i < 20000; ++i)); do
  echo "layer { linear { out_features: 10 } }"
done | job chain.pbtxt
parameters chain.pbtxt 2,200,011

# Blocks with shortcuts.
{
  echo 'layer { name: "r0" linear { out_features: 10 } }'
  for ((i = 1; i <= 2500; ++i)); do
    echo "layer { name: \"a$i\" input: \"r$((i - 1))\" linear { out_features: 10 } }"
    echo "layer { name: \"b$i\" relu {} }"
    echo "layer { name: \"r$i\" input: \"r$((i - 1))\" input: \"b$i\" add {} }"
  done
} | job shortcuts.pbtxt
parameters shortcuts.pbtxt 275,121

# Branches that one layer joins: 5,000 of 10 x 4 and 4.
{
  for ((i = 0; i < 5000; ++i)); do
    echo "layer { name: \"b$i\" input: \"x\" linear { out_features: 4 } }"
  done
  echo "layer {"
  printf '  input: "b%d"\n' {0..4999}
  echo "  concat { axis: 1 } }"
} | job branches.pbtxt
parameters branches.pbtxt 240,001

# Branches that wait for each other.
{
  for ((i = 0; i < 2500; ++i)); do
    echo "layer { name: \"b$i\" input: \"x\" linear { out_features: 4 } }"
  done
  echo 'layer { name: "s0" input: "b0" relu {} }'
  for ((i = 1; i < 2500; ++i)); do
    echo "layer { name: \"s$i\" input: \"s$((i - 1))\" input: \"b$i\" add {} }"
  done
} | job waiting.pbtxt
parameters waiting.pbtxt 110,005

[ $failures -eq 0 ] || exit 1
echo "deep_job_test: passed"
