// SPDX-License-Identifier: Apache-2.0
// Activations: one op each.
#include <utility>

#include "libcore/base/error.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

absl::StatusOr<std::string> BuildActivation(LayerContext* c) {
  const job::Layer& l = c->layer();
  const auto unary = [&](const char* type,
                         std::map<std::string, Attribute> attrs = {}) {
    return c->Unary(type, c->input(), std::move(attrs));
  };
  const auto number = [](double value) { return static_cast<float>(value); };
  switch (l.kind_case()) {
    case job::Layer::kRelu:
      return unary("relu");
    case job::Layer::kRelu6:
      return unary("relu6");
    case job::Layer::kLeakyRelu:
      return unary("leaky_relu",
                   {{"alpha", number(l.leaky_relu().negative_slope())}});
    case job::Layer::kSigmoid:
      return unary("sigmoid");
    case job::Layer::kTanh:
      return unary("tanh");
    case job::Layer::kGelu:
      return unary("gelu", {{"approximate", l.gelu().approximate()}});
    case job::Layer::kSilu:
      return unary("silu");
    case job::Layer::kSwish:
      return unary("swish");
    case job::Layer::kHardswish:
      return unary("hard_swish",
                   {{"threshold", 6.0f}, {"scale", 6.0f}, {"offset", 3.0f}});
    case job::Layer::kHardsigmoid:
      // PaddlePaddle's own rounding of 1/6.
      return unary("hard_sigmoid", {{"slope", 0.1666667f}, {"offset", 0.5f}});
    case job::Layer::kSoftmax:
      return unary("softmax", {{"axis", int32_t{l.softmax().axis()}}});
    case job::Layer::kLogSoftmax:
      return unary("log_softmax", {{"axis", int32_t{l.log_softmax().axis()}}});
    case job::Layer::kElu:
      return unary("elu", {{"alpha", number(l.elu().alpha())}});
    case job::Layer::kSoftplus:
      return unary("softplus",
                   {{"beta", number(l.softplus().beta())},
                    {"threshold", number(l.softplus().threshold())}});
    default:
      return Unimplemented("layer kind '%s'", c->kind());
  }
}

}  // namespace

void AddActivations(LayerTable* table) {
  for (int kind = job::Layer::kRelu; kind <= job::Layer::kSoftplus; ++kind)
    (*table)[kind] = {BuildActivation};
}

}  // namespace pd
