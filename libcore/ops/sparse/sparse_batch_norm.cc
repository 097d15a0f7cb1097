// SPDX-License-Identifier: Apache-2.0
// sparse_batch_norm, sparse_sync_batch_norm: batch_norm and sync_batch_norm of
// the values [nnz, channels] of a COO tensor; the places stay.
#include <cstring>

#include "absl/strings/match.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/sparse/sparse_tensor.h"

namespace pd {
namespace {

// Outputs of the sparse operator and of the dense one.
constexpr std::pair<const char*, const char*> kStatistics[] = {
    {"mean_out", "MeanOut"},
    {"variance_out", "VarianceOut"},
    {"saved_mean", "SavedMean"},
    {"saved_variance", "SavedVariance"}};

absl::Status InferBatchNorm(InferContext* context) {
  PD_RETURN_IF_ERROR(InferLikeX(context));
  const TensorMeta& x = context->Input("x");
  if (!IsCoo(x.kind)) return InvalidArgument("x is a CSR tensor; expected COO");
  const int64_t channels = x.shape.empty() ? -1 : x.shape.back();
  if (x.value != nullptr && SparseValues(*x.value).rank() != 2)
    return InvalidArgument("the values have shape %s; expected [nnz, channels]",
                           ToString(SparseValues(*x.value).shape()));
  for (const char* slot : {"mean", "variance", "scale", "bias"}) {
    PD_RETURN_IF_ERROR(NeedDense(*context, slot));
    const Shape& shape = context->Input(slot).shape;
    if (shape.size() != 1 ||
        (shape[0] >= 0 && channels >= 0 && shape[0] != channels))
      return InvalidArgument("%s has shape %s; expected [%d], the channels",
                             slot, ToString(shape), channels);
  }
  const TensorMeta& mean = context->Input("mean");
  for (const auto& [slot, dense] : kStatistics)
    context->SetOutput(slot, mean.shape, mean.dtype);
  context->SetOutput("reserve_space", {0}, DType::kUInt8);
  return absl::OkStatus();
}

// The dense operator on the values.
struct Dense {
  std::string type;
  Eager::Inputs inputs;
  Eager::Attrs attrs = {{"data_layout", std::string("NCHW")}};

  explicit Dense(const BindContext& context)
      : type(absl::StartsWith(context.op().type, "sparse_sync")
                 ? "sync_batch_norm"
                 : "batch_norm"),
        inputs{{"X", &SparseValues(*context.Input("x"))},
               {"Mean", context.Input("mean")},
               {"Variance", context.Input("variance")},
               {"Scale", context.Input("scale")},
               {"Bias", context.Input("bias")}} {
    for (const char* name : {"is_test", "momentum", "epsilon",
                             "use_global_stats", "trainable_statistics"})
      attrs[name] = *context.op().FindAttr(name);
  }
};

absl::StatusOr<Step> BindBatchNorm(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Output("out");
  const Dense norm(*context);
  const bool trains = !context->Attr<bool>("is_test") ||
                      context->Attr<bool>("trainable_statistics");
  std::vector<Tensor*> statistics;
  for (const auto& [slot, dense] : kStatistics)
    statistics.push_back(context->Output(slot));
  Tensor* reserve = context->Output("reserve_space");
  return Step([=](const RunContext& run) -> absl::Status {
    std::vector<std::string> slots = {"Y"};
    for (const auto& [slot, dense] : kStatistics) slots.push_back(dense);
    PD_ASSIGN_OR_RETURN(
        std::vector<Tensor> made,
        Eager(run).RunAll(norm.type, norm.inputs, norm.attrs, slots));
    for (size_t i = 0; i < statistics.size(); ++i) {
      if (statistics[i] == nullptr) continue;
      // Saved ones are not written where running statistics are used.
      if (i >= 2 && !trains)
        std::memset(made[i + 1].raw(), 0, made[i + 1].bytes());
      PD_RETURN_IF_ERROR(Give(std::move(made[i + 1]), statistics[i]));
    }
    if (reserve != nullptr)
      PD_RETURN_IF_ERROR(reserve->Resize(DType::kUInt8, {0}));
    *out = WithValues(*x, std::move(made[0]));
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindBatchNormGrad(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Input("out");
  Tensor* out_grad = context->Input("out@GRAD");
  const Dense norm(*context);
  Tensor* saved_mean = context->Input("saved_mean");
  Tensor* saved_variance = context->Input("saved_variance");
  Tensor* x_grad = context->Output("x@GRAD");
  Tensor* scale_grad = context->Output("scale@GRAD");
  Tensor* bias_grad = context->Output("bias@GRAD");
  return Step([=](const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(
        std::vector<Tensor> grads,
        Eager(run).Gradients(norm.type, norm.inputs, norm.attrs,
                             {{"Y", &SparseValues(*out)},
                              {"MeanOut", nullptr},
                              {"VarianceOut", nullptr},
                              {"SavedMean", saved_mean},
                              {"SavedVariance", saved_variance}},
                             "Y", &SparseValues(*out_grad),
                             {"X", "Scale", "Bias"}));
    if (x_grad != nullptr) *x_grad = WithValues(*x, std::move(grads[0]));
    if (scale_grad != nullptr)
      PD_RETURN_IF_ERROR(Give(std::move(grads[1]), scale_grad));
    if (bias_grad == nullptr) return absl::OkStatus();
    return Give(std::move(grads[2]), bias_grad);
  });
}

}  // namespace

absl::Status RegisterSparseBatchNorm(OpRegistry* registry) {
  for (const char* type : {"sparse_batch_norm", "sparse_sync_batch_norm"}) {
    OpDef op(type);
    op.Input("x").Input("mean").Input("variance").Input("scale").Input("bias");
    op.Output("out");
    for (const char* slot : {"mean_out", "variance_out", "saved_mean",
                             "saved_variance", "reserve_space"})
      op.OptionalOutput(slot);
    op.RequiredAttr("is_test", AttrType::kBoolean);
    op.RequiredAttr("momentum", AttrType::kFloat);
    op.RequiredAttr("epsilon", AttrType::kFloat);
    op.RequiredAttr("data_layout", AttrType::kString);
    op.RequiredAttr("use_global_stats", AttrType::kBoolean);
    op.RequiredAttr("trainable_statistics", AttrType::kBoolean);
    PD_RETURN_IF_ERROR(AddSparse(registry, std::move(op), InferBatchNorm,
                                 BindBatchNorm,
                                 {"x", "mean", "variance", "scale", "bias"},
                                 {"out", "saved_mean", "saved_variance"},
                                 {"x", "scale", "bias"}, BindBatchNormGrad));
  }
  return absl::OkStatus();
}

}  // namespace pd
