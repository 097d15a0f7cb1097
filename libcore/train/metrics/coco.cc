// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/metrics/coco.h"

#include <algorithm>
#include <limits>

namespace pd {
namespace {

namespace ap = average_precision;

constexpr size_t kRecalls = 101;
// As NumPy divides the ranges, to the last bit: a recall may be one of them.
constexpr double kStep = (0.95 - 0.5) / 9;
constexpr double kRecallStep = 1.0 / 100;

double AreaOf(const double* box) {
  return (box[2] - box[0]) * (box[3] - box[1]);
}

// A crowd covers what lies in it, so only the detection's area counts.
double CocoOverlap(const ap::Found<double>& found,
                   const ap::Truth<double>& truth) {
  const double width = std::min(found.box[2], truth.box[2]) -
                       std::max(found.box[0], truth.box[0]);
  const double height = std::min(found.box[3], truth.box[3]) -
                        std::max(found.box[1], truth.box[1]);
  if (width <= 0 || height <= 0) return 0;
  const double common = width * height, area = AreaOf(found.box);
  return common / (truth.difficult ? area : area + AreaOf(truth.box) - common);
}

// The truth that a detection takes: the one it overlaps most, by `least` at
// least, that is free; a crowd only where there is no other. -1 for none.
// Crowds stand behind the others.
int64_t Match(const std::vector<ap::Truth<double>>& truths,
              const std::vector<double>& overlaps,
              const std::vector<bool>& taken, double least) {
  int64_t match = -1;
  for (size_t g = 0; g < truths.size(); ++g) {
    if (taken[g] && !truths[g].difficult) continue;
    if (match >= 0 && !truths[static_cast<size_t>(match)].difficult &&
        truths[g].difficult)
      break;
    if (overlaps[g] < least) continue;
    least = overlaps[g];
    match = static_cast<int64_t>(g);
  }
  return match;
}

}  // namespace

void CocoTally::AddImage(const ap::ByClass<ap::Truth<double>>& truths,
                         const ap::ByClass<ap::Found<double>>& found) {
  for (const auto& [label, own] : truths)
    for (const auto& truth : own)
      classes_[label].truths += truth.difficult ? 0 : 1;
  for (const auto& [label, all] : found) {
    std::vector<ap::Truth<double>> wanted;
    const auto own = truths.find(label);
    if (own != truths.end()) wanted = own->second;
    std::stable_partition(wanted.begin(), wanted.end(),
                          [](const auto& truth) { return !truth.difficult; });
    std::vector<ap::Found<double>> best = all;
    std::stable_sort(
        best.begin(), best.end(),
        [](const auto& a, const auto& b) { return a.score > b.score; });
    if (static_cast<int64_t>(best.size()) > most_)
      best.resize(static_cast<size_t>(most_));
    std::vector<std::vector<bool>> taken(
        kOverlaps, std::vector<bool>(wanted.size(), false));
    for (const ap::Found<double>& one : best) {
      std::vector<double> overlaps;
      for (const auto& truth : wanted)
        overlaps.push_back(CocoOverlap(one, truth));
      Detection detection{one.score, {}, {}};
      for (size_t t = 0; t < kOverlaps; ++t) {
        const double least = 0.5 + kStep * static_cast<double>(t);
        const int64_t match = Match(wanted, overlaps, taken[t], least);
        if (match < 0) continue;
        const auto at = static_cast<size_t>(match);
        taken[t][at] = true;
        detection.ignored[t] = wanted[at].difficult;
        detection.right[t] = !wanted[at].difficult;
      }
      classes_[label].detections.push_back(detection);
    }
  }
}

void CocoTally::Accumulate(const Class& one, Means* precision, Means* recall) {
  std::vector<const Detection*> order;
  for (const Detection& detection : one.detections) order.push_back(&detection);
  std::stable_sort(order.begin(), order.end(),
                   [](const Detection* a, const Detection* b) {
                     return a->score > b->score;
                   });
  for (size_t t = 0; t < kOverlaps; ++t) {
    std::vector<double> precisions, recalls;
    int64_t right = 0, counted = 0;
    for (const Detection* detection : order) {
      if (detection->ignored[t]) continue;
      right += detection->right[t] ? 1 : 0;
      ++counted;
      precisions.push_back(static_cast<double>(right) /
                           static_cast<double>(counted));
      recalls.push_back(static_cast<double>(right) /
                        static_cast<double>(one.truths));
    }
    for (size_t i = precisions.size(); i-- > 1;)
      precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
    double sum = 0;
    for (size_t r = 0; r < kRecalls; ++r) {
      const double least = kRecallStep * static_cast<double>(r);
      const auto at = std::lower_bound(recalls.begin(), recalls.end(), least) -
                      recalls.begin();
      if (at < static_cast<int64_t>(precisions.size()))
        sum += precisions[static_cast<size_t>(at)];
    }
    (*precision)[t] += sum / kRecalls;
    (*recall)[t] += recalls.empty() ? 0 : recalls.back();
  }
}

CocoResults CocoTally::Results(const int64_t* skipped) const {
  Means precision{}, recall{};
  double classes = 0;
  for (const auto& [label, one] : classes_) {
    if (one.truths == 0 || (skipped != nullptr && label == *skipped)) continue;
    Accumulate(one, &precision, &recall);
    ++classes;
  }
  if (classes == 0) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan, nan};
  }
  CocoResults results{0, precision[0] / classes, precision[5] / classes, 0};
  for (size_t t = 0; t < kOverlaps; ++t) {
    results.mean += precision[t] / classes / kOverlaps;
    results.recall += recall[t] / classes / kOverlaps;
  }
  return results;
}

}  // namespace pd
