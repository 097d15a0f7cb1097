// SPDX-License-Identifier: Apache-2.0
// Average precision of detected boxes (Pascal VOC), as PaddlePaddle's
// detection_map counts it: a class's detections, best first, each take the
// ground truth they overlap most, by more than the threshold: true where it is
// not taken yet, else false.
#ifndef PD_LIBCORE_OPS_METRIC_AVERAGE_PRECISION_H_
#define PD_LIBCORE_OPS_METRIC_AVERAGE_PRECISION_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace pd::average_precision {

struct Options {
  float threshold = 0.5f;
  bool difficult = true;  ///< difficult ones count
  bool eleven = false;    ///< best precision at 11 recalls, not the area
  bool clip = true;       ///< detections are cut off at 0 and 1
};

template <typename T>
struct Truth {
  T box[4];
  bool difficult = false;
  bool taken = false;
};

template <typename T>
struct Hit {
  T score;
  int32_t flag;
};

template <typename T>
struct Found {
  T score;
  T box[4];
};

template <typename T>
using ByClass = std::map<int64_t, std::vector<T>>;

template <typename T>
struct Tally {
  std::map<int64_t, int64_t> truths;
  ByClass<Hit<T>> hits, misses;

  void Count(int64_t label, T score, bool hit) {
    hits[label].push_back({score, hit ? 1 : 0});
    misses[label].push_back({score, hit ? 0 : 1});
  }
};

template <typename T>
T PlainOverlap(const T* a, const T* b) {
  if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return T(0);
  const T common = (std::min(a[2], b[2]) - std::max(a[0], b[0])) *
                   (std::min(a[3], b[3]) - std::max(a[1], b[1]));
  return common / ((a[2] - a[0]) * (a[3] - a[1]) +
                   (b[2] - b[0]) * (b[3] - b[1]) - common);
}

// One class of one image.
template <typename T>
void MatchClass(const Options& t, int64_t label, std::vector<Found<T>> found,
                std::vector<Truth<T>>* truths, Tally<T>* tally) {
  // In the order given where there is nothing to match, as in PaddlePaddle.
  if (!truths->empty())
    std::stable_sort(
        found.begin(), found.end(), [](const Found<T>& a, const Found<T>& b) {
          return static_cast<float>(a.score) > static_cast<float>(b.score);
        });
  for (Found<T>& one : found) {
    if (t.clip)
      for (T& side : one.box) side = std::max(std::min(side, T(1)), T(0));
    T best = T(-1);
    Truth<T>* match = nullptr;
    for (Truth<T>& truth : *truths) {
      const T overlap = PlainOverlap(one.box, truth.box);
      if (!(overlap > best)) continue;
      best = overlap;
      match = &truth;
    }
    if (match == nullptr || !(best > static_cast<T>(t.threshold))) {
      tally->Count(label, one.score, false);
    } else if (t.difficult || !match->difficult) {
      tally->Count(label, one.score, !match->taken);
      match->taken = true;
    }
  }
}

template <typename T>
void TallyImage(const Options& t, ByClass<Truth<T>> truths,
                const ByClass<Found<T>>& found, Tally<T>* tally) {
  for (const auto& own : truths) {
    const int64_t n = std::count_if(own.second.begin(), own.second.end(),
                                    [&t](const Truth<T>& truth) {
                                      return t.difficult || !truth.difficult;
                                    });
    if (n > 0) tally->truths[own.first] += n;
  }
  for (const auto& own : found)
    MatchClass(t, own.first, own.second, &truths[own.first], tally);
}

template <typename T>
std::vector<int64_t> RunningSums(std::vector<Hit<T>> hits) {
  std::stable_sort(
      hits.begin(), hits.end(), [](const Hit<T>& a, const Hit<T>& b) {
        return static_cast<float>(a.score) > static_cast<float>(b.score);
      });
  std::vector<int64_t> sums;
  int64_t sum = 0;
  for (const Hit<T>& hit : hits) sums.push_back(sum += hit.flag);
  return sums;
}

template <typename T>
T ElevenPoints(const std::vector<T>& precision, const std::vector<T>& recall) {
  T best[11] = {};
  auto start = static_cast<int64_t>(recall.size()) - 1;
  for (int j = 10; j >= 0; --j)
    for (int64_t i = start; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      if (static_cast<double>(recall[at]) < j / 10.0) {
        start = i;
        if (j > 0) best[j - 1] = best[j];
        break;
      }
      best[j] = std::max(best[j], precision[at]);
    }
  T sum = T(0);
  for (int j = 10; j >= 0; --j) sum += best[j] / 11;
  return sum;
}

template <typename T>
T Integral(const std::vector<T>& precision, const std::vector<T>& recall) {
  T area = T(0), before = T(0);
  for (size_t i = 0; i < recall.size(); ++i) {
    const T step = std::abs(recall[i] - before);
    if (step > T(1e-6)) area += precision[i] * step;
    before = recall[i];
  }
  return area;
}

/// The mean over the classes for which `skip(class, truths)` is false; `count`
/// is how many they are.
template <typename T, typename Skip>
T MeanPrecision(const Options& t, const Skip& skip, Tally<T>* tally,
                int64_t* count) {
  T sum = T(0);
  *count = 0;
  for (const auto& own : tally->truths) {
    if (skip(own.first, own.second)) continue;
    ++*count;
    if (tally->hits.count(own.first) == 0) continue;
    const auto hits = RunningSums(tally->hits[own.first]);
    const auto misses = RunningSums(tally->misses[own.first]);
    std::vector<T> precision, recall;
    for (size_t i = 0; i < std::min(hits.size(), misses.size()); ++i) {
      precision.push_back(static_cast<T>(hits[i]) /
                          static_cast<T>(hits[i] + misses[i]));
      recall.push_back(static_cast<T>(hits[i]) / static_cast<T>(own.second));
    }
    sum += t.eleven ? ElevenPoints(precision, recall)
                    : Integral(precision, recall);
  }
  return *count == 0 ? sum : sum / static_cast<T>(*count);
}

}  // namespace pd::average_precision

#endif  // PD_LIBCORE_OPS_METRIC_AVERAGE_PRECISION_H_
