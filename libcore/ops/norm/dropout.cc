// SPDX-License-Identifier: Apache-2.0
// dropout, and dropout_nd, whose Mask has extent 1 in every dimension that is
// not in `axis` (all dimensions when `axis` is empty).
//   training: Mask = 1 where a uniform number is dropout_prob or more, else 0
//     upscale_in_train:   Out = X * Mask / (1 - dropout_prob); 0 at prob. 1
//     downgrade_in_infer: Out = X * Mask
//   is_test: Out = X, or X * (1 - dropout_prob) with downgrade_in_infer; Mask
//   is
//     not written
// X@GRAD is Out@GRAD times the same factors.
// Random numbers: Philox keyed by the seed of the run and, as its stream, the
// name of Out and the step. fix_seed takes `seed` instead and leaves the step
// out, so that every step drops the same elements; so does the input Seed.
#include "libcore/ops/norm/dropout.h"
#include "libcore/ops/common/linear_grad.h"

#include <algorithm>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {

absl::StatusOr<Dropout> ReadDropout(const BindContext& context) {
  Dropout d;
  d.probability = context.Attr<float>("dropout_prob");
  d.is_test = context.Attr<bool>("is_test");
  const auto& how = context.Attr<std::string>("dropout_implementation");
  d.upscale = how == "upscale_in_train";
  if (!d.upscale && how != "downgrade_in_infer")
    return InvalidArgument(
        "attr 'dropout_implementation' is '%s'; expected upscale_in_train or "
        "downgrade_in_infer",
        how);
  if (!(d.probability >= 0 && d.probability <= 1))
    return InvalidArgument("attr 'dropout_prob' is %g; expected 0 to 1",
                           d.probability);
  return d;
}

DropoutSource::Numbers DropoutSource::At(const RunContext& run) const {
  if (seed_tensor != nullptr)
    return {static_cast<uint64_t>(LabelAt(*seed_tensor, 0)), name};
  if (fixed) return {static_cast<uint64_t>(seed), name};
  return {run.seed, name + run.step * 0x9E3779B97F4A7C15ull};
}

absl::StatusOr<DropoutSource> ReadDropoutSource(const BindContext& context) {
  DropoutSource source = {StreamOf(context.op().Out("Out")),
                          context.Attr<bool>("fix_seed"),
                          context.Attr<int32_t>("seed"), context.Input("Seed")};
  if (source.seed_tensor != nullptr &&
      (!IsInteger(source.seed_tensor->dtype()) ||
       source.seed_tensor->size() != 1))
    return InvalidArgument("'Seed' is %s %s; expected one integer",
                           Name(source.seed_tensor->dtype()),
                           ToString(source.seed_tensor->shape()));
  return source;
}

namespace {

constexpr int64_t kGrain = 8192;

}  // namespace

void DrawMask(DropoutSource::Numbers numbers, const Dropout& dropout,
              int64_t draws, uint8_t* mask) {
  const Philox random(numbers.seed, numbers.stream);
  const float threshold = static_cast<float>(dropout.probability);
  ParallelFor(draws, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      mask[i] = random.Uniform(static_cast<uint64_t>(i)) >= threshold;
  });
}

namespace {

// From an element of X to its element of Mask.
class MaskIndex {
 public:
  MaskIndex(const Shape& x, const Shape& mask)
      : x_(RowMajorStrides(x)), mask_(RowMajorStrides(mask)), shape_(x) {
    for (size_t d = 0; d < x.size(); ++d)
      if (mask[d] == 1) mask_[d] = 0;
    same_ = x == mask;
  }
  int64_t operator()(int64_t i) const {
    if (same_) return i;
    int64_t at = 0;
    for (size_t d = 0; d < shape_.size(); ++d)
      at += i / x_[d] % shape_[d] * mask_[d];
    return at;
  }

 private:
  std::vector<int64_t> x_, mask_;
  Shape shape_;
  bool same_;
};

// out = x * (the mask's element, 1 without a mask) * factor
template <typename T>
void Apply(const MaskIndex& index, const uint8_t* mask, double factor,
           const Tensor& x, Tensor* out) {
  const T* in = x.data<T>();
  T* result = out->data<T>();
  const T kept = static_cast<T>(factor);
  ParallelFor(x.size(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      result[i] = mask == nullptr || mask[index(i)] != 0 ? in[i] * kept : T(0);
  });
}

absl::StatusOr<Step> BindDropout(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* mask = context->Output("Mask");
  PD_ASSIGN_OR_RETURN(const Dropout d, ReadDropout(*context));
  if (d.is_test && d.upscale) {
    context->Alias(x, out);
    return Step();
  }
  context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const DropoutSource source, ReadDropoutSource(*context));
  if (mask == nullptr && !d.is_test)
    mask = context->Scratch(static_cast<size_t>(x->size()));
  const MaskIndex index(x->shape(), mask != nullptr && mask->rank() == x->rank()
                                        ? mask->shape()
                                        : x->shape());
  const int64_t draws = mask == nullptr ? 0 : mask->size();
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext& run) {
      if (d.is_test) {
        Apply<T>(index, nullptr, d.KeptFactor(), *x, out);
        return absl::OkStatus();
      }
      uint8_t* kept = mask->data<uint8_t>();
      DrawMask(source.At(run), d, draws, kept);
      Apply<T>(index, kept, d.KeptFactor(), *x, out);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindDropoutGrad(BindContext* context) {
  Tensor* mask = context->Input("Mask");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->MayShare(dout, dx);
  PD_ASSIGN_OR_RETURN(const Dropout d, ReadDropout(*context));
  if (d.is_test && mask != nullptr) {
    context->NoBuffer(mask);
    mask = nullptr;
  } else if (!d.is_test) {
    if (mask == nullptr) return InvalidArgument("'Mask' is missing");
    Shape expected = dout->shape();
    for (size_t i = 0; i < expected.size() && i < mask->rank(); ++i)
      if (mask->dim(i) == 1) expected[i] = 1;
    PD_RETURN_IF_ERROR(ExpectInput(*context, "Mask", DType::kUInt8, expected));
  }
  const MaskIndex index(dout->shape(),
                        mask != nullptr ? mask->shape() : dout->shape());
  return DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Apply<T>(index, mask != nullptr ? mask->data<uint8_t>() : nullptr,
               d.KeptFactor(), *dout, dx);
      return absl::OkStatus();
    });
  });
}

absl::Status InferDropout(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  context->Share("X", "Out");
  Shape mask = x.shape;
  if (context->op().type == "dropout_nd") {
    const auto& axes = context->Attr<std::vector<int32_t>>("axis");
    if (!axes.empty()) mask.assign(x.shape.size(), 1);
    for (int32_t axis : axes) {
      PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, x.shape.size()));
      mask[static_cast<size_t>(a)] = x.shape[static_cast<size_t>(a)];
    }
  }
  context->SetOutput("Mask", std::move(mask), DType::kUInt8);
  return absl::OkStatus();
}

absl::Status InferDropoutGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

void AddDropoutAttrs(OpDef* def) {
  def->Attr("dropout_prob", 0.5f)
      .Attr("is_test", false)
      .Attr("dropout_implementation", std::string("downgrade_in_infer"))
      .Attr("fix_seed", false)
      .Attr("seed", int32_t{0});
}

}  // namespace

absl::Status RegisterDropout(OpRegistry* registry) {
  for (const std::string type : {"dropout", "dropout_nd"}) {
    OpDef dropout(type);
    dropout.Input("X").OptionalInput("Seed").Output("Out");
    dropout.IntermediateOutput("Mask");
    AddDropoutAttrs(&dropout);
    if (type == "dropout_nd") dropout.Attr("axis", std::vector<int32_t>());
    dropout.Infer(InferDropout).Reference(BindDropout);
    dropout.Grad(GradSpec{type + "_grad", {}, {"Mask"}, {"Out"}, {"X"}});
    PD_RETURN_IF_ERROR(registry->Add(std::move(dropout)));

    OpDef grad(type + "_grad");
    grad.OptionalInput("Mask").Input("Out@GRAD").Output("X@GRAD");
    AddDropoutAttrs(&grad);
    if (type == "dropout_nd") grad.Attr("axis", std::vector<int32_t>());
    grad.Infer(InferDropoutGrad).Reference(BindDropoutGrad);
    grad.Grad(GradientAgain());
    PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  }
  return absl::OkStatus();
}

}  // namespace pd
