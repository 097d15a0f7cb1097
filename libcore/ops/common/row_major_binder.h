// SPDX-License-Identifier: Apache-2.0
// The base of BindContexts of ops outside of a plan's fixed order: tensors are
// row-major, nothing shares memory, nothing is kept for gradients and nothing
// is known of variables.
#ifndef PD_LIBCORE_OPS_COMMON_ROW_MAJOR_BINDER_H_
#define PD_LIBCORE_OPS_COMMON_ROW_MAJOR_BINDER_H_

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/bind_context.h"

namespace pd {

class RowMajorBinder : public BindContext {
 public:
  void Alias(Tensor* in, Tensor* out) override {
    aliases_.emplace_back(in, out);
  }
  void MayShare(Tensor*, Tensor*) override {}
  void NoBuffer(Tensor*) override {}
  Tensor* Kept(const std::string&) override { return nullptr; }
  absl::StatusOr<Tensor*> In(Tensor* tensor, const LayoutPtr& layout) override {
    return RowMajor(tensor, layout);
  }
  absl::StatusOr<Tensor*> Out(Tensor* tensor,
                              const LayoutPtr& layout) override {
    return RowMajor(tensor, layout);
  }
  LayoutPtr LayoutOf(const std::string&) const override { return nullptr; }
  bool IsConstant(const Tensor*) const override { return false; }
  bool IsFrozen(const Tensor*) const override { return false; }

  /// The step, and the copies that the implementation asked for in place of
  /// one; null where there is nothing to do.
  Step WithCopies(Step step) const {
    if (aliases_.empty()) return step;
    return [aliases = aliases_, step](const RunContext& run) -> absl::Status {
      if (step != nullptr) PD_RETURN_IF_ERROR(step(run));
      for (const auto& [in, out] : aliases)
        if (out->bytes() > 0 && out->raw() != in->raw())
          std::memmove(out->raw(), in->raw(), out->bytes());
      return absl::OkStatus();
    };
  }
  /// Pairs of tensors that take the place of a step: the second is to become
  /// the bytes of the first.
  const std::vector<std::pair<Tensor*, Tensor*>>& aliases() const {
    return aliases_;
  }

 protected:
  explicit RowMajorBinder(const OpDesc& op) : BindContext(op) {}

 private:
  static absl::StatusOr<Tensor*> RowMajor(Tensor* tensor,
                                          const LayoutPtr& layout) {
    if (layout == nullptr) return tensor;
    return Unimplemented("tensors are row-major here");
  }

  std::vector<std::pair<Tensor*, Tensor*>> aliases_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_ROW_MAJOR_BINDER_H_
