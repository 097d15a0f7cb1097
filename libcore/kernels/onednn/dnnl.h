// SPDX-License-Identifier: Apache-2.0
// Everything that we call of oneDNN, behind one header: primitives by name,
// memory descriptors as Layouts. Only dnnl*.cc include oneDNN, so what changed
// between its versions 2 and 3 is in one place.
#ifndef PD_LIBCORE_KERNELS_ONEDNN_DNNL_H_
#define PD_LIBCORE_KERNELS_ONEDNN_DNNL_H_

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/common/gemm.h"

namespace pd {
namespace onednn {

/// The arguments of primitives that we use.
enum class Arg {
  kSrc,
  kWeights,
  kBias,
  kDst,
  kDiffSrc,
  kDiffWeights,
  kDiffBias,
  kDiffDst,
  kWorkspace,
  kScratchpad,
};

/// OK for what oneDNN multiplies fast here: float32, and bfloat16 where the CPU
/// has it; Unimplemented otherwise, with the reason.
absl::Status TakesType(DType dtype);

/// The dtype, shape and layout that a primitive wants for an argument.
struct ArgSpec {
  DType dtype = DType::kFloat32;
  Shape shape;
  LayoutPtr layout;
  bool any = false;  ///< let oneDNN choose the layout
};

/// A compiled primitive. Bound arguments are read when it runs.
class Primitive {
 public:
  struct Impl;
  explicit Primitive(std::unique_ptr<Impl> impl);
  ~Primitive();

  /// "brgemm:avx512_core".
  const std::string& implementation() const;
  const Impl& impl() const { return *impl_; }
  /// The layout that the primitive wants for an argument.
  absl::StatusOr<LayoutPtr> LayoutOf(Arg arg) const;
  /// Bytes for Arg::kScratchpad, 0 for none.
  size_t ScratchpadBytes() const;
  /// Gives an argument its tensor, whose layout is as LayoutOf says.
  void Bind(Arg arg, Tensor* tensor);
  /// Runs on the tensors' bytes of this moment.
  absl::Status Run();

 private:
  std::unique_ptr<Impl> impl_;
};
using PrimitivePtr = std::shared_ptr<Primitive>;

/// The ReLU after an operation, if on: min(max(x, 0), top).
struct Relu {
  bool on = false;
  float top = std::numeric_limits<float>::infinity();
};

/// dst[N, OC] = src[N, IC] weights[OC, IC]^T + bias[OC], then ReLU if asked.
/// The bias is left out when its shape is empty. For training.
struct InnerProduct {
  ArgSpec src, weights, bias, dst;
  Relu relu;
};
absl::StatusOr<PrimitivePtr> InnerProductForward(const InnerProduct& p);
/// The gradients by weights and bias, which stand in their places.
absl::StatusOr<PrimitivePtr> InnerProductBackwardWeights(const InnerProduct& p);

/// dst[..., M, N] = src[..., M, K] weights[..., K, N], all of one rank; axes
/// before the last two are equal or 1. A transposed matrix has such strides.
/// Then bias[..., 1, N], left out when its shape is empty, and ReLU if asked.
struct Matmul {
  ArgSpec src, weights, dst, bias;
  Relu relu;
};
absl::StatusOr<PrimitivePtr> MatmulForward(const Matmul& m);

/// In a process of limited memory has Sgemm compile its kernels now, which
/// fails by a signal once there is no room. ResourceExhausted where there is
/// none already.
absl::Status CompileSgemm();
/// c = op(a) op(b), all row-major. For products whose places change from run to
/// run; a Matmul has them bound.
void Sgemm(const GemmShape& shape, const float* a, const float* b, float* c);
/// c = alpha op(a) op(b) + beta c; what c held is not read where beta is 0.
void Sgemm(const GemmShape& shape, float alpha, const float* a, const float* b,
           float beta, float* c);

/// dst = conv(src, weights) + bias, plus what dst held before if asked, then
/// ReLU if asked. Weights are [OC, IC, KH, KW], or
/// [G, OC / G, IC / G, KH, KW] for groups.
struct Convolution {
  ArgSpec src, weights, bias, dst;
  std::vector<int64_t> strides, dilations, pad_before, pad_after;
  bool sum = false;
  Relu relu;
  /// Whether Winograd's algorithm may be taken, whose rounding errors are about
  /// three times those of the direct sum.
  bool winograd = false;
};
absl::StatusOr<PrimitivePtr> ConvolutionForward(const Convolution& c);
absl::StatusOr<PrimitivePtr> ConvolutionBackwardData(const Convolution& c);
absl::StatusOr<PrimitivePtr> ConvolutionBackwardWeights(const Convolution& c);

/// Maximum pooling of a training plan has a workspace.
struct Pooling {
  ArgSpec src, dst;
  enum class Kind { kMax, kAverage, kAverageWithPadding } kind = Kind::kMax;
  std::vector<int64_t> kernel, strides, pad_before, pad_after;
};
absl::StatusOr<PrimitivePtr> PoolingForward(const Pooling& p);
absl::StatusOr<PrimitivePtr> PoolingBackward(const Pooling& p);
/// Elements and dtype of the workspace; the shape is empty for none.
ArgSpec WorkspaceOf(const Primitive& primitive);

/// Copies between two layouts.
absl::StatusOr<PrimitivePtr> Reorder(const ArgSpec& from, const ArgSpec& to);

/// Binds an input, or an output, in the layout that the primitive wants.
absl::Status BindIn(BindContext* context, Primitive* primitive, Arg arg,
                    Tensor* tensor);
absl::Status BindOut(BindContext* context, Primitive* primitive, Arg arg,
                     Tensor* tensor);

/// Binds a scratchpad where the primitive wants one.
void BindScratchpad(BindContext* context, Primitive* primitive);

}  // namespace onednn
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_ONEDNN_DNNL_H_
