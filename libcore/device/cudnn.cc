// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cudnn.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/choice_cache.h"
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
  PD_ASSIGN_OR_RETURN(const LibraryVersion found, FindCudnn());
  cudnn->version = found.version;
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

class Bound : public BoundConvolution {
 public:
  Bound(const Cudnn* cudnn, CudaDevice* device, ConvolutionPart part)
      : cudnn_(cudnn), device_(device), part_(part) {}

  absl::Status Prepare(const Convolution& c) {
    PD_ASSIGN_OR_RETURN(const int type, CudnnTypeOf(c.dtype));
    PD_RETURN_IF_ERROR(Describe(c, c.input, type, &input_));
    PD_RETURN_IF_ERROR(Describe(c, c.output, type, &output_));
    void* made = nullptr;
    PD_CHECK_CUDNN(cudnn_->CreateFilterDescriptor(&made));
    filter_ = Handle(made, cudnn_->DestroyFilterDescriptor);
    PD_ASSIGN_OR_RETURN(const Ints filter, ToInts(c.filter));
    PD_CHECK_CUDNN(cudnn_->SetFilterNdDescriptor(
        made, type, c.filter_last ? kCudnnNhwc : kCudnnNchw,
        static_cast<int>(filter.size()), filter.data()));
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
                        ToInts(CudnnStrides(extents, c.channels_last)));
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

  // cuDNN's estimates for its algorithms, the fastest first.
  absl::StatusOr<std::vector<CudnnRated>> Rate() const {
    const auto rate = part_ == ConvolutionPart::kOutput
                          ? cudnn_->GetConvolutionForwardAlgorithm_v7
                      : part_ == ConvolutionPart::kInput
                          ? cudnn_->GetConvolutionBackwardDataAlgorithm_v7
                          : cudnn_->GetConvolutionBackwardFilterAlgorithm_v7;
    std::vector<CudnnRated> rated(kMostAlgorithms);
    int count = 0;
    const Ends ends = EndsOf();
    const CudnnStatus status =
        rate(cudnn_->handle, ends.first, ends.second, work_.get(), ends.result,
             kMostAlgorithms, &count, rated.data());
    if (status != 0)
      return Unimplemented("cuDNN knows no such convolution (status %d)",
                           status);
    rated.resize(static_cast<size_t>(count));
    return rated;
  }

  static bool Fits(const Convolution& c, const CudnnRated& one) {
    return one.status == 0 && one.memory <= c.most_workspace &&
           (!c.deterministic || one.determinism == kCudnnDeterministic);
  }

  absl::Status Choose(const Convolution& c) {
    PD_ASSIGN_OR_RETURN(const std::vector<CudnnRated> rated, Rate());
    const auto first =
        std::find_if(rated.begin(), rated.end(),
                     [&](const CudnnRated& one) { return Fits(c, one); });
    if (first == rated.end())
      return Unimplemented("cuDNN knows no algorithm%s in %d MiB",
                           c.deterministic ? " of the same bits" : "",
                           c.most_workspace >> 20);
    choice_ = *first;
    if (c.exhaustive) PD_RETURN_IF_ERROR(ChooseByTrying(c, rated));
    return SetMath(c, choice_.math);
  }

  // Float32 that may not be rounded keeps the math it was asked with.
  absl::Status SetMath(const Convolution& c, int math) {
    if (c.dtype == DType::kFloat32 && !c.tf32) return absl::OkStatus();
    PD_CHECK_CUDNN(cudnn_->SetConvolutionMathType(work_.get(), math));
    return absl::OkStatus();
  }

  // Leaves the choice as it is, with a warning, where nothing can be tried.
  absl::Status ChooseByTrying(const Convolution& c,
                              const std::vector<CudnnRated>& rated) {
    ChoiceCache& cache = ChoiceCache::OfUser("convolutions.txt");
    PD_ASSIGN_OR_RETURN(const std::string key, KeyOf(c));
    if (const auto kept = cache.Find(key); kept.has_value()) {
      if (TakeKept(c, *kept, rated)) return absl::OkStatus();
      LogWarning(
          "'%s' says algorithm %d, math %d, which cuDNN does not take; "
          "all are tried anew for %s",
          cache.path(), kept->algorithm, kept->math, key);
    }
    const auto found = Try(c, rated);
    if (!found.ok()) {
      LogWarning(
          "cuDNN's algorithms cannot be tried, what it expects to be "
          "the fastest is taken: %s",
          std::string(found.status().message()));
      return absl::OkStatus();
    }
    choice_ = *found;
    cache.Keep(key, {choice_.algorithm, choice_.math});
    return absl::OkStatus();
  }

  // All that the times depend on, in one line.
  absl::StatusOr<std::string> KeyOf(const Convolution& c) const {
    PD_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
    std::string device = device_->info().name;
    for (char& letter : device)
      if (absl::ascii_iscntrl(static_cast<unsigned char>(letter))) letter = ' ';
    const auto list = [](const std::vector<int64_t>& numbers) {
      return absl::StrJoin(numbers, ",");
    };
    constexpr const char* kParts[] = {"output", "input", "filter"};
    return absl::StrCat(
        device, "; cuDNN ", cudnn_->version, "; driver ", driver->release,
        driver->release.empty() ? "" : " ", CudaVersionText(driver->version),
        "; ", kParts[static_cast<int>(part_)], " ", Name(c.dtype),
        c.tf32 ? " tf32" : "", c.channels_last ? " channels last" : "",
        c.filter_last ? " filter last" : "",
        c.deterministic ? " deterministic" : "", " x ", list(c.input), " w ",
        list(c.filter), " y ", list(c.output), " pad ", list(c.paddings),
        " stride ", list(c.strides), " dilation ", list(c.dilations),
        " groups ", c.groups, " workspace ", c.most_workspace);
  }

  // A file's word is not taken for what cuDNN can say.
  bool TakeKept(const Convolution& c, const KeptChoice& kept,
                const std::vector<CudnnRated>& rated) {
    if (kept.math > kCudnnFmaMath || !MathFits(c, kept.math)) return false;
    const auto known =
        std::find_if(rated.begin(), rated.end(), [&](const CudnnRated& one) {
          return one.algorithm == kept.algorithm &&
                 (!c.deterministic || one.determinism == kCudnnDeterministic);
        });
    if (known == rated.end() || !SetMath(c, kept.math).ok()) return false;
    const auto measure =
        part_ == ConvolutionPart::kOutput
            ? cudnn_->GetConvolutionForwardWorkspaceSize
        : part_ == ConvolutionPart::kInput
            ? cudnn_->GetConvolutionBackwardDataWorkspaceSize
            : cudnn_->GetConvolutionBackwardFilterWorkspaceSize;
    const Ends ends = EndsOf();
    size_t memory = 0;
    if (measure(cudnn_->handle, ends.first, ends.second, work_.get(),
                ends.result, kept.algorithm, &memory) != 0 ||
        memory > c.most_workspace)
      return false;
    choice_ = *known;
    choice_.math = kept.math;
    choice_.memory = memory;
    return true;
  }

  // Whether a time with this math is that of what will run.
  static bool MathFits(const Convolution& c, int math) {
    return c.dtype != DType::kFloat32 || c.tf32 ||
           (math != kCudnnTensorMath && math != kCudnnConvertingMath);
  }

  // Has cuDNN run all its algorithms; gives the fastest that fits.
  absl::StatusOr<CudnnRated> Try(const Convolution& c,
                                 const std::vector<CudnnRated>& rated) const {
    const auto memory_for = [&](const std::vector<int64_t>& extents)
        -> absl::StatusOr<std::shared_ptr<void>> {
      const size_t bytes =
          static_cast<size_t>(NumElements(extents)) * SizeOf(c.dtype);
      PD_ASSIGN_OR_RETURN(auto memory, device_->Allocate(bytes));
      PD_RETURN_IF_ERROR(device_->Clear(memory.get(), bytes));
      return memory;
    };
    PD_ASSIGN_OR_RETURN(const auto x, memory_for(c.input));
    PD_ASSIGN_OR_RETURN(const auto w, memory_for(c.filter));
    PD_ASSIGN_OR_RETURN(const auto y, memory_for(c.output));
    size_t bytes = 0;
    for (const CudnnRated& one : rated)
      if (Fits(c, one)) bytes = std::max(bytes, one.memory);
    std::shared_ptr<void> workspace;
    if (bytes > 0) {
      PD_ASSIGN_OR_RETURN(workspace, device_->Allocate(bytes));
    }
    const bool input = part_ == ConvolutionPart::kInput;
    const bool output = part_ == ConvolutionPart::kOutput;
    const auto run = output  ? cudnn_->FindConvolutionForwardAlgorithmEx
                     : input ? cudnn_->FindConvolutionBackwardDataAlgorithmEx
                             : cudnn_->FindConvolutionBackwardFilterAlgorithmEx;
    const Ends ends = EndsOf();
    CudnnRated tried[kMostAlgorithms];
    int count = 0;
    PD_CHECK_CUDNN(cudnn_->SetStream(cudnn_->handle, device_->stream()));
    PD_RETURN_IF_ERROR(Check(
        run(cudnn_->handle, ends.first, input ? w.get() : x.get(), ends.second,
            output ? w.get() : y.get(), work_.get(), ends.result,
            output  ? y.get()
            : input ? x.get()
                    : w.get(),
            kMostAlgorithms, &count, tried, workspace.get(), bytes),
        "trying the algorithms of a convolution"));
    PD_RETURN_IF_ERROR(device_->Synchronize());
    for (int i = 0; i < count; ++i)
      if (Fits(c, tried[i]) && MathFits(c, tried[i].math)) return tried[i];
    return Unimplemented("none of %d that ran fits", count);
  }

  const Cudnn* cudnn_;
  CudaDevice* device_;
  ConvolutionPart part_;
  Handle input_, filter_, output_, work_;
  CudnnRated choice_{};
};

}  // namespace

absl::StatusOr<int> CudnnTypeOf(DType dtype) {
  if (dtype == DType::kFloat32) return kCudnnFloat32;
  if (dtype == DType::kFloat16) return kCudnnFloat16;
  if (dtype == DType::kBFloat16) return kCudnnBFloat16;
  return Unimplemented("a convolution of %s", Name(dtype));
}

std::vector<int64_t> CudnnStrides(const std::vector<int64_t>& extents,
                                  bool last) {
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
