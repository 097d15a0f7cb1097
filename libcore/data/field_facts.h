// SPDX-License-Identifier: Apache-2.0
// Facts about a field that every record must be read for.
#ifndef PD_LIBCORE_DATA_FIELD_FACTS_H_
#define PD_LIBCORE_DATA_FIELD_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"

namespace pd {

/// Mean and standard deviation (of the population: divided by N) of each value
/// of a record, or of all values together. A standard deviation of 0 is given
/// as 1, as scikit-learn's StandardScaler does.
struct FieldScale {
  std::vector<double> mean, std;
};

/// The scale of a float64 field. Where records differ in length, `together`
/// must be. InvalidArgument for other fields.
absl::StatusOr<FieldScale> MeasureScale(const Dataset& dataset, size_t field,
                                        bool together);

/// One more than the largest number of an integer field or mask; the number 255
/// of a mask, "nobody knows", does not count. InvalidArgument for other fields,
/// OutOfRange with the record for numbers below 0.
absl::StatusOr<int64_t> CountClasses(const Dataset& dataset, size_t field);

/// The labels that a look at a field found.
struct LabelRange {
  int64_t largest = -1, largest_record = 0;  ///< -1: there are none
  int64_t lowest = 0, lowest_record = 0;     ///< 0: none is below it
  bool complete = false;  ///< every record of the data set was read
};

/// Looks at the numbers of an integer field or mask, those of `ignored` left
/// out: at records all over the data set, as many as make up 64 million
/// numbers, and where pictures have to be decoded 16 million pixels. Records
/// that cannot be read are left out. Nothing for other fields.
std::optional<LabelRange> LookAtLabels(const Dataset& dataset, size_t field,
                                       int64_t ignored);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_FIELD_FACTS_H_
