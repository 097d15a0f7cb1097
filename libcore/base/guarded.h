// SPDX-License-Identifier: Apache-2.0
// Calls to an operator's inference, bind function and step: exceptions of the
// standard library's containers, whose sizes follow from a program's numbers,
// become a Status.
#ifndef PD_LIBCORE_BASE_GUARDED_H_
#define PD_LIBCORE_BASE_GUARDED_H_

#include <new>
#include <stdexcept>

#include "libcore/base/error.h"

namespace pd {

/// The result of `work`, a Status or StatusOr; ResourceExhausted where memory
/// runs out. It costs nothing where nothing is thrown.
template <typename Work>
auto Guarded(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("no memory is left for what it computes with");
  } catch (const std::length_error&) {
    return ResourceExhausted(
        "what it computes with would be larger than any memory");
  }
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_GUARDED_H_
