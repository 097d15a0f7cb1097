// SPDX-License-Identifier: Apache-2.0
// What shape and dtype inference sees and sets. It runs when a program is
// built (extents may be -1) and when it is compiled (all extents known).
#ifndef PD_LIBCORE_OPS_INFER_CONTEXT_H_
#define PD_LIBCORE_OPS_INFER_CONTEXT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/program_desc.h"
#include "libcore/base/error.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// What is known of a variable without its data.
struct TensorMeta {
  DType dtype = DType::kFloat32;
  Shape shape;  ///< -1: not known yet
  int32_t lod_level = 0;
  /// The value, where it is known already (feeds of a plan); else null. For
  /// inputs that are shapes.
  const Tensor* value = nullptr;
};

class InferContext {
 public:
  /// `op` is normalized. `find` gives an input's meta, null if unknown.
  InferContext(const OpDesc& op,
               std::function<const TensorMeta*(const std::string&)> find,
               std::function<void(const std::string&, TensorMeta)> set)
      : op_(op), find_(std::move(find)), set_(std::move(set)) {}

  const OpDesc& op() const { return op_; }
  bool HasInput(absl::string_view slot) const;
  bool HasOutput(absl::string_view slot) const;
  size_t InputCount(absl::string_view slot) const {
    return op_.Input(slot).size();
  }
  size_t OutputCount(absl::string_view slot) const {
    return op_.Output(slot).size();
  }
  /// The i-th variable of a slot that is there (see HasInput). Inputs of
  /// unknown meta have been reported before inference is asked.
  const TensorMeta& Input(absl::string_view slot, size_t i = 0) const;

  /// Sets an output's meta; does nothing when the slot is absent or @EMPTY@.
  void SetOutput(absl::string_view slot, Shape shape, DType dtype,
                 size_t i = 0);
  void SetOutput(absl::string_view slot, TensorMeta meta, size_t i = 0);
  /// Output `to` gets the meta of input `from`.
  void Share(absl::string_view from, absl::string_view to, size_t i = 0);

  /// An attribute of the schema; T must be its type.
  template <typename T>
  const T& Attr(absl::string_view name) const {
    const Attribute* a = op_.FindAttr(name);
    PD_INVARIANT(a != nullptr && std::holds_alternative<T>(*a));
    return std::get<T>(*a);
  }

 private:
  const OpDesc& op_;
  std::function<const TensorMeta*(const std::string&)> find_;
  std::function<void(const std::string&, TensorMeta)> set_;
};

// Inference that many ops share.
/// Out gets X's meta ("X" -> "Out").
absl::Status InferUnary(InferContext* context);
/// Every output "<slot>@GRAD" gets the meta of the forward input <slot>.
absl::Status InferGradLikeInput(InferContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_INFER_CONTEXT_H_
