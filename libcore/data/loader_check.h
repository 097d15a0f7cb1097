// SPDX-License-Identifier: Apache-2.0
// A loader's options against themselves and against the data set.
#ifndef PD_LIBCORE_DATA_LOADER_CHECK_H_
#define PD_LIBCORE_DATA_LOADER_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"
#include "libcore/data/loader.h"

namespace pd {

/// InvalidArgument on numbers out of range.
absl::Status CheckLoaderOptions(const LoaderOptions& options);

/// The padding of a field; null where it has none of its own.
const FieldPadding* PaddingOf(const std::string& field,
                              const std::vector<FieldPadding>& paddings);

/// Every padding has its field, and the name of a field's lengths is free.
absl::Status CheckPaddings(const std::vector<FieldSpec>& specs,
                           const std::vector<FieldPadding>& paddings);

/// The options with the sampler's part filled in, which fits the data set.
absl::StatusOr<LoaderOptions> CompleteOptions(const Dataset& dataset,
                                              LoaderOptions options);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_LOADER_CHECK_H_
