// SPDX-License-Identifier: Apache-2.0
// The interpolations (nearest_interp and the like) and their gradients; the
// kernel is in resize.cu.
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/interp.h"

namespace pd::cuda {
namespace {

// What each position of one axis of the result reads: entries begins[i] to
// begins[i + 1].
struct Reads {
  std::vector<int32_t> begins, index;
  std::vector<float> weight;
  int64_t from = 1, to = 1;

  size_t bytes() const {
    return (begins.size() + index.size()) * sizeof(int32_t) +
           weight.size() * sizeof(float);
  }
};

Reads Forwards(const InterpAxis& axis) {
  Reads reads;
  reads.from = axis.in;
  reads.to = axis.out;
  for (int64_t o = 0; o <= axis.out; ++o)
    reads.begins.push_back(static_cast<int32_t>(o * axis.taps));
  reads.index.assign(axis.index.begin(), axis.index.end());
  reads.weight.assign(axis.weight.begin(), axis.weight.end());
  return reads;
}

// The other way round: an input position reads the outputs that read it, in
// their order.
Reads Backwards(const InterpAxis& axis) {
  Reads reads;
  reads.from = axis.out;
  reads.to = axis.in;
  std::vector<std::vector<size_t>> readers(static_cast<size_t>(axis.in));
  for (size_t i = 0; i < axis.index.size(); ++i)
    readers[static_cast<size_t>(axis.index[i])].push_back(i);
  for (const std::vector<size_t>& entries : readers) {
    reads.begins.push_back(static_cast<int32_t>(reads.index.size()));
    for (const size_t i : entries) {
      reads.index.push_back(
          static_cast<int32_t>(static_cast<int64_t>(i) / axis.taps));
      reads.weight.push_back(static_cast<float>(axis.weight[i]));
    }
  }
  reads.begins.push_back(static_cast<int32_t>(reads.index.size()));
  return reads;
}

// Copies the axis to device memory that stays.
absl::StatusOr<ResizeAxis> Upload(DeviceBinding* binding, const Reads& reads) {
  if (reads.index.size() >
      static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return Unimplemented("an axis of %d taps", reads.index.size());
  PD_ASSIGN_OR_RETURN(void* const memory, binding->Keep(reads.bytes()));
  ResizeAxis axis{};
  auto* at = static_cast<char*>(memory);
  const auto copy = [&](const auto& numbers) {
    const size_t bytes = numbers.size() * sizeof(numbers[0]);
    char* const to = at;
    at += bytes;
    const absl::Status copied =
        binding->device()->ToDevice(to, numbers.data(), bytes);
    return std::pair<char*, absl::Status>(to, copied);
  };
  const auto begins = copy(reads.begins);
  const auto index = copy(reads.index);
  const auto weight = copy(reads.weight);
  for (const auto* part : {&begins, &index, &weight})
    PD_RETURN_IF_ERROR(part->second);
  axis.begins = reinterpret_cast<const int32_t*>(begins.first);
  axis.index = reinterpret_cast<const int32_t*>(index.first);
  axis.weight = reinterpret_cast<const float*>(weight.first);
  axis.from = reads.from;
  axis.to = reads.to;
  return axis;
}

absl::StatusOr<Step> ResizeStep(BindContext* context, DeviceBinding* binding,
                                const InterpTables& tables, bool backwards,
                                Tensor* in, Tensor* out) {
  for (const char* slot : {"OutSize", "Scale"})
    if (Tensor* tensor = context->Input(slot)) context->NoBuffer(tensor);
  for (size_t i = 0; i < context->InputCount("SizeTensor"); ++i)
    context->NoBuffer(context->Input("SizeTensor", i));
  ResizeArgs args{};
  const InterpAxis* axes[] = {&tables.d, &tables.h, &tables.w};
  for (int i = 0; i < 3; ++i) {
    PD_ASSIGN_OR_RETURN(
        args.axes[i],
        Upload(binding, backwards ? Backwards(*axes[i]) : Forwards(*axes[i])));
  }
  args.inner = tables.inner;
  args.n = out->size();
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<ResizeArgs>::Find(binding, "resize"));
  return Step([=](const RunContext&) {
    ResizeArgs run = args;
    run.in = in->data<float>();
    run.out = out->data<float>();
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> BindResize(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  PD_ASSIGN_OR_RETURN(const InterpTables tables,
                      ReadInterp(*context, x->shape(), out->shape()));
  return ResizeStep(context, binding, tables, false, x, out);
}

absl::StatusOr<Step> BindResizeGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *dout = context->Input("Out@GRAD"),
         *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, dout, dx}));
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const InterpTables tables,
                      ReadInterp(*context, x->shape(), dout->shape()));
  return ResizeStep(context, binding, tables, true, dout, dx);
}

}  // namespace

void AddResizing(DeviceKernels* kernels) {
  for (const char* method :
       {"nearest", "linear", "bilinear", "trilinear", "bicubic"})
    for (const char* version : {"_interp", "_interp_v2"}) {
      const std::string type = absl::StrCat(method, version);
      kernels->Add(type, {"cuda", BindResize});
      kernels->Add(type + "_grad", {"cuda", BindResizeGrad});
    }
}

}  // namespace pd::cuda
