// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt, found at run time. The declarations are ours, as
// in cuda_driver.h, and tested against NVIDIA's.
#ifndef PD_LIBCORE_DEVICE_CUBLASLT_H_
#define PD_LIBCORE_DEVICE_CUBLASLT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/device/cuda_device.h"

namespace pd {

/// Work on a product before it is stored. Bias: a vector [n] of C's dtype is
/// added to each row.
enum class ProductEpilogue { kNone, kBias, kBiasRelu };

/// Row-major matrices of float32, float16 or bfloat16, with sums in float32, or
/// of float64, with sums in it: A is [m, k], or [k, m] with trans_a; B is
/// [k, n], or [n, k] with trans_b; C is [m, n]. The matrices of a batch lie one
/// after the other; one that is shared serves the whole batch.
/// Of int8, with C and sums of int32: the GPU's units for it take trans_b
/// alone, alpha 1, and k and n that are multiples of 4; the sums are exact.
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  int64_t batch = 1;
  float alpha = 1;
  DType dtype = DType::kFloat32;
  bool tf32 = false;  ///< inputs may be rounded to 10 bits of mantissa
  bool shared_a = false, shared_b = false;
  /// Bytes that the addresses of A, B and C are multiples of: algorithms that
  /// load vectors want 16.
  int alignment = 16;
  ProductEpilogue epilogue = ProductEpilogue::kNone;
};

/// One product with its descriptors and the algorithm that was chosen for it.
class BoundProduct {
 public:
  virtual ~BoundProduct() = default;
  /// Bytes of device memory that Run wants, 256-byte aligned.
  virtual size_t workspace() const = 0;
  /// C = alpha op(A) op(B), on the device's stream. The bias is read where the
  /// epilogue has one.
  virtual absl::Status Run(const void* a, const void* b, void* c,
                           void* workspace,
                           const void* bias = nullptr) const = 0;
};

/// Chooses an algorithm. Unavailable when the library is missing; Unimplemented
/// when it knows none for these extents.
absl::StatusOr<std::shared_ptr<const BoundProduct>> BindProduct(
    CudaDevice* device, const MatrixProduct& product);

// The functions and numbers of cublasLt.h; the opaque structs are pointers.
using CublasStatus = int;
struct CublasAlgo {
  uint64_t data[8];
};
struct CublasHeuristic {
  CublasAlgo algo;
  size_t workspace_size;
  CublasStatus state;
  float waves_count;
  int reserved[4];
};
inline constexpr int kCublasFloat32 = 0, kCublasFloat64 = 1, kCublasFloat16 = 2,
                     kCublasInt8 = 3, kCublasInt32 = 10, kCublasBFloat16 = 14;
inline constexpr int kCublasCompute32 = 68, kCublasCompute64 = 70,
                     kCublasComputeInt32 = 72, kCublasComputeTf32 = 77;
inline constexpr int kCublasTransA = 3, kCublasTransB = 4;
inline constexpr int kCublasEpilogue = 7, kCublasBiasPointer = 8;
inline constexpr int kCublasEpilogueBias = 4, kCublasEpilogueReluBias = 6;
inline constexpr int kCublasBatchCount = 5, kCublasBatchStride = 6;
inline constexpr int kCublasMaxWorkspace = 1, kCublasAlignmentA = 5,
                     kCublasAlignmentB = 6, kCublasAlignmentC = 7,
                     kCublasAlignmentD = 8;

// PD_CUBLASLT(X): X(member, parameters); the exported name is "cublasLt" and
// the member.
#define PD_CUBLASLT(X)                                                        \
  X(Create, (void**))                                                         \
  X(MatmulDescCreate, (void**, int, int))                                     \
  X(MatmulDescDestroy, (void*))                                               \
  X(MatmulDescSetAttribute, (void*, int, const void*, size_t))                \
  X(MatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))           \
  X(MatrixLayoutDestroy, (void*))                                             \
  X(MatrixLayoutSetAttribute, (void*, int, const void*, size_t))              \
  X(MatmulPreferenceCreate, (void**))                                         \
  X(MatmulPreferenceDestroy, (void*))                                         \
  X(MatmulPreferenceSetAttribute, (void*, int, const void*, size_t))          \
  X(MatmulAlgoGetHeuristic, (void*, void*, void*, void*, void*, void*, void*, \
                             int, CublasHeuristic*, int*))                    \
  X(Matmul, (void*, void*, const void*, const void*, void*, const void*,      \
             void*, const void*, const void*, void*, void*, void*,            \
             const CublasAlgo*, void*, size_t, CudaStream))

struct CublasLt {
#define PD_MEMBER(member, parameters) \
  CublasStatus(*member) parameters = nullptr;
  PD_CUBLASLT(PD_MEMBER)
#undef PD_MEMBER
  void* handle = nullptr;
};

/// The library with a handle, once for the process.
absl::StatusOr<const CublasLt*> LoadCublasLt();

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUBLASLT_H_
