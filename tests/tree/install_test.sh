#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD TESTDATA: installs into a prefix, moves the prefix, and
# uses what is there: tools, man pages, completions; pdkit.pc and pdkitConfig
# by a small program. Then packs the Debian package and looks at that.
set -euo pipefail

build=$1
testdata=$2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C
failures=0
fail() {
  echo "install_test: $1" >&2
  failures=$((failures + 1))
}

cmake --install "$build" --prefix "$dir/first" >"$dir/install.log" || { cat "$dir/install.log"; exit 1; }
mv "$dir/first" "$dir/prefix"
prefix=$dir/prefix
for tool in pd-check-naninf pd-convert pd-eval pd-export pd-profile pd-quant pd-train; do
  [[ $("$prefix/bin/$tool" --version) == "$tool "* ]] || fail "$tool does not run"
  ldd "$prefix/bin/$tool" | grep "libpd.so.0 => $prefix/" >/dev/null || fail "$tool takes another libpd"
  for file in share/man/man1/$tool.1 share/bash-completion/completions/$tool \
    share/zsh/site-functions/_$tool share/fish/vendor_completions.d/$tool.fish; do
    [ -s "$prefix/$file" ] || fail "$file is missing"
  done
done
for file in share/man/man5/pd-job.5 share/doc/pdkit/LICENSE share/doc/pdkit/README.md; do
  [ -s "$prefix/$file" ] || fail "$file is missing"
done
# A link of an installed document leads to an installed one.
documents=0
while read -r document; do
  documents=$((documents + 1))
  while read -r link; do
    [ -e "$(dirname "$document")/$link" ] || fail "$document leads to '$link', which is not installed"
  done < <(grep -oE '\]\([^)]+\)' "$document" | sed -E 's/^\]\(//; s/\)$//; s/#.*//' | grep -vE '^$|://' || true)
done < <(find "$prefix/share/doc/pdkit" -name '*.md')
[ $documents -gt 1 ] || fail "$documents documents are installed"
"$prefix/bin/pd-convert" -q --inspect "$testdata/formats/models/inference.pdmodel" >"$dir/out" ||
  fail "the installed pd-convert fails"

# What an installed header includes of ours is installed too.
(cd "$prefix/include/pdkit" && grep -rhoE '^#include "[^"]+"' . | grep -oE '(libcore|formats|cmd)/[^"]+' | sort -u) >"$dir/includes"
while read -r header; do
  [ -e "$prefix/include/pdkit/$header" ] || fail "a header includes $header, which is not installed"
done <"$dir/includes"

cat >"$dir/main.cc" <<'END'
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/model/load_model.h"

// Runs the model on 16 records and gives its outputs; `fast` gets the number of
// steps that another kernel than the reference one computes.
static absl::StatusOr<std::vector<float>> Run(const pd::OpRegistry& registry, const pd::LoadedModel& model, int* fast) {
  pd::Session session(&registry);
  absl::Status status = pd::FillScope(model, &session.scope());
  if (!status.ok()) return status;
  std::vector<float> x(16 * 5);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) / 11 - 0.5f;
  auto plan = session.Compile(model.program, {{model.feeds.at(0), pd::DType::kFloat32, {16, 5}}}, model.fetches);
  if (!plan.ok()) return plan.status();
  *fast = 0;
  for (const pd::StepInfo& step : (*plan)->steps()) *fast += step.implementation != "reference";
  (*plan)->SetFeed(0, x.data());
  status = (*plan)->Run({});
  if (!status.ok()) return status;
  const pd::Tensor& y = (*plan)->fetch(0);
  return std::vector<float>(y.data<float>(), y.data<float>() + 16 * 3);
}

static int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

int main(int, char** argv) {
  const auto model = pd::LoadModel(argv[1]);
  if (!model.ok()) return Fail(model.status());
  const auto registry = pd::MakeRegistry();
  if (!registry.ok()) return Fail(registry.status());
  pd::OpRegistry references;
  const absl::Status registered = pd::RegisterAllOps(&references);
  if (!registered.ok()) return Fail(registered);
  int fast = 0, none = 0;
  const auto got = Run(**registry, *model, &fast);
  if (!got.ok()) return Fail(got.status());
  const auto wanted = Run(references, *model, &none);
  if (!wanted.ok()) return Fail(wanted.status());
  float worst = 0;
  for (size_t i = 0; i < got->size(); ++i) worst = std::max(worst, std::fabs((*got)[i] - (*wanted)[i]));
  std::printf("%zu ops, %zu parameters, fast kernels: %s, with RegisterAllOps alone: %s, the same answers: %s\n",
              model->program.blocks[0].ops.size(), model->params.size(), fast > 0 ? "yes" : "no",
              none > 0 ? "yes" : "no", worst < 1e-5f ? "yes" : "no");
}
END
model=$testdata/formats/models/inference
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
[ "$(pkg-config --modversion pdkit)" = "$("$prefix/bin/pd-train" --version | sed -n '1s/^pd-train \([0-9.]*\).*/\1/p')" ] ||
  fail "pdkit.pc has another version than the tools"
read -ra flags <<<"$(pkg-config --cflags --libs pdkit)"
c++ -std=c++17 "$dir/main.cc" "${flags[@]}" -o "$dir/main" || fail "pkg-config: no program"
said=$(LD_LIBRARY_PATH=$prefix/lib "$dir/main" "$model") || fail "the program fails"
wanted='^[1-9][0-9]* ops, [1-9][0-9]* parameters, fast kernels: yes, with RegisterAllOps alone: no, the same answers: yes$'
[[ $said =~ $wanted ]] || fail "the program says '$said'"
if LD_LIBRARY_PATH=$prefix/lib "$dir/main" "$dir/nothing" 2>/dev/null; then fail "a missing model is no error"; fi

mkdir "$dir/user"
cat >"$dir/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(pdkit 0.1 REQUIRED)
add_executable(user ../main.cc)
target_link_libraries(user PRIVATE pdkit::pd)
END
{ cmake -S "$dir/user" -B "$dir/user/build" -DCMAKE_PREFIX_PATH="$prefix" &&
  cmake --build "$dir/user/build"; } >"$dir/cmake.log" 2>&1 || { cat "$dir/cmake.log"; fail "find_package(pdkit) gives no program"; }
[ "$("$dir/user/build/user" "$model")" = "$said" ] || fail "the program of CMake says something else"

# Programs written for PaddlePaddle: those of the pages, by pkg-config and by
# find_package; the module of libpd serves them too.
lenet=("$testdata/deploy/lenet.pdmodel" "$testdata/deploy/lenet.pdiparams")
block() { sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/p" "$prefix/share/doc/pdkit/libcore/$1" | sed '1d;$d'; }
block inference/CPP.md cpp >"$dir/page.cc"
block inference/C.md c >"$dir/page.c"
read -ra flags <<<"$(pkg-config --cflags --libs pdkit-inference)"
c++ "$dir/page.cc" "${flags[@]}" -o "$dir/page" || fail "pdkit-inference: no program in C++"
cc "$dir/page.c" "${flags[@]}" -o "$dir/page_c" || fail "pdkit-inference: no program in C"
read -ra flags <<<"$(pkg-config --variable=compat_cflags pdkit) $(pkg-config --libs pdkit)"
c++ "$dir/page.cc" "${flags[@]}" -o "$dir/page_pdkit" || fail "compat_cflags of pdkit: no program"
cat >"$dir/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(pdkit 0.1 REQUIRED)
add_executable(user ../page.cc)
target_link_libraries(user PRIVATE pdkit::inference)
END
{ cmake -S "$dir/user" -B "$dir/user/page" -DCMAKE_PREFIX_PATH="$prefix" &&
  cmake --build "$dir/user/page"; } >"$dir/cmake.log" 2>&1 || { cat "$dir/cmake.log"; fail "pdkit::inference gives no program"; }
for program in "$dir/page" "$dir/page_c" "$dir/page_pdkit" "$dir/user/page/user"; do
  [ "$(LD_LIBRARY_PATH=$prefix/lib "$program" "${lenet[@]}")" = "class 8 of 10" ] || fail "$program gives another answer"
done

# A bundle, and a program that takes nothing else of pdkit.
block bundle/README.md c >"$dir/bundle.c"
read -ra flags <<<"$(pkg-config --cflags --libs pdkit-run)"
cc -std=c99 "$dir/bundle.c" "${flags[@]}" -o "$dir/bundle" || fail "pdkit-run: no program in C"
"$prefix/bin/pd-export" -q -m "$testdata/deploy/lenet" --to bundle -o "$dir/lenet.pdb" >/dev/null || fail "no bundle"
[ "$(LD_LIBRARY_PATH=$prefix/lib "$dir/bundle" "$dir/lenet.pdb")" = "class 1 of 10" ] || fail "the bundle gives another answer"
ldd "$prefix/lib/libpd_run.so" | grep -E 'libpd\.so|absl|protobuf|gomp' && fail "libpd_run takes other libraries"
[ -s "$prefix/lib/libpd_run.a" ] || fail "libpd_run.a is missing"

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$dir/deb" >"$dir/cpack.log" 2>&1 || { cat "$dir/cpack.log"; exit 1; }
"$here/package_test.sh" "$dir/deb" "$testdata" || fail "the packages are wrong"
[ $failures -eq 0 ]
