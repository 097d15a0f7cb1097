#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# programs_test.sh SOURCE BUILD COMPILER: programs of users compile with -I and
# -l alone: those of the pages, one in C that makes every mistake, and each
# header by itself in the oldest standard.
set -euo pipefail

source=$1
build=$2
compiler=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
fail() {
  echo "programs_test: $1" >&2
  failures=$((failures + 1))
}
include=$build/paddle_compat
link=(-L"$build/lib" -lpaddle_inference_c "-Wl,-rpath,$build/lib")
c_compiler=${compiler/clang++/clang}
c_compiler=${c_compiler/c++/cc}
c_compiler=${c_compiler/g++/gcc}
strict=(-Wall -Wextra -Werror)

# The first block of this language in a page.
block() { sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/p" "$1" | sed '1d;$d'; }
block "$source/libcore/inference/CPP.md" cpp >"$dir/page.cc"
block "$source/libcore/inference/C.md" c >"$dir/page.c"
"$compiler" -std=c++14 "${strict[@]}" -I"$include" "$dir/page.cc" -o "$dir/page_cpp" "${link[@]}" || fail "CPP.md does not compile"
"$c_compiler" -std=c99 "${strict[@]}" -I"$include" "$dir/page.c" -o "$dir/page_c" "${link[@]}" || fail "C.md does not compile"
"$c_compiler" -std=c99 "${strict[@]}" -I"$include" "$source/tests/inference/program.c" -o "$dir/program" "${link[@]}" || fail "program.c does not compile"
model=$source/testdata/deploy/lenet
for program in page_cpp page_c; do
  page=CPP.md
  [ $program = page_cpp ] || page=C.md
  "$dir/$program" "$model.pdmodel" "$model.pdiparams" >"$dir/out" || fail "$program: exit $?"
  grep -qF "prints \`$(cat "$dir/out")\`" "$source/libcore/inference/$page" || fail "$program prints '$(cat "$dir/out")', which $page does not say"
done
"$dir/program" "$model.pdmodel" "$model.pdiparams" 2>"$dir/log" || fail "program.c: exit $?: $(cat "$dir/log")"
grep -q "PreconditionNotMetError: .*no input 'nothing'" "$dir/log" || fail "the log does not say what was wrong: $(cat "$dir/log")"

# One source for all headers, and every path by which programs include them. A
# source takes one of the two forms of kernels: that in C has a source of its own.
(cd "$include" && find . -name '*.h' | sed 's|^\./||' | LC_ALL=C sort) >"$dir/headers"
c_form='(^|/)(phi/capi/all|paddle_capi_(kernel|meta|types))\.h$'
includes() { sed 's/.*/#include "&"/'; }
grep -vE "$c_form" "$dir/headers" | includes >"$dir/all.cc"
grep -E "$c_form" "$dir/headers" | includes >"$dir/c_form.cc"
grep '^pd_' "$dir/headers" | includes >"$dir/all.c"
for form in all c_form; do
  "$compiler" -std=c++14 "${strict[@]}" -I"$include" -fsyntax-only "$dir/$form.cc" || fail "headers in C++14 ($form)"
done
"$c_compiler" -std=c99 "${strict[@]}" -I"$include" -fsyntax-only "$dir/all.c" || fail "headers in C99"
[ $failures -eq 0 ]
