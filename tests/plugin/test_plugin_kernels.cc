// SPDX-License-Identifier: Apache-2.0
// The ways in which arguments reach kernels, and tensors come out of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/plugin/plugins.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace test_plugin_kernels {

const OpRegistry& Registry() {
  static const auto* const registry = [] {
    const absl::Status loaded = LoadPlugin(PD_PLUGIN_FOLDER "/libmore_ops.so");
    EXPECT_TRUE(loaded.ok()) << loaded;
    auto made = MakeRegistry();
    EXPECT_TRUE(AddPluginOps(made->get()).ok());
    return made->release();
  }();
  return *registry;
}

// A program over x and y of shape [2, 2], of ops that are given their X and
// write "out".
struct Network {
  ProgramDesc program;
  Network() {
    program.blocks.emplace_back();
    for (const char* name : {"x", "y"}) {
      VarDesc var;
      var.name = name;
      var.shape = {2, 2};
      program.global().vars.push_back(var);
    }
  }
  void Add(OpDesc op, const std::string& x, const std::string& out) {
    op.SetInput("X", {x});
    op.SetOutput("Out", {out});
    const absl::Status added =
        BlockBuilder(&Registry(), &program).Append(std::move(op));
    EXPECT_TRUE(added.ok()) << added;
  }
  absl::StatusOr<Array> Run(Session* session, float first) const {
    NamedArrays feeds;
    for (const char* name : {"x", "y"}) {
      Tensor value(DType::kFloat32, {2, 2});
      PD_RETURN_IF_ERROR(value.Allocate());
      for (int i = 0; i < 4; ++i) value.data<float>()[i] = first + i;
      feeds[name] = ToArray(value);
    }
    PD_ASSIGN_OR_RETURN(NamedArrays results,
                        session->Run(program, feeds, {"out"}));
    return results.at("out");
  }
};

void ExpectFirst(const absl::StatusOr<Array>& result, const Shape& shape,
                 float first) {
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->shape, shape);
  EXPECT_EQ(ToTensor(*result).data<float>()[0], first);
}

OpDesc Op(const std::string& type) {
  OpDesc op;
  op.type = type;
  return op;
}

TEST(PluginKernels, TakeAttributesOfNineTypes) {
  OpDesc numbers = Op("add_numbers"), lists = Op("add_lists");
  numbers.attrs["a"] = true;
  numbers.attrs["b"] = int32_t{2};
  numbers.attrs["c"] = 0.5f;
  numbers.attrs["d"] = int64_t{1} << 20;
  numbers.attrs["e"] = std::string("four");
  lists.attrs["f"] = std::vector<int32_t>{1, 2};
  lists.attrs["g"] = std::vector<float>{0.25f, 0.25f};
  lists.attrs["h"] = std::vector<int64_t>{10, 20};
  lists.attrs["i"] = std::vector<std::string>{"a", "bc"};
  Network network;
  network.Add(numbers, "x", "middle");
  network.Add(lists, "middle", "out");
  Session session(&Registry());
  ExpectFirst(network.Run(&session, 1), {2, 2},
              1 + 1 + 2 + 0.5f + (1 << 20) + 4 + 3 + 0.5f + 30 + 3);
  // A program that lacks them gets PaddlePaddle's defaults.
  Network plain;
  plain.Add(Op("add_numbers"), "x", "middle");
  plain.Add(Op("add_lists"), "middle", "out");
  ExpectFirst(plain.Run(&session, 1), {2, 2}, 1 + 0 + 1 + 1 + 1);
}

TEST(PluginKernels, MayLackInputs) {
  Network network, both;
  network.Add(Op("add_if_there"), "x", "out");
  OpDesc op = Op("add_if_there");
  op.SetInput("Y@OPTIONAL", {"y"});
  both.Add(op, "x", "out");
  Session session(&Registry());
  ExpectFirst(network.Run(&session, 3), {2, 2}, 3);
  ExpectFirst(both.Run(&session, 3), {2, 2}, 6);
}

TEST(PluginKernels, KeepTensorsAsTheyWere) {
  Network network;
  network.Add(Op("scale"), "x", "middle");
  network.Add(Op("before"), "middle", "out");
  Session session(&Registry());
  ExpectFirst(network.Run(&session, 5), {2, 2}, 0);
  ExpectFirst(network.Run(&session, 7), {2, 2}, 5);
  ExpectFirst(network.Run(&session, 9), {2, 2}, 7);
}

// As PaddlePaddle 2.6.2 answers the same program: relu's result has the LoD of
// its input, that of a custom operator has none.
TEST(PluginKernels, GiveNoLoD) {
  Network network;
  network.program.global().vars[0].lod_level = 1;
  network.Add(Op("add_if_there"), "x", "out");
  network.Add(Op("relu"), "x", "kept");
  NamedArrays feeds;
  Tensor value(DType::kFloat32, {2, 2});
  ASSERT_TRUE(value.Allocate().ok());
  std::fill(value.data<float>(), value.data<float>() + 4, 3.0f);
  feeds["x"] = ToArray(value);
  feeds["x"].lod = {{0, 1, 2}};
  Session session(&Registry());
  const auto results = session.Run(network.program, feeds, {"out", "kept"});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at("kept").lod, feeds["x"].lod);
  EXPECT_TRUE(results->at("out").lod.empty());
  ExpectFirst(results->at("out"), {2, 2}, 3);
}

TEST(PluginKernels, AreRightWhereInferShapeIsNot) {
  Network last, inside;
  last.Add(Op("first_row"), "x", "out");
  inside.Add(Op("first_row"), "x", "middle");
  inside.Add(Op("relu"), "middle", "out");
  Session session(&Registry());
  ExpectFirst(last.Run(&session, 4), {1, 2}, 4);
  const absl::Status status = inside.Run(&session, 4).status();
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "the shape [1, 2]; InferShape says [2, 2]"))
      << status;
}

}  // namespace test_plugin_kernels
}  // namespace pd
