#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# symbols_test.sh LIBRARY: it exports what symbols.txt lists, and nothing
# outside of the API's namespaces. After a change that is meant:
#   symbols_test.sh LIBRARY --write
set -euo pipefail

list=$(dirname "$0")/symbols.txt
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
nm -D --defined-only "$1" | grep -v ' A ' | c++filt | cut -d ' ' -f 2- >"$dir/all"
# Inline functions are there or not as the compiler likes; templates of tensors,
# whose instances the library holds, are weak too.
grep -E '^T |^W .*paddle_infer::Tensor::[A-Za-z_]+<' "$dir/all" | cut -d ' ' -f 2- | LC_ALL=C sort -u >"$dir/names"
if [ "${2-}" = --write ]; then
  cp "$dir/names" "$list"
  exit 0
fi
failed=0
if ! diff "$list" "$dir/names" >"$dir/changes"; then
  echo "symbols_test: other symbols (< was, > is):" >&2
  cat "$dir/changes" >&2
  failed=1
fi
if grep -vE '^. (PD_[A-Za-z0-9]+$|.*(paddle|paddle_infer|phi::enforce)::)' "$dir/all" >&2; then
  echo "symbols_test: these belong to no API" >&2
  failed=1
fi
exit $failed
