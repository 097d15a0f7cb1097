// SPDX-License-Identifier: Apache-2.0
// Greedy non-maximum suppression, which several detection ops build on: boxes
// of falling score are kept unless they overlap one that is kept already.
#ifndef PD_LIBCORE_OPS_DETECTION_NMS_H_
#define PD_LIBCORE_OPS_DETECTION_NMS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/ops/detection/boxes.h"

namespace pd {

/// A bool of multiclass_nms3 that only imported ONNX models carry: boxes
/// without area overlap nothing; in PaddlePaddle two that touch suppress each
/// other, since their overlap is 0 / 0.
inline constexpr char kNmsEmptyBoxes[] = "empty_boxes_overlap_nothing";

/// A box's score and its place.
template <typename T>
struct ScoredBox {
  T score;
  int64_t at;
};

/// By falling score; equal ones keep their order. PaddlePaddle compares float32
/// there, whatever the scores are.
template <typename T>
void SortByScore(std::vector<ScoredBox<T>>* boxes) {
  std::stable_sort(boxes->begin(), boxes->end(),
                   [](const ScoredBox<T>& a, const ScoredBox<T>& b) {
                     return static_cast<float>(a.score) >
                            static_cast<float>(b.score);
                   });
}

/// The boxes that score above `threshold`, best first, `most` of them unless
/// that is negative.
template <typename T>
std::vector<ScoredBox<T>> BestBoxes(const T* scores, int64_t n, T threshold,
                                    int64_t most) {
  std::vector<ScoredBox<T>> boxes;
  for (int64_t i = 0; i < n; ++i)
    if (scores[i] > threshold) boxes.push_back({scores[i], i});
  SortByScore(&boxes);
  if (most >= 0 && most < static_cast<int64_t>(boxes.size()))
    boxes.resize(static_cast<size_t>(most));
  return boxes;
}

/// A polygon's corners.
template <typename T>
using Polygon = std::vector<std::array<T, 2>>;

/// Twice the signed area of a triangle.
template <typename T>
T Turn(const std::array<T, 2>& a, const std::array<T, 2>& b,
       const std::array<T, 2>& c) {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

template <typename T>
T SignedArea(const Polygon<T>& p) {
  T twice = T(0);
  for (size_t i = 0; i < p.size(); ++i) {
    const auto& next = p[(i + 1) % p.size()];
    twice += p[i][0] * next[1] - p[i][1] * next[0];
  }
  return twice / 2;
}

/// Area that two counter-clockwise triangles share (Sutherland and Hodgman).
template <typename T>
T SharedArea(Polygon<T> part, const Polygon<T>& clip) {
  for (size_t i = 0; i < clip.size() && !part.empty(); ++i) {
    const auto& a = clip[i];
    const auto& b = clip[(i + 1) % clip.size()];
    Polygon<T> kept;
    for (size_t j = 0; j < part.size(); ++j) {
      const auto& p = part[j];
      const auto& q = part[(j + 1) % part.size()];
      const T side_p = Turn(a, b, p), side_q = Turn(a, b, q);
      if (side_p >= 0) kept.push_back(p);
      if ((side_p > 0 && side_q < 0) || (side_p < 0 && side_q > 0)) {
        const T t = side_p / (side_p - side_q);
        kept.push_back({p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])});
      }
    }
    part = std::move(kept);
  }
  return std::fabs(SignedArea(part));
}

/// Intersection over union of two simple polygons of `size` / 2 corners
/// [x, y]. Each is a sum of signed triangles at its first corner; so is what
/// they share.
template <typename T>
T PolygonOverlap(const T* a, const T* b, int64_t size) {
  const auto triangles = [size](const T* corners) {
    std::vector<std::pair<Polygon<T>, int>> parts;
    const std::array<T, 2> first = {corners[0], corners[1]};
    for (int64_t i = 2; i + 3 < size; i += 2) {
      Polygon<T> part = {first,
                         {corners[i], corners[i + 1]},
                         {corners[i + 2], corners[i + 3]}};
      const T turn = Turn(part[0], part[1], part[2]);
      if (turn < 0) std::swap(part[1], part[2]);
      if (turn != 0) parts.emplace_back(std::move(part), turn > 0 ? 1 : -1);
    }
    return parts;
  };
  const auto area = [](const std::vector<std::pair<Polygon<T>, int>>& parts) {
    T sum = T(0);
    for (const auto& part : parts)
      sum += static_cast<T>(part.second) * SignedArea(part.first);
    return std::fabs(sum);
  };
  const auto of_a = triangles(a), of_b = triangles(b);
  T common = T(0);
  for (const auto& p : of_a)
    for (const auto& q : of_b)
      common +=
          static_cast<T>(p.second * q.second) * SharedArea(p.first, q.first);
  common = std::fabs(common);
  const T area_a = area(of_a), area_b = area(of_b);
  if (area_a == 0 || area_b == 0 || common == 0) return T(0);
  return common / (area_a + area_b - common);
}

/// Of boxes, or of polygons where a row is longer than 4.
template <typename T>
T RowOverlap(const T* a, const T* b, int64_t size, bool normalized) {
  return size == 4 ? BoxOverlap(a, b, normalized) : PolygonOverlap(a, b, size);
}

/// Rows kept of the `candidates` (best first); `row(at)` is a box. While the
/// threshold is above 1/2, each box that is kept multiplies it by eta < 1. Two
/// boxes without area that touch are both kept only with `keeps_empty`.
template <typename T, typename Row>
std::vector<int64_t> Suppress(const std::vector<ScoredBox<T>>& candidates,
                              int64_t size, T threshold, T eta, bool normalized,
                              const Row& row, bool keeps_empty = false) {
  std::vector<int64_t> kept;
  for (const ScoredBox<T>& candidate : candidates) {
    const T* box = row(candidate.at);
    bool keep = true;
    for (size_t k = 0; k < kept.size() && keep; ++k) {
      const T overlap = RowOverlap(box, row(kept[k]), size, normalized);
      keep = overlap <= threshold || (keeps_empty && std::isnan(overlap));
    }
    if (!keep) continue;
    kept.push_back(candidate.at);
    if (eta < 1 && threshold > T(0.5)) threshold *= eta;
  }
  return kept;
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DETECTION_NMS_H_
