// SPDX-License-Identifier: Apache-2.0
// The context of shape and dtype inference. Inference runs when a program is
// built (extents may be -1, LoD unknown), when it is compiled (what feeds and
// constants determine is known), and, for ops whose output was not determined
// by then, before each run of the op (everything is known).
#ifndef PD_LIBCORE_OPS_INFER_CONTEXT_H_
#define PD_LIBCORE_OPS_INFER_CONTEXT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/ir/program_desc.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// Metadata of a variable: what is known without its data.
struct TensorMeta {
  DType dtype = DType::kFloat32;
  Shape shape;  ///< -1: not known yet
  int32_t lod_level = 0;
  /// Offsets by level, as many as lod_level; empty when not known yet or when
  /// the variable is no sequence.
  LoD lod;
  VarKind kind = VarKind::kLodTensor;
  int64_t height = 0;  ///< of selected rows
  /// The value, where it is known already; else null. For inputs that are
  /// shapes, axes, sizes: without it an extent that follows from it is -1.
  const Tensor* value = nullptr;

  /// Sets LoD and level.
  void SetLoD(LoD offsets) {
    lod = std::move(offsets);
    lod_level = static_cast<int32_t>(lod.size());
  }
};

/// The metadata of a tensor, without its value.
TensorMeta MetaOf(const Tensor& tensor);

class InferContext {
 public:
  /// `op` is normalized. `find` gives an input's meta, null if unknown.
  /// Programs of PaddlePaddle before 2.5 know no rank 0: where `version` is one
  /// of those, an output of shape [] gets shape [1].
  InferContext(const OpDesc& op, int64_t version,
               std::function<const TensorMeta*(const std::string&)> find,
               std::function<void(const std::string&, TensorMeta)> set)
      : op_(op),
        version_(version),
        find_(std::move(find)),
        set_(std::move(set)) {}

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
  /// A shape that cannot be (BytesOfExtents) makes the inference fail.
  void SetOutput(absl::string_view slot, Shape shape, DType dtype,
                 size_t i = 0);
  void SetOutput(absl::string_view slot, TensorMeta meta, size_t i = 0);
  /// Output `to` gets the meta of input `from`.
  void Share(absl::string_view from, absl::string_view to, size_t i = 0);

  /// The first output whose shape cannot be, or OK.
  const absl::Status& status() const { return status_; }

  /// An attribute of the schema; T must be its type.
  template <typename T>
  const T& Attr(absl::string_view name) const {
    const Attribute* a = op_.FindAttr(name);
    PD_INVARIANT(a != nullptr && std::holds_alternative<T>(*a));
    return std::get<T>(*a);
  }

 private:
  const OpDesc& op_;
  int64_t version_;
  std::function<const TensorMeta*(const std::string&)> find_;
  std::function<void(const std::string&, TensorMeta)> set_;
  absl::Status status_;
};

// Inference that many ops share.
/// Out gets X's meta ("X" -> "Out").
absl::Status InferUnary(InferContext* context);
/// OK: the shapes are known when the op has run.
inline absl::Status InferNothing(InferContext*) { return absl::OkStatus(); }
/// Every output "<slot>@GRAD" gets the meta of the forward input <slot>.
absl::Status InferGradLikeInput(InferContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_INFER_CONTEXT_H_
