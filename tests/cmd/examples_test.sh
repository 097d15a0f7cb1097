#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples_test.sh PD-MAN BIN TESTDATA: runs the examples of the man pages,
# those of each tool in their order in one new folder where testdata/ is.
set -euo pipefail

pd_man=$1
export PATH=$2:$PATH
testdata=$3
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

failures=0
for tool in $("$pd_man" --list); do
  mkdir "$top/$tool"
  cd "$top/$tool"
  ln -s "$testdata" testdata
  while IFS=$'\t' read -r status command; do
    got=0
    bash -c "set -o pipefail; $command" >out.log 2>err.log </dev/null || got=$?
    if [ "$got" -ne "$status" ]; then
      echo "$tool: '$command' exits $got; its manual says $status" >&2
      tail -n 20 err.log >&2
      failures=$((failures + 1))
    fi
  done < <("$pd_man" --examples "$tool")
done
[ $failures -eq 0 ]
