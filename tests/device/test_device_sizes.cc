// SPDX-License-Identifier: Apache-2.0
// Kernels that go about more elements in another way than about those of
// PaddlePaddle's goldens, beside the CPU's references, which these have proved.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/device/device_plan.h"
#include "tests/ops/compare.h"

namespace pd {
namespace {

class DeviceSizes : public DevicePlan {
 protected:
  void StartAnew() {
    program_.blocks[0] = {};
    specs_.clear();
    feeds_.clear();
    fetches_.clear();
  }
  // Numbers between -1.2 and 1.2 that differ and follow no pattern, and more.
  void Feed(const std::string& name, Shape shape, float more = 0) {
    Var(name, DType::kFloat32, shape);
    std::vector<float> numbers;
    for (int64_t i = 0; i < NumElements(shape); ++i)
      numbers.push_back(
          more + 1.2f * std::sin(static_cast<float>(i * i % 7919) * 0.37f));
    specs_.push_back({name, DType::kFloat32, std::move(shape)});
    feeds_.push_back(std::move(numbers));
  }
  // The same of another type, by a cast.
  std::string Feed(const std::string& name, Shape shape, DType dtype) {
    if (dtype == DType::kFloat32) {
      Feed(name, shape);
      return name;
    }
    const std::string cast = name + "_cast";
    Feed(name, shape);
    Var(cast, dtype, shape);
    OpDesc* op = Op("cast", name, cast);
    op->attrs["in_dtype"] = static_cast<int32_t>(DType::kFloat32);
    op->attrs["out_dtype"] = static_cast<int32_t>(dtype);
    return cast;
  }
  void Out(OpDesc* op, const std::string& slot, DType dtype, Shape shape) {
    Var(slot, dtype, std::move(shape));
    op->SetOutput(slot, {slot});
    fetches_.push_back(slot);
  }

  std::vector<Array> Run(Session session, bool on_gpu) {
    auto plan = session.Compile(program_, specs_, fetches_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    for (const StepInfo& step : (*plan)->steps())
      EXPECT_EQ(step.on_device, on_gpu) << step.op_type;
    for (size_t i = 0; i < feeds_.size(); ++i)
      (*plan)->SetFeed(i, feeds_[i].data());
    const absl::Status ran = (*plan)->Run({});
    EXPECT_TRUE(ran.ok()) << ran;
    std::vector<Array> result;
    for (size_t i = 0; i < fetches_.size(); ++i)
      result.push_back(ToArray((*plan)->fetch(i)));
    return result;
  }
  void ExpectTheCpus(double tolerance = 1e-5) {
    const auto want = Run(OnCpu(), false), got = Run(OnGpu(), true);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(Difference(got[i], want[i], tolerance, tolerance), "")
          << fetches_[i];
  }

  std::vector<FeedSpec> specs_;
  std::vector<std::vector<float>> feeds_;
  std::vector<std::string> fetches_;
};

// More places than a block sorts on its own, by 2 and by 4 parts.
TEST_F(DeviceSizes, ManyPlacesAreSampled) {
  for (const int64_t side : {75, 101}) {
    StartAnew();
    Feed("X", {2, 3, 40, 30});
    Feed("Grid", {2, side, side, 2});
    Feed("Output@GRAD", {2, 3, side, side});
    OpDesc* op = Op("grid_sampler_grad");
    for (const FeedSpec& spec : specs_) op->SetInput(spec.name, {spec.name});
    Out(op, "X@GRAD", DType::kFloat32, {2, 3, 40, 30});
    Out(op, "Grid@GRAD", DType::kFloat32, {2, side, side, 2});
    ExpectTheCpus();
  }
}

// The mask's numbers are the CPU's, and serve along the other axes.
TEST_F(DeviceSizes, ChannelsAreDropped) {
  Feed("X", {4, 60, 7});
  OpDesc* op = Op("dropout_nd");
  op->SetInput("X", {"X"});
  op->attrs["axis"] = std::vector<int32_t>{0, 1};
  op->attrs["dropout_prob"] = 0.3f;
  Out(op, "Out", DType::kFloat32, {4, 60, 7});
  Out(op, "Mask", DType::kUInt8, {4, 60, 1});
  ExpectTheCpus();
}

TEST_F(DeviceSizes, LongLinesAreSorted) {
  Feed("X", {2, 9001, 2});
  OpDesc* op = Op("argsort");
  op->SetInput("X", {"X"});
  op->attrs["axis"] = int32_t{1};
  Out(op, "Out", DType::kFloat32, {2, 9001, 2});
  Var("Indices", DType::kInt64, {2, 9001, 2});
  op->SetOutput("Indices", {"Indices"});
  ExpectTheCpus();
}

TEST_F(DeviceSizes, LongLinesAreSummed) {
  for (const bool reverse : {false, true}) {
    StartAnew();
    Feed("X", {3, 1500, 2});
    OpDesc* op = Op("cumsum");
    op->SetInput("X", {"X"});
    op->attrs["axis"] = int32_t{1};
    op->attrs["reverse"] = reverse;
    op->attrs["exclusive"] = reverse;
    Out(op, "Out", DType::kFloat32, {3, 1500, 2});
    ExpectTheCpus(1e-4);  // another order of sums
  }
}

// Where channels lie, how many they are, and how many elements each has decide
// how many numbers a thread reads at once, and how many blocks there are.
class DeviceNorms : public DeviceSizes,
                    public testing::WithParamInterface<DType> {
 protected:
  // A rounding of a half; sums in another order.
  double Tolerance() const {
    return GetParam() == DType::kFloat32   ? 1e-4
           : GetParam() == DType::kFloat16 ? 0x1p-9
                                           : 0x1p-6;
  }

  void BatchNorm(const Shape& shape, const std::string& layout) {
    const int64_t channels = layout == "NHWC" ? shape.back() : shape[1];
    StartAnew();
    const std::string x = Feed("X", shape, GetParam());
    for (const char* name : {"Scale", "Bias", "Mean", "Variance"})
      Feed(name, {channels});
    OpDesc* op = Op("batch_norm");
    op->SetInput("X", {x});
    for (const char* name : {"Scale", "Bias", "Mean", "Variance"})
      op->SetInput(name, {name});
    op->attrs["data_layout"] = layout;
    Out(op, "Y", GetParam(), shape);
    for (const char* name :
         {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"})
      Out(op, name, DType::kFloat32, {channels});
    ExpectTheCpus(Tolerance());
  }

  void BatchNormGrad(const Shape& shape, const std::string& layout) {
    const int64_t channels = layout == "NHWC" ? shape.back() : shape[1];
    StartAnew();
    const std::string x = Feed("X", shape, GetParam());
    const std::string dy = Feed("Y@GRAD", shape, GetParam());
    for (const char* name : {"Scale", "Bias", "SavedMean", "SavedVariance"})
      Feed(name, {channels});
    OpDesc* op = Op("batch_norm_grad");
    op->SetInput("X", {x});
    op->SetInput("Y@GRAD", {dy});
    for (const char* name : {"Scale", "Bias", "SavedMean", "SavedVariance"})
      op->SetInput(name, {name});
    op->attrs["data_layout"] = layout;
    Out(op, "X@GRAD", GetParam(), shape);
    Out(op, "Scale@GRAD", DType::kFloat32, {channels});
    Out(op, "Bias@GRAD", DType::kFloat32, {channels});
    ExpectTheCpus(Tolerance());
  }

  void LayerNorm(int64_t rows, int64_t n) {
    StartAnew();
    const std::string x = Feed("X", {rows, n}, GetParam());
    Feed("Scale", {n});
    Feed("Bias", {n});
    OpDesc* op = Op("layer_norm");
    op->SetInput("X", {x});
    op->SetInput("Scale", {"Scale"});
    op->SetInput("Bias", {"Bias"});
    op->attrs["begin_norm_axis"] = int32_t{1};
    Out(op, "Y", GetParam(), {rows, n});
    Out(op, "Mean", DType::kFloat32, {rows});
    Out(op, "Variance", DType::kFloat32, {rows});
    ExpectTheCpus(Tolerance());
  }

  void LayerNormGrad(int64_t rows, int64_t n) {
    StartAnew();
    const std::string x = Feed("X", {rows, n}, GetParam());
    const std::string dy = Feed("Y@GRAD", {rows, n}, GetParam());
    Feed("Scale", {n});
    Feed("Bias", {n});
    Feed("Mean", {rows});
    Feed("Variance", {rows}, 2);
    OpDesc* op = Op("layer_norm_grad");
    op->SetInput("X", {x});
    op->SetInput("Y@GRAD", {dy});
    for (const char* name : {"Scale", "Bias", "Mean", "Variance"})
      op->SetInput(name, {name});
    op->attrs["begin_norm_axis"] = int32_t{1};
    Out(op, "X@GRAD", GetParam(), {rows, n});
    Out(op, "Scale@GRAD", DType::kFloat32, {n});
    Out(op, "Bias@GRAD", DType::kFloat32, {n});
    ExpectTheCpus(Tolerance());
  }
};

TEST_P(DeviceNorms, BatchNormIsTheCpus) {
  for (const auto& [shape, layout] :
       std::vector<std::pair<Shape, std::string>>{{{2, 3, 9, 9}, "NCHW"},
                                                  {{3, 8, 10, 10}, "NCHW"},
                                                  {{2, 20, 7}, "NCHW"},
                                                  {{2, 2, 64, 65}, "NCHW"},
                                                  {{1, 2048, 3, 3}, "NCHW"},
                                                  {{7, 64}, "NCHW"},
                                                  {{130, 20}, "NCHW"},
                                                  {{2, 9, 9, 3}, "NHWC"},
                                                  {{5, 7, 9, 8}, "NHWC"},
                                                  {{2, 5, 7, 20}, "NHWC"},
                                                  {{2, 30, 31, 64}, "NHWC"},
                                                  {{1, 3, 11, 2048}, "NHWC"}}) {
    SCOPED_TRACE(layout + " " + ToString(shape));
    BatchNorm(shape, layout);
    BatchNormGrad(shape, layout);
  }
}

TEST_P(DeviceNorms, LayerNormIsTheCpus) {
  for (const auto& [rows, n] : std::vector<std::pair<int64_t, int64_t>>{
           {8, 8}, {1, 3}, {300, 256}, {70, 768}, {33, 1001}, {2, 20000}}) {
    SCOPED_TRACE(absl::StrCat(rows, " rows of ", n));
    LayerNorm(rows, n);
    LayerNormGrad(rows, n);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceNorms,
                         testing::Values(DType::kFloat32, DType::kFloat16,
                                         DType::kBFloat16),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

}  // namespace
}  // namespace pd
