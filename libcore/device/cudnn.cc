// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cudnn.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/cuda_libraries.h"

namespace pd {
namespace {

// Algorithms that are looked at; cuDNN has 8 of a kind.
constexpr int kMostAlgorithms = 16;

absl::Status Check(CudnnStatus status, const char* what) {
  if (status == 0) return absl::OkStatus();
  return Unknown("%s: cuDNN status %d", what, status);
}
#define PD_CHECK_CUDNN(call) PD_RETURN_IF_ERROR(Check(call, #call))

absl::StatusOr<std::unique_ptr<Cudnn>> Load() {
  PD_ASSIGN_OR_RETURN(const DynamicLibrary library, OpenCudnn());
  auto cudnn = std::make_unique<Cudnn>();
#define PD_BIND(member, parameters) \
  PD_RETURN_IF_ERROR(library.Bind("cudnn" #member, &cudnn->member));
  PD_CUDNN(PD_BIND)
#undef PD_BIND
  PD_RETURN_IF_ERROR(Check(cudnn->Create(&cudnn->handle), "cudnnCreate"));
  return cudnn;
}

using Handle = std::shared_ptr<void>;
using Ints = std::vector<int>;

absl::StatusOr<Ints> ToInts(const std::vector<int64_t>& numbers) {
  Ints ints;
  for (int64_t n : numbers) {
    if (n < 0 || n > INT32_MAX) return Unimplemented("an extent of %d", n);
    ints.push_back(static_cast<int>(n));
  }
  return ints;
}

absl::StatusOr<int> TypeOf(DType dtype) {
  if (dtype == DType::kFloat32) return kCudnnFloat32;
  if (dtype == DType::kFloat16) return kCudnnFloat16;
  if (dtype == DType::kBFloat16) return kCudnnBFloat16;
  return Unimplemented("a convolution of %s", Name(dtype));
}

// Elements between neighbours of each extent.
std::vector<int64_t> StridesOf(const std::vector<int64_t>& extents, bool last) {
  std::vector<int64_t> strides(extents.size());
  int64_t step = last ? extents[1] : 1;
  for (size_t d = extents.size(); d-- > 0;) {
    if (d == 1 && last) continue;
    strides[d] = step;
    step *= extents[d];
  }
  if (last) strides[1] = 1;
  return strides;
}

class Bound : public BoundConvolution {
 public:
  Bound(const Cudnn* cudnn, CudaDevice* device, ConvolutionPart part)
      : cudnn_(cudnn), device_(device), part_(part) {}

  absl::Status Prepare(const Convolution& c) {
    PD_ASSIGN_OR_RETURN(const int type, TypeOf(c.dtype));
    PD_RETURN_IF_ERROR(Describe(c, c.input, type, &input_));
    PD_RETURN_IF_ERROR(Describe(c, c.output, type, &output_));
    void* made = nullptr;
    PD_CHECK_CUDNN(cudnn_->CreateFilterDescriptor(&made));
    filter_ = Handle(made, cudnn_->DestroyFilterDescriptor);
    PD_ASSIGN_OR_RETURN(const Ints filter, ToInts(c.filter));
    PD_CHECK_CUDNN(cudnn_->SetFilterNdDescriptor(
        made, type, kCudnnNchw, static_cast<int>(filter.size()),
        filter.data()));
    PD_RETURN_IF_ERROR(DescribeWork(c));
    return Choose(c);
  }

  size_t workspace() const override { return choice_.memory; }

  absl::Status Run(const void* first, const void* second, void* result,
                   void* workspace) const override {
    PD_CHECK_CUDNN(cudnn_->SetStream(cudnn_->handle, device_->stream()));
    const float one = 1, none = 0;
    const auto run =
        part_ == ConvolutionPart::kOutput  ? cudnn_->ConvolutionForward
        : part_ == ConvolutionPart::kInput ? cudnn_->ConvolutionBackwardData
                                           : cudnn_->ConvolutionBackwardFilter;
    const Ends ends = EndsOf();
    return Check(run(cudnn_->handle, &one, ends.first, first, ends.second,
                     second, work_.get(), choice_.algorithm, workspace,
                     choice_.memory, &none, ends.result, result),
                 "a convolution");
  }

 private:
  struct Ends {
    void *first, *second, *result;
  };
  Ends EndsOf() const {
    void *x = input_.get(), *w = filter_.get(), *y = output_.get();
    if (part_ == ConvolutionPart::kOutput) return {x, w, y};
    if (part_ == ConvolutionPart::kInput) return {w, y, x};
    return {x, y, w};
  }

  absl::Status Describe(const Convolution& c,
                        const std::vector<int64_t>& extents, int type,
                        Handle* handle) {
    void* made = nullptr;
    PD_CHECK_CUDNN(cudnn_->CreateTensorDescriptor(&made));
    *handle = Handle(made, cudnn_->DestroyTensorDescriptor);
    PD_ASSIGN_OR_RETURN(const Ints dims, ToInts(extents));
    PD_ASSIGN_OR_RETURN(const Ints strides,
                        ToInts(StridesOf(extents, c.channels_last)));
    PD_CHECK_CUDNN(cudnn_->SetTensorNdDescriptor(made, type,
                                                 static_cast<int>(dims.size()),
                                                 dims.data(), strides.data()));
    return absl::OkStatus();
  }

  absl::Status DescribeWork(const Convolution& c) {
    void* made = nullptr;
    PD_CHECK_CUDNN(cudnn_->CreateConvolutionDescriptor(&made));
    work_ = Handle(made, cudnn_->DestroyConvolutionDescriptor);
    PD_ASSIGN_OR_RETURN(const Ints paddings, ToInts(c.paddings));
    PD_ASSIGN_OR_RETURN(const Ints strides, ToInts(c.strides));
    PD_ASSIGN_OR_RETURN(const Ints dilations, ToInts(c.dilations));
    PD_CHECK_CUDNN(cudnn_->SetConvolutionNdDescriptor(
        made, static_cast<int>(paddings.size()), paddings.data(),
        strides.data(), dilations.data(), kCudnnCrossCorrelation,
        kCudnnFloat32));
    PD_CHECK_CUDNN(
        cudnn_->SetConvolutionGroupCount(made, static_cast<int>(c.groups)));
    const int math = c.dtype != DType::kFloat32 ? kCudnnTensorMath
                     : c.tf32                   ? kCudnnDefaultMath
                                                : kCudnnFmaMath;
    PD_CHECK_CUDNN(cudnn_->SetConvolutionMathType(made, math));
    return absl::OkStatus();
  }

  absl::Status Choose(const Convolution& c) {
    const auto rate = part_ == ConvolutionPart::kOutput
                          ? cudnn_->GetConvolutionForwardAlgorithm_v7
                      : part_ == ConvolutionPart::kInput
                          ? cudnn_->GetConvolutionBackwardDataAlgorithm_v7
                          : cudnn_->GetConvolutionBackwardFilterAlgorithm_v7;
    CudnnRated rated[kMostAlgorithms];
    int count = 0;
    const Ends ends = EndsOf();
    const CudnnStatus status =
        rate(cudnn_->handle, ends.first, ends.second, work_.get(), ends.result,
             kMostAlgorithms, &count, rated);
    for (int i = 0; status == 0 && i < count; ++i) {
      const CudnnRated& one = rated[i];
      if (one.status != 0 || one.memory > c.most_workspace ||
          (c.deterministic && one.determinism != kCudnnDeterministic))
        continue;
      choice_ = one;
      // Float32 that may not be rounded keeps the math it was asked with.
      if (c.dtype != DType::kFloat32 || c.tf32)
        PD_CHECK_CUDNN(
            cudnn_->SetConvolutionMathType(work_.get(), choice_.math));
      return absl::OkStatus();
    }
    return Unimplemented("cuDNN knows no algorithm%s in %d MiB (status %d)",
                         c.deterministic ? " of the same bits" : "",
                         c.most_workspace >> 20, status);
  }

  const Cudnn* cudnn_;
  CudaDevice* device_;
  ConvolutionPart part_;
  Handle input_, filter_, output_, work_;
  CudnnRated choice_{};
};

}  // namespace

absl::StatusOr<const Cudnn*> LoadCudnn() {
  static const auto* const kLibrary =
      new absl::StatusOr<std::unique_ptr<Cudnn>>(Load());
  if (!kLibrary->ok()) return kLibrary->status();
  return kLibrary->value().get();
}

absl::StatusOr<std::shared_ptr<const BoundConvolution>> BindConvolution(
    CudaDevice* device, const Convolution& convolution, ConvolutionPart part) {
  PD_ASSIGN_OR_RETURN(const Cudnn* cudnn, LoadCudnn());
  auto bound = std::make_shared<Bound>(cudnn, device, part);
  PD_RETURN_IF_ERROR(bound->Prepare(convolution));
  return std::shared_ptr<const BoundConvolution>(std::move(bound));
}

}  // namespace pd
