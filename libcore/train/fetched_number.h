// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_TRAIN_FETCHED_NUMBER_H_
#define PD_LIBCORE_TRAIN_FETCHED_NUMBER_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/base/error.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// The float32 number that the fetched variable `name` holds. InvalidArgument
/// where a saved program declares one and makes something else.
inline absl::StatusOr<float> FetchedNumber(const std::string& name,
                                           const Tensor& fetched) {
  if (fetched.dtype() == DType::kFloat32 && fetched.size() == 1 &&
      fetched.raw() != nullptr)
    return *fetched.data<float>();
  return InvalidArgument("variable '%s' is %s%s; expected one float32 number",
                         name, Name(fetched.dtype()),
                         ToString(fetched.shape()));
}

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_FETCHED_NUMBER_H_
