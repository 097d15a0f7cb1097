// SPDX-License-Identifier: Apache-2.0
#include "libcore/check/nan_finding.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/half.h"

namespace pd {
namespace {

enum class Kind { kNan, kInf, kNumber };

Kind KindOf(double x) {
  return std::isnan(x) ? Kind::kNan
                       : (std::isinf(x) ? Kind::kInf : Kind::kNumber);
}

std::string Text(double x) {
  if (std::isnan(x)) return "nan";  // without the sign, which means nothing
  return absl::StrFormat("%f", x);
}

// Calls `body(kind, index, text)` for elements in order until it says false.
template <typename T, typename Body>
void Walk(const T* values, int64_t n, const Body& body) {
  for (int64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(static_cast<void*>(&value), values + i, sizeof(T));
    if (!body(KindOf(static_cast<double>(value)), i,
              [&] { return Text(static_cast<double>(value)); }))
      return;
  }
}

template <typename T, typename Body>
void WalkComplex(const std::complex<T>* values, int64_t n, const Body& body) {
  for (int64_t i = 0; i < n; ++i) {
    T part[2];
    std::memcpy(part, values + i, sizeof(part));
    const Kind re = KindOf(static_cast<double>(part[0]));
    const Kind im = KindOf(static_cast<double>(part[1]));
    if (!body(std::min(re, im), i, [&] {
          return absl::StrCat("(", Text(static_cast<double>(part[0])), ",",
                              Text(static_cast<double>(part[1])), ")");
        }))
      return;
  }
}

template <typename Body>
void ForEachNumber(const Array& array, const Body& body) {
  const int64_t n = array.size();
  switch (array.dtype) {
    case DType::kFloat16:
      return Walk(array.data<Float16>(), n, body);
    case DType::kBFloat16:
      return Walk(array.data<BFloat16>(), n, body);
    case DType::kFloat32:
      return Walk(array.data<float>(), n, body);
    case DType::kFloat64:
      return Walk(array.data<double>(), n, body);
    case DType::kComplex64:
      return WalkComplex(array.data<std::complex<float>>(), n, body);
    case DType::kComplex128:
      return WalkComplex(array.data<std::complex<double>>(), n, body);
    default:
      return;
  }
}

}  // namespace

int64_t FirstBad(const Array& array) {
  int64_t first = -1;
  ForEachNumber(array, [&](Kind kind, int64_t i, const auto&) {
    if (kind != Kind::kNumber) first = i;
    return first < 0;
  });
  return first;
}

std::vector<ValueSample> SamplesOf(const Array& array, int most) {
  std::vector<ValueSample> samples;
  int left[3] = {most, most, most};
  ForEachNumber(array, [&](Kind kind, int64_t i, const auto& text) {
    if (left[static_cast<int>(kind)]-- > 0) samples.push_back({i, text()});
    return left[0] > 0 || left[1] > 0 || left[2] > 0;
  });
  return samples;
}

std::map<int64_t, BlockSample> DeviceBlocksOf(const Array& array) {
  constexpr int64_t kThreads = 1024, kMostBlocks = 128;
  const int64_t blocks =
      std::min((array.size() + kThreads - 1) / kThreads, kMostBlocks);
  std::map<int64_t, BlockSample> found;
  ForEachNumber(array, [&](Kind kind, int64_t i, const auto& text) {
    BlockSample& block = found[i / kThreads % blocks];
    int64_t& count = kind == Kind::kNan   ? block.nan
                     : kind == Kind::kInf ? block.inf
                                          : block.finite;
    if (++count <= 3) block.samples.push_back({i, text()});
    return true;
  });
  for (auto it = found.begin(); it != found.end();)
    it = it->second.nan + it->second.inf == 0 ? found.erase(it) : std::next(it);
  return found;
}

InspectedValue InspectValue(const std::string& name, const Array& array) {
  InspectedValue look;
  look.name = name;
  look.dtype = array.dtype;
  look.shape = array.shape;
  look.stats = StatsOf(array);
  if (look.stats.nan + look.stats.inf > 0) look.first_bad = FirstBad(array);
  return look;
}

bool NanFinding::clean_inputs() const {
  return std::all_of(
      inputs.begin(), inputs.end(),
      [](const InspectedValue& look) { return look.first_bad < 0; });
}

std::string IndexText(int64_t index, const Shape& shape) {
  Shape at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = index % std::max<int64_t>(shape[d], 1);
    index /= std::max<int64_t>(shape[d], 1);
  }
  return ToString(at);
}

}  // namespace pd
