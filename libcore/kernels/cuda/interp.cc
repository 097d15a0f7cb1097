// SPDX-License-Identifier: Apache-2.0
// The interpolations (nearest_interp and the like), paddings by what is there,
// and their gradients; the kernel is in interp.cu.
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/conv/interp.h"
#include "libcore/ops/manipulation/pad.h"

namespace pd::cuda {
namespace {

// Elements that each position of one axis of the result reads: entries
// begins[i] to begins[i + 1].
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
Reads Backwards(const Reads& axis) {
  Reads reads;
  reads.from = axis.to;
  reads.to = axis.from;
  std::vector<std::vector<std::pair<int32_t, float>>> readers(
      static_cast<size_t>(axis.from));
  for (size_t o = 0; o + 1 < axis.begins.size(); ++o)
    for (int32_t i = axis.begins[o]; i < axis.begins[o + 1]; ++i) {
      const auto entry = static_cast<size_t>(i);
      readers[static_cast<size_t>(axis.index[entry])].emplace_back(
          static_cast<int32_t>(o), axis.weight[entry]);
    }
  for (const auto& entries : readers) {
    reads.begins.push_back(static_cast<int32_t>(reads.index.size()));
    for (const auto& [from, weight] : entries) {
      reads.index.push_back(from);
      reads.weight.push_back(weight);
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
        CudaOf(binding)->ToDevice(to, numbers.data(), bytes);
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

// Of [planes, d, h, w, inner].
absl::StatusOr<Step> ReadsStep(DeviceBinding* binding, const Reads (&axes)[3],
                               int64_t inner, Tensor* in, Tensor* out) {
  ResizeArgs args{};
  for (int i = 0; i < 3; ++i) {
    PD_ASSIGN_OR_RETURN(args.axes[i], Upload(binding, axes[i]));
  }
  args.inner = inner;
  args.n = out->size();
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<ResizeArgs>::Find(binding, "resize"));
  return Step([=](const RunContext&) {
    ResizeArgs run = args;
    run.in = Read<float>(in);
    run.out = Write<float>(out);
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> ResizeStep(BindContext* context, DeviceBinding* binding,
                                const InterpTables& tables, bool backwards,
                                Tensor* in, Tensor* out) {
  for (const char* slot : {"OutSize", "Scale"})
    if (Tensor* tensor = context->Input(slot)) context->NoBuffer(tensor);
  for (size_t i = 0; i < context->InputCount("SizeTensor"); ++i)
    context->NoBuffer(context->Input("SizeTensor", i));
  Reads axes[3];
  const InterpAxis* given[] = {&tables.d, &tables.h, &tables.w};
  for (int i = 0; i < 3; ++i) {
    axes[i] = Forwards(*given[i]);
    if (backwards) axes[i] = Backwards(axes[i]);
  }
  return ReadsStep(binding, axes, tables.inner, in, out);
}

absl::StatusOr<Step> BindResize(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameFloats({x, out}));
  PD_ASSIGN_OR_RETURN(const InterpTables tables,
                      ReadInterp(*context, x->shape(), out->shape()));
  return ResizeStep(context, binding, tables, false, x, out);
}

absl::StatusOr<Step> BindResizeGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *dout = context->Input("Out@GRAD"),
         *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({x, dout, dx}));
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const InterpTables tables,
                      ReadInterp(*context, x->shape(), dout->shape()));
  return ResizeStep(context, binding, tables, true, dout, dx);
}

// An axis whose places come from these.
Reads Picks(const std::vector<int64_t>& sources, int64_t extent) {
  Reads reads;
  reads.from = extent;
  reads.to = static_cast<int64_t>(sources.size());
  for (const int64_t source : sources) {
    reads.begins.push_back(static_cast<int32_t>(reads.index.size()));
    reads.index.push_back(static_cast<int32_t>(source));
    reads.weight.push_back(1.0f);
  }
  reads.begins.push_back(static_cast<int32_t>(reads.index.size()));
  return reads;
}

// pad3d by elements of X: each place reads one, and each element of X
// gets the gradients of the places that read it.
absl::StatusOr<Step> BindPadByElements(BindContext* context,
                                       DeviceBinding* binding) {
  const OpDesc& op = context->op();
  const auto mode = op.Attr<std::string>("mode");
  if (context->Input("Paddings") != nullptr || mode == "constant")
    return Unimplemented("mode %s, or paddings in a tensor", mode);
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* x = grad ? context->Output("X@GRAD") : context->Input("X");
  Tensor* out = grad ? context->Input("Out@GRAD") : context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  if (grad && context->Input("X") != nullptr)
    context->NoBuffer(context->Input("X"));
  PD_ASSIGN_OR_RETURN(const PadSources sources,
                      ReadPadSources(op, x->shape(), out->shape()));
  const auto format = op.Attr<std::string>("data_format");
  const bool last = !format.empty() && format.back() == 'C';
  const size_t spatial = x->rank() - 2, first = last ? 1 : 2;
  if (x->size() == 0 || spatial > 3) return Unimplemented("no elements");
  Reads axes[3] = {Picks({0}, 1), Picks({0}, 1), Picks({0}, 1)};
  for (size_t i = 0; i < spatial; ++i) {
    Reads& axis = axes[3 - spatial + i];
    axis = Picks(sources[first + i], x->dim(first + i));
    if (grad) axis = Backwards(axis);
  }
  return ReadsStep(binding, axes, last ? x->shape().back() : 1, grad ? out : x,
                   grad ? x : out);
}

}  // namespace

void AddInterp(KernelTable* kernels) {
  for (const char* method :
       {"nearest", "linear", "bilinear", "trilinear", "bicubic"})
    for (const char* version : {"_interp", "_interp_v2"}) {
      const std::string type = absl::StrCat(method, version);
      kernels->Add(type, {"cuda", BindResize});
      kernels->Add(type + "_grad", {"cuda", BindResizeGrad});
    }
  for (const char* type : {"pad3d", "pad3d_grad"})
    kernels->Add(type, {"cuda", BindPadByElements});
}

}  // namespace pd::cuda
