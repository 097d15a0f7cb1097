// SPDX-License-Identifier: Apache-2.0
// Images [n, channels, h, w] as sequences of patches: one row for each place of
// the window, row by row of the image, with the elements [channels, kernel h,
// kernel w]; zeros outside. Out's LoD has one sequence an image. X@GRAD adds
// the rows' gradients where they came from.
// In inference Y may hold each image's true height and width; they are divided
// by out_stride, rounding up, and say how many rows and columns of places an
// image has.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kMostExtent = 1 << 15;  // of a window

struct Patches {
  int64_t images, channels, h, w;
  int64_t kernel_h, kernel_w, stride_h, stride_w;
  int64_t up, left, down, right;

  int64_t width() const { return channels * kernel_h * kernel_w; }
  int64_t Rows(int64_t height) const {
    return (height + up + down - kernel_h) / stride_h + 1;
  }
  int64_t Columns(int64_t width) const {
    return (width + left + right - kernel_w) / stride_w + 1;
  }
};

absl::StatusOr<Patches> ReadPatches(const OpDesc& op, const Shape& x) {
  const auto kernels = IntsAttr(op, "kernels");
  const auto strides = IntsAttr(op, "strides");
  const auto paddings = IntsAttr(op, "paddings");
  if (x.size() != 4 || kernels.size() != 2 || strides.size() != 2 ||
      paddings.size() != 4)
    return InvalidArgument(
        "'X' has shape %s; 'kernels', 'strides' and 'paddings' have %d, %d and "
        "%d numbers; expected rank 4 and 2, 2, 4",
        ToString(x), kernels.size(), strides.size(), paddings.size());
  for (size_t i = 0; i < 2; ++i)
    if (kernels[i] < 1 || kernels[i] > kMostExtent || strides[i] < 1)
      return InvalidArgument(
          "attr 'kernels' holds %d and 'strides' %d; expected 1 to %d, and 1 "
          "or more",
          kernels[i], strides[i], kMostExtent);
  Patches p{x[0],        x[1],        x[2],        x[3],
            kernels[0],  kernels[1],  strides[0],  strides[1],
            paddings[0], paddings[1], paddings[2], paddings[3]};
  if ((p.h >= 0 && p.h + p.up + p.down < p.kernel_h) ||
      (p.w >= 0 && p.w + p.left + p.right < p.kernel_w))
    return InvalidArgument("images %s are smaller than a window of %d x %d",
                           ToString(x), p.kernel_h, p.kernel_w);
  return p;
}

// Rows and columns of places of each image; `sizes` may be null.
struct Places {
  std::vector<int64_t> rows, columns;
  std::vector<uint64_t> offsets = {0};
};

absl::StatusOr<Places> PlacesOf(const OpDesc& op, const Patches& p,
                                const Tensor* sizes) {
  Places places;
  const auto divisors = IntsAttr(op, "out_stride");
  if (sizes != nullptr &&
      (sizes->dtype() != DType::kFloat32 || sizes->size() != 2 * p.images ||
       divisors.size() != 2 || divisors[0] < 1 || divisors[1] < 1))
    return InvalidArgument("'Y' is %s %s; expected float32 [%d, 2]",
                           Name(sizes->dtype()), ToString(sizes->shape()),
                           p.images);
  for (int64_t n = 0; n < p.images; ++n) {
    int64_t extent[2] = {p.h, p.w};
    for (int64_t i = 0; sizes != nullptr && p.images > 1 && i < 2; ++i) {
      const float size = sizes->data<float>()[2 * n + i];
      const int64_t most = extent[i] * divisors[i];
      if (!(size >= 0 && size <= static_cast<float>(most)))
        return InvalidArgument("'Y' holds %g; expected 0 to %d", size, most);
      extent[i] = (static_cast<int64_t>(size) + divisors[i] - 1) / divisors[i];
    }
    if (extent[0] + p.up + p.down < p.kernel_h ||
        extent[1] + p.left + p.right < p.kernel_w)
      return InvalidArgument("image %d of %d x %d is smaller than a window", n,
                             extent[0], extent[1]);
    places.rows.push_back(p.Rows(extent[0]));
    places.columns.push_back(p.Columns(extent[1]));
    places.offsets.push_back(
        places.offsets.back() +
        static_cast<uint64_t>(places.rows.back() * places.columns.back()));
  }
  return places;
}

// Calls body(image element or -1, patch element) for all.
template <typename Body>
void ForEachElement(const Patches& p, const Places& places, const Body& body) {
  int64_t to = 0;
  for (int64_t n = 0; n < p.images; ++n)
    for (int64_t y = 0; y < places.rows[n]; ++y)
      for (int64_t x = 0; x < places.columns[n]; ++x)
        for (int64_t c = 0; c < p.channels; ++c)
          for (int64_t i = 0; i < p.kernel_h; ++i)
            for (int64_t j = 0; j < p.kernel_w; ++j) {
              const int64_t row = y * p.stride_h - p.up + i;
              const int64_t column = x * p.stride_w - p.left + j;
              const bool inside =
                  row >= 0 && row < p.h && column >= 0 && column < p.w;
              body(inside ? ((n * p.channels + c) * p.h + row) * p.w + column
                          : -1,
                   to++);
            }
}

absl::StatusOr<Step> BindIm2sequenceForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* sizes = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Patches p, ReadPatches(context->op(), x->shape()));
  const OpDesc op = context->op();
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PD_ASSIGN_OR_RETURN(const Places places, PlacesOf(op, p, sizes));
      if (static_cast<int64_t>(places.offsets.back()) != out->dim(0))
        return InvalidArgument("there are %d patches; 'Out' has %d rows",
                               places.offsets.back(), out->dim(0));
      ForEachElement(p, places, [&](int64_t from, int64_t to) {
        out->data<T>()[to] = from < 0 ? T(0) : x->data<T>()[from];
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindIm2sequenceBackward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const Patches p, ReadPatches(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(const Places places, PlacesOf(context->op(), p, nullptr));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(),
                  {static_cast<int64_t>(places.offsets.back()), p.width()}));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(dx->data<T>(), dx->size(), T(0));
      ForEachElement(p, places, [&](int64_t to, int64_t from) {
        if (to >= 0) dx->data<T>()[to] += dout->data<T>()[from];
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferIm2sequence(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Patches p, ReadPatches(context->op(), x.shape));
  TensorMeta out;
  out.dtype = x.dtype;
  out.lod_level = 1;
  out.shape = {-1, p.channels < 0 ? -1 : p.width()};
  const Tensor* sizes =
      context->HasInput("Y") ? context->Input("Y").value : nullptr;
  const bool known = sizes != nullptr || !context->HasInput("Y");
  if (!IsDynamic(x.shape) && known) {
    PD_ASSIGN_OR_RETURN(Places places, PlacesOf(context->op(), p, sizes));
    out.shape[0] = static_cast<int64_t>(places.offsets.back());
    out.SetLoD({std::move(places.offsets)});
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

void AddIm2sequenceAttrs(OpDef* def) {
  def->RequiredAttr("kernels", AttrType::kInts);
  def->Attr("strides", std::vector<int32_t>{1, 1});
  def->Attr("paddings", std::vector<int32_t>{0, 0, 0, 0});
  def->Attr("out_stride", std::vector<int32_t>{1, 1});
}

}  // namespace

absl::Status RegisterIm2sequence(OpRegistry* registry) {
  OpDef op("im2sequence");
  op.Input("X").OptionalInput("Y").Output("Out");
  AddIm2sequenceAttrs(&op);
  op.Infer(InferIm2sequence).Reference(BindIm2sequenceForward);
  op.Grad(GradSpec{"im2sequence_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("im2sequence_grad");
  grad.Input("X").OptionalInput("Y").Input("Out@GRAD").Output("X@GRAD");
  AddIm2sequenceAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindIm2sequenceBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
