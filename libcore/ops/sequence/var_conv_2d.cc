// SPDX-License-Identifier: Apache-2.0
// Convolution of pictures of different sizes. Picture b has as many rows as
// sequence b of ROW and as many columns as sequence b of COLUMN; its numbers,
// InputChannel planes row by row, are sequence b of X [numbers, 1]. The filters
// W [OutputChannel, InputChannel KernelH KernelW] stand on every StrideH-th row
// and StrideW-th column, their middle (KernelH / 2, KernelW / 2) on it, and see
// zeros outside:
//   Out of b = W times Col of b, [OutputChannel, places]
// Col, [InputChannel KernelH KernelW, places], has what the filters see.
//   W@GRAD = sum of Out@GRAD Col^T; Col@GRAD = W^T Out@GRAD goes back to X@GRAD
// The gradient sees X again, so it needs no Col.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

// A picture, and where its numbers begin in X, Col and Out.
struct VarPicture {
  int64_t height, width, out_height, out_width;
  int64_t x, col, out;
  int64_t places() const { return out_height * out_width; }
};

struct VarConv {
  int64_t in_channels, out_channels, kernel_h, kernel_w, stride_h, stride_w;
  std::vector<VarPicture> pictures;
  Offsets col = {0}, out = {0};
  int64_t most_places = 0;

  int64_t seen() const { return in_channels * kernel_h * kernel_w; }
};

absl::StatusOr<VarConv> VarConvAttributes(const OpDesc& op, const Shape& x,
                                          const Shape& w) {
  VarConv c;
  c.in_channels = op.Attr<int32_t>("InputChannel");
  c.out_channels = op.Attr<int32_t>("OutputChannel");
  c.kernel_h = op.Attr<int32_t>("KernelH");
  c.kernel_w = op.Attr<int32_t>("KernelW");
  c.stride_h = op.Attr<int32_t>("StrideH");
  c.stride_w = op.Attr<int32_t>("StrideW");
  for (const int64_t n : {c.in_channels, c.out_channels, c.kernel_h, c.kernel_w,
                          c.stride_h, c.stride_w})
    if (n < 1)
      return InvalidArgument("an attribute is %d; expected 1 or more", n);
  PD_RETURN_IF_ERROR(
      CheckedBytes({c.out_channels, c.in_channels, c.kernel_h, c.kernel_w},
                   sizeof(double))
          .status());
  const auto differ = [](int64_t a, int64_t b) { return a >= 0 && a != b; };
  if (x.size() != 2 || w.size() != 2 || differ(x[1], 1) ||
      differ(w[0], c.out_channels) || differ(w[1], c.seen()))
    return InvalidArgument(
        "'X' has shape %s and 'W' %s; expected [numbers, 1] and [%d, %d]",
        ToString(x), ToString(w), c.out_channels, c.seen());
  return c;
}

// Adds the pictures that the sequences tell.
absl::Status AddVarPictures(const Offsets& x, const Offsets& rows,
                            const Offsets& columns, VarConv* c) {
  if (rows.size() != x.size() || columns.size() != x.size())
    return InvalidArgument(
        "'X' has %d sequences, 'ROW' %d and 'COLUMN' %d; expected one number",
        x.size() - 1, rows.size() - 1, columns.size() - 1);
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    VarPicture p = {};
    p.height = rows[i + 1] - rows[i];
    p.width = columns[i + 1] - columns[i];
    PD_RETURN_IF_ERROR(
        CheckedBytes({c->in_channels, p.height, p.width}, sizeof(double))
            .status());
    if (x[i + 1] - x[i] != c->in_channels * p.height * p.width)
      return InvalidArgument(
          "sequence %d of 'X' has %d numbers; expected %d channels of %d rows "
          "and %d columns",
          i, x[i + 1] - x[i], c->in_channels, p.height, p.width);
    if (p.height > 0 && p.width > 0) {
      p.out_height = (p.height - 1) / c->stride_h + 1;
      p.out_width = (p.width - 1) / c->stride_w + 1;
    }
    p.x = x[i];
    p.col = c->col.back();
    p.out = c->out.back();
    // One by one these are below what a process can address, so are the sums.
    PD_RETURN_IF_ERROR(
        CheckedBytes({p.places(), c->seen()}, sizeof(double)).status());
    PD_RETURN_IF_ERROR(
        CheckedBytes({p.places(), c->out_channels}, sizeof(double)).status());
    c->col.push_back(p.col + p.places() * c->seen());
    c->out.push_back(p.out + p.places() * c->out_channels);
    PD_RETURN_IF_ERROR(CheckedBytes({c->col.back()}, sizeof(double)).status());
    PD_RETURN_IF_ERROR(CheckedBytes({c->out.back()}, sizeof(double)).status());
    c->most_places = std::max(c->most_places, p.places());
    c->pictures.push_back(p);
  }
  return absl::OkStatus();
}

absl::StatusOr<VarConv> ReadVarConv(const BindContext& context) {
  const Tensor* x = context.Input("X");
  PD_ASSIGN_OR_RETURN(
      VarConv c,
      VarConvAttributes(context.op(), x->shape(), context.Input("W")->shape()));
  if (x->dtype() != context.Input("W")->dtype())
    return InvalidArgument("'X' is %s, 'W' is %s", Name(x->dtype()),
                           Name(context.Input("W")->dtype()));
  PD_ASSIGN_OR_RETURN(const Offsets numbers, SequencesOf(x, "X"));
  PD_ASSIGN_OR_RETURN(const Offsets rows,
                      SequencesOf(context.Input("ROW"), "ROW"));
  PD_ASSIGN_OR_RETURN(const Offsets columns,
                      SequencesOf(context.Input("COLUMN"), "COLUMN"));
  PD_RETURN_IF_ERROR(AddVarPictures(numbers, rows, columns, &c));
  return c;
}

// Calls body(number of the picture in X or -1: outside, number in Col).
template <typename Body>
void ForEachSeen(const VarConv& c, const VarPicture& p, const Body& body) {
  int64_t at = 0;
  for (int64_t z = 0; z < c.in_channels; ++z)
    for (int64_t ky = 0; ky < c.kernel_h; ++ky)
      for (int64_t kx = 0; kx < c.kernel_w; ++kx)
        for (int64_t oy = 0; oy < p.out_height; ++oy)
          for (int64_t ox = 0; ox < p.out_width; ++ox) {
            const int64_t y = oy * c.stride_h + ky - c.kernel_h / 2;
            const int64_t x = ox * c.stride_w + kx - c.kernel_w / 2;
            const bool inside = y >= 0 && y < p.height && x >= 0 && x < p.width;
            body(inside ? (z * p.height + y) * p.width + x : -1, at++);
          }
}

template <typename T>
void SeeAll(const VarConv& c, const T* x, T* col) {
  for (const VarPicture& p : c.pictures)
    ForEachSeen(c, p, [&](int64_t from, int64_t to) {
      col[p.col + to] = from < 0 ? T(0) : x[p.x + from];
    });
}

absl::StatusOr<Step> BindVarConv(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* w = context->Input("W");
  Tensor* out = context->Output("Out");
  Tensor* col = context->Output("Col");
  PD_ASSIGN_OR_RETURN(const VarConv c, ReadVarConv(*context));
  if (col == nullptr)
    col = context->Scratch(static_cast<size_t>(c.col.back()) *
                           SizeOf(x->dtype()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      SeeAll(c, x->data<T>(), col->data<T>());
      for (const VarPicture& p : c.pictures)
        if (p.places() > 0)
          Gemm<T>({c.out_channels, p.places(), c.seen()}, {{{0, 0}}}, T(1),
                  w->data<T>(), col->data<T>() + p.col, out->data<T>() + p.out);
      return absl::OkStatus();
    });
  });
}

// Buffers of the gradient: all of Col, and its gradient of one picture.
template <typename T>
struct VarConvGrad {
  const T *x, *w, *dout;
  T *dx, *dw, *col, *dcol;

  void Run(const VarConv& c, int64_t numbers) const {
    if (dw != nullptr) {
      SeeAll(c, x, col);
      GemmShape shape{c.out_channels, c.seen(), 0};
      shape.trans_b = true;
      std::fill_n(dw, c.out_channels * c.seen(), T(0));
      for (const VarPicture& p : c.pictures) {
        shape.k = p.places();
        GemmRows<T>(shape, T(1), dout + p.out, col + p.col, dw, 0, shape.m);
      }
    }
    if (dx == nullptr) return;
    std::fill_n(dx, numbers, T(0));
    for (const VarPicture& p : c.pictures) {
      if (p.places() == 0) continue;
      GemmShape shape{c.seen(), p.places(), c.out_channels};
      shape.trans_a = true;
      Gemm<T>(shape, {{{0, 0}}}, T(1), w, dout + p.out, dcol);
      ForEachSeen(c, p, [&](int64_t to, int64_t from) {
        if (to >= 0) dx[p.x + to] += dcol[from];
      });
    }
  }
};

absl::StatusOr<Step> BindVarConvGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* w = context->Input("W");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dw = context->Output("W@GRAD");
  PD_ASSIGN_OR_RETURN(const VarConv c, ReadVarConv(*context));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), c.out.back()));
  const size_t size = SizeOf(x->dtype());
  Tensor* col = context->Scratch(static_cast<size_t>(c.col.back()) * size);
  Tensor* dcol =
      context->Scratch(static_cast<size_t>(c.most_places * c.seen()) * size);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      VarConvGrad<T>{x->data<T>(),
                     w->data<T>(),
                     dout->data<T>(),
                     dx != nullptr ? dx->data<T>() : nullptr,
                     dw != nullptr ? dw->data<T>() : nullptr,
                     col->data<T>(),
                     dcol->data<T>()}
          .Run(c, x->size());
      return absl::OkStatus();
    });
  });
}

absl::Status InferVarConv(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(VarConv c, VarConvAttributes(context->op(), x.shape,
                                                   context->Input("W").shape));
  PD_ASSIGN_OR_RETURN(const auto numbers, KnownSequences(x, "X"));
  PD_ASSIGN_OR_RETURN(const auto rows,
                      KnownSequences(context->Input("ROW"), "ROW"));
  PD_ASSIGN_OR_RETURN(const auto columns,
                      KnownSequences(context->Input("COLUMN"), "COLUMN"));
  const bool known =
      numbers.has_value() && rows.has_value() && columns.has_value();
  if (known) PD_RETURN_IF_ERROR(AddVarPictures(*numbers, *rows, *columns, &c));
  for (const char* slot : {"Out", "Col"}) {
    const Offsets& offsets = slot[0] == 'O' ? c.out : c.col;
    TensorMeta meta;
    meta.dtype = x.dtype;
    meta.shape = {known ? offsets.back() : -1, 1};
    meta.lod_level = 1;
    if (known) meta.SetLoD(OneLevel(offsets));
    context->SetOutput(slot, std::move(meta));
  }
  return absl::OkStatus();
}

void AddVarConvAttrs(OpDef* op) {
  for (const char* name : {"InputChannel", "OutputChannel", "StrideH",
                           "StrideW", "KernelH", "KernelW"})
    op->Attr(name, int32_t{1});
}

}  // namespace

absl::Status RegisterVarConv2d(OpRegistry* registry) {
  OpDef op("var_conv_2d");
  op.Input("X").Input("ROW").Input("COLUMN").Input("W").Output("Out");
  op.IntermediateOutput("Col");
  AddVarConvAttrs(&op);
  op.Infer(InferVarConv).Reference(BindVarConv);
  op.Grad(GradSpec{"var_conv_2d_grad",
                   {"X", "W", "ROW", "COLUMN"},
                   {},
                   {"Out"},
                   {"X", "W"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("var_conv_2d_grad");
  grad.Input("X").Input("W").Input("ROW").Input("COLUMN");
  grad.OptionalInput("Col").OptionalInput("Out").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("W@GRAD");
  AddVarConvAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindVarConvGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
