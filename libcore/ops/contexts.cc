// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/infer_context.h"
#include "libcore/ops/missing_input.h"

namespace pd {

TensorMeta MetaOf(const Tensor& tensor) {
  TensorMeta meta;
  meta.dtype = tensor.dtype();
  meta.shape = tensor.shape();
  meta.SetLoD(tensor.lod());
  meta.kind = tensor.kind();
  meta.height = tensor.height();
  return meta;
}

bool InferContext::HasInput(absl::string_view slot) const {
  const auto& names = op_.Input(slot);
  return !names.empty() && names.front() != kEmptyVar;
}

bool InferContext::HasOutput(absl::string_view slot) const {
  const auto& names = op_.Output(slot);
  return !names.empty() && names.front() != kEmptyVar;
}

const TensorMeta& InferContext::Input(absl::string_view slot, size_t i) const {
  const auto& names = op_.Input(slot);
  const TensorMeta* meta = i < names.size() ? find_(names[i]) : nullptr;
  if (meta == nullptr) throw MissingInput{std::string(slot)};
  return *meta;
}

void InferContext::SetOutput(absl::string_view slot, Shape shape, DType dtype,
                             size_t i) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.shape = std::move(shape);
  SetOutput(slot, std::move(meta), i);
}

void InferContext::SetOutput(absl::string_view slot, TensorMeta meta,
                             size_t i) {
  const auto& names = op_.Output(slot);
  if (i >= names.size() || names[i] == kEmptyVar) return;
  constexpr int64_t kRankZero = 2005000;  // the first version that has it
  if (meta.shape.empty() && version_ < kRankZero &&
      meta.kind == VarKind::kLodTensor)
    meta.shape = {1};
  const auto bytes = BytesOfExtents(meta.shape, SizeOf(meta.dtype));
  if (!bytes.ok())
    status_.Update(
        Annotate(bytes.status(),
                 absl::StrCat("output '", slot, "' ('", names[i], "')")));
  set_(names[i], std::move(meta));
}

void InferContext::Share(absl::string_view from, absl::string_view to,
                         size_t i) {
  TensorMeta meta = Input(from, i);
  meta.value = nullptr;
  SetOutput(to, std::move(meta), i);
}

absl::Status InferUnary(InferContext* context) {
  context->Share("X", "Out");
  return absl::OkStatus();
}

absl::Status InferGradLikeInput(InferContext* context) {
  for (const auto& [slot, names] : context->op().outputs) {
    if (slot.size() <= kGradSuffix.size()) continue;
    const std::string forward =
        slot.substr(0, slot.size() - kGradSuffix.size());
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] != kEmptyVar && i < context->InputCount(forward))
        context->Share(forward, slot, i);
  }
  return absl::OkStatus();
}

Tensor* BindContext::Input(absl::string_view slot, size_t i) const {
  const auto& names = op_.Input(slot);
  if (i >= names.size() || names[i] == kEmptyVar) return nullptr;
  return FindInput(names[i]);
}

Tensor* BindContext::Output(absl::string_view slot, size_t i) const {
  const auto& names = op_.Output(slot);
  if (i >= names.size() || names[i] == kEmptyVar) return nullptr;
  return FindOutput(names[i]);
}

}  // namespace pd
