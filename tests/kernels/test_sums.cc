// SPDX-License-Identifier: Apache-2.0
// Sums in which one term stands twice and dies there: it may not be written
// over before it has been read for the last time.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "libcore/exec/session.h"
#include "libcore/ir/array.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/ops/registry.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace test_sums {

constexpr int64_t kCount = 5000;  // more than a part of the reference

// square(x), square(x) + x, and their sums by `terms`.
void ExpectSums(const OpRegistry& registry,
                const std::vector<std::string>& terms,
                const std::vector<float>& factors) {
  ProgramDesc program;
  program.blocks.emplace_back();
  VarDesc var;
  var.name = "x";
  var.dtype = DType::kFloat32;
  var.shape = {kCount};
  program.global().vars.push_back(var);
  Tensor x(DType::kFloat32, {kCount});
  ASSERT_TRUE(x.Allocate().ok());
  for (int64_t i = 0; i < kCount; ++i)
    x.data<float>()[i] = static_cast<float>(i % 100);
  const auto add = [&](const char* type, const std::vector<std::string>& inputs,
                       const char* out) {
    OpDesc op;
    op.type = type;
    op.SetInput("X", {inputs[0]});
    if (op.type == "sum") op.SetInput("X", inputs);
    op.SetOutput("Out", {out});
    return BlockBuilder(&registry, &program).Append(std::move(op));
  };
  ASSERT_TRUE(add("square", {"x"}, "a").ok());
  ASSERT_TRUE(add("sum", {"a", "x"}, "b").ok());
  ASSERT_TRUE(add("sum", terms, "out").ok());
  Session session(&registry, 2);
  const auto results = session.Run(program, {{"x", ToArray(x)}}, {"out"});
  ASSERT_TRUE(results.ok()) << results.status();
  const Tensor out = ToTensor(results->at("out"));
  for (int64_t i = 0; i < kCount; ++i) {
    const float v = x.data<float>()[i];
    ASSERT_EQ(out.data<float>()[i],
              factors[0] * v * v + factors[1] * (v * v + v))
        << i;
  }
}

TEST(Sums, ReadEachTermBeforeItIsWrittenOver) {
  OpRegistry references;
  ASSERT_TRUE(RegisterAllOps(&references).ok());
  const auto kernels = MakeRegistry(nullptr);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  for (const OpRegistry* registry :
       {static_cast<const OpRegistry*>(&references),
        static_cast<const OpRegistry*>(kernels->get())}) {
    ExpectSums(*registry, {"a", "b"}, {1, 1});
    ExpectSums(*registry, {"a", "a"}, {2, 0});
    ExpectSums(*registry, {"a", "b", "a"}, {2, 1});
    ExpectSums(*registry, {"b", "a", "a"}, {2, 1});
    ExpectSums(*registry, {"a", "b", "b", "a"}, {2, 2});
  }
}

}  // namespace test_sums
}  // namespace pd
