// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/upcast.h"

#include <utility>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/strided_loop.h"

namespace pd {
namespace {

template <typename To, typename From>
void Convert(const From* from, To* to, int64_t n) {
  ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] = Stored<To>(static_cast<float>(from[i]));
  });
}

template <typename To>
void Round(const float* from, To* to, int64_t n) {
  ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = To(from[i]);
  });
}

void Load(const Tensor& half, float* wide) {
  if (half.dtype() == DType::kFloat16)
    Convert(half.data<Float16>(), wide, half.size());
  else
    Convert(half.data<BFloat16>(), wide, half.size());
}

void Store(const float* wide, bool nearest, Tensor* half) {
  if (nearest && half->dtype() == DType::kFloat16)
    Round(wide, half->data<Float16>(), half->size());
  else if (nearest)
    Round(wide, half->data<BFloat16>(), half->size());
  else if (half->dtype() == DType::kFloat16)
    Convert(wide, half->data<Float16>(), half->size());
  else
    Convert(wide, half->data<BFloat16>(), half->size());
}

}  // namespace

Tensor* Upcaster::Wide(Tensor* tensor, std::vector<Pair>* pairs) {
  if (tensor == nullptr || (tensor->dtype() != DType::kFloat16 &&
                            tensor->dtype() != DType::kBFloat16))
    return tensor;
  for (const Pair& pair : *pairs)
    if (pair.half == tensor) return pair.wide.get();
  auto wide = std::make_shared<Tensor>(DType::kFloat32, tensor->shape());
  wide->set_lod(tensor->lod());
  Tensor* scratch = context_->Scratch(wide->bytes());
  pairs->push_back({tensor, std::move(wide), scratch});
  return pairs->back().wide.get();
}

absl::StatusOr<Step> Upcaster::Wrap(absl::StatusOr<Step> step) const {
  if ((inputs_.empty() && outputs_.empty()) || !step.ok() || *step == nullptr)
    return step;
  const bool nearest = rounding_ == Rounding::kNearest ||
                       context_->op().AttrOr("use_mkldnn", false);
  return Step([inputs = inputs_, outputs = outputs_, nearest,
               step = *std::move(step)](const RunContext& run) {
    for (const Pair& pair : inputs) {
      pair.wide->Attach(pair.scratch->raw());
      Load(*pair.half, pair.wide->data<float>());
    }
    for (const Pair& pair : outputs) pair.wide->Attach(pair.scratch->raw());
    PD_RETURN_IF_ERROR(step(run));
    for (const Pair& pair : outputs) {
      if (pair.half->shape() != pair.wide->shape())  // it followed from data
        PD_RETURN_IF_ERROR(pair.half->Resize(pair.wide->shape()));
      if (pair.half->lod() != pair.wide->lod())
        pair.half->set_lod(pair.wide->lod());
      Store(pair.wide->data<float>(), nearest, pair.half);
    }
    return absl::OkStatus();
  });
}

}  // namespace pd
