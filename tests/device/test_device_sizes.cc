// SPDX-License-Identifier: Apache-2.0
// Kernels that go about more elements in another way than about those of
// PaddlePaddle's goldens, beside the CPU's references, which these have proved.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/device/device_plan.h"
#include "tests/ops/compare.h"

namespace pd {
namespace test_device_sizes {

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
    specs_.push_back({name, DType::kFloat32, shape});
    feeds_.push_back(Floats(numbers, std::move(shape)));
  }
  // Numbers below `most` that follow no pattern.
  void FeedIds(const std::string& name, const Shape& shape, int64_t most) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < NumElements(shape); ++i)
      ids.push_back(i * i % 7919 % most);
    Var(name, DType::kInt64, shape);
    specs_.push_back({name, DType::kInt64, shape});
    feeds_.push_back(MakeArray<int64_t>(shape, ids));
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
      (*plan)->SetFeed(i, feeds_[i].bytes.get());
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
  std::vector<Array> feeds_;
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

// Positions are made from ones; none of it is the host's work.
TEST_F(DeviceSizes, IntegersAreFilledSummedAndScaled) {
  for (const DType dtype : {DType::kInt64, DType::kInt32})
    for (const int64_t n : {7, 40, 700}) {
      StartAnew();
      Feed("X", {5, n, 3});
      Var("ones", dtype, {5, n, 3});
      Var("places", dtype, {5, n, 3});
      OpDesc* op = Op("fill_any_like", "X", "ones");
      op->attrs["value"] = 3.0f;
      op->attrs["dtype"] = static_cast<int32_t>(dtype);
      op = Op("cumsum", "ones", "places");
      op->attrs["axis"] = int32_t{1};
      op->attrs["exclusive"] = op->attrs["reverse"] = n == 40;
      op = Op("scale");
      op->SetInput("X", {"places"});
      op->attrs["scale"] = -2.5f;
      op->attrs["bias"] = -4.0f;
      op->attrs["bias_after_scale"] = n != 7;
      Out(op, "Out", dtype, {5, n, 3});
      ExpectTheCpus();
    }
}

// Sums of one row, of many in several runs, and of more ids than are put in
// order at once; a padding id names no row.
TEST_F(DeviceSizes, RowsAreSummedByTheirIds) {
  struct Table {
    int64_t rows, width, ids;
  };
  for (const Table& table : std::initializer_list<Table>{
           {2, 6, 700}, {5, 3, 32}, {64, 5, 600}, {9000, 4, 1000}}) {
    StartAnew();
    Feed("W", {table.rows, table.width});
    FeedIds("Ids", {table.ids}, table.rows);
    Feed("Out@GRAD", {table.ids, table.width});
    OpDesc* op = Op("lookup_table_v2_grad");
    for (const FeedSpec& spec : specs_) op->SetInput(spec.name, {spec.name});
    op->attrs["padding_idx"] = int64_t{table.rows == 64 ? 9 : -1};
    Out(op, "W@GRAD", DType::kFloat32, {table.rows, table.width});
    ExpectTheCpus();
  }
}

// Windows with channels first and last, in packs of channels and not; the
// gradient finds the places of the maxima, or looks for them.
TEST_F(DeviceSizes, WindowsArePooled) {
  struct Windows {
    const char *type, *format;
    int64_t channels;
    int32_t kernel, stride, pad;  // kernel 0: the whole plane
  };
  for (const Windows& w :
       std::initializer_list<Windows>{{"max", "NHWC", 16, 3, 2, 1},
                                      {"max", "NHWC", 12, 3, 2, 1},
                                      {"max", "NCHW", 3, 3, 2, 1},
                                      {"max", "NCHW", 8, 2, 2, 0},
                                      {"max", "NHWC", 8, 20, 1, 9},
                                      {"avg", "NHWC", 16, 3, 1, 1},
                                      {"avg", "NHWC", 8, 0, 1, 0},
                                      {"avg", "NCHW", 5, 0, 1, 0},
                                      {"avg", "NCHW", 3, 2, 2, 0},
                                      {"max", "NHWC", 8, 0, 1, 0}})
    for (const bool with_forward : {true, false}) {
      StartAnew();
      const auto extent = [&](int64_t in) {
        return w.kernel == 0 ? 1 : (in + 2 * w.pad - w.kernel) / w.stride + 1;
      };
      const auto shape_of = [&](int64_t height, int64_t width) {
        return w.format == std::string("NHWC")
                   ? Shape{2, height, width, w.channels}
                   : Shape{2, w.channels, height, width};
      };
      const Shape in = shape_of(13, 9), out = shape_of(extent(13), extent(9));
      Feed("numbers", in);
      Feed("Out@GRAD", out);
      Var("X", DType::kFloat32, in);
      Op("relu", "numbers", "X");  // many maxima are 0
      const auto set_attrs = [&](OpDesc* op) {
        op->SetInput("X", {"X"});
        op->attrs["pooling_type"] = std::string(w.type);
        op->attrs["data_format"] = std::string(w.format);
        op->attrs["ksize"] = std::vector<int32_t>{w.kernel, w.kernel};
        op->attrs["strides"] = std::vector<int32_t>{w.stride, w.stride};
        op->attrs["paddings"] = std::vector<int32_t>{w.pad, w.pad};
        op->attrs["global_pooling"] = w.kernel == 0;
      };
      OpDesc* op = Op("pool2d");
      if (with_forward) {
        set_attrs(op);
        Out(op, "Out", DType::kFloat32, out);
        op = Op("pool2d_grad");
        op->SetInput("Out", {"Out"});
      } else {
        op->type = "pool2d_grad";
      }
      set_attrs(op);
      op->SetInput("Out@GRAD", {"Out@GRAD"});
      Out(op, "X@GRAD", DType::kFloat32, in);
      ExpectTheCpus();
    }
}

// In packs of elements, and one by one.
TEST_F(DeviceSizes, ElementsAreDropped) {
  for (const int64_t n : {6400, 641}) {
    StartAnew();
    Feed("X", {n});
    Feed("Out@GRAD", {n});
    OpDesc* op = Op("dropout");
    op->SetInput("X", {"X"});
    op->attrs["dropout_prob"] = 0.3f;
    op->attrs["dropout_implementation"] = std::string("upscale_in_train");
    const auto attrs = op->attrs;
    Out(op, "Out", DType::kFloat32, {n});
    Out(op, "Mask", DType::kUInt8, {n});
    op = Op("dropout_grad");
    op->attrs = attrs;
    op->SetInput("Out@GRAD", {"Out@GRAD"});
    op->SetInput("Mask", {"Mask"});
    Out(op, "X@GRAD", DType::kFloat32, {n});
    ExpectTheCpus();
  }
}

// By blocks of one warp to many, along the last axis and another.
TEST_F(DeviceSizes, LinesHaveASoftmax) {
  for (const int64_t n : {10, 128, 300, 5000})
    for (const int64_t inner : {1, 3}) {
      StartAnew();
      Feed("X", {7, n, inner});
      Feed("Out@GRAD", {7, n, inner});
      for (const std::string type : {"softmax", "softmax_grad"}) {
        OpDesc* op = Op(type);
        op->attrs["axis"] = int32_t{1};
        op->SetInput("X", {"X"});
        if (type == "softmax") {
          Out(op, "Out", DType::kFloat32, {7, n, inner});
        } else {
          op->inputs.clear();
          op->SetInput("Out", {"Out"});
          op->SetInput("Out@GRAD", {"Out@GRAD"});
          Out(op, "X@GRAD", DType::kFloat32, {7, n, inner});
        }
      }
      ExpectTheCpus();
    }
}

TEST_F(DeviceSizes, LinesHaveACrossEntropy) {
  for (const int64_t n : {10, 128, 5000}) {
    StartAnew();
    Feed("Logits", {9, n});
    FeedIds("Label", {9, 1}, n);
    Feed("Loss@GRAD", {9, 1});
    OpDesc* op = Op("softmax_with_cross_entropy");
    op->SetInput("Logits", {"Logits"});
    op->SetInput("Label", {"Label"});
    Out(op, "Softmax", DType::kFloat32, {9, n});
    Out(op, "Loss", DType::kFloat32, {9, 1});
    op = Op("softmax_with_cross_entropy_grad");
    for (const char* slot : {"Softmax", "Label", "Loss@GRAD"})
      op->SetInput(slot, {slot});
    Out(op, "Logits@GRAD", DType::kFloat32, {9, n});
    ExpectTheCpus();
  }
}
// Where channels lie, how many they are, and how many elements each has decide
// how many numbers a thread reads at once, and how many blocks there are.
class DeviceNorms : public DeviceSizes,
                    public ::testing::WithParamInterface<DType> {
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
                         ::testing::Values(DType::kFloat32, DType::kFloat16,
                                           DType::kBFloat16),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

}  // namespace test_device_sizes
}  // namespace pd
