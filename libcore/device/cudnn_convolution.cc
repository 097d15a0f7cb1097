// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cudnn_convolution.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/log.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/choice_cache.h"
#include "libcore/device/cuda_libraries.h"
#include "libcore/device/cudnn_nodes.h"

namespace pd {
namespace {

using namespace cudnn_graph;  // NOLINT: its numbers

// Engines that an exhaustive search runs, and how often each.
constexpr size_t kMostTried = 10;
constexpr int kTimedRuns = 3;
// Bound convolutions that are shared; resnet152 has some two hundred.
constexpr size_t kMostShared = 1000;

// Names of the tensors in a graph; virtual ones follow.
enum Id : int64_t { kX = 1, kW, kR, kB, kY, kFirstVirtual };

// The operation of each part.
struct PartNumbers {
  const char* name;
  int operation, alpha, beta, convolution, x, w, y;
  Id first, second, result;
};
constexpr PartNumbers kParts[] = {
    {"output", kConvolutionForward, kForwardAlpha, kForwardBeta,
     kForwardConvolution, kForwardX, kForwardW, kForwardY, kX, kW, kY},
    {"input", kConvolutionBackwardData, kDataAlpha, kDataBeta, kDataConvolution,
     kDataDx, kDataW, kDataDy, kW, kY, kX},
    {"filter", kConvolutionBackwardFilter, kFilterAlpha, kFilterBeta,
     kFilterConvolution, kFilterX, kFilterDw, kFilterDy, kX, kY, kW}};

std::vector<int64_t> BiasExtents(const std::vector<int64_t>& output) {
  std::vector<int64_t> extents(output.size(), 1);
  if (output.size() > 1) extents[1] = output[1];
  return extents;
}

// All that a choice depends on, in one line.
absl::StatusOr<std::string> KeyOf(const CudaDevice& device,
                                  const Convolution& c, ConvolutionPart part,
                                  const ConvolutionTail& tail) {
  PD_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  PD_ASSIGN_OR_RETURN(const Cudnn* cudnn, LoadCudnn());
  std::string name = device.info().name;
  for (char& letter : name)
    if (absl::ascii_iscntrl(static_cast<unsigned char>(letter))) letter = ' ';
  const auto list = [](const std::vector<int64_t>& numbers) {
    return absl::StrJoin(numbers, ",");
  };
  std::string key = absl::StrCat(
      name, "; cuDNN ", cudnn->version, "; driver ", driver->release,
      driver->release.empty() ? "" : " ", CudaVersionText(driver->version),
      "; ", kParts[static_cast<int>(part)].name, " ", Name(c.dtype),
      c.tf32 ? " tf32" : "", c.channels_last ? " channels last" : "",
      c.deterministic ? " deterministic" : "");
  absl::StrAppend(&key, " x ", list(c.input), " w ", list(c.filter), " y ",
                  list(c.output), " pad ", list(c.paddings), " stride ",
                  list(c.strides), " dilation ", list(c.dilations), " groups ",
                  c.groups, " workspace ", c.most_workspace);
  if (tail.residual) absl::StrAppend(&key, " residual");
  if (tail.bias) absl::StrAppend(&key, " bias");
  if (tail.relu) absl::StrAppend(&key, " relu ", tail.top);
  return key;
}

class Bound : public BoundConvolution {
 public:
  Bound(CudaDevice* device, const Convolution& c, ConvolutionPart part,
        const ConvolutionTail& tail)
      : device_(device),
        c_(c),
        numbers_(kParts[static_cast<int>(part)]),
        tail_(tail),
        plan_(device) {}

  absl::Status Prepare(const std::string& key) {
    PD_RETURN_IF_ERROR(plan_.Open());
    PD_ASSIGN_OR_RETURN(type_, CudnnTypeOf(c_.dtype));
    PD_RETURN_IF_ERROR(AddConvolution());
    if (tail_.residual) PD_RETURN_IF_ERROR(AddSum(kR, c_.output));
    if (tail_.bias) PD_RETURN_IF_ERROR(AddSum(kB, BiasExtents(c_.output)));
    if (tail_.relu) PD_RETURN_IF_ERROR(AddRelu());
    PD_RETURN_IF_ERROR(plan_.Finish());
    EngineDemands demands;
    demands.exact = c_.dtype == DType::kFloat32 && !c_.tf32;
    demands.deterministic = c_.deterministic;
    demands.most_workspace = c_.most_workspace;
    if (!c_.exhaustive || !ChooseByTrying(key, demands))
      PD_RETURN_IF_ERROR(plan_.Choose(demands, "a convolution"));
    LogDebug("engine %d, number %d of those that cuDNN recommends, for %s",
             plan_.engine().number, plan_.engine().position, key);
    return absl::OkStatus();
  }

  size_t workspace() const override { return plan_.workspace(); }

  absl::Status Run(const ConvolutionData& data,
                   void* workspace) const override {
    std::vector<int64_t> ids = {numbers_.first, numbers_.second,
                                numbers_.result};
    std::vector<const void*> pointers = {data.first, data.second, data.result};
    if (tail_.residual) ids.push_back(kR), pointers.push_back(data.residual);
    if (tail_.bias) ids.push_back(kB), pointers.push_back(data.bias);
    return plan_.Run(ids, pointers, workspace, "a convolution");
  }

 private:
  // Tensors between two operations are float32 and are not in memory.
  absl::StatusOr<CudnnNode> Tensor(const std::vector<int64_t>& extents,
                                   int64_t id) {
    const bool is_virtual = id >= kFirstVirtual;
    return plan_.Tensor({extents, CudnnStrides(extents, c_.channels_last),
                         is_virtual ? kCudnnFloat32 : type_, id, is_virtual});
  }

  // The result of the next operation: the output, when it is the last one.
  absl::StatusOr<CudnnNode> Result() {
    const size_t all = size_t{1} + tail_.residual + tail_.bias + tail_.relu;
    const bool last = plan_.operations() + 1 == all;
    return Tensor(c_.output, last ? int64_t{kY}
                                  : kFirstVirtual + static_cast<int64_t>(
                                                        plan_.operations()));
  }

  absl::Status AddConvolution() {
    PD_ASSIGN_OR_RETURN(const CudnnNode x, Tensor(c_.input, kX));
    PD_ASSIGN_OR_RETURN(const CudnnNode w, Tensor(c_.filter, kW));
    PD_ASSIGN_OR_RETURN(const CudnnNode y, Result());
    CudnnNode work = plan_.Make(kConvolution);
    work.Set(kConvolutionType, kTypeDataType, kCudnnFloat32)
        .Set(kConvolutionMode, kTypeConvolutionMode, kCudnnCrossCorrelation)
        .Set(kConvolutionDims, kTypeInt64,
             static_cast<int64_t>(c_.paddings.size()))
        .Set(kConvolutionPrePaddings, kTypeInt64, c_.paddings)
        .Set(kConvolutionPostPaddings, kTypeInt64, c_.paddings)
        .Set(kConvolutionStrides, kTypeInt64, c_.strides)
        .Set(kConvolutionDilations, kTypeInt64, c_.dilations);
    PD_RETURN_IF_ERROR(plan_.Keep(work, "a convolution"));
    CudnnNode operation = plan_.Make(numbers_.operation);
    operation.SetNode(numbers_.x, x)
        .SetNode(numbers_.w, w)
        .SetNode(numbers_.y, y)
        .SetNode(numbers_.convolution, work)
        .Set(numbers_.alpha, kTypeFloat, 1.0f)
        .Set(numbers_.beta, kTypeFloat, 0.0f);
    last_ = {y};
    return plan_.Add(std::move(operation), "a convolution's tensors");
  }

  absl::Status AddPointwise(CudnnNode mode, const CudnnNode* b) {
    PD_ASSIGN_OR_RETURN(const CudnnNode y, Result());
    PD_RETURN_IF_ERROR(plan_.AddPointwise(std::move(mode), last_.back(), b, y));
    last_ = {y};
    return absl::OkStatus();
  }

  absl::Status AddSum(int64_t id, const std::vector<int64_t>& extents) {
    PD_ASSIGN_OR_RETURN(const CudnnNode b, Tensor(extents, id));
    CudnnNode mode = plan_.Make(kPointwise);
    mode.Set(kPointwiseMode, kTypePointwiseMode, kAdd);
    return AddPointwise(std::move(mode), &b);
  }

  absl::Status AddRelu() {
    CudnnNode mode = plan_.Make(kPointwise);
    mode.Set(kPointwiseMode, kTypePointwiseMode, kReluForward);
    if (tail_.top > 0)
      mode.Set(kPointwiseReluUpper, kTypeDouble,
               static_cast<double>(tail_.top));
    return AddPointwise(std::move(mode), nullptr);
  }

  // False, after a warning, where nothing can be tried.
  bool ChooseByTrying(const std::string& key, const EngineDemands& demands) {
    ChoiceCache& cache = ChoiceCache::OfUser("convolutions.txt");
    if (const auto kept = cache.Find(key); kept.has_value()) {
      auto engine = plan_.EngineAt(kept->position, kept->engine, demands);
      if (engine.ok()) {
        plan_.Take(*std::move(engine));
        return true;
      }
      LogWarning(
          "'%s' says engine %d, number %d of cuDNN's recommendations, which "
          "cuDNN does not take; all are tried anew for %s",
          cache.path(), kept->engine, kept->position, key);
    }
    const auto found = Try(demands);
    if (!found.ok()) {
      LogWarning(
          "cuDNN's engines cannot be tried, what it expects to be the fastest "
          "is taken: %s",
          std::string(found.status().message()));
      return false;
    }
    cache.Keep(key, {found->position, found->number});
    plan_.Take(*found);
    return true;
  }

  // Runs the engines on memory that is taken for that; gives the fastest.
  absl::StatusOr<GraphEngine> Try(const EngineDemands& demands) {
    PD_ASSIGN_OR_RETURN(std::vector<GraphEngine> engines,
                        plan_.Engines(demands, kMostTried));
    size_t bytes = 0;
    for (const GraphEngine& one : engines)
      bytes = std::max(bytes, one.workspace);
    std::vector<std::shared_ptr<void>> memory;
    const auto take =
        [&](const std::vector<int64_t>& extents) -> absl::StatusOr<void*> {
      return Take(static_cast<size_t>(NumElements(extents)) * SizeOf(c_.dtype),
                  &memory);
    };
    PD_ASSIGN_OR_RETURN(void* const x, take(c_.input));
    PD_ASSIGN_OR_RETURN(void* const w, take(c_.filter));
    PD_ASSIGN_OR_RETURN(void* const y, take(c_.output));
    const auto of = [&](Id id) { return id == kX ? x : id == kW ? w : y; };
    ConvolutionData data = {of(numbers_.first), of(numbers_.second),
                            of(numbers_.result)};
    if (tail_.residual) {
      PD_ASSIGN_OR_RETURN(data.residual, take(c_.output));
    }
    if (tail_.bias) {
      PD_ASSIGN_OR_RETURN(data.bias, take(BiasExtents(c_.output)));
    }
    PD_ASSIGN_OR_RETURN(void* const workspace, Take(bytes, &memory));
    absl::StatusOr<GraphEngine> fastest = Unimplemented("none of them ran");
    double best = 0;
    for (GraphEngine& engine : engines) {
      plan_.Take(engine);
      const absl::StatusOr<double> seconds = Time(data, workspace);
      if (!seconds.ok() || (fastest.ok() && *seconds >= best)) continue;
      best = *seconds;
      fastest = std::move(engine);
    }
    return fastest;
  }

  // Cleared memory that lives as long as `memory`; null for none.
  absl::StatusOr<void*> Take(size_t bytes,
                             std::vector<std::shared_ptr<void>>* memory) {
    if (bytes == 0) return nullptr;
    PD_ASSIGN_OR_RETURN(auto taken, device_->Allocate(bytes));
    PD_RETURN_IF_ERROR(device_->Clear(taken.get(), bytes));
    memory->push_back(std::move(taken));
    return memory->back().get();
  }

  // Of several runs after one that may load its kernels.
  absl::StatusOr<double> Time(const ConvolutionData& data, void* workspace) {
    PD_ASSIGN_OR_RETURN(const auto begin, device_->MakeMark());
    PD_ASSIGN_OR_RETURN(const auto end, device_->MakeMark());
    PD_RETURN_IF_ERROR(Run(data, workspace));
    PD_RETURN_IF_ERROR(device_->Synchronize());
    PD_RETURN_IF_ERROR(device_->Put(*begin));
    for (int i = 0; i < kTimedRuns; ++i)
      PD_RETURN_IF_ERROR(Run(data, workspace));
    PD_RETURN_IF_ERROR(device_->Put(*end));
    PD_RETURN_IF_ERROR(device_->WaitFor(*end));
    return device_->SecondsBetween(*begin, *end);
  }

  CudaDevice* device_;
  const Convolution c_;
  const PartNumbers& numbers_;
  const ConvolutionTail tail_;
  GraphPlan plan_;
  int type_ = 0;
  std::vector<CudnnNode> last_;  // the last result
};

// Plans that cuDNN made in this process: making one can take it a tenth of a
// second, and a network has many equal convolutions. An entry is of its device
// as long as that is there.
class Shared {
 public:
  using BoundPtr = std::shared_ptr<const BoundConvolution>;

  BoundPtr Find(CudaDevice* device, const std::string& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.device.lock().get() != device)
      return nullptr;
    return found->second.bound;
  }
  void Keep(CudaDevice* device, const std::string& key, BoundPtr bound) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (entries_.size() >= kMostShared) entries_.clear();
    entries_[key] = {device->weak_from_this(), std::move(bound)};
  }

 private:
  struct Entry {
    std::weak_ptr<CudaDevice> device;
    BoundPtr bound;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BoundConvolution>> BindConvolution(
    CudaDevice* device, const Convolution& convolution, ConvolutionPart part,
    const ConvolutionTail& tail) {
  static auto* const kShared = new Shared;
  PD_ASSIGN_OR_RETURN(const std::string key,
                      KeyOf(*device, convolution, part, tail));
  const std::string shared =
      absl::StrCat(convolution.exhaustive ? "tried " : "", key);
  if (auto known = kShared->Find(device, shared)) return known;
  auto bound = std::make_shared<Bound>(device, convolution, part, tail);
  PD_RETURN_IF_ERROR(bound->Prepare(key));
  kShared->Keep(device, shared, bound);
  return std::shared_ptr<const BoundConvolution>(std::move(bound));
}

}  // namespace pd
