// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/metric_results.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace {

bool LargerIsBetter(job::Metric::KindCase kind) {
  switch (kind) {
    case job::Metric::kMae:
    case job::Metric::kMse:
    case job::Metric::kRmse:
    case job::Metric::kPerplexity:
    case job::Metric::kBitsPerCharacter:
    case job::Metric::kEditDistance:
    case job::Metric::kCer:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string NameOf(const job::Metric& metric) {
  if (metric.has_name()) return metric.name();
  if (metric.has_accuracy()) return "acc";
  const auto* descriptor = metric.GetDescriptor();
  const auto* kind = metric.GetReflection()->GetOneofFieldDescriptor(
      metric, descriptor->FindOneofByName("kind"));
  return kind == nullptr ? "" : kind->name();
}

std::vector<ResultInfo> ResultsOf(const job::Metric& metric) {
  const std::string name = NameOf(metric);
  const bool larger = LargerIsBetter(metric.kind_case());
  std::vector<ResultInfo> results = {{name, larger}};
  const auto add = [&](const auto& suffix) {
    results.push_back({absl::StrCat(name, "_", suffix), larger});
  };
  if (metric.has_confusion_matrix()) {
    results.clear();
  } else if (metric.accuracy().topk_size() > 1 ||
             (metric.accuracy().topk_size() == 1 &&
              metric.accuracy().topk(0) != 1)) {
    results.clear();
    for (int k : metric.accuracy().topk()) add(absl::StrCat("top", k));
  } else if (metric.has_edit_distance()) {
    add("instance_error");
  } else if (metric.has_chunk_f1()) {
    add("precision");
    add("recall");
  } else if (metric.mean_average_precision().ap_type() ==
             job::MeanAveragePrecision::coco) {
    for (const char* suffix : {"50", "75", "recall"}) add(suffix);
  } else if (metric.mean_iou().per_class()) {
    for (int c = 0; c < metric.mean_iou().num_classes(); ++c) add(c);
  }
  return results;
}

std::vector<ResultInfo> ResultsOf(const job::Job& job) {
  std::vector<ResultInfo> results;
  if (job.loss_size() > 0 || job.has_program())
    results.push_back({"loss", false});
  for (const job::Metric& metric : job.metric())
    for (ResultInfo& result : ResultsOf(metric))
      results.push_back(std::move(result));
  if (job.data().eval().has_environment())
    results.push_back({kEpisodeReturn, true});
  return results;
}

std::string NamesOf(const std::vector<ResultInfo>& results) {
  return absl::StrJoin(results, ", ",
                       [](std::string* out, const ResultInfo& result) {
                         out->append(result.name);
                       });
}

const ResultInfo* FindResult(const std::vector<ResultInfo>& results,
                             const std::string& name) {
  for (const ResultInfo& result : results)
    if (result.name == name) return &result;
  return nullptr;
}

}  // namespace pd
