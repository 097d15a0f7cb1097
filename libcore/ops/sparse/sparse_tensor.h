// SPDX-License-Identifier: Apache-2.0
// Sparse tensors: the places of some elements, or of some rows of elements, and
// their values; all others are 0. A Tensor of kind kSparseCoo or kSparseCsr has
// the shape of the dense tensor, no bytes, and as elements
//   COO: indices [sparse_dim, nnz], values [nnz, the other extents...]
//   CSR: crows [batches * (rows + 1)], cols [nnz], values [nnz]
// where nnz is the number of places. CSR is of rank 2 or 3 (a batch of
// matrices); each matrix's crows begin at 0. Indices are int64 or int32. Who
// makes a tensor here has checked that its parts fit, so that whoever reads one
// does not.
#ifndef PD_LIBCORE_OPS_SPARSE_SPARSE_TENSOR_H_
#define PD_LIBCORE_OPS_SPARSE_SPARSE_TENSOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/common/eager.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {

inline bool IsCoo(VarKind kind) { return kind == VarKind::kSparseCoo; }
inline bool IsCsr(VarKind kind) { return kind == VarKind::kSparseCsr; }

// The parts of a sparse tensor.
inline Tensor& CooIndices(const Tensor& x) {
  return const_cast<Tensor&>(x.elements()[0]);
}
inline Tensor& CsrRows(const Tensor& x) {
  return const_cast<Tensor&>(x.elements()[0]);
}
inline Tensor& CsrColumns(const Tensor& x) {
  return const_cast<Tensor&>(x.elements()[1]);
}
inline Tensor& SparseValues(const Tensor& x) {
  return const_cast<Tensor&>(x.elements().back());
}

/// A tensor of integers, int32 or int64.
absl::StatusOr<Tensor> IntegerTensor(DType dtype, Shape shape,
                                     const std::vector<int64_t>& values);

/// The tensors of these parts. InvalidArgument where they do not fit `shape`.
absl::StatusOr<Tensor> MakeCoo(Tensor indices, Tensor values, Shape shape);
absl::StatusOr<Tensor> MakeCsr(Tensor rows, Tensor columns, Tensor values,
                               Shape shape);

/// A COO tensor's places: the coordinates along its sparse axes as one number,
/// row-major.
struct Places {
  std::vector<int64_t> flat;    ///< of each value
  Shape extents;                ///< of the sparse axes
  DType dtype = DType::kInt64;  ///< of the indices
};
Places PlacesOf(const Tensor& coo);
/// The same numbers of the coordinates along all sparse axes but one.
std::vector<int64_t> WithoutAxis(const Places& places, size_t axis);
/// The indices of places.
absl::StatusOr<Tensor> IndicesOf(const Places& places);

/// `values` with row k of `rows[k]`; -1: zeros.
absl::StatusOr<Tensor> GatherRows(const Tensor& values,
                                  const std::vector<int64_t>& rows);
/// Sums of the rows of each group: `group[k]` is that of row k, or -1.
absl::StatusOr<Tensor> SumRowsBy(const Tensor& values,
                                 const std::vector<int64_t>& group,
                                 int64_t groups);

/// COO with each place once, in order, and values of one place added up.
absl::StatusOr<Tensor> Coalesced(const Tensor& coo);
/// Of rank 2 or 3, with one value for each place.
absl::StatusOr<Tensor> CooToCsr(const Tensor& coo);
absl::StatusOr<Tensor> CsrToCoo(const Tensor& csr);
/// COO of either kind.
absl::StatusOr<Tensor> AsCoo(const Tensor& x);
/// `coo` in the form of `kind`.
absl::StatusOr<Tensor> InForm(VarKind kind, Tensor coo);

/// A dense tensor with the values at their places; of a place that is there
/// several times, the last.
absl::StatusOr<Tensor> SparseToDense(const Tensor& x);
/// The places of a dense tensor's first `sparse_dim` axes where a value is not
/// 0.
absl::StatusOr<Tensor> DenseToCoo(const Tensor& x, int64_t sparse_dim);

/// Whether two have one form, one shape, and the same places in one order.
bool HaveSamePlaces(const Tensor& x, const Tensor& y);

/// x + y of two of one shape and form, at the places of either (sparse_add).
absl::StatusOr<Tensor> SparseSum(const Eager& eager, const Tensor& x,
                                 const Tensor& y);

/// The same places with other values, of as many rows.
Tensor WithValues(const Tensor& x, Tensor values);

// Common to the operators of this folder, which are all OpDef::ShapeFromData:
// how many places a result has is known when they run.
/// Makes `value` that of an output, sparse or dense.
absl::Status Give(Tensor value, Tensor* out);
/// Computes the value of an output.
using SparseBody = std::function<absl::StatusOr<Tensor>(const Eager&)>;
/// The step that gives it to `out`.
Step Giving(Tensor* out, SparseBody body);
/// Adds an operator without a gradient.
absl::Status AddSparse(OpRegistry* registry, OpDef op, InferFn infer,
                       BindFn bind);
/// Adds one, and its gradient op: it reads the inputs and the outputs named,
/// out@GRAD, and writes the gradients `to` of inputs. That of a sparse tensor
/// has its places, in its order.
absl::Status AddSparse(OpRegistry* registry, OpDef op, InferFn infer,
                       BindFn bind, GradSpec::Names inputs,
                       GradSpec::Names outputs, GradSpec::Names to,
                       BindFn bind_grad);
/// The values of a dense tensor at the places of x, as values of x.
absl::StatusOr<Tensor> ValuesAt(const Tensor& dense, const Tensor& x);
/// For each of `flat` the row of `of` with that place; -1: none.
std::vector<int64_t> RowsAt(const Places& of, const std::vector<int64_t>& flat);
/// The rows of a COO tensor in the order of its CSR form.
std::vector<int64_t> CsrOrder(const Tensor& coo);
/// InvalidArgument unless the input is a sparse tensor, in inference.
absl::Status NeedSparse(const InferContext& context, absl::string_view slot);
absl::Status NeedDense(const InferContext& context, absl::string_view slot);
/// The output is sparse, of this kind.
void SetSparse(InferContext* context, absl::string_view slot, VarKind kind,
               Shape shape, DType dtype);
/// Out gets the kind, shape and dtype of x.
absl::Status InferLikeX(InferContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SPARSE_SPARSE_TENSOR_H_
