// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's matrices are column-major: what it takes for C is the transposed
// of ours, so it is given B for A and A for B.
#include "libcore/device/cublaslt.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/cuda_libraries.h"

namespace pd {
namespace {

// NVIDIA's recommendation for Hopper; older GPUs take less.
constexpr size_t kMostWorkspace = size_t{32} << 20;

absl::Status Check(CublasStatus status, const char* what) {
  if (status == 0) return absl::OkStatus();
  return Unknown("%s: cuBLAS status %d", what, status);
}
#define PD_CUBLAS(call) PD_RETURN_IF_ERROR(Check(call, #call))

absl::StatusOr<std::unique_ptr<CublasLt>> Load() {
  PD_ASSIGN_OR_RETURN(const DynamicLibrary library, OpenCublasLt());
  auto lt = std::make_unique<CublasLt>();
#define PD_BIND(member, parameters) \
  PD_RETURN_IF_ERROR(library.Bind("cublasLt" #member, &lt->member));
  PD_CUBLASLT(PD_BIND)
#undef PD_BIND
  PD_RETURN_IF_ERROR(Check(lt->Create(&lt->handle), "cublasLtCreate"));
  return lt;
}

using Handle = std::shared_ptr<void>;

class Bound : public BoundProduct {
 public:
  Bound(const CublasLt* lt, CudaDevice* device, float alpha)
      : lt_(lt), device_(device), alpha_(alpha) {}

  absl::Status Prepare(const MatrixProduct& p) {
    if (p.dtype == DType::kFloat16)
      type_ = kCublasFloat16;
    else if (p.dtype == DType::kBFloat16)
      type_ = kCublasBFloat16;
    else if (p.dtype == DType::kFloat64)
      type_ = kCublasFloat64;
    else if (p.dtype == DType::kInt8)
      PD_RETURN_IF_ERROR(UseIntegers(p));
    else if (p.dtype != DType::kFloat32)
      return Unimplemented("a product of %s", Name(p.dtype));
    if (!integers_) out_type_ = type_;
    PD_RETURN_IF_ERROR(Describe(p));
    const auto layout = [&](int64_t rows, int64_t columns, Handle* handle) {
      const bool shared = (handle == &first_ && p.shared_b) ||
                          (handle == &second_ && p.shared_a);
      return Layout(handle == &out_ ? out_type_ : type_, rows, columns,
                    {p.batch, shared ? 0 : rows * columns}, handle);
    };
    // Row-major [rows, columns] is column-major [columns, rows].
    PD_RETURN_IF_ERROR(p.trans_b ? layout(p.k, p.n, &first_)
                                 : layout(p.n, p.k, &first_));
    PD_RETURN_IF_ERROR(p.trans_a ? layout(p.m, p.k, &second_)
                                 : layout(p.k, p.m, &second_));
    PD_RETURN_IF_ERROR(layout(p.n, p.m, &out_));
    return Choose(static_cast<uint32_t>(p.alignment));
  }

  size_t workspace() const override { return choice_.workspace_size; }

  absl::Status Run(const void* a, const void* b, void* c, void* workspace,
                   const void* bias) const override {
    if (has_bias_) PD_RETURN_IF_ERROR(SetBias(bias));
    // Factors are of the type that sums are scaled in; 0 is the same in each.
    const int32_t one = 1;
    const double none = 0, wide = double{alpha_};
    const void* alpha = integers_ ? static_cast<const void*>(&one)
                        : type_ == kCublasFloat64
                            ? static_cast<const void*>(&wide)
                            : &alpha_;
    return Check(
        lt_->Matmul(lt_->handle, operation_.get(), alpha, b, first_.get(), a,
                    second_.get(), &none, c, out_.get(), c, out_.get(),
                    &choice_.algo, workspace, choice_.workspace_size,
                    device_->stream()),
        "cublasLtMatmul");
  }

 private:
  absl::Status UseIntegers(const MatrixProduct& p) {
    if (p.trans_a || !p.trans_b || p.alpha != 1 || p.k % 4 != 0 ||
        p.n % 4 != 0 || p.epilogue != ProductEpilogue::kNone)
      return Unimplemented("a product of int8 of %d x %d x %d", p.m, p.n, p.k);
    integers_ = true;
    type_ = kCublasInt8;
    out_type_ = kCublasInt32;
    return absl::OkStatus();
  }

  absl::Status Describe(const MatrixProduct& p) {
    void* operation = nullptr;
    const bool wide = type_ == kCublasFloat64;
    PD_CUBLAS(lt_->MatmulDescCreate(&operation,
                                    integers_ ? kCublasComputeInt32
                                    : wide    ? kCublasCompute64
                                    : p.tf32  ? kCublasComputeTf32
                                              : kCublasCompute32,
                                    integers_ ? kCublasInt32
                                    : wide    ? kCublasFloat64
                                              : kCublasFloat32));
    operation_ = Handle(operation, lt_->MatmulDescDestroy);
    if (p.epilogue != ProductEpilogue::kNone) {
      const int32_t epilogue = p.epilogue == ProductEpilogue::kBias
                                   ? kCublasEpilogueBias
                                   : kCublasEpilogueReluBias;
      PD_CUBLAS(lt_->MatmulDescSetAttribute(operation, kCublasEpilogue,
                                            &epilogue, sizeof(epilogue)));
      // An algorithm is chosen for the address of a bias: any one as aligned.
      has_bias_ = true;
      PD_RETURN_IF_ERROR(SetBias(
          reinterpret_cast<const void*>(static_cast<uintptr_t>(p.alignment))));
    }
    const int32_t first = p.trans_b, second = p.trans_a;
    PD_CUBLAS(lt_->MatmulDescSetAttribute(operation, kCublasTransA, &first,
                                          sizeof(first)));
    PD_CUBLAS(lt_->MatmulDescSetAttribute(operation, kCublasTransB, &second,
                                          sizeof(second)));
    return absl::OkStatus();
  }

  absl::Status SetBias(const void* bias) const {
    PD_CUBLAS(lt_->MatmulDescSetAttribute(operation_.get(), kCublasBiasPointer,
                                          &bias, sizeof(bias)));
    return absl::OkStatus();
  }

  struct Batch {
    int64_t count, stride;
  };
  absl::Status Layout(int type, int64_t rows, int64_t columns,
                      const Batch& batch, Handle* handle) {
    void* layout = nullptr;
    PD_CUBLAS(lt_->MatrixLayoutCreate(&layout, type,
                                      static_cast<uint64_t>(rows),
                                      static_cast<uint64_t>(columns), rows));
    *handle = Handle(layout, lt_->MatrixLayoutDestroy);
    const int32_t count = static_cast<int32_t>(batch.count);
    PD_CUBLAS(lt_->MatrixLayoutSetAttribute(layout, kCublasBatchCount, &count,
                                            sizeof(count)));
    PD_CUBLAS(lt_->MatrixLayoutSetAttribute(
        layout, kCublasBatchStride, &batch.stride, sizeof(batch.stride)));
    return absl::OkStatus();
  }

  absl::Status Choose(uint32_t alignment) {
    void* created = nullptr;
    PD_CUBLAS(lt_->MatmulPreferenceCreate(&created));
    const Handle preference(created, lt_->MatmulPreferenceDestroy);
    PD_CUBLAS(lt_->MatmulPreferenceSetAttribute(
        created, kCublasMaxWorkspace, &kMostWorkspace, sizeof(kMostWorkspace)));
    for (const int matrix : {kCublasAlignmentA, kCublasAlignmentB,
                             kCublasAlignmentC, kCublasAlignmentD})
      PD_CUBLAS(lt_->MatmulPreferenceSetAttribute(created, matrix, &alignment,
                                                  sizeof(alignment)));
    int found = 0;
    const CublasStatus status = lt_->MatmulAlgoGetHeuristic(
        lt_->handle, operation_.get(), first_.get(), second_.get(), out_.get(),
        out_.get(), created, 1, &choice_, &found);
    if (status != 0 || found == 0 || choice_.state != 0)
      return Unimplemented("cuBLASLt knows no algorithm (status %d)", status);
    return absl::OkStatus();
  }

  const CublasLt* lt_;
  CudaDevice* device_;
  float alpha_;
  int type_ = kCublasFloat32, out_type_ = kCublasFloat32;
  bool integers_ = false, has_bias_ = false;
  Handle operation_, first_, second_, out_;
  CublasHeuristic choice_{};
};

}  // namespace

absl::StatusOr<const CublasLt*> LoadCublasLt() {
  static const auto* const kLibrary =
      new absl::StatusOr<std::unique_ptr<CublasLt>>(Load());
  if (!kLibrary->ok()) return kLibrary->status();
  return kLibrary->value().get();
}

absl::StatusOr<std::shared_ptr<const BoundProduct>> BindProduct(
    CudaDevice* device, const MatrixProduct& product) {
  if (product.m == 0 || product.n == 0 || product.k == 0 || product.batch == 0)
    return Unimplemented("a product of nothing");
  if (product.batch > INT32_MAX) return Unimplemented("too large a batch");
  PD_ASSIGN_OR_RETURN(const CublasLt* lt, LoadCublasLt());
  auto bound = std::make_shared<Bound>(lt, device, product.alpha);
  PD_RETURN_IF_ERROR(bound->Prepare(product));
  return std::shared_ptr<const BoundProduct>(std::move(bound));
}

}  // namespace pd
