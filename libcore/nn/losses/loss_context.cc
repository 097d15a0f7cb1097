// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/losses/loss_context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"

namespace pd {

bool SameExtents(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return false;
  return true;
}

LossContext::LossContext(const job::Loss& loss, const std::string& prediction,
                         FindField find, LayerContext* parameters,
                         BlockBuilder* main)
    : OpChain(main),
      loss_(loss),
      prediction_(*main->FindVar(prediction)),
      find_(std::move(find)),
      parameters_(parameters) {}

std::string LossContext::Field(const std::string& name, Shape shape,
                               DType dtype) {
  if (!ok()) return "";
  auto variable = find_(name, {dtype, std::move(shape)});
  Update(variable.status());
  return ok() ? *variable : "";
}

std::string LossContext::Label(Shape shape, DType dtype) {
  used_label_ = true;
  std::string label = Field(loss_.label(), std::move(shape), dtype);
  if (ok() && label == prediction_.name)
    Update(InvalidArgument(
        "its label '%s' is the layer that the loss judges; a field of the data "
        "with a layer's name is found by no loss: rename the layer",
        loss_.label()));
  return label;
}

std::string LossContext::SameLabel() {
  const std::string label = Label(prediction_.shape, prediction_.dtype);
  if (ok() && !SameExtents(prediction_.shape, ShapeOf(label)))
    ShapesDiffer(label, "of the same shape");
  return label;
}

std::string LossContext::SameField(const std::string& name) {
  const std::string other = Field(name, prediction_.shape, prediction_.dtype);
  if (ok() && !SameExtents(prediction_.shape, ShapeOf(other)))
    Update(InvalidArgument(
        "the predictions are %s and '%s' is %s; expected the same shape",
        ToString(prediction_.shape), name, ToString(ShapeOf(other))));
  return other;
}

std::string LossContext::ClassNumbers(int axis) {
  if (!ok()) return "";
  Shape with = prediction_.shape, without = prediction_.shape;
  with[static_cast<size_t>(axis)] = 1;
  without.erase(without.begin() + axis);
  const std::string label = Label(with, DType::kInt64);
  if (!ok()) return "";
  const VarDesc& var = Var(label);
  if (!IsInteger(var.dtype)) {
    Update(InvalidArgument("labels '%s' are %s; class numbers are int64", label,
                           Name(var.dtype)));
    return "";
  }
  if (SameExtents(var.shape, with)) return label;
  if (SameExtents(var.shape, without)) return Unsqueeze(label, axis);
  ShapesDiffer(label, ToString(with));
  return "";
}

void LossContext::ShapesDiffer(const std::string& label,
                               absl::string_view expected) {
  Update(InvalidArgument(
      "the predictions are %s and the labels '%s' %s; expected labels %s",
      ToString(prediction_.shape), label, ToString(ShapeOf(label)), expected));
}

bool LossContext::ExpectRank(size_t least, size_t most, const char* expected) {
  const size_t rank = prediction_.shape.size();
  if (rank < least || rank > most)
    Update(InvalidArgument("the predictions are %s; expected %s",
                           ToString(prediction_.shape), expected));
  return ok();
}

bool LossContext::ExpectWeights(int count, int axis) {
  const int64_t classes = prediction_.shape[static_cast<size_t>(axis)];
  if (count > 0 && count != classes)
    Update(InvalidArgument(
        "'weight' holds %d numbers; the predictions are %s, with %d classes",
        count, ToString(prediction_.shape), classes));
  return ok();
}

std::string LossContext::Quotient(const std::string& sum,
                                  const std::string& divisor) {
  const std::string zero = Full(ShapeOf(divisor), DType::kFloat32, 0);
  const std::string none =
      Cast(Binary("equal", divisor, zero), DType::kFloat32);
  return Div(sum, Add(divisor, none));
}

std::string LossContext::LeadingField(const char* what, const std::string& name,
                                      const Shape& shape, size_t axes) {
  const auto leading = [&](size_t count) {
    return Shape(shape.begin(),
                 shape.begin() + static_cast<std::ptrdiff_t>(
                                     std::min(count, shape.size())));
  };
  std::string field = Field(name, leading(axes));
  if (!ok()) return "";
  Shape given = ShapeOf(field);
  // A column [N, 1], as rows of a table give it, is one value a record.
  while (ok() && given.size() > 1 && given.back() == 1 &&
         (given.size() > shape.size() || shape[given.size() - 1] != 1)) {
    given.pop_back();
    field = Squeeze(field, static_cast<int>(given.size()));
  }
  if (ok() && (given.empty() || given.size() > shape.size() ||
               !SameExtents(given, leading(given.size()))))
    Update(InvalidArgument(
        "the %s '%s' is %s; the loss has one value for each place of %s", what,
        name, ToString(given), ToString(shape)));
  return Cast(field, DType::kFloat32);
}

std::string LossContext::Spread(std::string values, size_t rank) {
  for (size_t i = ShapeOf(values).size(); ok() && i < rank; ++i)
    values = Unsqueeze(values, static_cast<int>(i));
  return values;
}

std::string LossContext::Weighted(const std::string& each) {
  used_sample_weight_ = true;
  if (!ok() || !loss_.has_sample_weight()) return each;
  const Shape shape = ShapeOf(each);
  const std::string weight =
      LeadingField("sample_weight", loss_.sample_weight(), shape, 1);
  return Mul(each, Spread(weight, shape.size()));
}

std::string LossContext::Mask(const std::string& each) {
  used_mask_ = true;
  const Shape shape = ShapeOf(each);
  if (!ok() || (!loss_.has_mask() && !loss_.has_length())) return "";
  if (loss_.has_mask()) return LeadingField("mask", loss_.mask(), shape, 2);
  if (shape.size() < 2) {
    Update(InvalidArgument(
        "'length' counts places along axis 1; the loss has values %s",
        ToString(shape)));
    return "";
  }
  std::string length = Field(loss_.length(), {shape[0]}, DType::kInt64);
  if (ok() && ShapeOf(length).size() == 2) length = Squeeze(length, 1);
  return SequenceMask(length, each, 1);
}

std::string LossContext::SoftmaxCrossEntropy(const std::string& logits,
                                             const std::string& labels,
                                             bool soft_label) {
  return Op("softmax_with_cross_entropy",
            {{"Logits", logits}, {"Label", labels}}, {"Softmax", "Loss"},
            {{"soft_label", soft_label},
             {"use_softmax", true},
             {"numeric_stable_mode", true},
             {"ignore_index", int32_t{-100}},
             {"axis", int32_t{-1}}},
            /*result=*/1);
}

std::string LossContext::Reduced(job::Reduction::Kind kind, std::string each) {
  const char* op = kind == job::Reduction::sum ? "reduce_sum" : "reduce_mean";
  const Shape shape = ShapeOf(each);
  each = Weighted(each);
  const std::string mask = Mask(each);
  if (mask.empty()) return Reduce(op, each);
  const size_t rank = ShapeOf(mask).size();
  if (rank < shape.size()) {
    std::vector<int32_t> inner;
    for (size_t i = rank; i < shape.size(); ++i)
      inner.push_back(static_cast<int32_t>(i));
    each = Reduce(op, each, inner);
  }
  const std::string sum = Reduce("reduce_sum", Mul(each, mask));
  if (kind == job::Reduction::sum) return sum;
  return Quotient(sum, Reduce("reduce_sum", mask));
}

}  // namespace pd
