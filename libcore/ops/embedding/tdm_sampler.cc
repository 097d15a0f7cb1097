// SPDX-License-Identifier: Apache-2.0
// tdm_sampler: a path through a tree with wrong turns (H. Zhu et al., "Learning
// tree-based deep model for recommender systems", 2018). Row X[i] of Travel is
// the path to a leaf, a node a layer; Layer holds the nodes of each layer, from
// layer_offset_lod[l] to layer_offset_lod[l + 1]. For each layer Out has the
// path's node, with output_positive, and neg_samples_num_list[l] other nodes of
// the layer, all different; Labels are 1 for the path's node and 0 for others;
// Mask is 1, or 0 with zeros everywhere where the path has ended (node 0). The
// choice follows from the run's seed, the step and the name of Out.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/random/random_source.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct TdmLayers {
  std::vector<int32_t> negatives, offsets;
  bool positive = true;
  int64_t width = 0;  // of a row of Out
};

absl::StatusOr<TdmLayers> ReadTdm(const OpDesc& op) {
  TdmLayers t;
  t.negatives = op.Attr<std::vector<int32_t>>("neg_samples_num_list");
  t.offsets = op.Attr<std::vector<int32_t>>("layer_offset_lod");
  t.positive = op.Attr<bool>("output_positive");
  bool fits = !t.negatives.empty() &&
              t.offsets.size() == t.negatives.size() + 1 && t.offsets[0] >= 0;
  for (size_t l = 0; fits && l < t.negatives.size(); ++l) {
    // The path's node is none of the others.
    fits = t.offsets[l + 1] > t.offsets[l] && t.negatives[l] >= 0 &&
           t.negatives[l] < t.offsets[l + 1] - t.offsets[l];
    t.width += int64_t{t.negatives[l]} + (t.positive ? 1 : 0);
  }
  if (fits) return t;
  return InvalidArgument(
      "attrs 'neg_samples_num_list' and 'layer_offset_lod' have %d and %d "
      "numbers; expected for each layer fewer samples than it has nodes",
      t.negatives.size(), t.offsets.size());
}

absl::Status InferTdmSampler(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const TdmLayers t, ReadTdm(context->op()));
  const TensorMeta& x = context->Input("X");
  for (const char* slot : {"X", "Travel", "Layer"})
    PD_RETURN_IF_ERROR(CheckIndexType(slot, context->Input(slot).dtype));
  const Shape& travel = context->Input("Travel").shape;
  const int32_t code = context->Attr<int32_t>("dtype");
  const auto layers = static_cast<int64_t>(t.negatives.size());
  if (travel.size() != 2 || (travel[1] >= 0 && travel[1] != layers) ||
      x.shape.empty() || (code != 2 && code != 3))
    return InvalidArgument(
        "'Travel' has shape %s, there are %d layers, attr 'dtype' is %d",
        ToString(travel), layers, code);
  const Shape shape = {IsDynamic(x.shape) ? -1 : NumElements(x.shape), t.width};
  for (const char* slot : {"Out", "Labels", "Mask"})
    context->SetOutput(slot, shape, static_cast<DType>(code));
  return absl::OkStatus();
}

struct TdmTensors {
  Tensor *x, *travel, *layer, *out, *labels, *mask;
};

template <typename T>
absl::Status SampleTree(const TdmLayers& layers, const TdmTensors& t,
                        const Philox& numbers) {
  const auto depth = static_cast<int64_t>(layers.negatives.size());
  PD_RETURN_IF_ERROR(CheckIndices("X", *t.x, 0, t.travel->dim(0)));
  if (layers.offsets.back() > t.layer->size())
    return OutOfRange(
        "attr 'layer_offset_lod' ends at %d; 'Layer' has %d nodes",
        layers.offsets.back(), t.layer->size());
  int64_t at = 0, drawn = 0;
  const auto write = [&](int64_t node, int label, int mask) {
    t.out->data<T>()[at] = static_cast<T>(node);
    if (t.labels != nullptr) t.labels->data<T>()[at] = static_cast<T>(label);
    t.mask->data<T>()[at++] = static_cast<T>(mask);
  };
  std::vector<int64_t> others;
  for (int64_t i = 0; i < t.x->size(); ++i)
    for (int64_t l = 0; l < depth; ++l) {
      const auto k = static_cast<size_t>(l);
      const int64_t node = LabelAt(*t.travel, LabelAt(*t.x, i) * depth + l);
      const int32_t wanted = layers.negatives[k];
      if (node == 0) {
        for (int n = layers.positive ? -1 : 0; n < wanted; ++n) write(0, 0, 0);
        continue;
      }
      if (layers.positive) write(node, 1, 1);
      others.clear();
      for (int64_t p = layers.offsets[k]; p < layers.offsets[k + 1]; ++p)
        if (LabelAt(*t.layer, p) != node)
          others.push_back(LabelAt(*t.layer, p));
      if (static_cast<int64_t>(others.size()) < wanted)
        return InvalidArgument("layer %d has %d nodes beside %d; %d are wanted",
                               l, others.size(), node, wanted);
      for (int32_t n = 0; n < wanted; ++n) {
        const auto left = static_cast<double>(others.size()) - n;
        const auto pick =
            static_cast<size_t>(n + OpenUniform(numbers, drawn++) * left);
        std::swap(others[static_cast<size_t>(n)], others[pick]);
        write(others[static_cast<size_t>(n)], 0, 1);
      }
    }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindTdmSampler(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const TdmLayers layers, ReadTdm(context->op()));
  TdmTensors t;
  t.x = context->Input("X");
  t.travel = context->Input("Travel");
  t.layer = context->Input("Layer");
  t.out = context->Output("Out");
  t.labels = context->Output("Labels");
  t.mask = context->Output("Mask");
  const RandomSource source = RandomSourceOf(*context);
  return DispatchTypes<int32_t, int64_t>(
      t.out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext& run) {
          return SampleTree<T>(layers, t, source.Numbers(run));
        });
      });
}

}  // namespace

absl::Status RegisterTdmSampler(OpRegistry* registry) {
  OpDef op("tdm_sampler");
  op.Input("X").Input("Travel").Input("Layer").Output("Out");
  op.OptionalOutput("Labels").Output("Mask").Attr("output_positive", true);
  op.Attr("neg_samples_num_list", std::vector<int32_t>());
  op.Attr("layer_offset_lod", std::vector<int32_t>());
  op.Attr("seed", int32_t{0}).Attr("dtype", int32_t{2});
  op.Infer(InferTdmSampler).NoGrad().Reference(BindTdmSampler);
  return registry->Add(std::move(op));
}

}  // namespace pd
