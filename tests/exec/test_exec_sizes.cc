// SPDX-License-Identifier: Apache-2.0
// Programs whose shapes overflow or ask for more memory than there is: each is
// refused by the name of its variable, and nothing is computed. Some are honest
// programs whose data say the size.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "libcore/base/memory_limit.h"
#include "libcore/exec/session.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_exec_sizes {

constexpr int64_t kHuge = int64_t{1} << 62;
using Longs = std::vector<int64_t>;

OpDesc Op(const std::string& type, SlotList inputs, SlotList outputs,
          std::map<std::string, Attribute> attrs) {
  OpDesc op;
  op.type = type;
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.attrs = std::move(attrs);
  return op;
}

class Sizes : public ::testing::Test {
 protected:
  void SetUp() override { SetMemoryLimit(int64_t{256} << 20); }
  void TearDown() override { SetMemoryLimit(before_); }

  // Expects that running `ops` fails and says 'out'.
  void ExpectRefused(const std::vector<OpDesc>& ops,
                     const NamedArrays& feeds = {}) {
    ProgramDesc program;
    program.version = 2003000;
    program.blocks.emplace_back();
    for (const auto& [name, array] : feeds) {
      VarDesc var;
      var.name = name;
      var.dtype = array.dtype;
      var.shape = array.shape;
      program.global().vars.push_back(var);
    }
    for (const char* name : {"out", "next"}) {
      VarDesc var;
      var.name = name;
      program.global().vars.push_back(var);
    }
    program.global().ops = ops;
    Session session(&Registry(), 1);
    const auto results =
        session.Run(program, feeds, {ops.size() > 1 ? "next" : "out"});
    ASSERT_FALSE(results.ok()) << ops[0].type;
    EXPECT_TRUE(absl::StrContains(results.status().message(), "'out'"))
        << results.status();
  }

 private:
  const int64_t before_ = MemoryLimit();
};

TEST_F(Sizes, AttributesOfOpsThatMakeTensors) {
  const int32_t f32 = static_cast<int32_t>(DType::kFloat32);
  const int32_t i64 = static_cast<int32_t>(DType::kInt64);
  const SlotList out = {{"Out", {"out"}}};
  for (const Longs& shape :
       {Longs{kHuge + 4}, Longs{int64_t{1} << 32, int64_t{1} << 32},
        Longs{int64_t{1} << 40}, Longs{1 << 30}}) {
    ExpectRefused({Op("fill_constant", {}, out,
                      {{"shape", shape}, {"dtype", f32}, {"value", 1.0f}})});
    ExpectRefused({Op("empty", {}, out, {{"shape", shape}, {"dtype", f32}})});
    ExpectRefused(
        {Op("gaussian_random", {}, out, {{"shape", shape}, {"dtype", f32}})});
    ExpectRefused(
        {Op("uniform_random", {}, out, {{"shape", shape}, {"dtype", f32}})});
    ExpectRefused({Op("randint", {}, out,
                      {{"shape", shape},
                       {"dtype", i64},
                       {"low", int32_t{0}},
                       {"high", int32_t{9}}})});
  }
  ExpectRefused({Op(
      "eye", {}, out,
      {{"num_rows", int64_t{8}}, {"num_columns", INT64_MAX}, {"dtype", f32}})});
}

// 2^62 + 4 floats took 16 bytes, and these then read and wrote at 5000.
TEST_F(Sizes, NothingReadsOrWritesWhatWrapped) {
  const SlotList out = {{"Out", {"out"}}}, next = {{"Out", {"next"}}};
  const OpDesc empty = Op("empty", {}, out,
                          {{"shape", Longs{kHuge + 4}},
                           {"dtype", static_cast<int32_t>(DType::kFloat32)}});
  const NamedArrays at = {{"at", MakeArray<int64_t>({1}, {5000})}};
  ExpectRefused(
      {empty, Op("gather", {{"X", {"out"}}, {"Index", {"at"}}}, next, {})}, at);
  NamedArrays updates = at;
  updates["by"] = MakeArray<float>({1}, {1.0f});
  ExpectRefused(
      {empty,
       Op("scatter", {{"X", {"out"}}, {"Ids", {"at"}}, {"Updates", {"by"}}},
          next, {})},
      updates);
}

// The program is honest; the data are not.
TEST_F(Sizes, ThatDataSay) {
  const SlotList out = {{"Out", {"out"}}};
  for (const int64_t size : {kHuge + 4, int64_t{1} << 40, INT64_MAX}) {
    NamedArrays feeds = {{"x", MakeArray<int64_t>({2, 1}, {1, 2})},
                         {"size", MakeArray<int64_t>({1}, {size})}};
    ExpectRefused(
        {Op("one_hot_v2", {{"X", {"x"}}, {"depth_tensor", {"size"}}}, out, {})},
        feeds);
    ExpectRefused(
        {Op("sequence_mask", {{"X", {"x"}}, {"MaxLenTensor", {"size"}}},
            {{"Y", {"out"}}},
            {{"out_dtype", static_cast<int32_t>(DType::kInt64)}})},
        feeds);
    ExpectRefused({Op("fill_constant", {{"ShapeTensor", {"size"}}}, out,
                      {{"value", 1.0f},
                       {"shape", Longs{}},
                       {"dtype", static_cast<int32_t>(DType::kFloat32)}})},
                  feeds);
  }
  ExpectRefused({Op("histogram", {{"X", {"x"}}}, out, {{"bins", kHuge + 4}})},
                {{"x", MakeArray<float>({2}, {1, 2})}});
}

// By its name, before anything is allocated.
TEST_F(Sizes, PaddingIsRefusedByTheLimit) {
  ExpectRefused({Op("pad", {{"X", {"x"}}}, {{"Out", {"out"}}},
                    {{"paddings", std::vector<int32_t>{0, INT32_MAX}}})},
                {{"x", MakeArray<float>({2}, {1, 2})}});
}

}  // namespace test_exec_sizes
}  // namespace pd
