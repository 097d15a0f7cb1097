// SPDX-License-Identifier: Apache-2.0
// Sampled classes for large classifiers (Partial FC, An et al. 2020), for one
// process. SampledLocalClassCenter: the classes in Label in ascending order,
// then others, drawn uniformly until there are num_samples. RemappedLabel: each
// label's place among them. With fix_seed the draws are those of attr 'seed' in
// every step. No gradient.
#include <map>
#include <set>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Classes that are not in `taken`, until there are `wanted`, appended to
// `classes`. Rejection while classes abound, else a shuffle of what is left.
void Draw(int64_t known, size_t wanted, std::set<int64_t>* taken,
          RandomStream* random, std::vector<int64_t>* classes) {
  const auto take = [&](int64_t c) {
    if (taken->insert(c).second) classes->push_back(c);
  };
  if (wanted <= static_cast<size_t>(known) / 2) {
    while (classes->size() < wanted)
      take(static_cast<int64_t>(random->Below(static_cast<uint64_t>(known))));
    return;
  }
  std::vector<int64_t> left;
  for (int64_t c = 0; c < known; ++c)
    if (taken->count(c) == 0) left.push_back(c);
  while (classes->size() < wanted && !left.empty()) {
    const auto at = static_cast<size_t>(random->Below(left.size()));
    take(left[at]);
    left[at] = left.back();
    left.pop_back();
  }
}

absl::StatusOr<Step> BindClassCenterSample(BindContext* context) {
  Tensor* label = context->Input("Label");
  Tensor* remapped = context->Output("RemappedLabel");
  Tensor* centers = context->Output("SampledLocalClassCenter");
  const int64_t known = context->Attr<int32_t>("num_classes");
  const int64_t wanted = context->Attr<int32_t>("num_samples");
  if (known < 1 || wanted < 1 || wanted > known)
    return InvalidArgument(
        "attrs 'num_classes' and 'num_samples' are %d and %d; expected 1 or "
        "more, and not more samples than classes",
        known, wanted);
  if (context->Attr<int32_t>("nranks") != 1)
    return Unimplemented("attr 'nranks' is %d; only one process is supported",
                         context->Attr<int32_t>("nranks"));
  const bool fixed = context->Attr<bool>("fix_seed");
  const auto seed = static_cast<uint32_t>(context->Attr<int32_t>("seed"));
  const uint64_t stream =
      StreamOf(context->op().Out("SampledLocalClassCenter"));
  return DispatchTypes<int32_t, int64_t>(
      label->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext& run) -> absl::Status {
          // Class 0 as `ignored`: none is.
          PD_RETURN_IF_ERROR(CheckLabels("Label", *label, known, 0));
          const T* labels = label->data<T>();
          std::set<int64_t> taken(labels, labels + label->size());
          std::vector<int64_t> classes(taken.begin(), taken.end());
          std::map<int64_t, T> place;
          for (const int64_t c : classes)
            place.emplace(c, static_cast<T>(place.size()));
          RandomStream random(
              fixed ? seed : run.seed,
              fixed ? stream : stream + run.step * 0x9E3779B97F4A7C15ull);
          Draw(known, static_cast<size_t>(wanted), &taken, &random, &classes);
          PD_RETURN_IF_ERROR(remapped->Resize(label->dtype(), label->shape()));
          PD_RETURN_IF_ERROR(centers->Resize(
              label->dtype(), {static_cast<int64_t>(classes.size())}));
          for (int64_t i = 0; i < label->size(); ++i)
            remapped->data<T>()[i] = place.at(labels[i]);
          for (size_t i = 0; i < classes.size(); ++i)
            centers->data<T>()[i] = static_cast<T>(classes[i]);
          return absl::OkStatus();
        });
      });
}

absl::Status InferClassCenterSample(InferContext* context) {
  const TensorMeta& label = context->Input("Label");
  context->SetOutput("RemappedLabel", label.shape, label.dtype);
  context->SetOutput("SampledLocalClassCenter", {-1}, label.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterClassCenterSample(OpRegistry* registry) {
  OpDef op("class_center_sample");
  op.Input("Label").Output("RemappedLabel").Output("SampledLocalClassCenter");
  op.RequiredAttr("num_classes", AttrType::kInt);
  op.RequiredAttr("num_samples", AttrType::kInt);
  op.Attr("nranks", int32_t{1}).Attr("fix_seed", false);
  op.Attr("seed", int32_t{0}).Infer(InferClassCenterSample).ShapeFromData();
  op.NoGrad().Reference(BindClassCenterSample);
  return registry->Add(std::move(op));
}

}  // namespace pd
