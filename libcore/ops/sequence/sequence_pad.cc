// SPDX-License-Identifier: Apache-2.0
// sequence_pad: Out [sequences, length, ...]: each sequence of X, filled up
// with
//   PadValue (one element, or one row); `padded_length` -1 is the longest
//   one's. Length: how long each was.
// sequence_unpad: the reverse: of X[i] the first Length[i] rows.
// The gradients take the rows back; what was padded gets or gives none.
// sequence_unpad_grad finds the lengths in Length, which PaddlePaddle does not
// give it, else in the LoD of Out@GRAD.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence_maps.h"

namespace pd {
namespace {

int64_t Longest(const Offsets& offsets) {
  int64_t longest = 0;
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    longest = std::max(longest, offsets[i + 1] - offsets[i]);
  return longest;
}

}  // namespace

absl::StatusOr<RowMap> PaddedMap(const Offsets& offsets, int64_t length) {
  RowMap map;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const int64_t rows = offsets[i + 1] - offsets[i];
    if (rows > length)
      return InvalidArgument("sequence %d has %d rows; it is padded to %d", i,
                             rows, length);
    for (int64_t r = 0; r < length; ++r)
      map.push_back(r < rows ? offsets[i] + r : -1);
  }
  return map;
}

absl::StatusOr<RowMap> PackedMap(const Offsets& offsets, int64_t length) {
  PD_ASSIGN_OR_RETURN(const RowMap padded, PaddedMap(offsets, length));
  RowMap map;
  for (size_t r = 0; r < padded.size(); ++r)
    if (padded[r] >= 0) map.push_back(static_cast<int64_t>(r));
  return map;
}

namespace {

// A padded tensor as rows.
Tensor AsRows(const Tensor& padded) {
  Shape shape(padded.shape().begin() + 2, padded.shape().end());
  shape.insert(shape.begin(), padded.dim(0) * padded.dim(1));
  Tensor rows(padded.dtype(), std::move(shape));
  rows.Attach(padded.raw());
  return rows;
}

absl::Status InferPad(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& value = context->Input("PadValue");
  PD_ASSIGN_OR_RETURN(const auto offsets, KnownSequences(x, "X"));
  if (value.dtype != x.dtype)
    return InvalidArgument("'PadValue' is %s; 'X' is %s", Name(value.dtype),
                           Name(x.dtype));
  if (!IsDynamic(value.shape) && NumElements(value.shape) != 1 &&
      value.shape != Shape(x.shape.begin() + 1, x.shape.end()))
    return InvalidArgument(
        "'PadValue' has shape %s; expected one element or a row of 'X' of "
        "shape %s",
        ToString(value.shape), ToString(x.shape));
  int64_t length = context->Attr<int32_t>("padded_length");
  if (length < -1)
    return InvalidArgument("attr 'padded_length' is %d; expected -1 or more",
                           length);
  int64_t count = -1;
  if (offsets.has_value()) {
    const int64_t longest = Longest(*offsets);
    if (length == -1) length = longest;
    if (length < longest)
      return InvalidArgument("attr 'padded_length' is %d; a sequence has %d",
                             length, longest);
    count = static_cast<int64_t>(offsets->size()) - 1;
  }
  TensorMeta out = WithRows(x, count);
  out.shape.insert(out.shape.begin() + 1, length);
  context->SetOutput("Out", std::move(out));
  context->SetOutput("Length", {count}, DType::kInt64);
  return absl::OkStatus();
}

// A row of padding, written to every row that the map has nothing for.
void FillPadding(const RowMap& map, const Tensor& value, Tensor* rows) {
  const size_t element = SizeOf(value.dtype());
  const size_t width = static_cast<size_t>(RowWidth(rows->shape())) * element;
  const size_t have = value.bytes();
  char* to = rows->data<char>();
  for (size_t r = 0; r < map.size(); ++r)
    if (map[r] < 0)
      for (size_t at = 0; at + have <= width; at += have)
        std::memcpy(to + r * width + at, value.raw(), have);
}

absl::StatusOr<Step> BindPad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* value = context->Input("PadValue");
  Tensor* out = context->Output("Out");
  Tensor* length = context->Output("Length");
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  PD_ASSIGN_OR_RETURN(const RowMap map, PaddedMap(offsets, out->dim(1)));
  if (value->size() == 0) return InvalidArgument("'PadValue' is empty");
  return Step([=](const RunContext&) {
    if (out->size() > 0) {
      Tensor rows = AsRows(*out);
      GatherRows(map, *x, &rows);
      FillPadding(map, *value, &rows);
    }
    if (length != nullptr)
      for (size_t i = 0; i + 1 < offsets.size(); ++i)
        length->data<int64_t>()[i] = offsets[i + 1] - offsets[i];
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindPadGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  Shape want = x->shape();
  want[0] = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t length = dout->rank() < 2 ? 0 : dout->dim(1);
  want.insert(want.begin() + 1, length);
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), want));
  PD_ASSIGN_OR_RETURN(const RowMap map, PackedMap(offsets, length));
  return Step([=](const RunContext&) {
    GatherRows(map, AsRows(*dout), dx);
    return absl::OkStatus();
  });
}

absl::StatusOr<Offsets> OffsetsOf(const std::vector<int64_t>& lengths,
                                  int64_t most) {
  Offsets offsets = {0};
  for (int64_t n : lengths) {
    if (n < 0 || n > most)
      return InvalidArgument("'Length' holds %d; 'X' is padded to %d", n, most);
    offsets.push_back(offsets.back() + n);
  }
  return offsets;
}

absl::Status InferUnpad(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& length = context->Input("Length");
  if (x.shape.size() < 2)
    return InvalidArgument(
        "'X' has shape %s; expected [sequences, length, ...]",
        ToString(x.shape));
  if (length.dtype != DType::kInt64 && length.dtype != DType::kInt32)
    return InvalidArgument("'Length' is %s; expected int64 or int32",
                           Name(length.dtype));
  TensorMeta out;
  out.dtype = x.dtype;
  out.shape = Shape(x.shape.begin() + 1, x.shape.end());
  out.shape[0] = -1;
  if (out.shape.size() == 1) out.shape.push_back(1);
  out.lod_level = 1;
  if (length.value != nullptr && x.shape[0] >= 0 && x.shape[1] >= 0) {
    if (length.value->size() != x.shape[0])
      return InvalidArgument("'Length' has %d elements; 'X' has shape %s",
                             length.value->size(), ToString(x.shape));
    PD_ASSIGN_OR_RETURN(const Offsets offsets,
                        OffsetsOf(IntsOf(*length.value), x.shape[1]));
    out.shape[0] = offsets.back();
    out.SetLoD(OneLevel(offsets));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindUnpad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* length = context->Input("Length");
  Tensor* out = context->Output("Out");
  if (length->size() != x->dim(0))
    return InvalidArgument("'Length' has %d elements; 'X' has shape %s",
                           length->size(), ToString(x->shape()));
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Offsets offsets,
                        OffsetsOf(IntsOf(*length), x->dim(1)));
    if (offsets.back() != out->dim(0))
      return InvalidArgument("'Length' adds up to %d rows; 'Out' has %d",
                             offsets.back(), out->dim(0));
    PD_ASSIGN_OR_RETURN(const RowMap map, PackedMap(offsets, x->dim(1)));
    GatherRows(map, AsRows(*x), out);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindUnpadGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* length = context->Input("Length");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  if (x->rank() < 2)
    return InvalidArgument(
        "'X' has shape %s; expected [sequences, length, ...]",
        ToString(x->shape()));
  Offsets fixed;
  if (length == nullptr) {
    PD_ASSIGN_OR_RETURN(fixed, SequencesOf(dout, "Out@GRAD"));
  } else if (length->dtype() != DType::kInt64 &&
             length->dtype() != DType::kInt32) {
    return InvalidArgument("'Length' is %s; expected int64 or int32",
                           Name(length->dtype()));
  }
  const int64_t width = NumElements(x->shape(), 2, x->rank());
  return Step([=](const RunContext&) -> absl::Status {
    Offsets offsets = fixed;
    if (length != nullptr) {
      PD_ASSIGN_OR_RETURN(offsets, OffsetsOf(IntsOf(*length), x->dim(1)));
    }
    if (static_cast<int64_t>(offsets.size()) != x->dim(0) + 1 ||
        dout->dtype() != x->dtype() || dout->size() != offsets.back() * width)
      return InvalidArgument(
          "'Out@GRAD' is %s %s of %d sequences; 'X' is %s %s",
          Name(dout->dtype()), ToString(dout->shape()), offsets.size() - 1,
          Name(x->dtype()), ToString(x->shape()));
    PD_ASSIGN_OR_RETURN(const RowMap map, PaddedMap(offsets, x->dim(1)));
    if (dx->size() == 0) return absl::OkStatus();
    std::memset(dx->raw(), 0, dx->bytes());
    Tensor rows = AsRows(*dx);
    GatherRows(map, *dout, &rows);
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RegisterSequencePad(OpRegistry* registry) {
  OpDef pad("sequence_pad");
  pad.Input("X").Input("PadValue").Output("Out").Output("Length");
  pad.Attr("padded_length", int32_t{-1}).Infer(InferPad).Reference(BindPad);
  pad.Grad(GradSpec{"sequence_pad_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(pad)));

  OpDef pad_grad("sequence_pad_grad");
  pad_grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  pad_grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPadGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(pad_grad)));

  OpDef unpad("sequence_unpad");
  unpad.Input("X").Input("Length").Output("Out");
  unpad.Infer(InferUnpad).Reference(BindUnpad);
  unpad.Grad(
      GradSpec{"sequence_unpad_grad", {"X", "Length"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(unpad)));

  OpDef unpad_grad("sequence_unpad_grad");
  unpad_grad.Input("X").OptionalInput("Length").Input("Out@GRAD");
  unpad_grad.Output("X@GRAD").Infer(InferGradLikeInput).NoGrad();
  unpad_grad.Reference(BindUnpadGrad);
  return registry->Add(std::move(unpad_grad));
}

}  // namespace pd
