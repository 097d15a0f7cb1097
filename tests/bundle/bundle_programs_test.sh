#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bundle_programs_test.sh SOURCE BUILD COMPILER: what pd-export --to bundle and
# --to c write, in the hands of a user. The room's page compiles as C against
# libpd_run and prints what the page says; the folder of sources compiles with
# nothing but a C++17 compiler, here and for aarch64, and answers as PaddlePaddle
# did; programs, library and exported names are as few and small as promised.
set -euo pipefail

source=$1
build=$2
compiler=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0
fail() {
  echo "bundle_programs_test: $1" >&2
  failures=$((failures + 1))
}
c_compiler=${compiler/clang++/clang}
c_compiler=${c_compiler/c++/cc}
c_compiler=${c_compiler/g++/gcc}
strict=(-Wall -Wextra -Werror)
deploy=$source/testdata/deploy

# raw NPZ FILE: the only array of an npz, without its header.
raw() {
  python3 - "$1" "$2" <<'END'
import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
data = archive.read(archive.namelist()[0])
assert data[:8] == b"\x93NUMPY\x01\x00"
open(sys.argv[2], "wb").write(data[10 + int.from_bytes(data[8:10], "little"):])
END
}
# agrees PRINTED RAW: numbers a line are those of a file of float32 to 1e-5.
agrees() {
  python3 - "$1" "$2" <<'END'
import array, sys
want = array.array("f", open(sys.argv[2], "rb").read())
got = [float(line) for line in open(sys.argv[1]) if not line.startswith("#")]
worst = max(abs(g - w) - 1e-5 * abs(w) for g, w in zip(got, want))
sys.exit(0 if len(got) == len(want) and worst <= 1e-5 else f"{len(got)} numbers, worst {worst}")
END
}
# at_most BYTES FILE WHAT
at_most() {
  local size
  size=$(stat -c %s "$2")
  echo "$3: $size bytes"
  [ "$size" -le "$1" ] || fail "$3 has $size bytes; at most $1"
}

"$build/bin/pd-export" -q -m "$deploy/lenet" --to bundle -o "$dir/lenet.pdb" \
  --verify "$deploy/lenet-feed.npz" >"$dir/verified" || fail "the bundle is not as the model: $(cat "$dir/verified")"
"$build/bin/pd-export" -q -m "$deploy/lenet" --to c -o "$dir/lenet" >/dev/null || fail "--to c fails"
raw "$deploy/lenet-feed.npz" "$dir/feed"
raw "$deploy/lenet-expect.npz" "$dir/expect"

# The program of the page, as C, with both libraries.
sed -n "/^\`\`\`c\$/,/^\`\`\`\$/p" "$source/libcore/bundle/README.md" | sed '1d;$d' >"$dir/page.c"
cp "$source/libcore/bundle/runtime/pd_run.h" "$dir"
"$c_compiler" -std=c99 "${strict[@]}" -I"$dir" "$dir/page.c" -o "$dir/shared" \
  -L"$build/lib" -lpd_run "-Wl,-rpath,$build/lib" || fail "the page does not compile"
"$c_compiler" -std=c99 "${strict[@]}" -I"$dir" "$dir/page.c" -o "$dir/static" \
  "$build/lib/libpd_run.a" -lstdc++ -lm -pthread -Wl,--gc-sections || fail "the page does not link with libpd_run.a"
for program in shared static; do
  "$dir/$program" "$dir/lenet.pdb" >"$dir/out" || fail "$program: exit $?"
  grep -qF "prints \`$(cat "$dir/out")\`" "$source/libcore/bundle/README.md" ||
    fail "the page prints '$(cat "$dir/out")', which it does not say"
done
strip -o "$dir/library" "$build/lib/libpd_run.so"
at_most 1500000 "$dir/library" "libpd_run.so, stripped"
strip "$dir/static"
at_most 1500000 "$dir/static" "a program with libpd_run.a, stripped"
nm -D --defined-only "$build/lib/libpd_run.so" | awk '{ print $3 }' | grep -v '^pd_run_' >"$dir/names" || true
[ ! -s "$dir/names" ] || fail "libpd_run.so exports $(tr '\n' ' ' <"$dir/names")"

# The folder of sources.
(cd "$dir/lenet" && c++ -std=c++17 -O1 "${strict[@]}" -pthread ./*.cc -o ../run) || fail "the folder does not compile"
"$dir/run" "$dir/feed" >"$dir/answers" || fail "run: exit $?"
agrees "$dir/answers" "$dir/expect" || fail "the folder's program answers otherwise"
strip "$dir/run"
at_most $((1500000 + $(stat -c %s "$dir/lenet.pdb"))) "$dir/run" "LeNet's program with its weights, stripped"
"$dir/run" 2>/dev/null && fail "run without a file does not fail"

# Every kernel, without the extensions of GCC and Clang.
c++ -std=c++17 "${strict[@]}" -U__GNUC__ -fsyntax-only -I"$source" "$source"/libcore/bundle/runtime/*.cc ||
  fail "the runtime needs more than C++17"

# ResNet-50's weights stay a file beside it.
cat >"$dir/resnet50.pbtxt" <<'END'
model {
  input { name: "image" shape: [-1, 3, 224, 224] }
  layer { block { use: "resnet50" } }
}
END
"$build/bin/pd-export" -q -c "$dir/resnet50.pbtxt" --to c -o "$dir/resnet50" >/dev/null || fail "ResNet-50 cannot be written"
[ -s "$dir/resnet50/model.pdb" ] || fail "ResNet-50 has no model.pdb"
(cd "$dir/resnet50" && c++ -std=c++17 -O1 -pthread ./*.cc -o ../run50) || fail "ResNet-50's folder does not compile"
head -c $((3 * 224 * 224 * 4)) /dev/zero >"$dir/picture"
(cd "$dir/resnet50" && "$dir/run50" "$dir/picture" >"$dir/classes") || fail "run50: exit $?"
[ "$(grep -vc '^#' "$dir/classes")" = 1000 ] || fail "ResNet-50 gives $(grep -vc '^#' "$dir/classes") numbers"
strip "$dir/run50"
at_most 5000000 "$dir/run50" "ResNet-50's program, stripped"

# The same sources on another processor.
if command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then
  (cd "$dir/lenet" && aarch64-linux-gnu-g++ -std=c++17 -O1 "${strict[@]}" -static -pthread ./*.cc -o ../run_arm) ||
    fail "the folder does not compile for aarch64"
  qemu-aarch64 "$dir/run_arm" "$dir/feed" >"$dir/answers" || fail "run_arm: exit $?"
  agrees "$dir/answers" "$dir/expect" || fail "the program for aarch64 answers otherwise"
  echo "aarch64: built and run"
else
  echo "bundle_programs_test: SKIPPED for aarch64: it needs g++-aarch64-linux-gnu and qemu-user" >&2
fi

# What is wrong with a command line or a model is told.
status=0
"$build/bin/pd-export" -m "$deploy/lenet" --to c -o "$dir/x" --verify "$deploy/lenet-feed.npz" 2>"$dir/log" || status=$?
{ [ $status -eq 2 ] && grep -q -- '--verify cannot run' "$dir/log"; } || fail "--verify with --to c: exit $status"
status=0
"$build/bin/pd-export" -m "$deploy/lenet" --to c -o - 2>"$dir/log" || status=$?
[ $status -eq 2 ] || fail "--to c to standard output: exit $status"
cat >"$dir/inverse.pbtxt" <<'END'
model {
  input { name: "x" shape: [-1, 4, 6] }
  layer { op { type: "erfinv" } }
}
END
status=0
"$build/bin/pd-export" -c "$dir/inverse.pbtxt" --to bundle -o "$dir/inverse.pdb" 2>"$dir/log" || status=$?
{ [ $status -eq 3 ] && grep -q "'erfinv'.*bundles have no kernel for it" "$dir/log"; } ||
  fail "an operator without a kernel: exit $status, $(cat "$dir/log")"
[ ! -e "$dir/inverse.pdb" ] || fail "a bundle is there although it failed"
[ $failures -eq 0 ]
