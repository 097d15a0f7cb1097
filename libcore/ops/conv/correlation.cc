// SPDX-License-Identifier: Apache-2.0
// correlation (FlowNet's; A. Dosovitskiy et al., 2015): how alike two images
// are at each displacement. With d = max_displacement / stride2, D = 2d + 1 and
// images padded by zeros, of n channels, windows of kernel_size (radius r):
//   Output[b, (j + d) D + i + d, y, x] = sum over channels and a window around
//     (y1, x1) = (y, x) stride1 + max_displacement of Input1[y1, x1] *
//     Input2[y1 + j stride2, x1 + i stride2], / (n kernel_size^2)
#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Correlation {
  int64_t batch = 0, channels = 0, height = 0, width = 0;
  int64_t pad = 0, kernel = 1, radius = 0, displacement = 0;
  int64_t stride1 = 1, stride2 = 1, reach = 0;
  int64_t out_height = 0, out_width = 0;

  int64_t Side() const { return 2 * reach + 1; }
  Shape Output() const {
    return {batch, Side() * Side(), out_height, out_width};
  }
  // The offset of a place in a padded plane, or -1 in the padding.
  int64_t At(int64_t y, int64_t x) const {
    y -= pad;
    x -= pad;
    return y < 0 || x < 0 || y >= height || x >= width ? -1 : y * width + x;
  }
};

absl::StatusOr<Correlation> ReadCorrelation(const OpDesc& op, const Shape& one,
                                            const Shape& two) {
  Correlation c;
  const auto attr = [&](const char* name) {
    return int64_t{op.Attr<int32_t>(name)};
  };
  c.pad = attr("pad_size");
  c.kernel = attr("kernel_size");
  c.displacement = attr("max_displacement");
  c.stride1 = attr("stride1");
  c.stride2 = attr("stride2");
  constexpr int64_t kMost = 1 << 15;
  if (one.size() != 4 || two.size() != 4 || c.pad < 0 || c.pad > kMost ||
      c.kernel < 1 || c.kernel > kMost || c.displacement < 0 ||
      c.displacement > kMost || c.stride1 < 1 || c.stride2 < 1)
    return InvalidArgument(
        "inputs have shapes %s and %s, attrs 'pad_size', 'kernel_size' and "
        "'max_displacement' are %d, %d and %d, strides %d and %d; expected "
        "images, and numbers up to %d",
        ToString(one), ToString(two), c.pad, c.kernel, c.displacement,
        c.stride1, c.stride2, kMost);
  for (size_t k = 0; k < 4; ++k)
    if (one[k] != two[k] && one[k] >= 0 && two[k] >= 0)
      return InvalidArgument("inputs have shapes %s and %s; expected one",
                             ToString(one), ToString(two));
  c.batch = one[0];
  c.channels = one[1];
  c.height = one[2];
  c.width = one[3];
  c.radius = (c.kernel - 1) / 2;
  c.reach = c.displacement / c.stride2;
  const int64_t border = 2 * (c.radius + c.displacement);
  const auto places = [&](int64_t extent) {
    if (extent < 0) return int64_t{-1};
    const int64_t inside = extent + 2 * c.pad - border;
    return inside <= 0 ? 0 : (inside - 1) / c.stride1 + 1;
  };
  c.out_height = places(c.height);
  c.out_width = places(c.width);
  if (c.out_height == 0 || c.out_width == 0)
    return InvalidArgument(
        "inputs of shape %s have no place for displacements of %d",
        ToString(one), c.displacement);
  return c;
}

// Calls body(first, second, out) with the offsets of each product's elements
// for one image; those in the padding are left out.
template <typename Body>
void ForEachCorrelated(const Correlation& c, const Body& body) {
  const int64_t d = c.reach, plane = c.height * c.width;
  for (int64_t tc = 0; tc < c.Side() * c.Side(); ++tc) {
    const int64_t down = (tc / c.Side() - d) * c.stride2;
    const int64_t right = (tc % c.Side() - d) * c.stride2;
    for (int64_t y = 0; y < c.out_height; ++y)
      for (int64_t x = 0; x < c.out_width; ++x) {
        const int64_t out = (tc * c.out_height + y) * c.out_width + x;
        for (int64_t j = -c.radius; j <= c.radius; ++j)
          for (int64_t i = -c.radius; i <= c.radius; ++i) {
            const int64_t y1 = y * c.stride1 + c.displacement + j;
            const int64_t x1 = x * c.stride1 + c.displacement + i;
            const int64_t first = c.At(y1, x1);
            const int64_t second = c.At(y1 + down, x1 + right);
            if (first < 0 || second < 0) continue;
            for (int64_t ch = 0; ch < c.channels; ++ch)
              body(ch * plane + first, ch * plane + second, out);
          }
      }
  }
}

template <typename T>
T CorrelationScale(const Correlation& c) {
  return T(1) / static_cast<T>(c.kernel * c.kernel * c.channels);
}

absl::StatusOr<Step> BindCorrelation(BindContext* context) {
  Tensor* one = context->Input("Input1");
  Tensor* two = context->Input("Input2");
  Tensor* out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(
      const Correlation c,
      ReadCorrelation(context->op(), one->shape(), two->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Input2", one->dtype(), one->shape()));
  return DispatchFloat(one->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t in_step = c.channels * c.height * c.width;
      const int64_t out_step = c.Side() * c.Side() * c.out_height * c.out_width;
      ParallelFor(c.batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const T* a = one->data<T>() + n * in_step;
          const T* b = two->data<T>() + n * in_step;
          T* to = out->data<T>() + n * out_step;
          std::fill_n(to, out_step, T(0));
          ForEachCorrelated(c, [&](int64_t first, int64_t second, int64_t at) {
            to[at] += a[first] * b[second];
          });
          for (int64_t i = 0; i < out_step; ++i)
            to[i] *= CorrelationScale<T>(c);
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindCorrelationGrad(BindContext* context) {
  Tensor* one = context->Input("Input1");
  Tensor* two = context->Input("Input2");
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* done = context->Output("Input1@GRAD");
  Tensor* dtwo = context->Output("Input2@GRAD");
  PD_ASSIGN_OR_RETURN(
      const Correlation c,
      ReadCorrelation(context->op(), one->shape(), two->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Input2", one->dtype(), one->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Output@GRAD", one->dtype(), c.Output()));
  return DispatchFloat(one->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (Tensor* to : {done, dtwo})
        if (to != nullptr) std::fill_n(to->data<T>(), to->size(), T(0));
      const int64_t in_step = c.channels * c.height * c.width;
      const int64_t out_step = c.Side() * c.Side() * c.out_height * c.out_width;
      ParallelFor(c.batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const int64_t base = n * in_step;
          ForEachCorrelated(c, [&](int64_t first, int64_t second, int64_t at) {
            const T g =
                dout->data<T>()[n * out_step + at] * CorrelationScale<T>(c);
            if (done != nullptr)
              done->data<T>()[base + first] +=
                  g * two->data<T>()[base + second];
            if (dtwo != nullptr)
              dtwo->data<T>()[base + second] +=
                  g * one->data<T>()[base + first];
          });
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferCorrelation(InferContext* context) {
  const TensorMeta& one = context->Input("Input1");
  PD_ASSIGN_OR_RETURN(const Correlation c,
                      ReadCorrelation(context->op(), one.shape,
                                      context->Input("Input2").shape));
  context->SetOutput("Output", c.Output(), one.dtype);
  return absl::OkStatus();
}

void AddCorrelationAttrs(OpDef* op) {
  for (const char* name :
       {"pad_size", "kernel_size", "max_displacement", "stride1", "stride2"})
    op->RequiredAttr(name, AttrType::kInt);
  op->Attr("corr_type_multiply", int32_t{1});
}

}  // namespace

absl::Status RegisterCorrelation(OpRegistry* registry) {
  OpDef op("correlation"), grad("correlation_grad");
  op.Input("Input1").Input("Input2").Output("Output");
  AddCorrelationAttrs(&op);
  op.Infer(InferCorrelation).Reference(BindCorrelation);
  op.Grad(GradSpec{"correlation_grad",
                   {"Input1", "Input2"},
                   {},
                   {"Output"},
                   {"Input1", "Input2"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Input("Input1").Input("Input2").Input("Output@GRAD");
  grad.OptionalOutput("Input1@GRAD").OptionalOutput("Input2@GRAD");
  AddCorrelationAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindCorrelationGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
