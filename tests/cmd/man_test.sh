#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# man_test.sh PD-MAN DIR: each DIR/TOOL.1 equals what pd-man prints and passes
# mandoc's lint; --update writes them instead.
set -euo pipefail

update=no
if [ "$1" = --update ]; then
  update=yes
  shift
fi
pd_man=$1
dir=$2
failures=0
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
for tool in $("$pd_man" --list); do
  "$pd_man" "$tool" >"$fresh"
  if [ $update = yes ]; then cp "$fresh" "$dir/$tool.1"; fi
  if ! diff -u "$dir/$tool.1" "$fresh"; then
    echo "man_test: man/$tool.1 is not what the tables say: run scripts/make_man" >&2
    failures=$((failures + 1))
  fi
done
if command -v mandoc >/dev/null; then
  for page in "$dir"/*.[1-9]; do
    [ -e "$page" ] || continue
    mandoc -Tlint -Wwarning "$page" || failures=$((failures + 1))
  done
fi
[ $failures -eq 0 ]
