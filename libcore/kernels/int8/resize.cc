// SPDX-License-Identifier: Apache-2.0
// Nearest resizing of images that lie NHWC: bytes, and floats where the last
// product of a chain has left them so. Whole pixels are copied, and rows that
// repeat at once.
#include <cstring>
#include <string>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/ops/common/row_copies.h"
#include "libcore/ops/conv/interp.h"

namespace pd {
namespace int8 {
namespace {

constexpr int64_t kRows = 4;  // of the output, at least, for a thread

struct Resize {
  InterpAxis h, w;
  int64_t batch = 0;
  size_t pixel = 0;  // bytes
  Tensor *x = nullptr, *out = nullptr;

  // Rows [begin, end) of all images of the output.
  void Copy(int64_t begin, int64_t end) const {
    const auto width = static_cast<int64_t>(pixel);
    const auto* in = static_cast<const std::byte*>(x->raw());
    auto* to = static_cast<std::byte*>(out->raw());
    const std::byte* before = nullptr;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / h.out;
      const std::byte* from =
          in + (image * h.in + h.index[static_cast<size_t>(row % h.out)]) *
                   w.in * width;
      std::byte* const line = to + row * w.out * width;
      if (from == before)
        std::memcpy(line, line - w.out * width,
                    static_cast<size_t>(w.out) * pixel);
      else
        CopyRows(
            0, w.out, pixel, [=](int64_t i) { return line + i * width; },
            [=](int64_t i) {
              return from + w.index[static_cast<size_t>(i)] * width;
            });
      before = from;
    }
  }
};

absl::Status ExpectImages(BindContext* context) {
  const Tensor& x = *context->Input("X");
  if (x.rank() != 4 || x.size() == 0) return Unimplemented("it is for images");
  if (context->Attr<std::string>("interp_method") != "nearest" ||
      context->Attr<std::string>("data_layout") != "NCHW")
    return Unimplemented("it is for nearest of NCHW");
  if (x.dtype() == DType::kUInt8) return absl::OkStatus();
  if (x.dtype() != DType::kFloat32 || context->IsTraining())
    return Unimplemented(
        "it is for bytes, and floats where nothing is trained");
  if (x.layout() == nullptr || !SameLayout(x.layout(), ChannelsLast(x.shape())))
    return Unimplemented("X does not lie with its channels last");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Step> BindNearest(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectImages(context));
  Resize r;
  r.x = context->Input("X");
  r.out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(InterpTables tables,
                      ReadInterp(*context, r.x->shape(), r.out->shape()));
  r.h = std::move(tables.h);
  r.w = std::move(tables.w);
  r.batch = r.x->dim(0);
  r.pixel = static_cast<size_t>(r.x->dim(1)) * SizeOf(r.x->dtype());
  PD_ASSIGN_OR_RETURN(r.x, context->In(r.x, ChannelsLast(r.x->shape())));
  PD_ASSIGN_OR_RETURN(r.out, context->Out(r.out, ChannelsLast(r.out->shape())));
  return Step([r](const RunContext&) {
    ParallelFor(r.batch * r.h.out, kRows,
                [&](int64_t begin, int64_t end) { r.Copy(begin, end); });
    return absl::OkStatus();
  });
}

}  // namespace int8
}  // namespace pd
