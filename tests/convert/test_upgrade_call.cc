// SPDX-License-Identifier: Apache-2.0
// Calls of PaddlePaddle 1.8 get the arguments of 2.0, and the table of
// parameters is that of the two versions.
#include "libcore/convert/upgrade_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "libcore/base/file.h"
#include "libcore/convert/api_arguments.h"
#include "libcore/convert/api_names.h"
#include "libcore/convert/upgrade_source.h"

namespace pd {
namespace test_upgrade_call {

const char kImport[] = "import paddle.fluid as fluid\n";

std::string Upgraded(const std::string& call) {
  const auto result = UpgradeSource(absl::StrCat(kImport, call));
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return "";
  EXPECT_TRUE(result->notes.empty()) << result->notes[0].text;
  return std::string(absl::StripPrefix(result->text, "import paddle\n"));
}

// The reason for which a call stays.
std::string Refusal(const std::string& call) {
  const auto result = UpgradeSource(absl::StrCat(kImport, call));
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok() || result->notes.size() != 1) return "no note";
  EXPECT_EQ(result->text, absl::StrCat(kImport, call));
  return result->notes[0].text;
}

TEST(UpgradeCall, NamesOfArguments) {
  EXPECT_EQ(Upgraded("fluid.layers.reduce_mean(x, dim=[1], keep_dim=True)"),
            "paddle.mean(x, axis=[1], keepdim=True)");
  EXPECT_EQ(Upgraded("fluid.layers.concat(input=[a, b], axis=1)"),
            "paddle.concat(x=[a, b], axis=1)");
  EXPECT_EQ(Upgraded("fluid.layers.concat(input = [a, b])"),
            "paddle.concat(x = [a, b])");
}

TEST(UpgradeCall, ArgumentsThatHaveMovedGetTheirNames) {
  EXPECT_EQ(Upgraded("fluid.layers.reduce_sum(x, 1, True)"),
            "paddle.sum(x, 1, keepdim=True)");
  EXPECT_EQ(Upgraded("fluid.dygraph.GroupNorm(32, 8)"),
            "paddle.nn.GroupNorm(num_channels=32, num_groups=8)");
  EXPECT_EQ(Upgraded("fluid.layers.fill_constant([2], 'int64', 0)"),
            "paddle.full([2], dtype='int64', fill_value=0)");
  EXPECT_EQ(Upgraded("fluid.layers.reshape(x, [2], None, None, True, 'y')"),
            "paddle.reshape(x, [2], name='y')");
}

TEST(UpgradeCall, DefaultsThatHaveChangedAreSaid) {
  EXPECT_EQ(Upgraded("fluid.layers.argmax(x)"), "paddle.argmax(x, axis=0)");
  EXPECT_EQ(Upgraded("fluid.layers.argmax(x, -1)"), "paddle.argmax(x, -1)");
  EXPECT_EQ(Upgraded("fluid.layers.split(x, 2,)"),
            "paddle.split(x, 2, axis=-1,)");
  EXPECT_EQ(Upgraded("fluid.layers.cross_entropy(p, y)"),
            "paddle.nn.functional.cross_entropy(p, y, reduction='none', "
            "use_softmax=False)");
  EXPECT_EQ(Upgraded("fluid.io.DataLoader()"),
            "paddle.io.DataLoader(return_list=False)");
}

TEST(UpgradeCall, ArgumentsThatAreGone) {
  EXPECT_EQ(Upgraded("fluid.layers.elementwise_add(x, y, axis=-1, act=None)"),
            "paddle.add(x, y)");
  EXPECT_EQ(Upgraded("fluid.layers.softmax(x, True, axis=1)"),
            "paddle.nn.functional.softmax(x, axis=1)");
  EXPECT_EQ(Upgraded("fluid.layers.matmul(a, b, alpha=1)"),
            "paddle.matmul(a, b)");
  EXPECT_EQ(Upgraded("fluid.initializer.Uniform(seed=0, diag_num=0,)"),
            "paddle.nn.initializer.Uniform()");
  EXPECT_EQ(Upgraded("fluid.layers.ones(shape, force_cpu=f(a, b), dtype=d)"),
            "paddle.ones(shape, dtype=d)");
  EXPECT_EQ(Upgraded("fluid.layers.ones(\n    shape,  # of one\n"
                     "    d,  # float\n    force_cpu=True)"),
            "paddle.ones(\n    shape,  # of one\n    d  # float\n    )");
  EXPECT_EQ(
      Upgraded("fluid.layers.data('x', [-1, 3], append_batch_size=False)"),
      "paddle.static.data('x', [-1, 3])");
}

TEST(UpgradeCall, CallsInCalls) {
  EXPECT_EQ(Upgraded("fluid.layers.elementwise_mul(\n"
                     "    fluid.layers.reduce_sum(x, 1, True),\n"
                     "    fluid.layers.argmax(fluid.layers.relu(y)))"),
            "paddle.multiply(\n    paddle.sum(x, 1, keepdim=True),\n"
            "    paddle.argmax(paddle.nn.functional.relu(y), axis=0))");
  EXPECT_EQ(Upgraded("fluid.layers.full([1], f(lambda a, b: a), None, d)"),
            "paddle.full([1], f(lambda a, b: a), dtype=d)");
  // A name in an argument that goes is gone with it.
  EXPECT_EQ(Upgraded("fluid.layers.ones([1], 'bool', fluid.layers.relu(x))"),
            "paddle.ones([1], 'bool')");
}

TEST(UpgradeCall, WhatCannotBeSaidStays) {
  EXPECT_EQ(Refusal("fluid.layers.elementwise_add(x, y, act='relu')"),
            "paddle.fluid.layers.elementwise_add is paddle.add now, which has "
            "no 'act', and here it is 'relu'");
  EXPECT_EQ(Refusal("fluid.layers.data('x', [3])"),
            "paddle.fluid.layers.data is paddle.static.data now, which does "
            "what append_batch_size=False did: say that where it is meant");
  EXPECT_TRUE(absl::EndsWith(
      Refusal("fluid.layers.data('x', [3], append_batch_size=batch == 1)"),
      "did, and here it is batch == 1"));
  EXPECT_TRUE(absl::EndsWith(Refusal("fluid.layers.concat(*parts)"),
                             "the arguments behind '*' cannot be seen"));
  EXPECT_TRUE(absl::EndsWith(Refusal("fluid.layers.concat(x, **more)"),
                             "the arguments behind '*' cannot be seen"));
  EXPECT_TRUE(absl::EndsWith(Refusal("fluid.layers.concat(x, dim=1)"),
                             "1.8 has no argument 'dim' of it"));
  EXPECT_TRUE(absl::EndsWith(Refusal("fluid.layers.concat(x, 1, n, 4)"),
                             "1.8 takes fewer arguments than these 4"));
}

TEST(UpgradeCall, NamesThatAreNotCalledHere) {
  const auto result = UpgradeSource(absl::StrCat(
      kImport, "f = fluid.layers.reduce_max\ng = fluid.layers.relu\n"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->text,
            "import paddle\nf = paddle.max\ng = paddle.nn.functional.relu\n");
  ASSERT_EQ(result->notes.size(), 1u);
  EXPECT_EQ(result->notes[0].text,
            "paddle.fluid.layers.reduce_max became paddle.max, but where it is "
            "called cannot be seen: input is x, dim is axis, keep_dim is "
            "keepdim");
}

// Parameters of the two versions, as arguments.txt has them.
struct Signature {
  std::vector<std::string> names;
  std::map<std::string, std::string> defaults;
};

Signature ReadSignature(absl::string_view text) {
  Signature signature;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c != ',' || depth != 0) continue;
    const absl::string_view one =
        absl::StripAsciiWhitespace(text.substr(begin, i - begin));
    begin = i + 1;
    if (one.empty()) continue;
    const size_t equals = one.find('=');
    const std::string name(one.substr(0, equals));
    signature.names.push_back(name);
    if (equals != absl::string_view::npos)
      signature.defaults[name] = std::string(one.substr(equals + 1));
  }
  return signature;
}

std::pair<std::string, Signature> ReadLine(absl::string_view line) {
  const size_t open = line.find('(');
  return {std::string(absl::StripAsciiWhitespace(line.substr(0, open))),
          ReadSignature(line.substr(open + 1, line.rfind(')') - open - 1))};
}

// Defaults that mean the same though they are written otherwise: None stands
// for the value, or for float32.
bool SameDefault(const std::string& name, const std::string& old_value,
                 const std::string& new_value) {
  static const auto& same = *new std::set<std::string>{
      "dtype 'float32' None",
      "dtype None 'int64'",
      "ignore_index kIgnoreIndex -100",
      "threshold None 0.5",
      "threshold None 1.0",
      "scale None 1.0507009873554805",
      "alpha None 1.6732632423543772",
      "axis None -1",
      "groups None 1",
      "shape None [1]",
      "axis None 9",
      "name None 'precision'",
      "name None 'recall'",
      "dtype core.VarDesc.VarType.FP32 'float32'",
      "type core.VarDesc.VarType.LOD_TENSOR <VarType.LOD_TENSOR: 7>"};
  double a = 0, b = 0;
  return old_value == new_value ||
         (absl::SimpleAtod(old_value, &a) && absl::SimpleAtod(new_value, &b) &&
          a == b) ||
         same.count(absl::StrCat(name, " ", old_value, " ", new_value)) > 0;
}

void CheckKept(const ApiParameter& parameter, size_t index,
               const Signature& old_one, const Signature& new_one) {
  const auto& names = new_one.names;
  const auto at = std::find(names.begin(), names.end(), parameter.new_name);
  if (at == names.end() && absl::StartsWith(names.back(), "*")) return;
  ASSERT_NE(at, names.end()) << parameter.new_name;
  if (parameter.positional)
    EXPECT_EQ(at - names.begin(), static_cast<int64_t>(index))
        << parameter.old_name << " has moved";
  const auto old_value = old_one.defaults.find(parameter.old_name);
  const auto new_value = new_one.defaults.find(parameter.new_name);
  if (old_value == old_one.defaults.end()) {
    EXPECT_EQ(parameter.value, "") << parameter.old_name;
    return;
  }
  const bool same =
      new_value != new_one.defaults.end() &&
      SameDefault(parameter.new_name, old_value->second, new_value->second);
  EXPECT_EQ(parameter.value, same ? "" : old_value->second)
      << parameter.old_name << "=" << old_value->second << ", "
      << (new_value == new_one.defaults.end() ? "none" : new_value->second);
}

// Every replaced name: the parameters are 1.8's in their order, and 2.0 has
// what the table makes of them, at its place and with its default.
TEST(ApiArguments, AreThoseOfTheTwoVersions) {
  const auto file = ReadFile(PD_TESTDATA "/api/arguments.txt");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<std::string> lines =
      absl::StrSplit(file->view(), '\n', absl::SkipEmpty());
  int names = 0;
  for (size_t line = 1; line + 1 < lines.size(); line += 2) {
    const auto [old_name, old_one] = ReadLine(lines[line]);
    const auto [new_name, new_one] = ReadLine(lines[line + 1]);
    SCOPED_TRACE(absl::StrCat(lines[line], " -> ", lines[line + 1]));
    const ApiName* row = FindApiName(old_name);
    ASSERT_NE(row, nullptr);
    EXPECT_TRUE(row->same);
    ++names;
    std::vector<ApiParameter> parameters = ApiParameters(old_name);
    if (parameters.empty())
      for (const std::string& name : old_one.names) {
        ApiParameter parameter;
        parameter.old_name = parameter.new_name = name;
        parameters.push_back(parameter);
      }
    size_t index = 0;
    for (const ApiParameter& parameter : parameters) {
      if (parameter.kind == ApiParameter::Kind::kAdded) {
        EXPECT_EQ(new_one.defaults.count(parameter.new_name), 1u);
        continue;
      }
      if (absl::StartsWith(parameter.old_name, "*")) {
        ++index;
        continue;
      }
      ASSERT_LT(index, old_one.names.size()) << parameter.old_name;
      EXPECT_EQ(parameter.old_name, old_one.names[index]);
      if (parameter.kind == ApiParameter::Kind::kKept)
        CheckKept(parameter, index, old_one, new_one);
      else if (parameter.kind == ApiParameter::Kind::kDropped &&
               !parameter.value.empty())
        EXPECT_EQ(parameter.value, old_one.defaults.at(parameter.old_name));
      ++index;
    }
    EXPECT_EQ(index, old_one.names.size()) << "parameters are missing";
  }
  EXPECT_GE(names, 250);
}

}  // namespace test_upgrade_call
}  // namespace pd
