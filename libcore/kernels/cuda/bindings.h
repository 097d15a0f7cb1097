// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the bindings of this folder, and the bindings themselves.
#ifndef PD_LIBCORE_KERNELS_CUDA_BINDINGS_H_
#define PD_LIBCORE_KERNELS_CUDA_BINDINGS_H_

#include <algorithm>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/cublaslt.h"
#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/cuda_of.h"
#include "libcore/kernels/cuda/kernel_table.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/conv/window.h"
#include "libcore/ops/device_binding.h"
#include "libcore/ops/device_place.h"

namespace pd::cuda {

inline constexpr int kThreads = kSmallBlock;

/// Starts one kernel with arguments that are known when it runs.
template <typename Args>
class Starter {
 public:
  static absl::StatusOr<Starter> Find(DeviceBinding* binding,
                                      const std::string& name) {
    Starter starter;
    starter.device_ = CudaOf(binding);
    PD_ASSIGN_OR_RETURN(starter.kernel_, starter.device_->Kernel(name));
    return starter;
  }

  /// Enough threads for n elements, and no more blocks than keep the GPU busy:
  /// a kernel's threads go on with what is left.
  absl::Status Elements(int64_t n, const Args& args) const {
    const int64_t most = int64_t{device_->info().multiprocessors} * 32;
    return Blocks(std::min((n + kThreads - 1) / kThreads, most), args);
  }
  /// A block for each of n items; those of many blocks go on with what is left.
  absl::Status Items(int64_t n, const Args& args) const {
    constexpr int64_t kMostBlocks = 1 << 20;
    return Blocks(std::min(n, kMostBlocks), args);
  }
  absl::Status Blocks(int64_t blocks, const Args& args,
                      int threads = kThreads) const {
    return device_->Launch(kernel_, blocks, threads, &args);
  }

 private:
  CudaDevice* device_ = nullptr;
  CudaFunction kernel_ = nullptr;
};

/// Packs of n elements, the last of which may be shorter.
inline int64_t Packs(int64_t n) { return (n + kPack - 1) / kPack; }

/// The elements of a float32 tensor; null where it is absent.
inline float* At(Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<float>();
}

/// The same of another type.
template <typename T>
T* At(Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data<T>();
}

/// Elements that kernels over T read and write: doubles; or float32, fp16 or
/// bf16 of a tensor, or float32 in scratch, with no dtype. Null if absent.
inline NumberType FloatTypeOf(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat16    ? NumberType::kFloat16
         : tensor.dtype() == DType::kBFloat16 ? NumberType::kBFloat16
                                              : NumberType::kFloat32;
}
template <typename T>
NumbersIn<T> Read(Tensor* tensor) {
  if constexpr (std::is_same_v<T, float>) {
    if (tensor == nullptr) return {};
    return {FloatTypeOf(*tensor), tensor->raw()};
  } else {
    return At<T>(tensor);
  }
}
/// `typed` has the dtype, where the tensor is scratch that should.
template <typename T>
NumbersOut<T> Write(Tensor* tensor, const Tensor* typed = nullptr) {
  if constexpr (std::is_same_v<T, float>) {
    if (tensor == nullptr) return {};
    return {FloatTypeOf(typed == nullptr ? *tensor : *typed), tensor->raw()};
  } else {
    return At<T>(tensor);
  }
}

/// The kernel of this name for floats, or for doubles.
template <typename T>
std::string KernelFor(const std::string& name) {
  return std::is_same_v<T, double> ? name + "_64" : name;
}

/// body(TypeTag<T>), T what the kernels over these elements compute with.
template <typename Body>
absl::StatusOr<Step> ForReal(const Tensor& tensor, const Body& body) {
  if (tensor.dtype() == DType::kFloat64) return body(TypeTag<double>{});
  return body(TypeTag<float>{});
}

/// Unimplemented unless those that are there have one dtype, one of `allowed`.
inline absl::Status OneDType(std::initializer_list<const Tensor*> tensors,
                             std::initializer_list<DType> allowed) {
  const Tensor* first = nullptr;
  for (const Tensor* tensor : tensors) {
    if (tensor == nullptr) continue;
    if (first == nullptr) first = tensor;
    const DType dtype = tensor->dtype();
    if (dtype != first->dtype() ||
        std::find(allowed.begin(), allowed.end(), dtype) == allowed.end())
      return Unimplemented("no kernel for dtype %s", Name(dtype));
  }
  return absl::OkStatus();
}
inline absl::Status OnlyFloat32(std::initializer_list<const Tensor*> tensors) {
  return OneDType(tensors, {DType::kFloat32});
}
/// float32 or halves.
inline absl::Status SameFloats(std::initializer_list<const Tensor*> tensors) {
  return OneDType(tensors,
                  {DType::kFloat32, DType::kFloat16, DType::kBFloat16});
}
/// float32 or float64.
inline absl::Status SameReals(std::initializer_list<const Tensor*> tensors) {
  return OneDType(tensors, {DType::kFloat32, DType::kFloat64});
}
/// Any of these.
inline absl::Status SameNumbers(std::initializer_list<const Tensor*> tensors) {
  return OneDType(tensors, {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                            DType::kFloat64});
}
/// The dtypes that Read<T> reads: float64, or else float32, fp16 and bf16.
template <typename T>
absl::Status SameAs(std::initializer_list<const Tensor*> tensors) {
  if constexpr (std::is_same_v<T, double>)
    return OneDType(tensors, {DType::kFloat64});
  else
    return SameFloats(tensors);
}

/// Adds an extent to a walk, the next inner one; false when there are too many.
template <int K>
bool AddExtent(int64_t extent, const int64_t (&strides)[K], Walk<K>* walk) {
  if (extent == 1) return true;
  if (walk->dims > 0) {
    const int last = walk->dims - 1;
    bool continues = true;
    for (int k = 0; k < K; ++k)
      continues &= walk->strides[last][k] == strides[k] * extent;
    if (continues) {
      walk->extents[last] *= extent;
      for (int k = 0; k < K; ++k) walk->strides[last][k] = strides[k];
      return true;
    }
  }
  if (walk->dims == kMostDims) return false;
  walk->extents[walk->dims] = extent;
  for (int k = 0; k < K; ++k) walk->strides[walk->dims][k] = strides[k];
  ++walk->dims;
  return true;
}

inline absl::Status TooManyDims() {
  return Unimplemented("more than %d dimensions that do not merge", kMostDims);
}

/// Unimplemented where kernels know no such numbers.
absl::StatusOr<NumberType> NumberTypeOf(DType dtype);

/// 1 for int64, 0 for int32. Unimplemented for others.
absl::StatusOr<int32_t> IsWide(const Tensor& numbers);

/// n elements along a walk, counted from an element of either tensor.
struct StridedCopy {
  Tensor *from, *to;
  int64_t n = 0;
  Walk<2> walk{};
  int64_t from_start = 0, to_start = 0;
  size_t bytes = 0;  ///< of an element where one tensor is scratch
};

/// The step that copies them. Both tensors have elements of one size.
absl::StatusOr<Step> BindCopy(DeviceBinding* binding, const StridedCopy& copy);

/// The step that gives every element this value, as a cast from double does.
absl::StatusOr<Step> BindFillStep(DeviceBinding* binding, double value,
                                  Tensor* out);

/// A reduction by the kernel `kernel`_by_thread, _by_column or _by_block. Null
/// operands are not read; those that are scratch hold floats, or doubles where
/// another tensor has that dtype.
struct Reduction {
  std::string kernel;
  ReduceShape shape;
  Tensor *x = nullptr, *out = nullptr;
  Tensor *y = nullptr, *z = nullptr, *dz = nullptr;
  int read = 0;  ///< which of the walks' places tells what is beside what
};

/// The step of a reduction, in the way that is best for its walks. Where it has
/// few results of many elements, parts of them are reduced first.
absl::StatusOr<Step> BindReduction(BindContext* context, DeviceBinding* binding,
                                   const Reduction& reduction);

/// The step to = to + bias, whose elements are as many as `to` has in its last
/// dimension, with a ReLU behind it.
absl::StatusOr<Step> BindBiasStep(DeviceBinding* binding, Tensor* bias,
                                  bool relu, Tensor* to);

/// The product that makes the gradient of an operand of C = alpha op(A) op(B),
/// of C's gradient and the other operand. `of_c_first`: C's gradient is its A.
struct GradProduct {
  MatrixProduct product;
  bool of_c_first;
};
GradProduct GradOfA(const MatrixProduct& p);
GradProduct GradOfB(const MatrixProduct& p);

struct ProductTensors {
  Tensor *a, *b, *c;
  Tensor* bias = nullptr;  ///< where the product's epilogue has one
};

/// The step c = op(a) op(b), by cuBLASLt.
absl::StatusOr<Step> BindProductStep(BindContext* context,
                                     DeviceBinding* binding,
                                     MatrixProduct product,
                                     const ProductTensors& t);

/// Inputs of an update, and the outputs that begin as copies of them.
using Copies = std::vector<std::pair<Tensor*, Tensor*>>;
absl::Status CopyAll(CudaDevice* device, const Copies& copies);

/// The tensor that an update changes in place: its output, which is mostly the
/// input too; else `copies` gets both.
absl::StatusOr<Tensor*> InPlace(BindContext* context, const char* slot,
                                const std::string& out_slot, size_t i,
                                Copies* copies);

/// Refuses unless what the op makes first is floating-point numbers.
template <DeviceBindFn kBind>
absl::StatusOr<Step> FloatsOnly(BindContext* context, DeviceBinding* binding) {
  for (const auto& [slot, names] : context->op().outputs)
    for (size_t i = 0; i < names.size(); ++i)
      if (const Tensor* t = context->Output(slot, i)) {
        const DType dtype = t->dtype();
        if (IsFloating(dtype)) return kBind(context, binding);
        return Unimplemented("%s that are not on the GPU", Name(dtype));
      }
  return Unimplemented("no output");
}

/// An op that moves elements: worth the way to the GPU for floats, while whole
/// numbers, often shapes and counters that the host reads, stay where they are.
template <DeviceBindFn kBind>
void AddMove(const std::string& type, KernelTable* kernels) {
  kernels->Add(type, {"cuda", FloatsOnly<kBind>});
  kernels->Add(type, Implementation("cuda", kBind).FollowsInputs());
}

/// The memory of `tensor`, which an op may lack.
inline void* RawOrNull(Tensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->raw();
}

/// The windows of pooling. Unimplemented for more than three axes.
absl::StatusOr<PoolWindows> ReadWindows(const PoolGeometry& g);

/// Looks through values for what is not finite, in one kernel.
absl::Status FindNonFinite(Device* gpu, const NonFiniteRequest& request);

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_BINDINGS_H_
