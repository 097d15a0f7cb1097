// SPDX-License-Identifier: Apache-2.0
// Tensors as batches of matrices, their last two axes, for ops on Eigen. All of
// them compute in float64 and round at the end: one instance of each algorithm,
// and better results for float32. Private to libcore/ops.
#ifndef PD_LIBCORE_OPS_LINALG_LINALG_H_
#define PD_LIBCORE_OPS_LINALG_LINALG_H_

// The ops' own loops have the threads.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/tensor/tensor.h"

namespace pd {

using Eigen::MatrixXcd;
using Eigen::MatrixXd;
using Eigen::VectorXcd;
using Eigen::VectorXd;

/// A tensor's matrices: all axes but the last two are the batch.
struct Matrices {
  Shape batch;
  int64_t rows = 0, cols = 0;

  int64_t count() const { return NumElements(batch); }
  /// The shape of the batch with these axes after it.
  Shape With(const Shape& inner) const;
  /// The shape of all.
  Shape All() const { return With({rows, cols}); }
};

/// InvalidArgument below rank 2. Extents may be -1.
absl::StatusOr<Matrices> MatricesOf(absl::string_view slot, const Shape& shape);
/// InvalidArgument too when the matrices are not square.
absl::StatusOr<Matrices> SquareMatricesOf(absl::string_view slot,
                                          const Shape& shape);

/// Two tensors of matrices whose batches broadcast.
struct MatrixPairs {
  Matrices x, y;
  Shape batch;  ///< of the result
  /// Which matrix of x and of y meets in each one of the result; empty while
  /// extents are not known.
  std::vector<int64_t> of_x, of_y;
};
/// InvalidArgument when the batches do not broadcast.
absl::StatusOr<MatrixPairs> PairUp(const Matrices& x, const Matrices& y);

/// Unimplemented unless float32 or float64.
absl::Status CheckReal(DType dtype);
/// Unimplemented unless float32, float64, complex64 or complex128.
absl::Status CheckRealOrComplex(DType dtype);

/// Matrix i of a tensor of CheckReal's types.
MatrixXd Load(const Tensor* t, const Matrices& m, int64_t i);
/// Matrix i of a tensor of any of the four types.
MatrixXcd LoadComplex(const Tensor* t, const Matrices& m, int64_t i);
/// Load, or zeros when `t` is null: a gradient that a program lacks.
MatrixXd LoadOrZero(const Tensor* t, const Matrices& m, int64_t i);
/// Sets matrix i; a real tensor gets the real part.
void Store(const MatrixXd& value, Tensor* t, const Matrices& m, int64_t i);
void StoreComplex(const MatrixXcd& value, Tensor* t, const Matrices& m,
                  int64_t i);
/// Adds to matrix i.
void Add(const MatrixXd& value, Tensor* t, const Matrices& m, int64_t i);
/// Zeroes all bytes.
void Clear(Tensor* t);

/// a b, op(a) b with a transposed (conjugated too), a op(b).
MatrixXd Times(const MatrixXd& a, const MatrixXd& b);
MatrixXcd TimesComplex(const MatrixXcd& a, const MatrixXcd& b);
MatrixXd TransposeTimes(const MatrixXd& a, const MatrixXd& b);
MatrixXd TimesTranspose(const MatrixXd& a, const MatrixXd& b);

/// t^-1 b for the upper or lower triangle of t, with ones on its diagonal when
/// `unit`.
MatrixXd SolveTriangle(const MatrixXd& t, bool upper, bool unit, MatrixXd b);
/// The triangle itself, its diagonal and all, zeros elsewhere. `shift` 1: from
/// the first diagonal off the main one.
MatrixXd Upper(const MatrixXd& a, int shift = 0);
MatrixXd Lower(const MatrixXd& a, int shift = 0);

/// complex64 for float32, complex128 for float64; complex types stay.
DType ComplexOf(DType dtype);
/// The reverse.
DType RealDTypeOf(DType dtype);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LINALG_LINALG_H_
