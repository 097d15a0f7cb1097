// SPDX-License-Identifier: Apache-2.0
// Products that are bound once and run for many places, as recurrences do.
#ifndef PD_LIBCORE_KERNELS_CUDA_BOUND_PRODUCT_H_
#define PD_LIBCORE_KERNELS_CUDA_BOUND_PRODUCT_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "libcore/base/flags.h"
#include "libcore/device/cublaslt.h"
#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {

/// The alignment of matrices of float32 that begin at any row or column of
/// larger ones: the steps of a sequence, the gates of a state.
inline int AlignmentOfSlices(const MatrixProduct& p) {
  const bool vectors =
      p.k % 4 == 0 && p.n % 4 == 0 && (!p.trans_a || p.m % 4 == 0);
  return vectors ? 16 : 4;
}

/// A product with memory to work in.
class BoundAt {
 public:
  /// Whether its inputs may be rounded the flags say.
  static absl::StatusOr<BoundAt> Make(BindContext* context,
                                      DeviceBinding* binding,
                                      MatrixProduct product) {
    product.tf32 = GetFlag<bool>("FLAGS_enable_cublas_tensor_op_math");
    product.alignment = AlignmentOfSlices(product);
    BoundAt bound;
    PD_ASSIGN_OR_RETURN(bound.product_, BindProduct(CudaOf(binding), product));
    if (bound.product_->workspace() > 0)
      bound.workspace_ = context->Scratch(bound.product_->workspace());
    return bound;
  }
  absl::Status Run(const float* a, const float* b, float* c) const {
    return product_->Run(a, b, c,
                         workspace_ == nullptr ? nullptr : workspace_->raw());
  }

 private:
  std::shared_ptr<const BoundProduct> product_;
  Tensor* workspace_ = nullptr;
};

/// The same product for several m, one at a time.
class BoundByRows {
 public:
  /// `rows`: every m that it will run with.
  template <typename Rows>
  static absl::StatusOr<BoundByRows> Make(BindContext* context,
                                          DeviceBinding* binding,
                                          MatrixProduct product,
                                          const Rows& rows) {
    product.tf32 = GetFlag<bool>("FLAGS_enable_cublas_tensor_op_math");
    BoundByRows bound;
    size_t workspace = 0;
    for (const int64_t m : rows) {
      product.m = m;
      product.alignment = AlignmentOfSlices(product);
      auto& at = bound.products_[m];
      PD_ASSIGN_OR_RETURN(at, BindProduct(CudaOf(binding), product));
      workspace = std::max(workspace, at->workspace());
    }
    if (workspace > 0) bound.workspace_ = context->Scratch(workspace);
    return bound;
  }
  absl::Status Run(int64_t m, const float* a, const float* b, float* c) const {
    return products_.at(m)->Run(
        a, b, c, workspace_ == nullptr ? nullptr : workspace_->raw());
  }

 private:
  std::map<int64_t, std::shared_ptr<const BoundProduct>> products_;
  Tensor* workspace_ = nullptr;
};

/// The step of a recurrence, forward or backward: an object that binds itself,
/// then runs.
template <typename Direction>
absl::StatusOr<Step> BindDirection(BindContext* context,
                                   DeviceBinding* binding) {
  auto steps = std::make_shared<Direction>();
  PD_RETURN_IF_ERROR(steps->Bind(context, binding));
  return Step([steps](const RunContext&) { return steps->Run(); });
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_BOUND_PRODUCT_H_
