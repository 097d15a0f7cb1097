// SPDX-License-Identifier: Apache-2.0
// int8_dynamic_matmul: ONNX Runtime's integers and answers
// (testdata/quant/dynamic.npz), and kernels that give the reference's bits with
// every instruction set (CMakeLists.txt), also where 16-bit sums would
// saturate.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "libcore/base/rng.h"
#include "libcore/ops/quantize/int8_dynamic.h"
#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_int8_dynamic {

KernelCase Case(Array x, Array w, Array scale, bool turned = false) {
  KernelCase c;
  OpDesc op;
  op.type = "int8_dynamic_matmul";
  op.attrs["x_num_col_dims"] = static_cast<int32_t>(x.shape.size()) - 1;
  op.attrs["trans_y"] = turned;
  Feed(&c, "x", std::move(x));
  Parameter(&c, "w", std::move(w));
  Parameter(&c, "scale", std::move(scale));
  op.SetInput("Input", {"x"});
  op.SetInput("Filter", {"w"});
  op.SetInput("FilterScale", {"scale"});
  op.SetOutput("Output", {"out"});
  Append(&c, op);
  c.fetches = {"out"};
  return c;
}

TEST(Int8Dynamic, GivesTheIntegersOfOnnxRuntime) {
  const auto golden = ReadNpz(std::string(PD_TESTDATA) + "/quant/dynamic.npz");
  ASSERT_TRUE(golden.ok()) << golden.status();
  const Array& x = golden->at("x");
  const int64_t rows = x.shape[0], depth = x.shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.data<float>() + r * depth;
    const DynamicRow read = DynamicRow::Of(row, depth);
    EXPECT_EQ(read.zero, golden->at("zero").data<int32_t>()[r]) << r;
    for (int64_t k = 0; k < depth; ++k)
      ASSERT_EQ(read(row[k]), golden->at("u").data<uint8_t>()[r * depth + k])
          << r << " " << k;
  }
  const KernelCase c = Case(x, golden->at("w"), golden->at("scale"));
  const Array& want = golden->at("y");
  const int64_t columns = want.shape[1];
  for (const bool fast : {false, true}) {
    const Array got = RunCase(c, fast).values.at("out");
    ASSERT_EQ(got.size(), want.size());
    for (int64_t i = 0; i < want.size(); ++i) {
      const float y = want.data<float>()[i];
      // Scales have been divided by 127 and come back: a last bit.
      ASSERT_NEAR(got.data<float>()[i], y, std::fabs(y) * 3e-7)
          << i / columns << " " << i % columns;
    }
  }
}

struct Size {
  Shape x;
  int64_t columns;
  bool turned;
};

Array Weights(const Shape& shape, bool greatest) {
  std::vector<int8_t> values(static_cast<size_t>(NumElements(shape)));
  const Philox random(5, 1);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = greatest ? static_cast<int8_t>(i / 7 % 2 == 0 ? 127 : -128)
                         : static_cast<int8_t>(random.U32(i));
  return MakeArray<int8_t>(shape, values);
}

TEST(Int8Dynamic, KernelsGiveTheReferencesBits) {
  const Size sizes[] = {{{1, 1}, 1, false},      {{1, 64}, 32, false},
                        {{3, 7}, 5, false},      {{17, 130}, 33, true},
                        {{2, 5, 19}, 70, false}, {{40, 256}, 96, true},
                        {{1, 1000}, 129, false}, {{100, 33}, 17, false}};
  for (const Size& s : sizes)
    for (const bool greatest : {false, true}) {
      const int64_t depth = s.x.back();
      const Shape shape =
          s.turned ? Shape{s.columns, depth} : Shape{depth, s.columns};
      const std::string name =
          absl::StrCat(ToString(s.x), " x ", s.columns, s.turned, greatest);
      const KernelCase c = Case(RandomArray(s.x, 3), Weights(shape, greatest),
                                MakeArray<float>({1}, {0.7f}), s.turned);
      const KernelResult want = RunCase(c, false), got = RunCase(c, true);
      EXPECT_EQ(got.labels.at("int8_dynamic_matmul"),
                OnDevice() ? "cublaslt:int8" : "int8:gemm")
          << name;
      const Array &a = want.values.at("out"), &b = got.values.at("out");
      ASSERT_EQ(a.size(), b.size()) << name;
      EXPECT_EQ(std::memcmp(a.bytes.get(), b.bytes.get(), a.size_bytes()), 0)
          << name;
    }
}

}  // namespace test_int8_dynamic
}  // namespace pd
