#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# symbols_test.sh BUILD: no library that is loaded beside libpd defines a function
# that libpd defines too: the linker would take one of them for both, though they
# may differ in the type of their result.
set -euo pipefail

lib=$1/lib
functions() { nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort; }
failures=0 libraries=0
for library in "$lib"/libpd_*.so "$lib"/libpaddle_inference.so; do
  libraries=$((libraries + 1))
  both=$(comm -12 <(functions "$lib/libpd.so") <(functions "$library") | grep -v '^_\(init\|fini\)$' | c++filt || true)
  [ -z "$both" ] && continue
  echo "symbols_test: libpd.so and ${library##*/} both define $both" >&2
  failures=1
done
[ $libraries -ge 4 ] || { echo "symbols_test: $libraries libraries in $lib" >&2; exit 1; }
[ $failures -eq 0 ]
