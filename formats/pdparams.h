// SPDX-License-Identifier: Apache-2.0
// `.pdparams` and `.pdopt`: the state dict of a network or an optimizer, a
// pickled dict of arrays with a few entries of other kinds.
#ifndef PD_FORMATS_PDPARAMS_H_
#define PD_FORMATS_PDPARAMS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/pickle.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

inline constexpr absl::string_view kStructuredNamesKey =
    "StructuredToParameterName@@";
inline constexpr absl::string_view kBigParamsKey = "UnpackBigParamInfor@@";
inline constexpr absl::string_view kLRSchedulerKey = "LR_Scheduler";

struct StateDict {
  NamedArrays tensors;
  /// Names in file order; when writing, tensors that it lacks follow it in
  /// name order.
  std::vector<std::string> order;
  /// Structured name ("conv.weight") -> parameter name ("conv2d_0.w_0"), in
  /// file order.
  std::vector<std::pair<std::string, std::string>> parameter_names;
  /// Whether the file has the table above, be it empty: those of dygraph do.
  bool has_parameter_names = false;
  /// Every other entry, for example "LR_Scheduler" -> {last_epoch, last_lr}.
  PickleDict others;
};

/// The state dict in the bytes of a file; slices of big parameters are joined.
/// Errors of ParsePickle; InvalidArgument when it is no dict of names or its
/// tables do not fit its tensors.
absl::StatusOr<StateDict> ParseStateDict(
    const FileBytes& file, Alignment alignment = Alignment::kNatural);

/// The same of a pickle that has been read.
absl::StatusOr<StateDict> StateDictOf(PickleValue root);

/// Puts the big parameters of a pickled dict together again where it says that
/// they are in slices. InvalidArgument when its table does not fit its arrays.
absl::Status JoinBigParams(PickleDict* dict);

/// The reverse, for arrays of over `slice_bytes`, as PaddlePaddle does for
/// protocols below 4.
void SplitBigParams(size_t slice_bytes, PickleDict* dict);

/// PaddlePaddle's limit on the bytes of a slice.
inline constexpr size_t kSliceBytes = (size_t{1} << 30) - 1;

/// ParseStateDict on a file; messages name the path.
absl::StatusOr<StateDict> ReadStateDict(const std::string& path);

/// Writes what paddle.save writes; `protocol` is 2, 3 or 4. Protocols below 4
/// slice arrays of over `slice_bytes`, as PaddlePaddle does over 2^30 - 1.
absl::Status WriteStateDict(const std::string& path, const StateDict& state,
                            int protocol = 4, size_t slice_bytes = kSliceBytes);

}  // namespace pd

#endif  // PD_FORMATS_PDPARAMS_H_
