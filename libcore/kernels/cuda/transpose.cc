// SPDX-License-Identifier: Apache-2.0
// Constants, and what changes places or shapes only; the kernels are in
// elementwise.cu.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "libcore/base/truncate_half.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/conv/pixel_shuffle.h"

namespace pd::cuda {
namespace {

absl::StatusOr<Step> BindFill(BindContext* context, DeviceBinding* binding) {
  Tensor* out = context->Output("Out");
  if (context->Input("ValueTensor") != nullptr)
    return Unimplemented("a value in a tensor");
  for (const char* slot : {"ShapeTensor", "ShapeTensorList", "X", "Input"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
  const auto text = context->op().AttrOr<std::string>("str_value", "");
  double value = context->op().AttrOr<float>("value", 0.0f);
  if (!text.empty() && !absl::SimpleAtod(text, &value))
    return Unimplemented("attr 'str_value' is '%s'", text);
  return BindFillStep(binding, value, out);
}

// Integers as well, where there are too many to be a shape.
absl::StatusOr<Step> BindFillLike(BindContext* context,
                                  DeviceBinding* binding) {
  constexpr int64_t kMostOfShape = 64;
  const Tensor& out = *context->Output("Out");
  if (!IsFloating(out.dtype()) && out.size() <= kMostOfShape)
    return Unimplemented("few %s, which the host may read", Name(out.dtype()));
  return BindFill(context, binding);
}

absl::StatusOr<Step> BindAssign(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  if (x == nullptr || out == nullptr || x->bytes() != out->bytes())
    return Unimplemented("a variable is missing or has another size");
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    return device->Copy(out->raw(), x->raw(), out->bytes());
  });
}

// Out has X's bytes. The other inputs were for shapes.
absl::StatusOr<Step> BindSameBytes(BindContext* context, DeviceBinding*) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* from = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* to = context->Output(grad ? "X@GRAD" : "Out");
  if (from == nullptr || to == nullptr || from->bytes() != to->bytes())
    return Unimplemented("a variable is missing or has another size");
  for (const auto& [slot, names] : context->op().inputs)
    for (size_t i = 0; i < names.size(); ++i) {
      Tensor* t = context->Input(slot, i);
      if (t != nullptr && t != from) context->NoBuffer(t);
    }
  context->Alias(from, to);
  return Step();
}

absl::StatusOr<Step> BindTranspose(BindContext* context,
                                   DeviceBinding* binding) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* from = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* to = context->Output(grad ? "X@GRAD" : "Out");
  if (from == nullptr || to == nullptr)
    return Unimplemented("a variable is missing");
  if (Tensor* shape = context->Input("XShape")) context->NoBuffer(shape);
  const std::vector<int64_t> axis = IntsAttr(context->op(), "axis");
  const size_t rank = from->rank();
  if (axis.size() != rank || from->size() != to->size())
    return Unimplemented("attr 'axis' does not fit");
  const auto from_strides = RowMajorStrides(from->shape());
  const auto to_strides = RowMajorStrides(to->shape());
  // Out's dimension d is X's axis[d].
  const Tensor* out = grad ? from : to;
  Walk<2> walk;
  for (size_t d = 0; d < rank; ++d) {
    PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis[d], rank, "axis"));
    const size_t x = static_cast<size_t>(a);
    const int64_t strides[2] = {grad ? from_strides[d] : from_strides[x],
                                grad ? to_strides[x] : to_strides[d]};
    if (!AddExtent<2>(out->dim(d), strides, &walk)) return TooManyDims();
  }
  return BindCopy(binding, {from, to, from->size(), walk});
}

// pixel_shuffle and its like: parts of the axes in another order.
absl::StatusOr<Step> BindShuffle(BindContext* context, DeviceBinding* binding) {
  const OpDesc& op = context->op();
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* from = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* to = context->Output(grad ? "X@GRAD" : "Out");
  if (Tensor* x = grad ? context->Input("X") : nullptr) context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const Shuffle s,
                      ShuffleOf(op, (grad ? to : from)->shape()));
  if (from->size() != to->size())
    return Unimplemented("Out has shape %s", ToString(to->shape()));
  // PaddlePaddle's shuffle_channel_grad shuffles once more.
  const bool back = grad && op.type.rfind("shuffle_channel", 0) != 0;
  Shape shuffled;
  for (const size_t part : s.order) shuffled.push_back(s.parts[part]);
  const auto x = RowMajorStrides(s.parts), out = RowMajorStrides(shuffled);
  Walk<2> walk;
  for (size_t d = 0; d < s.order.size(); ++d) {
    const int64_t there = x[s.order[d]];
    if (!AddExtent<2>(shuffled[d],
                      {back ? out[d] : there, back ? there : out[d]}, &walk))
      return TooManyDims();
  }
  return BindCopy(binding, {from, to, from->size(), walk});
}

constexpr int64_t kVector = 16;  // bytes

// The walk of a copy over vectors of 16 bytes, where all of them are whole.
std::optional<Walk<2>> InVectors(const StridedCopy& copy, int64_t bytes) {
  const int64_t elements = kVector / bytes;
  Walk<2> walk = copy.walk;
  const int last = walk.dims - 1;
  if (last < 0 || walk.extents[last] % elements != 0 ||
      walk.strides[last][0] != 1 || walk.strides[last][1] != 1)
    return std::nullopt;
  walk.extents[last] /= elements;
  for (int d = 0; d < last; ++d)
    for (int64_t& stride : walk.strides[d]) {
      if (stride % elements != 0) return std::nullopt;
      stride /= elements;
    }
  return walk;
}

}  // namespace

absl::StatusOr<Step> BindCopy(DeviceBinding* binding, const StridedCopy& copy) {
  const size_t size = copy.bytes != 0 ? copy.bytes : SizeOf(copy.from->dtype());
  if (size != 1 && size != 2 && size != 4 && size != 8)
    return Unimplemented("elements of %d bytes", size);
  if (copy.bytes == 0 && SizeOf(copy.to->dtype()) != size)
    return Unimplemented("a copy from %s to %s", Name(copy.from->dtype()),
                         Name(copy.to->dtype()));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<CopyArgs>::Find(binding, absl::StrCat("copy_", size)));
  PD_ASSIGN_OR_RETURN(const auto start_wide,
                      Starter<CopyArgs>::Find(binding, "copy_16"));
  const auto bytes = static_cast<int64_t>(size);
  const auto wide = InVectors(copy, bytes);
  return Step([=](const RunContext&) {
    CopyArgs run{copy.from->data<char>() + copy.from_start * bytes,
                 copy.to->data<char>() + copy.to_start * bytes, copy.n,
                 copy.walk};
    const auto aligned = [](const void* address) {
      return reinterpret_cast<uintptr_t>(address) % kVector == 0;
    };
    if (!wide.has_value() || !aligned(run.from) || !aligned(run.to))
      return start.Elements(run.n, run);
    run.n = copy.n * bytes / kVector;
    run.walk = *wide;
    return start_wide.Elements(run.n, run);
  });
}

namespace {

template <typename T>
uint64_t BitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

// Integers beyond 2^53 are none that a double holds.
absl::StatusOr<uint64_t> FillBits(DType dtype, double value) {
  const bool whole = std::abs(value) <= 9007199254740992.0;
  switch (dtype) {
    case DType::kFloat32:
      return BitsOf(static_cast<float>(value));
    case DType::kFloat64:
      return BitsOf(value);
    case DType::kFloat16:
      return BitsOf(TruncatedFloat16(static_cast<float>(value)));
    case DType::kBFloat16:
      return BitsOf(TruncatedBFloat16(static_cast<float>(value)));
    case DType::kBool:
      return BitsOf(value != 0);
    case DType::kInt64:
      if (whole) return BitsOf(static_cast<int64_t>(value));
      break;
    case DType::kInt32:
      if (whole)
        return BitsOf(static_cast<int32_t>(static_cast<int64_t>(value)));
      break;
    default:
      break;
  }
  return Unimplemented("no kernel for %g of dtype %s", value, Name(dtype));
}

}  // namespace

absl::StatusOr<Step> BindFillStep(DeviceBinding* binding, double value,
                                  Tensor* out) {
  PD_ASSIGN_OR_RETURN(const uint64_t bits, FillBits(out->dtype(), value));
  if (bits == 0)
    return Step([=, device = CudaOf(binding)](const RunContext&) {
      return device->Clear(out->raw(), out->bytes());
    });
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<FillArgs>::Find(binding,
                              absl::StrCat("fill_", SizeOf(out->dtype()))));
  return Step([=](const RunContext&) {
    return start.Elements(out->size(), {out->raw(), out->size(), bits});
  });
}

void AddTranspose(KernelTable* kernels) {
  kernels->Add("fill_constant", {"cuda", FloatsOnly<BindFill>});
  for (const char* type :
       {"fill_any_like", "fill_zeros_like", "fill_constant_batch_size_like"}) {
    kernels->Add(type, {"cuda", BindFillLike});
    kernels->Add(type, Implementation("cuda", BindFill).FollowsInputs());
  }
  AddMove<BindAssign>("assign", kernels);
  kernels->Add("memcpy",
               Implementation("alias", BindSameBytes).FollowsInputs());
  for (const std::string type :
       {"reshape", "reshape2", "flatten", "flatten2",
        "flatten_contiguous_range", "squeeze", "squeeze2", "unsqueeze",
        "unsqueeze2", "sequence_reshape"}) {
    kernels->Add(type, Implementation("alias", BindSameBytes).FollowsInputs());
    kernels->Add(type + "_grad",
                 Implementation("alias", BindSameBytes).FollowsInputs());
  }
  for (const char* type : {"transpose", "transpose2", "transpose2_grad"})
    AddMove<BindTranspose>(type, kernels);
  for (const std::string type : {"pixel_shuffle", "pixel_unshuffle",
                                 "channel_shuffle", "shuffle_channel"}) {
    AddMove<BindShuffle>(type, kernels);
    AddMove<BindShuffle>(type + "_grad", kernels);
  }
}

}  // namespace pd::cuda
