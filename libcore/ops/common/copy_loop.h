// SPDX-License-Identifier: Apache-2.0
// Moving elements whatever their type: only their size counts.
#ifndef PD_LIBCORE_OPS_COMMON_COPY_LOOP_H_
#define PD_LIBCORE_OPS_COMMON_COPY_LOOP_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/common/strided_loop.h"

namespace pd {

/// An element of 16 bytes.
struct Bytes16 {
  uint64_t low, high;
};

/// Calls `body(TypeTag<T>{})` with an integer type of `dtype`'s size.
template <typename Body>
auto DispatchBytes(DType dtype, const Body& body) {
  switch (SizeOf(dtype)) {
    case 1:
      return body(TypeTag<uint8_t>{});
    case 2:
      return body(TypeTag<uint16_t>{});
    case 4:
      return body(TypeTag<uint32_t>{});
    case 8:
      return body(TypeTag<uint64_t>{});
    default:
      return body(TypeTag<Bytes16>{});
  }
}

/// Copies the elements of a loop from tensor 0 to tensor 1 of it.
template <typename T>
void CopyLoop(const StridedLoop<2>& loop, const T* from, T* to) {
  const int64_t in = loop.row_strides()[0], out = loop.row_strides()[1];
  ParallelFor(loop.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    loop.ForParts(begin, end, [&](const auto& at, int64_t n) {
      const T* source = from + at[0];
      T* target = to + at[1];
      if (in == 1 && out == 1) {
        std::copy(source, source + n, target);
      } else if (in == 0 && out == 1) {
        std::fill(target, target + n, source[0]);
      } else {
        for (int64_t j = 0; j < n; ++j) target[j * out] = source[j * in];
      }
    });
  });
}

/// The step that runs CopyLoop.
inline Step CopyStep(const StridedLoop<2>& loop, Tensor* from, Tensor* to) {
  return DispatchBytes(to->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Step([loop, from, to](const RunContext&) {
      CopyLoop(loop, from->data<T>(), to->data<T>());
      return absl::OkStatus();
    });
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_COPY_LOOP_H_
