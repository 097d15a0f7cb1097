#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# man_test.sh PD-MAN DIR: each DIR/TOOL.1, and DIR/pd-upgrade.7, equals what
# pd-man prints and passes mandoc's lint; --update writes them instead.
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
for page in $("$pd_man" --list | sed 's/$/.1/') pd-upgrade.7; do
  "$pd_man" "${page%.*}" >"$fresh"
  if [ $update = yes ]; then cp "$fresh" "$dir/$page"; fi
  if ! diff -u "$dir/$page" "$fresh"; then
    echo "man_test: man/$page is not what the tables say: run scripts/make_man" >&2
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
