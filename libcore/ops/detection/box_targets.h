// SPDX-License-Identifier: Apache-2.0
// Code of the ops that assign ground truth boxes to anchors or proposals:
// overlaps and regression targets. Coordinates name pixels.
#ifndef PD_LIBCORE_OPS_DETECTION_BOX_TARGETS_H_
#define PD_LIBCORE_OPS_DETECTION_BOX_TARGETS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/base/rng.h"

namespace pd {

/// Keeps `most` of the elements: by reservoir sampling, or the first ones where
/// `random` is null.
template <typename T>
void KeepAtMost(int64_t most, RandomStream* random, std::vector<T>* elements) {
  const auto n = static_cast<int64_t>(elements->size());
  most = std::max<int64_t>(most, 0);
  if (n <= most) return;
  if (random != nullptr)
    for (int64_t i = most; i < n; ++i) {
      const auto at =
          static_cast<int64_t>(random->Below(static_cast<uint64_t>(i) + 1));
      if (at < most)
        std::swap((*elements)[static_cast<size_t>(at)],
                  (*elements)[static_cast<size_t>(i)]);
    }
  elements->resize(static_cast<size_t>(most));
}

/// Intersection over union; 0 where nothing is shared. A box that is the wrong
/// way round counts with its product of sides.
template <typename T>
T PixelOverlap(const T* a, const T* b) {
  const auto extent = [](const T* box, int k) {
    return box[k + 2] - box[k] + 1;
  };
  const auto shared = [&](int k) {
    return std::max(std::min(a[k + 2], b[k + 2]) - std::max(a[k], b[k]) + 1,
                    T(0));
  };
  const T common = shared(0) * shared(1);
  if (common == T(0)) return T(0);
  return common /
         (extent(a, 0) * extent(a, 1) + extent(b, 0) * extent(b, 1) - common);
}

/// How `box` is to be moved to become `truth`, over `weights` when not null.
template <typename T>
void BoxToDelta(const T* box, const T* truth, const float* weights, T* delta) {
  for (int k = 0; k < 2; ++k) {
    const T from = box[k + 2] - box[k] + 1;
    const T to = truth[k + 2] - truth[k] + 1;
    delta[k] = (truth[k] + T(0.5) * to - (box[k] + T(0.5) * from)) / from;
    delta[k + 2] = std::log(to / from);
  }
  if (weights == nullptr) return;
  for (int k = 0; k < 4; ++k) delta[k] /= static_cast<T>(weights[k]);
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DETECTION_BOX_TARGETS_H_
