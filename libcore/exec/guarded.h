// SPDX-License-Identifier: Apache-2.0
// Where the executor calls implementations: what they throw becomes a Status
// there. Theirs are the containers of the standard library, whose sizes follow
// from a program's numbers.
#ifndef PD_LIBCORE_EXEC_GUARDED_H_
#define PD_LIBCORE_EXEC_GUARDED_H_

#include <new>
#include <stdexcept>

#include "libcore/base/error.h"

namespace pd {

/// What `work` returns, a Status or StatusOr; ResourceExhausted where memory
/// ends. It costs nothing where nothing is thrown.
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

#endif  // PD_LIBCORE_EXEC_GUARDED_H_
