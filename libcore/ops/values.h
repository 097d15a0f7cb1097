// SPDX-License-Identifier: Apache-2.0
// Operations of ops that hand values on (arrays, branches, loops): copies,
// zeros, sums of gradients whose kind and shape are known only when they meet.
// The bytes may be in a device's memory, so such ops do not follow raw().
#ifndef PD_LIBCORE_OPS_VALUES_H_
#define PD_LIBCORE_OPS_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class Values {
 public:
  virtual ~Values() = default;

  /// A copy that stays as it is whatever becomes of the original; an array's
  /// elements share their bytes with it until they are written anew.
  virtual absl::StatusOr<Tensor> Clone(const Tensor& value) = 0;
  /// The value where host code can read it; it may share the bytes.
  virtual absl::StatusOr<Tensor> OnHost(const Tensor& value) = 0;
  /// Copies the elements of `from` to the bytes that `to` has. InvalidArgument
  /// unless they are dense, of one shape and dtype.
  absl::Status Copy(const Tensor& from, Tensor* to);
  /// A tensor of `shape` whose rows are those of the parts, side by side: each
  /// part is `outer` rows. All have one dtype, and there is one at least.
  virtual absl::StatusOr<Tensor> Join(const std::vector<Tensor>& parts,
                                      int64_t outer, const Shape& shape) = 0;
  /// The reverse: tensors of the shapes, dtypes and LoD of `like`.
  virtual absl::StatusOr<std::vector<Tensor>> Split(
      const Tensor& whole, int64_t outer, const std::vector<Tensor>& like) = 0;

  /// Makes `out` zeros of the kind, shape and dtype of `like`; no rows where
  /// `like` is selected rows.
  absl::Status ZerosLike(const Tensor& like, Tensor* out);
  /// Adds `part` to `sum`; a `sum` without a value becomes a copy. Both are
  /// dense tensors of one shape and floating or complex dtype, arrays of such
  /// (an element that is missing counts as zero), or selected rows (which are
  /// put one after the other). InvalidArgument where they do not fit.
  absl::Status Accumulate(const Tensor& part, Tensor* sum);

 protected:
  virtual absl::Status CopyBytes(const Tensor& from, Tensor* to) = 0;
  /// Zeros of the shape and dtype of `like`, where that is.
  virtual absl::StatusOr<Tensor> Zeros(const Tensor& like) = 0;
  /// sum += part; they are dense, of one shape and dtype.
  virtual absl::Status Add(const Tensor& part, Tensor* sum) = 0;
  /// The rows of `a`, then those of `b`, which are as wide.
  virtual absl::StatusOr<Tensor> Append(const Tensor& a, const Tensor& b) = 0;
};

/// For values whose bytes are the host's.
Values* HostValues();
/// The Values that the op of `context` uses.
Values* ValuesOf(BindContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_VALUES_H_
