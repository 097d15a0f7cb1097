// SPDX-License-Identifier: Apache-2.0
// fused_lookup_concat: rows of many tables, and other matrices, side by side.
//   Out[r, :] = piece 0's row r, piece 1's row r, ...
// Piece i is a lookup where looked_up[i] (W[k][Ids[k][r], :], zeros where the
// id is padding_idx[k]; pairs are taken in order), else the next X[r, :].
// Passes put it in the place of lookup_table_v2 ops and their concat along the
// last axis. Nothing but inference needs it: the gradients of a concat read its
// inputs' shapes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/common/row_copies.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Piece {
  Tensor* rows = nullptr;  // a table, or X
  Tensor* ids = nullptr;   // null for X
  int64_t padding = -1;
  size_t width = 0;  // bytes
};

absl::Status CheckIds(const std::vector<Piece>& pieces) {
  for (const Piece& p : pieces)
    if (p.ids != nullptr)
      PD_RETURN_IF_ERROR(CheckLabels("Ids", *p.ids, p.rows->dim(0), p.padding));
  return absl::OkStatus();
}

void LookUp(const Piece& p, char* out, size_t stride, int64_t begin,
            int64_t end) {
  const char* const table = p.rows->data<char>();
  const auto to = [=](int64_t i) {
    return out + static_cast<size_t>(i) * stride;
  };
  const auto clear = [&](int64_t i) { std::fill_n(to(i), p.width, char{0}); };
  if (p.rows->dim(0) == 0) {  // then every id is padding
    for (int64_t i = begin; i < end; ++i) clear(i);
    return;
  }
  const auto from = [&](auto id) {
    CopyRows(begin, end, p.width, to, [&](int64_t i) {
      const int64_t row = id(i);
      return table + static_cast<size_t>(row == p.padding ? 0 : row) * p.width;
    });
  };
  if (p.ids->dtype() == DType::kInt64)
    from([ids = p.ids->data<int64_t>()](int64_t i) { return ids[i]; });
  else
    from([&](int64_t i) { return LabelAt(*p.ids, i); });
  if (p.padding < 0) return;
  for (int64_t i = begin; i < end; ++i)
    if (LabelAt(*p.ids, i) == p.padding) clear(i);
}

void CopyPiece(const Piece& p, char* out, size_t stride, int64_t begin,
               int64_t end) {
  if (p.ids != nullptr) return LookUp(p, out, stride, begin, end);
  const char* const rows = p.rows->data<char>();
  CopyRows(
      begin, end, p.width,
      [=](int64_t i) { return out + static_cast<size_t>(i) * stride; },
      [=](int64_t i) { return rows + static_cast<size_t>(i) * p.width; });
}

absl::StatusOr<Step> Bind(BindContext* context) {
  Tensor* out = context->Output("Out");
  const size_t bytes = SizeOf(out->dtype());
  const auto& paddings = context->Attr<std::vector<int64_t>>("padding_idx");
  std::vector<Piece> pieces;
  size_t table = 0, matrix = 0, stride = 0;
  for (const bool looked_up : context->Attr<std::vector<bool>>("looked_up")) {
    Piece p;
    p.rows =
        looked_up ? context->Input("W", table) : context->Input("X", matrix++);
    if (looked_up) {
      p.ids = context->Input("Ids", table);
      p.padding = paddings[table++];
    }
    p.width = static_cast<size_t>(p.rows->dim(p.rows->rank() - 1)) * bytes;
    stride += p.width;
    pieces.push_back(p);
  }
  const int64_t rows = stride == 0 ? 0
                                   : out->size() * static_cast<int64_t>(bytes) /
                                         static_cast<int64_t>(stride);
  // A block's rows of Out stay in the cache while the pieces come.
  const int64_t block = static_cast<int64_t>(16384 / (stride + 1)) + 1;
  return Step([=](const RunContext&) -> absl::Status {
    PD_RETURN_IF_ERROR(CheckIds(pieces));
    ParallelFor(rows, block, [&](int64_t first, int64_t last) {
      for (int64_t begin = first; begin < last; begin += block) {
        char* at = out->data<char>();
        for (const Piece& p : pieces) {
          CopyPiece(p, at, stride, begin, std::min(begin + block, last));
          at += p.width;
        }
      }
    });
    return absl::OkStatus();
  });
}

// The lists of slots and attributes agree in length.
absl::Status CheckLists(const InferContext& context) {
  const OpDesc& op = context.op();
  const auto looked_up = op.Attr<std::vector<bool>>("looked_up");
  const auto lookups =
      static_cast<size_t>(std::count(looked_up.begin(), looked_up.end(), true));
  const size_t paddings = op.Attr<std::vector<int64_t>>("padding_idx").size();
  if (looked_up.empty() || op.Input("W").size() != lookups ||
      op.Input("Ids").size() != lookups || paddings != lookups ||
      op.Input("X").size() != looked_up.size() - lookups)
    return InvalidArgument(
        "%d pieces, %d of them looked up, with %d W, %d Ids, %d padding_idx "
        "and %d X",
        looked_up.size(), lookups, op.Input("W").size(), op.Input("Ids").size(),
        paddings, op.Input("X").size());
  return absl::OkStatus();
}

// The shape of a lookup's piece.
absl::StatusOr<TensorMeta> InferLookup(const InferContext& context, size_t k) {
  TensorMeta piece = context.Input("Ids", k);
  const TensorMeta& w = context.Input("W", k);
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", piece.dtype));
  if (w.shape.size() != 2)
    return InvalidArgument("W[%d] has shape %s; expected [rows, width]", k,
                           ToString(w.shape));
  piece.dtype = w.dtype;
  piece.value = nullptr;
  piece.shape.push_back(w.shape[1]);
  return piece;
}

// Puts a piece beside what is in `out`.
absl::Status Join(const TensorMeta& piece, TensorMeta* out) {
  Shape& shape = out->shape;
  const size_t rank = shape.size();
  bool fits =
      rank > 0 && piece.shape.size() == rank && piece.dtype == out->dtype;
  for (size_t d = 0; fits && d + 1 < rank; ++d) {
    fits = shape[d] < 0 || piece.shape[d] < 0 || shape[d] == piece.shape[d];
    shape[d] = std::max(shape[d], piece.shape[d]);
  }
  if (!fits)
    return InvalidArgument(
        "a piece is %s %s beside %s %s; expected equal dtypes and extents but "
        "for the last",
        Name(piece.dtype), ToString(piece.shape), Name(out->dtype),
        ToString(shape));
  int64_t& width = shape.back();
  width = width < 0 || piece.shape.back() < 0 ? -1 : width + piece.shape.back();
  return absl::OkStatus();
}

absl::Status InferLookupConcat(InferContext* context) {
  PD_RETURN_IF_ERROR(CheckLists(*context));
  const auto looked_up = context->op().Attr<std::vector<bool>>("looked_up");
  TensorMeta out;
  size_t table = 0, matrix = 0;
  for (size_t i = 0; i < looked_up.size(); ++i) {
    TensorMeta piece;
    if (looked_up[i]) {
      PD_ASSIGN_OR_RETURN(piece, InferLookup(*context, table++));
    } else {
      piece = context->Input("X", matrix++);
    }
    if (i == 0) {
      out = piece;
      out.value = nullptr;
      if (!out.shape.empty()) out.shape.back() = 0;
    }
    PD_RETURN_IF_ERROR(Join(piece, &out));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterFusedLookupConcat(OpRegistry* registry) {
  OpDef op("fused_lookup_concat");
  op.Inputs("W").Inputs("Ids").OptionalInputs("X").Output("Out");
  op.RequiredAttr("looked_up", AttrType::kBooleans);
  op.RequiredAttr("padding_idx", AttrType::kLongs);
  op.Infer(InferLookupConcat).NoGrad().Reference(Bind);
  return registry->Add(std::move(op));
}

}  // namespace pd
