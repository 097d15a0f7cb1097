// SPDX-License-Identifier: Apache-2.0
// rank_attention: a weight for each pair of ranks. A row of RankOffset is the
// rank of an instance and MaxRank pairs (rank, row of X) of its neighbours;
// ranks count from 1, 0 is none. RankParam has for ranks a and b the block
// (a - 1) MaxRank + b - 1 of n rows, n the width of X:
//   Out[i] = sum over its neighbours of X[their row] * block
//   InputHelp[i] = the neighbours' rows side by side, InsRank[i] = i's rank
// RankParam's gradient is the sum of X[row]^T Out@GRAD[i] over the pairs that
// read a block; X has none, as in PaddlePaddle.
#include <algorithm>
#include <cstdint>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct RankAttention {
  int64_t rows = 0, width = 0, out = 0, ranks = 0;
  Tensor *x = nullptr, *offset = nullptr;

  // Calls body(instance, place, row of X, first row of the block) for each
  // neighbour; OutOfRange for a rank or a row that does not exist.
  template <typename Body>
  absl::Status ForEach(const Body& body) const {
    const int64_t columns = 2 * ranks + 1;
    for (int64_t i = 0; i < rows; ++i) {
      const int32_t* from = offset->data<int32_t>() + i * columns;
      const int64_t own = from[0] - int64_t{1};
      for (int64_t k = 0; k < ranks; ++k) {
        const int64_t other = from[2 * k + 1] - int64_t{1};
        const int64_t row = from[2 * k + 2];
        if (own < 0 || other < 0) continue;
        if (own >= ranks || other >= ranks || row < 0 || row >= x->dim(0))
          return OutOfRange(
              "'RankOffset' names ranks %d and %d and row %d in its row %d; "
              "there are %d ranks and %d rows",
              own + 1, other + 1, row, i, ranks, x->dim(0));
        body(i, k, row, (own * ranks + other) * width);
      }
    }
    return absl::OkStatus();
  }
};

absl::Status CheckRankShapes(const Shape& x, const Shape& offset,
                             const Shape& param, int64_t ranks) {
  int64_t block = 0;
  const bool fits = x.size() == 2 && offset.size() == 2 && param.size() == 2 &&
                    ranks >= 1 && ranks <= (1 << 15) &&
                    (offset[1] < 0 || offset[1] == 2 * ranks + 1) &&
                    (x[1] < 0 || param[0] < 0 ||
                     (!__builtin_mul_overflow(x[1], ranks * ranks, &block) &&
                      param[0] == block));
  if (fits) return absl::OkStatus();
  return InvalidArgument(
      "'X', 'RankOffset' and 'RankParam' have shapes %s, %s and %s, attr "
      "'MaxRank' is %d; expected [rows, n], [instances, 2 MaxRank + 1] and "
      "[MaxRank^2 n, m]",
      ToString(x), ToString(offset), ToString(param), ranks);
}

absl::Status InferRankAttention(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& offset = context->Input("RankOffset");
  const Shape& param = context->Input("RankParam").shape;
  const int64_t ranks = context->Attr<int32_t>("MaxRank");
  PD_RETURN_IF_ERROR(CheckRankShapes(x.shape, offset.shape, param, ranks));
  if (offset.dtype != DType::kInt32)
    return InvalidArgument("'RankOffset' is %s; expected int32",
                           Name(offset.dtype));
  const int64_t n = offset.shape[0];
  context->SetOutput("Out", {n, param[1]}, x.dtype);
  int64_t side = -1;
  if (x.shape[1] >= 0 && __builtin_mul_overflow(x.shape[1], ranks, &side))
    return InvalidArgument("'X' has shape %s", ToString(x.shape));
  context->SetOutput("InputHelp", {n, side}, x.dtype);
  context->SetOutput("InsRank", {n, 1}, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<RankAttention> ReadRankAttention(const BindContext& context) {
  RankAttention r;
  r.x = context.Input("X");
  r.offset = context.Input("RankOffset");
  const Tensor* param = context.Input("RankParam");
  r.ranks = context.Attr<int32_t>("MaxRank");
  PD_RETURN_IF_ERROR(CheckRankShapes(r.x->shape(), r.offset->shape(),
                                     param->shape(), r.ranks));
  PD_RETURN_IF_ERROR(
      ExpectInput(context, "RankParam", r.x->dtype(), param->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(context, "RankOffset", DType::kInt32, r.offset->shape()));
  r.rows = r.offset->dim(0);
  r.width = r.x->dim(1);
  r.out = param->dim(1);
  return r;
}

absl::StatusOr<Step> BindRankAttention(BindContext* context) {
  Tensor* param = context->Input("RankParam");
  Tensor* out = context->Output("Out");
  Tensor* help = context->Output("InputHelp");
  Tensor* rank = context->Output("InsRank");
  PD_ASSIGN_OR_RETURN(const RankAttention r, ReadRankAttention(*context));
  return DispatchFloat(r.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(out->data<T>(), out->size(), T(0));
      if (help != nullptr) std::fill_n(help->data<T>(), help->size(), T(0));
      if (rank != nullptr)
        for (int64_t i = 0; i < r.rows; ++i)
          rank->data<T>()[i] =
              static_cast<T>(r.offset->data<int32_t>()[i * (2 * r.ranks + 1)]);
      return r.ForEach([&](int64_t i, int64_t k, int64_t row, int64_t block) {
        const T* from = r.x->data<T>() + row * r.width;
        if (help != nullptr)
          std::copy_n(from, r.width,
                      help->data<T>() + (i * r.ranks + k) * r.width);
        for (int64_t c = 0; c < r.width; ++c)
          for (int64_t o = 0; o < r.out; ++o)
            out->data<T>()[i * r.out + o] +=
                from[c] * param->data<T>()[(block + c) * r.out + o];
      });
    });
  });
}

absl::StatusOr<Step> BindRankAttentionGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dparam = context->Output("RankParam@GRAD");
  context->NoBuffer(context->Input("RankParam"));
  PD_ASSIGN_OR_RETURN(const RankAttention r, ReadRankAttention(*context));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", r.x->dtype(), {r.rows, r.out}));
  return DispatchFloat(r.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(dparam->data<T>(), dparam->size(), T(0));
      return r.ForEach([&](int64_t i, int64_t, int64_t row, int64_t block) {
        const T* from = r.x->data<T>() + row * r.width;
        for (int64_t c = 0; c < r.width; ++c)
          for (int64_t o = 0; o < r.out; ++o)
            dparam->data<T>()[(block + c) * r.out + o] +=
                from[c] * dout->data<T>()[i * r.out + o];
      });
    });
  });
}

}  // namespace

absl::Status RegisterRankAttention(OpRegistry* registry) {
  OpDef op("rank_attention"), grad("rank_attention_grad");
  for (OpDef* def : {&op, &grad})
    def->Input("X")
        .Input("RankOffset")
        .Input("RankParam")
        .Attr("MaxRank", int32_t{3});
  for (OpDef* def : {&op, &grad}) def->Attr("MaxSize", int32_t{0});
  op.Output("Out").IntermediateOutput("InputHelp");
  op.IntermediateOutput("InsRank");
  op.Infer(InferRankAttention).Reference(BindRankAttention);
  op.Grad(GradSpec{"rank_attention_grad",
                   {"X", "RankOffset", "RankParam"},
                   {"InputHelp", "InsRank"},
                   {"Out"},
                   {"RankParam"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.OptionalInput("InputHelp").OptionalInput("InsRank");
  grad.Input("Out@GRAD").Output("RankParam@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRankAttentionGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
