// SPDX-License-Identifier: Apache-2.0
// Average precision by the rules of COCO (the program pycocotools' COCOeval
// with iouType "bbox" and all areas): ten overlaps, 101 recalls, crowds.
#ifndef PD_LIBCORE_TRAIN_METRICS_COCO_H_
#define PD_LIBCORE_TRAIN_METRICS_COCO_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "libcore/ops/metric/average_precision.h"

namespace pd {

/// NaN where no class has a box to find.
struct CocoResults {
  double mean, at_50, at_75, recall;
};

class CocoTally {
 public:
  static constexpr size_t kOverlaps = 10;  // 0.5, 0.55, ..., 0.95

  explicit CocoTally(int64_t max_detections) : most_(max_detections) {}

  /// One image. Difficult truths are crowds.
  void AddImage(
      const average_precision::ByClass<average_precision::Truth<double>>&
          truths,
      const average_precision::ByClass<average_precision::Found<double>>&
          found);
  /// The mean over the classes but `skipped`, which may be no class.
  CocoResults Results(const int64_t* skipped) const;

 private:
  struct Detection {
    double score;
    std::array<bool, kOverlaps> right, ignored;
  };
  struct Class {
    int64_t truths = 0;
    std::vector<Detection> detections;
  };
  using Means = std::array<double, kOverlaps>;
  static void Accumulate(const Class& one, Means* precision, Means* recall);

  int64_t most_;
  std::map<int64_t, Class> classes_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_COCO_H_
