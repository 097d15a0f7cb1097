// SPDX-License-Identifier: Apache-2.0
// How many rows are worth joining, by the times of the runs so far. On a CPU a
// larger batch may take more time for each row, where it leaves the caches.
#ifndef PD_LIBCORE_SERVE_BATCH_SIZES_H_
#define PD_LIBCORE_SERVE_BATCH_SIZES_H_

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace pd {
namespace serve {

class BatchSizes {
 public:
  /// The rows to join at the most with a request of `rows`: each doubling up to
  /// `max` is tried, and kept where it saves a twentieth of the time for each
  /// row. Any thread may call these.
  int64_t Most(const std::string& key, int64_t rows, int64_t max);
  void Note(const std::string& key, int64_t rows, double seconds);

 private:
  struct Size {
    int runs = 0;
    double row_seconds = 0;  // the least of late
  };
  struct Sizes {
    std::array<Size, 17> by_power;
    uint64_t asked = 0;
  };

  std::mutex mutex_;
  std::map<std::string, Sizes> keys_;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_BATCH_SIZES_H_
