// SPDX-License-Identifier: Apache-2.0
// Element-wise computation in two pieces. A RowFunction computes a row of
// contiguous elements: an op compiles one for each dtype. The steps that walk
// over tensors, with threads and broadcasting, are the same code for every op
// and dtype: as templates they take most of a build's time and run no faster.
#ifndef PD_LIBCORE_OPS_COMMON_ELEMENT_ROWS_H_
#define PD_LIBCORE_OPS_COMMON_ELEMENT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/strided_loop.h"

namespace pd {

/// out[i] = f(in[0][i], in[1][i], ...) for contiguous elements.
class RowFunction {
 public:
  /// Operands a function takes at most.
  static constexpr size_t kOperands = 4;

  /// `f` takes one element of each dtype In. Its bytes are copied.
  template <typename Out, typename... In, typename F>
  static RowFunction Of(const F& f) {
    static_assert(sizeof...(In) <= kOperands && sizeof(F) <= kStateBytes &&
                  std::is_trivially_copyable_v<F>);
    RowFunction row;
    std::memcpy(row.state_, &f, sizeof(F));
    row.compute_ = [](const void* state, const void* const* in, void* out,
                      int64_t n) {
      Unpack<Out, In...>(*static_cast<const F*>(state), in, out, n,
                         std::index_sequence_for<In...>());
    };
    return row;
  }

  /// The n elements at `out`, which may be those of an operand.
  void operator()(const void* const* in, void* out, int64_t n) const {
    compute_(state_, in, out, n);
  }

 private:
  static constexpr size_t kStateBytes = 48;

  template <typename Out, typename... In, typename F, size_t... k>
  static void Unpack(const F& f, const void* const* in, void* out, int64_t n,
                     std::index_sequence<k...>) {
    Compute(f, static_cast<Out*>(out), n, static_cast<const In*>(in[k])...);
  }
  // The function by value: stores to `out` cannot change it.
  template <typename Out, typename F, typename... In>
  static void Compute(const F f, Out* out, int64_t n, const In*... in) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(in[i]...));
  }

  void (*compute_)(const void*, const void* const*, void*, int64_t);
  alignas(16) unsigned char state_[kStateBytes];
};

/// The row function of a dtype; Unimplemented where an op has none.
using MakeRowFn = absl::StatusOr<RowFunction> (*)(DType);

/// `out` = row(`in`...) of contiguous tensors that have as many elements as
/// `out` when the step is made. A thread gets `grain` elements at least.
Step ElementStep(const RowFunction& row, const std::vector<Tensor*>& in,
                 Tensor* out, int64_t grain = kElementGrain);

/// An operand of a loop with broadcasting.
struct LoopOperand {
  Tensor* tensor;
  size_t offsets;  ///< the loop's tensor whose offsets it has
  DType dtype;     ///< of its elements; a scratch tensor has bytes
};

/// `out` = row(`in`...) over the elements of `loop`; an operand has stride 0
/// or 1 within a row of the loop, and `out` has stride 1.
Step LoopStep(const RowFunction& row, const StridedLoop<3>& loop,
              const std::vector<LoopOperand>& in, const LoopOperand& out);

/// out = row(x, y), with broadcasting.
Step BroadcastStep(const RowFunction& row, const Broadcast& broadcast,
                   Tensor* x, Tensor* y, Tensor* out);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_ELEMENT_ROWS_H_
