// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/picture_fit.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Attrs = std::map<std::string, Attribute>;

// Weights are whole numbers of 2^-22, as Pillow's are, and all is computed in
// float64, where sums of them are exact: many are halves, which rounding
// decides.
constexpr double kOne = 1 << 22;

// Appends ops until the first error, which it keeps.
class Fitter {
 public:
  Fitter(std::string name, BlockBuilder* builder, InferenceModel* model)
      : name_(std::move(name)), builder_(builder), model_(model) {}

  const absl::Status& status() const { return status_; }

  std::string Unary(const char* type, const std::string& x, Attrs attrs = {}) {
    if (!status_.ok()) return "";
    auto out = builder_->Unary(type, x, std::move(attrs));
    status_.Update(out.status());
    return out.ok() ? *out : "";
  }
  std::string Binary(const char* type, const std::string& x,
                     const std::string& y, Attrs attrs = {}) {
    OpDesc op;
    op.type = type;
    op.SetInput("X", {x});
    op.SetInput("Y", {y});
    return Append(std::move(op), std::move(attrs));
  }
  std::string Transposed(const std::string& x, std::vector<int32_t> axes) {
    OpDesc op;
    op.type = "transpose2";
    op.SetInput("X", {x});
    const std::string out = builder_->UniqueTemporary("transpose2");
    op.SetOutput("Out", {out});
    op.SetOutput("XShape", {absl::StrCat(out, ".shape")});
    op.attrs["axis"] = std::move(axes);
    if (status_.ok()) status_.Update(builder_->Append(std::move(op)));
    return out;
  }
  std::string Scaled(const std::string& x, double scale, double bias = 0) {
    return Unary("scale", x,
                 {{"scale", static_cast<float>(scale)},
                  {"bias", static_cast<float>(bias)},
                  {"bias_after_scale", true}});
  }
  std::string Cast(const std::string& x, DType from, DType to) {
    return Unary("cast", x,
                 {{"in_dtype", static_cast<int32_t>(from)},
                  {"out_dtype", static_cast<int32_t>(to)},
                  {"use_mkldnn", false}});
  }
  std::string Sum(const std::string& x, int32_t axis) {
    return Unary("reduce_sum", x,
                 {{"dim", std::vector<int32_t>{axis}},
                  {"keep_dim", true},
                  {"reduce_all", false}});
  }
  std::string Add(const std::string& x, const std::string& y) {
    return Binary("elementwise_add", x, y);
  }
  std::string Sub(const std::string& x, const std::string& y) {
    return Binary("elementwise_sub", x, y);
  }
  std::string Mul(const std::string& x, const std::string& y) {
    return Binary("elementwise_mul", x, y);
  }
  std::string Div(const std::string& x, const std::string& y) {
    return Binary("elementwise_div", x, y);
  }
  // A parameter, float64 [numbers, 1].
  std::string Constant(const char* what, const std::vector<double>& numbers);
  std::string Slice(const std::string& x, std::vector<int64_t> axes);

 private:
  std::string Append(OpDesc op, Attrs attrs) {
    const std::string out = builder_->UniqueTemporary(op.type);
    op.SetOutput("Out", {out});
    op.attrs = std::move(attrs);
    if (status_.ok()) status_.Update(builder_->Append(std::move(op)));
    return out;
  }

  const std::string name_;
  BlockBuilder* builder_;
  InferenceModel* model_;
  absl::Status status_;
};

std::string Fitter::Constant(const char* what,
                             const std::vector<double>& numbers) {
  const std::string wanted = absl::StrCat(name_, ".", what);
  VarDesc var;
  var.name = wanted;
  for (int i = 1; builder_->FindVar(var.name) != nullptr; ++i)
    var.name = absl::StrCat(wanted, "_", i);
  var.dtype = DType::kFloat64;
  var.shape = {static_cast<int64_t>(numbers.size()), 1};
  var.persistable = true;
  var.stop_gradient = true;
  const std::string name = var.name;
  model_->params[name] = MakeArray<double>(var.shape, numbers);
  builder_->AddVar(std::move(var));
  return name;
}

// The first element of some axes, which go away.
std::string Fitter::Slice(const std::string& x, std::vector<int64_t> axes) {
  OpDesc op;
  op.type = "slice";
  op.SetInput("Input", {x});
  std::vector<int32_t> all(axes.begin(), axes.end());
  const std::vector<int32_t> starts(axes.size(), 0), ends(axes.size(), 1),
      flags(axes.size(), 1);
  return Append(std::move(op), {{"axes", all},
                                {"starts", starts},
                                {"ends", ends},
                                {"infer_flags", flags},
                                {"decrease_axis", all}});
}

// The variables that tell one axis of a picture, float64.
struct Axis {
  std::string middles;  // of its pixels: 0.5, 1.5, ...; [extent]
  std::string extent;   // [1]
  std::string resized;  // the extent before it is cut; [1]
  int64_t wanted = 0;
};

// How many elements the axis has that others were cut away from, without
// asking for its shape: a 1 for each of them, summed up.
Axis AxisOf(const std::string& pixels, std::vector<int64_t> others,
            int64_t wanted, Fitter* f) {
  Axis axis;
  const std::string line = f->Slice(pixels, std::move(others));
  const std::string ones = f->Scaled(line, 0, 1);
  axis.middles = f->Scaled(
      f->Unary("cumsum", ones, {{"axis", int32_t{0}}, {"flatten", false}}), 1,
      -0.5);
  axis.extent = f->Sum(ones, 0);
  axis.wanted = wanted;
  return axis;
}

// The extent that Resize gives the axis; `shorter`: of the shorter edge.
void SetResized(const PictureFit& fit, size_t number,
                const std::string& shorter, Axis* axis, Fitter* f) {
  if (fit.size.empty()) {
    axis->resized = axis->extent;
  } else if (fit.size.size() == 2) {
    axis->resized =
        f->Constant("extent", {static_cast<double>(fit.size[number])});
  } else {
    const auto edge = static_cast<double>(fit.size[0]);
    axis->resized =
        f->Unary("floor", f->Div(f->Scaled(axis->extent, edge), shorter));
  }
}

// [wanted, extent]: how much of each pixel is in each of the result.
// A row is a triangle around the middle of its pixel, as wide as a pixel of the
// result where that is the larger one; its sum is 1.
std::string WeightsOf(const Axis& axis, bool crops, Fitter* f) {
  std::vector<double> middles;
  for (int64_t i = 0; i < axis.wanted; ++i)
    middles.push_back(static_cast<double>(i) + 0.5);
  std::string at = f->Constant("middles", middles);
  std::string inside;
  if (crops) {
    // Half of what is too much, rounded to the even number: the sum of
    // floor((d + 1) / 4) and floor((d + 2) / 4).
    const std::string more =
        f->Sub(axis.resized,
               f->Constant("extent", {static_cast<double>(axis.wanted)}));
    at = f->Add(at, f->Add(f->Unary("floor", f->Scaled(more, 0.25, 0.25)),
                           f->Unary("floor", f->Scaled(more, 0.25, 0.5))));
    // 1 where the resized picture has a pixel, 0 where it is too small: black.
    const std::string before = f->Unary("relu", f->Scaled(at, -1, 0.5));
    const std::string behind =
        f->Unary("relu", f->Scaled(f->Sub(at, axis.resized), 1, 0.5));
    inside = f->Unary("relu", f->Scaled(f->Add(before, behind), -1, 1));
  }
  const std::string scale = f->Div(axis.extent, axis.resized);
  const std::string one = f->Constant("one", {1});
  const std::string stretch = f->Binary("elementwise_max", scale, one);
  const std::string distance =
      f->Unary("abs", f->Sub(f->Mul(at, scale), axis.middles));
  std::string weights =
      f->Unary("relu", f->Scaled(f->Div(distance, stretch), -1, 1));
  const std::string sum = f->Sum(weights, 1);
  // Of a row outside of the picture the sum is 0.
  weights = f->Div(
      weights, f->Binary("elementwise_max", sum, f->Constant("least", {1e-6})));
  if (crops) weights = f->Mul(weights, inside);
  return f->Unary("floor", f->Scaled(weights, kOne, 0.5));
}

// A sum with weights, to the nearest whole number.
std::string Rounded(const std::string& x, Fitter* f) {
  return f->Unary("floor", f->Scaled(x, 1 / kOne, 0.5));
}

}  // namespace

absl::StatusOr<std::string> AppendPictureFit(const PictureFit& fit,
                                             const std::string& name,
                                             const std::string& x,
                                             BlockBuilder* builder,
                                             InferenceModel* model) {
  Fitter f(name, builder, model);
  const std::string planes =
      f.Cast(f.Transposed(x, {0, 3, 1, 2}), DType::kFloat32, DType::kFloat64);
  Axis down = AxisOf(planes, {0, 1, 3}, fit.height, &f);
  Axis across = AxisOf(planes, {0, 1, 2}, fit.width, &f);
  const std::string shorter =
      f.Binary("elementwise_min", down.extent, across.extent);
  SetResized(fit, 0, shorter, &down, &f);
  SetResized(fit, 1, shorter, &across, &f);
  // Rows first, as Pillow does, and each pass is rounded.
  const std::string narrow =
      Rounded(f.Binary("matmul_v2", planes, WeightsOf(across, fit.crops, &f),
                       {{"trans_x", false}, {"trans_y", true}}),
              &f);
  const std::string small =
      Rounded(f.Binary("matmul_v2", WeightsOf(down, fit.crops, &f), narrow,
                       {{"trans_x", false}, {"trans_y", false}}),
              &f);
  const std::string out = f.Transposed(
      f.Cast(small, DType::kFloat64, DType::kFloat32), {0, 2, 3, 1});
  PD_RETURN_IF_ERROR(f.status());
  return out;
}

}  // namespace pd
