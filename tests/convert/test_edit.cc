// SPDX-License-Identifier: Apache-2.0
// Tensors of PaddlePaddle's and PyTorch's files edited, against what numpy has
// of the same files.
#include "libcore/convert/edit.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "formats/npz.h"
#include "formats/pdparams.h"
#include "libcore/model/tree.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_edit {

using testing::ExpectSameArray;
using testing::Scratch;
using testing::TestData;

Content MustOpen(const std::string& name) {
  auto content = ReadContent(TestData(name), ReadOptions());
  EXPECT_TRUE(content.ok()) << content.status();
  return *std::move(content);
}

class Edit : public ::testing::Test {
 protected:
  Edit() : content_(MustOpen("pickles/model.p4.pdparams")) {
    const auto want = ReadNpz(TestData("numpy/state_dict.npz"));
    EXPECT_TRUE(want.ok()) << want.status();
    want_ = *want;
  }
  absl::Status Run(const TensorEdits& edits) {
    return EditTensors(edits, &content_, &left_out_);
  }
  NamedArrays Arrays() { return ArraysIn(content_.object); }

  Content content_;
  NamedArrays want_;
  std::vector<std::string> left_out_;
};

TEST_F(Edit, KeepsDropsAndRenames) {
  TensorEdits edits;
  edits.keep = {"conv.*", "blocks.*"};
  edits.drop = {"blocks.1.*"};
  edits.rename = {"conv.*=>net.stem.*"};
  const absl::Status status = Run(edits);
  ASSERT_TRUE(status.ok()) << status;
  const NamedArrays got = Arrays();
  EXPECT_EQ(got.count("bn._mean"), 0u);
  EXPECT_EQ(got.count("blocks.1.weight"), 0u);
  ASSERT_EQ(got.count("net.stem.weight"), 1u);
  ExpectSameArray(got.at("net.stem.weight"), want_.at("conv.weight"), "stem");
  ExpectSameArray(got.at("blocks.0.weight"), want_.at("blocks.0.weight"), "0");
  // The table of parameter names goes along.
  const auto state = StateDictOf(content_.object);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(state->has_parameter_names);
  for (const auto& [name, parameter] : state->parameter_names)
    EXPECT_EQ(got.count(name), 1u) << name << " " << parameter;
  EXPECT_TRUE(left_out_.empty());
}

TEST_F(Edit, TransposesSetsAndAverages) {
  const Array weight = want_.at("blocks.0.weight");
  ASSERT_EQ(weight.shape.size(), 2u);
  TensorEdits edits;
  edits.transpose = {"blocks.0.weight"};
  edits.set = {"blocks.0.bias=0.5",
               absl::StrCat("new=", TestData("numpy/lf4F.npy"))};
  const absl::Status status = Run(edits);
  ASSERT_TRUE(status.ok()) << status;
  NamedArrays got = Arrays();
  const int64_t rows = weight.shape[0], columns = weight.shape[1];
  ASSERT_EQ(got.at("blocks.0.weight").shape, Shape({columns, rows}));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      EXPECT_EQ(got.at("blocks.0.weight").data<float>()[column * rows + row],
                weight.data<float>()[row * columns + column]);
  const Array& bias = got.at("blocks.0.bias");
  for (int64_t i = 0; i < bias.size(); ++i)
    EXPECT_EQ(bias.data<float>()[i], 0.5f);
  EXPECT_EQ(got.count("new"), 1u);

  // The mean with the file as it was: half of each.
  content_ = MustOpen("pickles/model.p4.pdparams");
  TensorEdits zero;
  zero.set = {"conv.weight=0"};
  ASSERT_TRUE(Run(zero).ok());
  TensorEdits mean;
  mean.average = {TestData("pickles/model.p2.pdparams"),
                  TestData("pickles/model.p3.pdparams")};
  ASSERT_TRUE(Run(mean).ok());
  got = Arrays();
  const Array& conv = want_.at("conv.weight");
  for (int64_t i = 0; i < conv.size(); ++i)
    EXPECT_FLOAT_EQ(got.at("conv.weight").data<float>()[i],
                    conv.data<float>()[i] * 2 / 3);
  ExpectSameArray(got.at("scale"), want_.at("scale"), "scale");
}

TEST_F(Edit, ExtractsANetworkFromANestedObject) {
  content_ = MustOpen("torch/checkpoint.pth");
  TensorEdits edits;
  edits.keep = {"model/*"};
  edits.rename = {"model/module.*=>*"};
  const absl::Status status = Run(edits);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Arrays().at("fc.weight").shape, Shape({7, 4}));
  EXPECT_TRUE(std::any_of(
      left_out_.begin(), left_out_.end(),
      [](const std::string& one) { return absl::StrContains(one, "epoch"); }));
}

TEST_F(Edit, SaysWhatIsWrong) {
  const auto expect = [&](const TensorEdits& edits, const char* part) {
    const absl::Status status = Run(edits);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  };
  TensorEdits edits;
  edits.drop = {"conv.wieght"};
  expect(edits, "--drop 'conv.wieght' matches no tensor of ");
  expect(edits, "the nearest is 'conv.weight'");
  edits = {};
  edits.keep = {"zzz*"};
  expect(edits, "--keep 'zzz*' matches no tensor");
  edits = {};
  edits.rename = {"blocks.*.weight=>w*", "conv.weight=>w0"};
  expect(edits, "two tensors of ");
  edits = {};
  edits.rename = {"a=>b"};
  expect(edits, "--rename 'a=>b' matches no tensor");
  edits = {};
  edits.transpose = {"conv.weight"};  // has four axes
  expect(edits, "--transpose 'conv.weight' matches no");
  edits = {};
  edits.set = {"conv.weigth=1"};
  expect(edits, "the nearest is 'conv.weight'");
  edits.set = {"conv.weight"};
  expect(edits, "is not NAME=FILE.npy or NAME=NUMBER");
  edits.set = {absl::StrCat("conv.weight=", TestData("numpy/lf4F.npy"))};
  expect(edits, "--drop 'conv.weight' takes the tensor away first");
  edits = {};
  edits.average = {TestData("torch/small.pt")};
  expect(edits, "holds 2 tensors");
}

}  // namespace test_edit
}  // namespace pd
