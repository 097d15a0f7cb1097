// SPDX-License-Identifier: Apache-2.0
// concat and split along the channels of bytes that lie NHWC: between 8-bit
// convolutions nothing is turned.
#include <algorithm>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/row_copies.h"

namespace pd {
namespace int8 {
namespace {

constexpr int64_t kBlock = 64;  // pixels at a time

struct Parts {
  std::vector<Tensor*> tensors;
  std::vector<int64_t> widths;  // channels
  Tensor* joined = nullptr;
  int64_t pixels = 0, total = 0;

  void Copy(bool join, int64_t begin, int64_t end) const {
    uint8_t* all = joined->data<uint8_t>();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const int64_t width = widths[i];
      uint8_t* part = tensors[i]->data<uint8_t>();
      const auto in_part = [=](int64_t p) { return part + p * width; };
      const auto in_all = [=](int64_t p) { return all + p * total; };
      if (join)
        CopyRows(begin, end, static_cast<size_t>(width), in_all, in_part);
      else
        CopyRows(begin, end, static_cast<size_t>(width), in_part, in_all);
      all += width;
    }
  }
};

absl::Status ExpectChannels(const BindContext& context, const Tensor& x) {
  const int32_t axis = context.op().Attr<int32_t>("axis");
  if (x.dtype() != DType::kUInt8 || x.rank() != 4 || x.size() == 0)
    return Unimplemented("it is for images of uint8");
  if ((axis != 1 && axis != -3) || context.Input("AxisTensor") != nullptr)
    return Unimplemented("it is for channels alone");
  return absl::OkStatus();
}

Step CopyParts(const Parts& p, bool join) {
  return [p, join](const RunContext&) {
    ParallelFor(
        (p.pixels + kBlock - 1) / kBlock, 4, [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b)
            p.Copy(join, b * kBlock, std::min(p.pixels, (b + 1) * kBlock));
        });
    return absl::OkStatus();
  };
}

// Fills pixels, total and widths, once the tensors are there.
void Measure(Parts* p) {
  const Tensor& t = *p->joined;
  p->pixels = t.dim(0) * t.dim(2) * t.dim(3);
  p->total = t.dim(1);
  for (const Tensor* part : p->tensors) p->widths.push_back(part->dim(1));
}

}  // namespace

absl::StatusOr<Step> BindConcat(BindContext* context) {
  Parts p;
  PD_RETURN_IF_ERROR(ExpectChannels(*context, *context->Input("X")));
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    PD_ASSIGN_OR_RETURN(x, context->In(x, ChannelsLast(x->shape())));
    p.tensors.push_back(x);
  }
  p.joined = context->Output("Out");
  PD_ASSIGN_OR_RETURN(p.joined,
                      context->Out(p.joined, ChannelsLast(p.joined->shape())));
  Measure(&p);
  return CopyParts(p, true);
}

absl::StatusOr<Step> BindSplit(BindContext* context) {
  Parts p;
  PD_RETURN_IF_ERROR(ExpectChannels(*context, *context->Input("X")));
  for (size_t i = 0; i < context->OutputCount("Out"); ++i)
    if (context->Output("Out", i) == nullptr)
      return Unimplemented("output %d of split is not wanted", i);
  p.joined = context->Input("X");
  PD_ASSIGN_OR_RETURN(p.joined,
                      context->In(p.joined, ChannelsLast(p.joined->shape())));
  for (size_t i = 0; i < context->OutputCount("Out"); ++i) {
    Tensor* part = context->Output("Out", i);
    PD_ASSIGN_OR_RETURN(part, context->Out(part, ChannelsLast(part->shape())));
    p.tensors.push_back(part);
  }
  Measure(&p);
  return CopyParts(p, false);
}

}  // namespace int8
}  // namespace pd
