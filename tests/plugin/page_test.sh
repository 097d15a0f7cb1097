#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# page_test.sh SOURCE BUILD COMPILER: the example of OPERATORS.md, from its
# source to a trained and exported model; every tool takes the plug-in.
set -euo pipefail

source=$1
build=$2
compiler=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "page_test: $1" >&2
  exit 1
}
page=$source/libcore/plugin/OPERATORS.md
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$page" | sed '1d;$d'; }
block cpp >"$dir/bent_identity.cc"
block pbtxt >"$dir/job.pbtxt"
block sh >"$dir/commands"
cp "$source/testdata/housing/housing.data" "$dir"
cd "$dir"
"$compiler" -std=c++14 -Wall -Wextra -Werror -O1 -shared -fPIC bent_identity.cc \
  -o bent_identity.so "-I$build/paddle_compat" || fail "the source does not compile"
export PATH=$build/bin:$PATH
bash -e commands >out 2>log || fail "the commands fail: $(tail -5 log)"
for op in bent_identity bent_identity_grad custom_relu; do
  grep -q "$op" out || fail "pd-profile does not show '$op': $(cat out)"
done

# Without the plug-in, and other tools.
pd-eval -m housing --bench 0.1 2>log >out && fail "it runs without the plug-in"
grep -q "bent_identity" log || fail "the error does not name the operator: $(cat log)"
pd-check-naninf --plugin ./bent_identity.so -c job.pbtxt --steps 2 >out 2>log || fail "pd-check-naninf: $(cat log)"
pd-quant --plugin ./bent_identity.so -m housing --weight-only --out small >out 2>log || fail "pd-quant: $(cat log)"
pd-eval --plugin ./bent_identity.so -m small --bench 0.1 >out 2>log || fail "the quantized model: $(cat log)"

# The statuses of errors.
status=0
pd-eval --plugin nowhere.so -m housing --bench 0.1 2>log || status=$?
[ $status = 3 ] || fail "a missing file gives status $status"
grep -q "plug-in 'nowhere.so'" log || fail "the error does not name the file: $(cat log)"

# A program that predicts has the operators in it, or opens the library.
cat >predict.cc <<'SOURCE'
#include <dlfcn.h>
#include <iostream>
#include <vector>
#include "paddle_inference_api.h"
int main(int argc, char** argv) {
  if (argc > 3 && dlopen(argv[3], RTLD_LAZY) == nullptr) return 4;
  try {
    auto predictor = paddle_infer::CreatePredictor(paddle_infer::Config(argv[1], argv[2]));
    auto input = predictor->GetInputHandle(predictor->GetInputNames()[0]);
    const std::vector<float> row(13, 0.5f);
    input->Reshape({1, 13});
    input->CopyFromCpu(row.data());
    if (!predictor->Run()) return 5;
    float price = 0;
    predictor->GetOutputHandle(predictor->GetOutputNames()[0])->CopyToCpu(&price);
    std::cout << price << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
  return 0;
}
SOURCE
flags=("-I$build/paddle_compat" "-L$build/lib" -lpaddle_inference "-Wl,--push-state,--as-needed" -lpd "-Wl,--pop-state" "-Wl,-rpath,$build/lib")
"$compiler" -std=c++17 predict.cc -o opens "${flags[@]}" || fail "no program that opens a library"
"$compiler" -std=c++17 predict.cc bent_identity.cc -o has "${flags[@]}" || fail "no program with operators in it"
./opens housing.pdmodel housing.pdiparams ./bent_identity.so >one 2>log || fail "a program that opens the library: $(cat log)"
./has housing.pdmodel housing.pdiparams >two 2>log || fail "a program with the operators in it: $(cat log)"
cmp one two || fail "the programs give $(cat one) and $(cat two)"
status=0
./opens housing.pdmodel housing.pdiparams >three 2>log || status=$?
[ $status = 3 ] || fail "a program without the operators ends with status $status"
