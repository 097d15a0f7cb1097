#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# job_man_test.sh PD-JOB-MAN DESCRIPTORS EXAMPLE PAGE: PAGE equals what
# pd-job-man prints and passes mandoc's lint; --update writes it instead.
set -euo pipefail

update=no
if [ "$1" = --update ]; then
  update=yes
  shift
fi
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
"$1" "$2" "$3" >"$fresh"
if [ $update = yes ]; then cp "$fresh" "$4"; fi
if ! diff -u "$4" "$fresh"; then
  echo "job_man_test: $4 is not what the schema says: run scripts/make_man" >&2
  exit 1
fi
if command -v mandoc >/dev/null; then mandoc -Tlint -Wwarning "$4"; fi
