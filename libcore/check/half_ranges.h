// SPDX-License-Identifier: Apache-2.0
// Will these values survive half precision? Counts what conversion to float16
// and bfloat16 would make of each: infinite, zero, or so small that digits go.
#ifndef PD_LIBCORE_CHECK_HALF_RANGES_H_
#define PD_LIBCORE_CHECK_HALF_RANGES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libcore/ir/array.h"

namespace pd {

/// Of the finite elements that were seen.
struct HalfRange {
  int64_t finite = 0;
  double smallest = 0;  ///< magnitude other than 0; 0 when there is none
  double largest = 0;   ///< magnitude
  // Elements that become infinite, that become 0 though they are not, and that
  // become denormal, which costs digits.
  int64_t fp16_over = 0, fp16_under = 0, fp16_denormal = 0;
  int64_t bf16_over = 0, bf16_under = 0, bf16_denormal = 0;

  void Add(const Array& array);
};

/// By name, over everything that was shown.
class HalfRanges {
 public:
  /// Values of types other than float32 and float64 are left out: halves have
  /// that range already.
  void Add(const std::string& name, const std::string& what,
           const Array& array);
  struct Entry {
    std::string name;
    std::string what;  ///< "parameter", an op type, a file
    HalfRange range;
  };
  /// In the order in which names came.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, size_t> places_;
};

}  // namespace pd

#endif  // PD_LIBCORE_CHECK_HALF_RANGES_H_
