// SPDX-License-Identifier: Apache-2.0
// The ops are those that paddle.nn.functional makes in a static program.
#include "libcore/nn/loss.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Attrs = std::map<std::string, Attribute>;

// Appends ops with new output variables.
class Ops {
 public:
  explicit Ops(BlockBuilder* main) : main_(main) {}

  absl::StatusOr<std::string> Call(
      const char* type,
      const std::vector<std::pair<const char*, std::string>>& inputs,
      const std::vector<const char*>& outputs, Attrs attrs = {},
      size_t result = 0) {
    OpDesc op;
    op.type = type;
    for (const auto& [slot, name] : inputs) op.SetInput(slot, {name});
    const std::string first = main_->UniqueTemporary(type);
    const std::string stem = first.substr(0, first.size() - 1);
    for (size_t i = 0; i < outputs.size(); ++i)
      op.SetOutput(outputs[i], {absl::StrCat(stem, i)});
    op.attrs = std::move(attrs);
    PD_RETURN_IF_ERROR(main_->Append(std::move(op)));
    return absl::StrCat(stem, result);
  }

  absl::StatusOr<std::string> Reduce(const char* type, const std::string& x) {
    return Call(type, {{"X", x}}, {"Out"},
                {{"dim", std::vector<int32_t>{}},
                 {"keep_dim", false},
                 {"reduce_all", true}});
  }

  absl::StatusOr<std::string> Reduce(job::Reduction::Kind kind,
                                     const std::string& x) {
    return Reduce(kind == job::Reduction::sum ? "reduce_sum" : "reduce_mean",
                  x);
  }

  absl::StatusOr<std::string> Squeeze(const std::string& x, int axis) {
    return Call("squeeze2", {{"X", x}}, {"Out", "XShape"},
                {{"axes", std::vector<int32_t>{axis}}});
  }

  const VarDesc& Var(const std::string& name) { return *main_->FindVar(name); }

 private:
  BlockBuilder* main_;
};

absl::Status ShapesDiffer(const VarDesc& prediction, const VarDesc& label,
                          absl::string_view expected) {
  return InvalidArgument(
      "the predictions are %s and the labels '%s' %s; expected labels %s",
      ToString(prediction.shape), label.name, ToString(label.shape), expected);
}

// Extents are equal or not known.
bool Same(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return false;
  return true;
}

// Class numbers have the prediction's shape with 1 at `axis`; where the axis is
// left out it is put in.
absl::StatusOr<std::string> ClassNumbers(const VarDesc& prediction,
                                         const std::string& label, int axis,
                                         Ops* ops) {
  const VarDesc& var = ops->Var(label);
  if (!IsInteger(var.dtype))
    return InvalidArgument("labels '%s' are %s; class numbers are int64", label,
                           Name(var.dtype));
  Shape with = prediction.shape, without = prediction.shape;
  with[static_cast<size_t>(axis)] = 1;
  without.erase(without.begin() + axis);
  if (Same(var.shape, with)) return label;
  if (!Same(var.shape, without))
    return ShapesDiffer(prediction, var, ToString(with));
  return ops->Call("unsqueeze2", {{"X", label}}, {"Out", "XShape"},
                   {{"axes", std::vector<int32_t>{axis}}});
}

// Mean over the labels that are not ignore_index, 0 when all are.
absl::StatusOr<std::string> MeanOfCounted(int64_t ignore_index,
                                          const std::string& loss,
                                          const std::string& label, Ops* ops) {
  const int32_t f32 = static_cast<int32_t>(DType::kFloat32);
  PD_ASSIGN_OR_RETURN(
      const std::string ignored,
      ops->Call("fill_constant", {}, {"Out"},
                {{"shape", std::vector<int64_t>{1}},
                 {"dtype", static_cast<int32_t>(ops->Var(label).dtype)},
                 {"value", static_cast<float>(ignore_index)},
                 {"str_value", absl::StrCat(ignore_index)}}));
  PD_ASSIGN_OR_RETURN(const std::string mask,
                      ops->Call("not_equal", {{"X", label}, {"Y", ignored}},
                                {"Out"}, {{"axis", int32_t{-1}}}));
  PD_ASSIGN_OR_RETURN(
      const std::string ones,
      ops->Call("cast", {{"X", mask}}, {"Out"},
                {{"in_dtype", static_cast<int32_t>(DType::kBool)},
                 {"out_dtype", f32}}));
  PD_ASSIGN_OR_RETURN(const std::string count, ops->Reduce("reduce_sum", ones));
  PD_ASSIGN_OR_RETURN(const std::string sum, ops->Reduce("reduce_sum", loss));
  PD_ASSIGN_OR_RETURN(const std::string one,
                      ops->Call("fill_constant", {}, {"Out"},
                                {{"shape", ops->Var(count).shape},
                                 {"dtype", f32},
                                 {"value", 1.0f},
                                 {"str_value", std::string("1")}}));
  PD_ASSIGN_OR_RETURN(const std::string divisor,
                      ops->Call("elementwise_max", {{"X", count}, {"Y", one}},
                                {"Out"}, {{"axis", int32_t{-1}}}));
  return ops->Call("elementwise_div", {{"X", sum}, {"Y", divisor}}, {"Out"},
                   {{"axis", int32_t{-1}}});
}

// Class numbers as probabilities, a share of them spread over all classes.
absl::StatusOr<std::string> Smoothed(const job::CrossEntropy& p,
                                     const VarDesc& prediction,
                                     std::string label, int axis, Ops* ops) {
  if (!p.soft_label()) {
    const size_t last = prediction.shape.size() - 1;
    if (static_cast<size_t>(axis) != last)
      return InvalidArgument(
          "label_smoothing needs the classes on the last "
          "axis; 'axis' is %d",
          p.axis());
    PD_ASSIGN_OR_RETURN(const std::string flat, ops->Squeeze(label, -1));
    PD_ASSIGN_OR_RETURN(
        label,
        ops->Call("one_hot_v2", {{"X", flat}}, {"Out"},
                  {{"depth", static_cast<int32_t>(prediction.shape[last])},
                   {"dtype", static_cast<int32_t>(DType::kFloat32)},
                   {"allow_out_of_range", false}}));
  }
  return ops->Call("label_smooth", {{"X", label}}, {"Out"},
                   {{"epsilon", static_cast<float>(p.label_smoothing())}});
}

absl::StatusOr<std::string> BuildCrossEntropy(const job::CrossEntropy& p,
                                              const VarDesc& prediction,
                                              std::string label, Ops* ops) {
  if (prediction.shape.size() < 2)
    return InvalidArgument("the predictions are %s; expected [N, classes]",
                           ToString(prediction.shape));
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(p.axis(), prediction.shape.size()));
  const std::string numbers = label;
  bool soft = p.soft_label();
  if (soft) {
    if (!Same(prediction.shape, ops->Var(label).shape))
      return ShapesDiffer(prediction, ops->Var(label),
                          "of the same shape (soft_label)");
  } else {
    PD_ASSIGN_OR_RETURN(label, ClassNumbers(prediction, label, axis, ops));
  }
  if (p.label_smoothing() > 0) {
    PD_ASSIGN_OR_RETURN(label, Smoothed(p, prediction, label, axis, ops));
    soft = true;
  }
  PD_ASSIGN_OR_RETURN(
      const std::string loss,
      ops->Call("softmax_with_cross_entropy",
                {{"Logits", prediction.name}, {"Label", label}},
                {"Softmax", "Loss"},
                {{"soft_label", soft},
                 {"use_softmax", p.use_softmax()},
                 {"numeric_stable_mode", true},
                 {"ignore_index", static_cast<int32_t>(p.ignore_index())},
                 {"axis", int32_t{p.axis()}}},
                /*result=*/1));
  if (p.reduction() == job::Reduction::mean && p.ignore_index() >= 0 && !soft)
    return MeanOfCounted(p.ignore_index(), loss, numbers, ops);
  return ops->Reduce(p.reduction(), loss);
}

absl::StatusOr<std::string> BuildNLL(const job::NLLLoss& p,
                                     const VarDesc& prediction,
                                     const std::string& label, Ops* ops) {
  if (prediction.shape.size() != 2)
    return InvalidArgument("the predictions are %s; expected [N, classes]",
                           ToString(prediction.shape));
  std::string numbers = label;
  if (ops->Var(label).shape.size() == 2) {
    PD_ASSIGN_OR_RETURN(numbers, ops->Squeeze(label, 1));
  }
  return ops->Call(
      "nll_loss", {{"X", prediction.name}, {"Label", numbers}},
      {"Out", "Total_weight"},
      {{"ignore_index", int64_t{p.ignore_index()}},
       {"reduction",
        std::string(p.reduction() == job::Reduction::sum ? "sum" : "mean")}});
}

// Losses of element pairs.
absl::StatusOr<std::string> BuildElementwise(const job::Loss& loss,
                                             const std::string& x,
                                             const std::string& y, Ops* ops) {
  if (!Same(ops->Var(x).shape, ops->Var(y).shape))
    return ShapesDiffer(ops->Var(x), ops->Var(y), "of the same shape");
  switch (loss.kind_case()) {
    case job::Loss::kSmoothL1Loss: {
      PD_ASSIGN_OR_RETURN(
          const std::string out,
          ops->Call(
              "huber_loss", {{"X", x}, {"Y", y}}, {"Out", "Residual"},
              {{"delta", static_cast<float>(loss.smooth_l1_loss().delta())}}));
      return ops->Reduce(loss.smooth_l1_loss().reduction(), out);
    }
    case job::Loss::kBceLoss: {
      PD_ASSIGN_OR_RETURN(
          const std::string out,
          ops->Call("bce_loss", {{"X", x}, {"Label", y}}, {"Out"}));
      return ops->Reduce(loss.bce_loss().reduction(), out);
    }
    case job::Loss::kBceWithLogitsLoss: {
      PD_ASSIGN_OR_RETURN(
          const std::string out,
          ops->Call("sigmoid_cross_entropy_with_logits",
                    {{"X", x}, {"Label", y}}, {"Out"},
                    {{"ignore_index", int32_t{-100}}, {"normalize", false}}));
      return ops->Reduce(loss.bce_with_logits_loss().reduction(), out);
    }
    default:
      break;
  }
  const bool squared = loss.has_mse_loss();
  PD_ASSIGN_OR_RETURN(const std::string difference,
                      ops->Call("elementwise_sub", {{"X", x}, {"Y", y}},
                                {"Out"}, {{"axis", int32_t{-1}}}));
  PD_ASSIGN_OR_RETURN(
      const std::string each,
      ops->Call(squared ? "square" : "abs", {{"X", difference}}, {"Out"}));
  return ops->Reduce(
      squared ? loss.mse_loss().reduction() : loss.l1_loss().reduction(), each);
}

}  // namespace

LabelSpec LabelOf(const job::Loss& loss, const Shape& prediction) {
  LabelSpec spec;
  spec.shape = prediction;
  const bool numbers =
      loss.has_nll_loss() ||
      (loss.has_cross_entropy() && !loss.cross_entropy().soft_label());
  if (!numbers) return spec;
  spec.dtype = DType::kInt64;
  const int rank = static_cast<int>(prediction.size());
  int axis = loss.has_nll_loss() ? 1 : loss.cross_entropy().axis();
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) spec.shape[static_cast<size_t>(axis)] = 1;
  return spec;
}

absl::StatusOr<std::string> BuildLoss(const job::Loss& loss,
                                      const std::string& prediction,
                                      const std::string& label,
                                      BlockBuilder* main) {
  Ops ops(main);
  absl::StatusOr<std::string> value = std::string();
  // A copy: declaring variables moves the descriptions.
  const VarDesc var = ops.Var(prediction);
  if (loss.has_cross_entropy()) {
    value = BuildCrossEntropy(loss.cross_entropy(), var, label, &ops);
  } else if (loss.has_nll_loss()) {
    value = BuildNLL(loss.nll_loss(), var, label, &ops);
  } else {
    value = BuildElementwise(loss, prediction, label, &ops);
  }
  if (!value.ok() || loss.weight() == 1) return value;
  return ops.Call("scale", {{"X", *value}}, {"Out"},
                  {{"scale", static_cast<float>(loss.weight())},
                   {"bias", 0.0f},
                   {"bias_after_scale", true}});
}

absl::Status CheckAccuracy(const job::Accuracy& accuracy,
                           const VarDesc& prediction, const VarDesc& label) {
  const Shape& shape = prediction.shape;
  if (shape.size() != 2)
    return InvalidArgument(
        "accuracy judges predictions [N, classes]; these "
        "are %s",
        ToString(shape));
  if (!IsInteger(label.dtype))
    return InvalidArgument("labels '%s' are %s; class numbers are int64",
                           label.name, Name(label.dtype));
  if (!Same(label.shape, {shape[0]}) && !Same(label.shape, {shape[0], 1}))
    return ShapesDiffer(prediction, label, ToString({shape[0], 1}));
  for (int32_t k : accuracy.topk())
    if (shape[1] >= 0 && k > shape[1])
      return InvalidArgument("'topk' is %d; there are %d classes", k, shape[1]);
  return absl::OkStatus();
}

}  // namespace pd
