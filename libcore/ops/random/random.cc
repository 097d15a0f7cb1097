// SPDX-License-Identifier: Apache-2.0
// Random tensors of shape `shape` (or ShapeTensor, ShapeTensorList):
//   gaussian_random: normal with `mean` and `std`
//   truncated_gaussian_random: the same, redrawn outside mean +- 2 std, by
//     inverting the distribution function
//   uniform_random: in [min, max); diag_num elements, i * (diag_step + 1), are
//     diag_val
//   uniform_random_inplace, gaussian_inplace: of the shape and dtype of X
//   uniform_random_batch_size_like, gaussian_random_batch_size_like: extent
//     output_dim_idx is extent input_dim_idx of Input
//   randint: integers in [low, high)
//   randperm: 0 ... n-1 in random order
// Where the numbers come from is in random_source.h. No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/random/random_source.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferRandom(InferContext* context) {
  const int32_t code = context->Attr<int32_t>("dtype");
  const auto dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype", code);
  Shape shape =
      RequestedInts(*context, "ShapeTensor", "ShapeTensorList", "shape");
  if (context->op().type == "randperm") shape = {context->Attr<int32_t>("n")};
  context->SetOutput("Out", std::move(shape), *dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindGaussian(BindContext* context) {
  for (const char* slot : {"x", "Input"})  // only its shape is asked for
    if (Tensor* like = context->Input(slot)) context->NoBuffer(like);
  const char* slot = context->Output("out") != nullptr ? "out" : "Out";
  Tensor* out = context->Output(slot);
  const double mean = context->Attr<float>("mean");
  const double std = context->Attr<float>("std");
  return DispatchTypes<float, double, Float16, BFloat16>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return RandomFillStep<T>(
            out, RandomSourceOf(*context, slot),
            [mean, std](auto& p, int64_t i) {
              return static_cast<float>(
                  mean + std * p.Normal(static_cast<uint64_t>(i)));
            });
      });
}

// The x with standard normal distribution function p, 0 < p < 1: bisection
// would do; Newton's method on erfc from a rough start is quicker. Within the
// two standard deviations that are asked for it converges in a few rounds.
double NormalQuantile(double p) {
  constexpr double kSqrt2 = 1.4142135623730951;
  constexpr double kSqrt2Pi = 2.5066282746310002;
  double x = kSqrt2Pi * (p - 0.5);
  for (int round = 0; round < 8; ++round) {
    const double error = 0.5 * std::erfc(-x / kSqrt2) - p;
    const double density = std::exp(-0.5 * x * x) / kSqrt2Pi;
    const double newton = error / density;
    const double move = newton / (1.0 + 0.5 * x * newton);  // Halley
    x -= move;
    if (std::fabs(move) < 1e-14) break;
  }
  return x;
}

absl::StatusOr<Step> BindTruncatedGaussian(BindContext* context) {
  Tensor* out = context->Output("Out");
  const double mean = context->Attr<float>("mean");
  const double std = context->Attr<float>("std");
  const auto draw = [mean, std](auto& p, int64_t i) {
    constexpr double kBelow = 0.022750131948179195;  // of the part below -2
    const double u = (p.U32(static_cast<uint64_t>(i)) + 0.5) * 0x1p-32;
    return mean + std * NormalQuantile(kBelow + u * (1.0 - 2.0 * kBelow));
  };
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return RandomFillStep<T>(out, RandomSourceOf(*context), draw);
  });
}

absl::StatusOr<Step> BindUniform(BindContext* context) {
  for (const char* slot : {"X", "Input"})  // only its shape is asked for
    if (Tensor* like = context->Input(slot)) context->NoBuffer(like);
  Tensor* out = context->Output("Out");
  const float low = context->Attr<float>("min");
  const float high = context->Attr<float>("max");
  const int64_t diagonal = context->Attr<int32_t>("diag_num");
  const int64_t stride = int64_t{context->Attr<int32_t>("diag_step")} + 1;
  const float on_diagonal = context->Attr<float>("diag_val");
  if (diagonal > 0 && (stride < 1 || (diagonal - 1) * stride >= out->size()))
    return InvalidArgument(
        "attrs 'diag_num' %d and 'diag_step' %d reach beyond %d elements",
        diagonal, stride - 1, out->size());
  const auto draw = [=](auto& p, int64_t i) {
    if (diagonal > 0 && i % stride == 0 && i / stride < diagonal)
      return on_diagonal;
    const float v = low + (high - low) * p.Uniform(static_cast<uint64_t>(i));
    return v < high || low >= high ? v : std::nextafter(high, low);
  };
  return DispatchTypes<float, double, Float16, BFloat16>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return RandomFillStep<T>(out, RandomSourceOf(*context), draw);
      });
}

// Uniform in [0, n) from 64 bits.
uint64_t Below(const Philox& p, int64_t i, uint64_t n) {
  const auto block = p.Block(static_cast<uint64_t>(i));
  const uint64_t wide = (uint64_t{block[0]} << 32) | block[1];
  return static_cast<uint64_t>((static_cast<unsigned __int128>(wide) * n) >>
                               64);
}

absl::StatusOr<Step> BindRandint(BindContext* context) {
  Tensor* out = context->Output("Out");
  const int64_t low = context->Attr<int32_t>("low");
  const int64_t high = context->Attr<int32_t>("high");
  if (low >= high)
    return InvalidArgument(
        "attr 'low' is %d, 'high' is %d; expected low < "
        "high",
        low, high);
  return DispatchTypes<int32_t, int64_t>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return RandomFillStep<T>(
            out, RandomSourceOf(*context),
            [low, high](const Philox& p, int64_t i) {
              return low + static_cast<int64_t>(
                               Below(p, i, static_cast<uint64_t>(high - low)));
            });
      });
}

absl::StatusOr<Step> BindRandperm(BindContext* context) {
  Tensor* out = context->Output("Out");
  const RandomSource source = RandomSourceOf(*context);
  return DispatchTypes<int32_t, int64_t, float, double>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([out, source, n = out->size()](const RunContext& run) {
          const Philox numbers = source.Numbers(run);
          T* result = out->data<T>();
          for (int64_t i = 0; i < n; ++i) result[i] = static_cast<T>(i);
          for (int64_t i = n - 1; i > 0; --i)
            std::swap(result[i],
                      result[Below(numbers, i, static_cast<uint64_t>(i) + 1)]);
          return absl::OkStatus();
        });
      });
}

// The shape is attr `shape` with extent output_dim_idx from Input.
absl::Status InferRandomBatchSizeLike(InferContext* context) {
  const int32_t code = context->Attr<int32_t>("dtype");
  const auto dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype", code);
  Shape shape = IntsAttr(context->op(), "shape");
  const Shape& input = context->Input("Input").shape;
  PD_ASSIGN_OR_RETURN(const int from,
                      NormalizeAxis(context->Attr<int32_t>("input_dim_idx"),
                                    input.size(), "input_dim_idx"));
  PD_ASSIGN_OR_RETURN(const int to,
                      NormalizeAxis(context->Attr<int32_t>("output_dim_idx"),
                                    shape.size(), "output_dim_idx"));
  shape[static_cast<size_t>(to)] = input[static_cast<size_t>(from)];
  context->SetOutput("Out", std::move(shape), *dtype);
  return absl::OkStatus();
}

OpDef Drawn(const std::string& type, DType dtype) {
  OpDef op(type);
  op.Output("Out").Attr("seed", int32_t{0});
  op.Attr("dtype", static_cast<int32_t>(dtype));
  op.Infer(InferRandom).NoGrad();
  return op;
}

void AddUniformAttrs(OpDef* op) {
  op->Attr("min", -1.0f).Attr("max", 1.0f).Attr("diag_num", int32_t{0});
  op->Attr("diag_step", int32_t{0}).Attr("diag_val", 1.0f);
}

absl::Status InferLowerCase(InferContext* context) {
  context->Share("x", "out");
  return absl::OkStatus();
}

// No gradient flows through a tensor that is overwritten by random numbers:
// that of X is zero.
absl::StatusOr<Step> BindRandomZeroGrad(BindContext* context) {
  const bool upper = context->Output("X@GRAD") != nullptr;
  Tensor* dout = context->Input(upper ? "Out@GRAD" : "out@GRAD");
  Tensor* dx = context->Output(upper ? "X@GRAD" : "x@GRAD");
  context->NoBuffer(dout);
  return DispatchTypes<float, double, Float16, BFloat16>(
      dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([dx](const RunContext&) {
          std::fill_n(dx->data<T>(), dx->size(), T(0.0f));
          return absl::OkStatus();
        });
      });
}

absl::Status InferRandomZeroGrad(InferContext* context) {
  for (const auto& [from, to] :
       {std::pair<const char*, const char*>{"Out@GRAD", "X@GRAD"},
        std::pair<const char*, const char*>{"out@GRAD", "x@GRAD"}})
    if (context->HasInput(from)) context->Share(from, to);
  return absl::OkStatus();
}

// The ops that take a tensor for its shape and dtype.
absl::Status AddInplace(OpRegistry* registry) {
  OpDef uniform("uniform_random_inplace"),
      uniform_grad("uniform_random_inplace_grad");
  uniform.Input("X").Output("Out").Infer(InferUnary).Reference(BindUniform);
  uniform.Grad(GradSpec{"uniform_random_inplace_grad", {}, {}, {"Out"}, {"X"}});
  uniform_grad.Input("Out@GRAD").Output("X@GRAD");
  for (OpDef* op : {&uniform, &uniform_grad}) {
    AddUniformAttrs(op);
    op->Attr("seed", int32_t{0});
  }
  OpDef gaussian("gaussian_inplace"), gaussian_grad("gaussian_inplace_grad");
  gaussian.Input("x").Output("out").Infer(InferLowerCase);
  gaussian.Grad(GradSpec{"gaussian_inplace_grad", {}, {}, {"out"}, {"x"}});
  gaussian.Reference(BindGaussian);
  gaussian_grad.Input("out@GRAD").Output("x@GRAD");
  for (OpDef* op : {&gaussian, &gaussian_grad})
    op->Attr("mean", 0.0f).Attr("std", 1.0f).Attr("seed", int32_t{0});
  for (OpDef* op : {&uniform_grad, &gaussian_grad})
    op->Infer(InferRandomZeroGrad).NoGrad().Reference(BindRandomZeroGrad);
  absl::Status s = registry->Add(std::move(uniform));
  s.Update(registry->Add(std::move(uniform_grad)));
  s.Update(registry->Add(std::move(gaussian)));
  s.Update(registry->Add(std::move(gaussian_grad)));
  return s;
}

absl::Status AddBatchSizeLike(OpRegistry* registry) {
  OpDef uniform = Drawn("uniform_random_batch_size_like", DType::kFloat32);
  AddUniformAttrs(&uniform);
  uniform.Reference(BindUniform);
  OpDef gaussian = Drawn("gaussian_random_batch_size_like", DType::kFloat32);
  gaussian.Attr("mean", 0.0f).Attr("std", 1.0f).Reference(BindGaussian);
  for (OpDef* op : {&uniform, &gaussian}) {
    op->Input("Input").RequiredAttr("shape", AttrType::kInts);
    op->Attr("input_dim_idx", int32_t{0}).Attr("output_dim_idx", int32_t{0});
    op->Infer(InferRandomBatchSizeLike);
  }
  PD_RETURN_IF_ERROR(registry->Add(std::move(uniform)));
  return registry->Add(std::move(gaussian));
}

void AddShape(OpDef* op) {
  op->OptionalInput("ShapeTensor").OptionalInputs("ShapeTensorList");
  op->Attr("shape", std::vector<int64_t>());
}

}  // namespace

absl::Status RegisterRandom(OpRegistry* registry) {
  OpDef gaussian = Drawn("gaussian_random", DType::kFloat32);
  AddShape(&gaussian);
  gaussian.Attr("mean", 0.0f).Attr("std", 1.0f).Reference(BindGaussian);
  PD_RETURN_IF_ERROR(registry->Add(std::move(gaussian)));

  OpDef truncated = Drawn("truncated_gaussian_random", DType::kFloat32);
  truncated.RequiredAttr("shape", AttrType::kInts);
  truncated.Attr("mean", 0.0f).Attr("std", 1.0f);
  truncated.Reference(BindTruncatedGaussian);
  PD_RETURN_IF_ERROR(registry->Add(std::move(truncated)));

  OpDef uniform = Drawn("uniform_random", DType::kFloat32);
  AddShape(&uniform);
  AddUniformAttrs(&uniform);
  uniform.Reference(BindUniform);
  PD_RETURN_IF_ERROR(registry->Add(std::move(uniform)));

  PD_RETURN_IF_ERROR(AddInplace(registry));
  PD_RETURN_IF_ERROR(AddBatchSizeLike(registry));

  OpDef randint = Drawn("randint", DType::kInt64);
  AddShape(&randint);
  randint.RequiredAttr("low", AttrType::kInt);
  randint.RequiredAttr("high", AttrType::kInt).Reference(BindRandint);
  PD_RETURN_IF_ERROR(registry->Add(std::move(randint)));

  OpDef randperm = Drawn("randperm", DType::kInt64);
  randperm.RequiredAttr("n", AttrType::kInt).Reference(BindRandperm);
  return registry->Add(std::move(randperm));
}

}  // namespace pd
