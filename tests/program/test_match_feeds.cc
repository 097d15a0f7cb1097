// SPDX-License-Identifier: Apache-2.0
// Arrays that are fed: which are taken, which converted and which refused.
// Converted values are those of NumPy's astype.
#include "libcore/program/match_feeds.h"

#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/match.h"
#include "tests/program/small_program.h"

namespace pd {
namespace test_match_feeds {

VarDesc Var(DType dtype, Shape shape) {
  VarDesc var;
  var.name = "x";
  var.dtype = dtype;
  var.shape = std::move(shape);
  return var;
}

template <typename T>
std::vector<T> ValuesOf(const Array& array) {
  return {array.data<T>(), array.data<T>() + array.size()};
}

TEST(TakesShape, ComparesRanksAndKnownExtents) {
  EXPECT_TRUE(TakesShape({-1, 4}, {7, 4}));
  EXPECT_TRUE(TakesShape({}, {1}));
  EXPECT_TRUE(TakesShape({1}, {}));
  EXPECT_FALSE(TakesShape({-1, 4}, {7, 5}));
  EXPECT_FALSE(TakesShape({-1}, {7, 1}));
  EXPECT_FALSE(TakesShape({2, 4}, {1, 4}));
}

TEST(FitFeed, ConvertsWhatNumPyMakesByItself) {
  Array x = MakeArray<double>({2}, {0.1, -3e38});
  ASSERT_TRUE(FitFeed(Var(DType::kFloat32, {-1}), "in.npz", &x).ok());
  EXPECT_EQ(x.dtype, DType::kFloat32);
  EXPECT_EQ(ValuesOf<float>(x), (std::vector<float>{0.1f, -3e38f}));

  const double infinity = std::numeric_limits<double>::infinity();
  x = MakeArray<double>({2}, {1.0, infinity});
  ASSERT_TRUE(FitFeed(Var(DType::kFloat16, {2}), "in.npz", &x).ok());
  EXPECT_EQ(ValuesOf<uint16_t>(x), (std::vector<uint16_t>{0x3c00, 0x7c00}));

  x = MakeArray<int64_t>({3}, {-1, 0, 2147483647});
  ASSERT_TRUE(FitFeed(Var(DType::kInt32, {-1}), "in.npz", &x).ok());
  EXPECT_EQ(ValuesOf<int32_t>(x), (std::vector<int32_t>{-1, 0, 2147483647}));

  x = MakeArray<uint8_t>({1}, {255});
  ASSERT_TRUE(FitFeed(Var(DType::kInt64, {-1}), "in.npz", &x).ok());
  EXPECT_EQ(ValuesOf<int64_t>(x), std::vector<int64_t>{255});
}

TEST(FitFeed, RefusesWithBothSides) {
  Array x = MakeArray<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(FitFeed(Var(DType::kFloat32, {-1, 3}), "in.npz", &x).message(),
            "'in.npz': array 'x' is int64[2, 3]; the model declares float32[-1,"
            " 3]: convert it, with NumPy by .astype('float32')");
  EXPECT_EQ(FitFeed(Var(DType::kInt64, {-1, 4}), "in.npz", &x).message(),
            "'in.npz': array 'x' is int64[2, 3]; the model declares int64[-1, "
            "4] (-1: any extent)");
  x = MakeArray<int64_t>({2}, {7, int64_t{1} << 31});
  EXPECT_EQ(FitFeed(Var(DType::kInt32, {2}), "in.npz", &x).message(),
            "'in.npz': array 'x' is int64; the model declares int32, which "
            "cannot hold element 1, 2147483648");
  x = MakeArray<double>({1}, {1e39});
  EXPECT_TRUE(
      absl::StrContains(FitFeed(Var(DType::kFloat32, {1}), "", &x).message(),
                        "cannot hold element 0, 1e+39"));
  x = MakeArray<double>({1}, {1});
  for (const DType dtype : {DType::kInt64, DType::kBool, DType::kComplex64})
    EXPECT_FALSE(FitFeed(Var(dtype, {1}), "in.npz", &x).ok());
  x = MakeArray<float>({1}, {1});  // never rounded, never widened
  for (const DType dtype : {DType::kFloat16, DType::kFloat64})
    EXPECT_FALSE(FitFeed(Var(dtype, {1}), "in.npz", &x).ok());
}

absl::Status Fit(const std::vector<std::string>& fetches, NamedArrays feeds) {
  return FitFeeds(SmallProgram(), {"in.npz", "m", {"x", "label"}, fetches},
                  &feeds);
}

const Array& Rows(int64_t width) {
  static auto* arrays = new std::map<int64_t, Array>;
  return (*arrays)[width] =
             MakeArray<float>({2, width}, std::vector<float>(2 * width));
}

TEST(FitFeeds, DemandsWhatTheFetchesNeed) {
  EXPECT_TRUE(Fit({"prob"}, {{"x", Rows(4)}}).ok());
  EXPECT_EQ(Fit({"loss"}, {{"x", Rows(4)}, {"lable", Rows(3)}}).message(),
            "'in.npz' has no array 'label', an input of 'm' (float32[-1, 3]); "
            "it holds 'lable', 'x'");
  EXPECT_EQ(Fit({"prob"}, {}).message(),
            "'in.npz' has no array 'x', an input of 'm' (float32[-1, 4]); it "
            "holds none");
  // An intermediate variable that is fed needs nothing before it.
  EXPECT_TRUE(Fit({"prob"}, {{"dropped", Rows(3)}}).ok());
  EXPECT_FALSE(Fit({"prob"}, {{"x", Rows(3)}}).ok());
}

TEST(FitFeeds, TakesAnyShapeOfWhatAnOpMakes) {
  EXPECT_TRUE(Fit({"prob"}, {{"dropped", Rows(5)}}).ok());
  NamedArrays feeds = {{"dropped", MakeArray<int64_t>({1, 3}, {1, 2, 3})}};
  EXPECT_FALSE(Fit({"prob"}, feeds).ok());
}

}  // namespace test_match_feeds
}  // namespace pd
