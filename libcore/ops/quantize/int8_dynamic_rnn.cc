// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/quantize/int8_dynamic_rnn.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/quantize/int8_dynamic.h"
#include "libcore/ops/registry.h"

namespace pd {

absl::StatusOr<std::vector<Int8Weights>> ReadDynamicRnnWeights(
    BindContext* context, const RnnDims& d) {
  OpDesc matrix;
  matrix.type = "int8_dynamic_matmul";
  matrix.attrs["trans_y"] = true;
  matrix.attrs["filter_floats"] = false;
  matrix.attrs["filter_levels"] = context->Attr<float>("filter_levels");
  std::vector<Int8Weights> read;
  for (size_t i = 0; i < 2 * d.pairs(); ++i) {
    Tensor* values = context->Input("WeightList", i);
    Tensor* scale = context->Input("WeightScale", i);
    for (const Tensor* tensor : {values, scale})
      if (tensor == nullptr || !context->IsConstant(tensor) ||
          !tensor->has_value())
        return InvalidArgument(
            "'WeightList' or 'WeightScale' %d is not there "
            "or not constant",
            i);
    const int64_t layer = static_cast<int64_t>(i / 2) / d.directions;
    const Shape want = {d.gate_width(),
                        i % 2 == 0 ? d.input_width(layer) : d.hidden};
    if (values->shape() != want || values->dtype() != DType::kInt8)
      return InvalidArgument("'WeightList' %d is %s %s; expected int8 %s", i,
                             Name(values->dtype()), ToString(values->shape()),
                             ToString(want));
    if (want[1] > kMostDynamicDepth)
      return InvalidArgument(
          "'WeightList' %d has rows of %d numbers; expected "
          "at most %d",
          i, want[1], kMostDynamicDepth);
    auto weights = ReadInt8Weights(matrix, *values, scale, nullptr);
    if (!weights.ok())
      return Annotate(weights.status(), absl::StrCat("'WeightList' ", i));
    read.push_back(*std::move(weights));
  }
  return read;
}

namespace {

// The reference's arithmetic.
struct Reference {
  std::vector<Int8Weights> weights;

  void Product(size_t matrix, const float* x, int64_t rows, float* out) const {
    const Int8Weights& w = weights[matrix];
    const int64_t depth = w.channels;
    for (int64_t r = 0; r < rows; ++r, x += depth) {
      const DynamicRow row = DynamicRow::Of(x, depth);
      for (int64_t o = 0; o < w.outputs; ++o) {
        const int8_t* values = w.values.data() + o * depth;
        int32_t sum = 0;
        for (int64_t k = 0; k < depth; ++k)
          sum += (row(x[k]) - row.zero) * values[k];
        *out++ = static_cast<float>(sum) *
                 (row.scale * w.scales[static_cast<size_t>(o)]);
      }
    }
  }
  static void Cell(RnnMode mode, int64_t n, const float* from_h, float* gates,
                   float* extra, float* h, float* c) {
    RnnCell(mode, n, from_h, gates, extra, h, c);
  }
};

absl::StatusOr<Step> BindReference(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RnnInputs inputs,
                      ReadRnnInputs(context, /*float_matrices=*/false));
  auto math = std::make_shared<Reference>();
  PD_ASSIGN_OR_RETURN(math->weights,
                      ReadDynamicRnnWeights(context, inputs.dims));
  return BindDynamicRnnWith(context, inputs,
                            std::shared_ptr<const Reference>(std::move(math)));
}

}  // namespace

absl::Status RegisterInt8DynamicRnn(OpRegistry* registry) {
  OpDef op("int8_dynamic_rnn");
  op.Input("Input").Inputs("PreState").Inputs("WeightList");
  op.Inputs("WeightScale").OptionalInput("SequenceLength");
  op.Output("Out").Outputs("State");
  op.OptionalOutput("DropoutState").OptionalOutput("Reserve");
  op.Attr("is_bidirec", false).Attr("input_size", int32_t{10});
  op.Attr("hidden_size", int32_t{100}).Attr("num_layers", int32_t{1});
  op.Attr("mode", std::string("RNN_TANH")).Attr("is_test", true);
  op.Attr("filter_levels", 127.0f);
  op.Infer(InferRnn).NoGrad().Reference(BindReference);
  return registry->Add(std::move(op));
}

}  // namespace pd
