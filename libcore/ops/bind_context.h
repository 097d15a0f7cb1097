// SPDX-License-Identifier: Apache-2.0
// The context of an implementation being bound into a plan, and the step that
// it returns. All names, attributes and shapes are resolved at that moment; a
// step only computes.
#ifndef PD_LIBCORE_OPS_BIND_CONTEXT_H_
#define PD_LIBCORE_OPS_BIND_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/ir/program_desc.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class World;

/// Values that change from run to run.
struct RunContext {
  uint64_t seed = 0;  ///< the user's
  uint64_t step = 0;  ///< the training step, for random ops
  /// The processes that work together; a plan sets its registry's where its
  /// caller has set none. Null: this one is alone.
  const World* world = nullptr;
};

/// Computes the op once. Captured Tensors have their bytes when it is called.
/// An error is about the data (an id out of range); it allocates only then.
using Step = std::function<absl::Status(const RunContext&)>;

class BlockRunner;

class BindContext {
 public:
  virtual ~BindContext() = default;

  /// The op, normalized: every attribute of the schema is there.
  const OpDesc& op() const { return op_; }

  /// The tensor of an input slot; null when the slot is absent or @EMPTY@.
  /// Shape, dtype and layout are final; the bytes are there when steps run.
  Tensor* Input(absl::string_view slot, size_t i = 0) const;
  Tensor* Output(absl::string_view slot, size_t i = 0) const;
  size_t InputCount(absl::string_view slot) const {
    return op_.Input(slot).size();
  }
  size_t OutputCount(absl::string_view slot) const {
    return op_.Output(slot).size();
  }

  /// An attribute of the schema; T must be its type.
  template <typename T>
  const T& Attr(absl::string_view name) const {
    const Attribute* a = op_.FindAttr(name);
    PD_INVARIANT(a != nullptr && std::holds_alternative<T>(*a));
    return std::get<T>(*a);
  }

  /// The out tensor has exactly the bytes of `in`: no step is needed (reshape).
  virtual void Alias(Tensor* in, Tensor* out) = 0;
  /// The step may write `out` over `in` when nobody reads `in` later
  /// (element i of out depends on element i of in alone).
  virtual void MayShare(Tensor* in, Tensor* out) = 0;
  /// The step needs the shape of `input` only: its bytes may be gone by then.
  virtual void NoBuffer(Tensor* input) = 0;
  /// Uninitialised bytes for the time of this step.
  virtual Tensor* Scratch(size_t bytes) = 0;
  /// Bytes that a forward op leaves for its gradient op under a name that both
  /// can make (an output's name and a suffix). Keep returns them to the writer;
  /// Kept returns null when the forward implementation left none.
  virtual Tensor* Keep(const std::string& name, DType dtype, Shape shape) = 0;
  virtual Tensor* Kept(const std::string& name) = 0;
  /// For ops that run blocks or hand values on (values.h); null for others.
  virtual BlockRunner* blocks() { return nullptr; }

  // For layout-aware implementations.
  /// The tensor in the given layout (null: row-major). A persistable that no
  /// step has used yet is rearranged once for good; otherwise a reorder step
  /// goes before this one.
  virtual absl::StatusOr<Tensor*> In(Tensor* tensor,
                                     const LayoutPtr& layout) = 0;
  /// The tensor to write in the given layout. It is `tensor` itself unless it
  /// is a persistable whose layout other steps rely on: then a reorder step
  /// follows this one.
  virtual absl::StatusOr<Tensor*> Out(Tensor* tensor,
                                      const LayoutPtr& layout) = 0;
  /// The layout of a variable of the same block by name, where it is known
  /// (null: row-major or not known). A gradient wants its forward's layout.
  virtual LayoutPtr LayoutOf(const std::string& name) const = 0;
  /// True for variables that no step of this plan writes. Other plans may.
  virtual bool IsConstant(const Tensor* tensor) const = 0;
  /// True for constants whose value is there now and stays as long as the plan
  /// does (PlanOptions::frozen): a step may keep what it makes of it.
  virtual bool IsFrozen(const Tensor* tensor) const = 0;
  /// True for plans that compute gradients, or may.
  virtual bool IsTraining() const = 0;

 protected:
  explicit BindContext(const OpDesc& op) : op_(op) {}
  // The same name may stand on both sides of an op and mean two tensors.
  virtual Tensor* FindInput(const std::string& name) const = 0;
  virtual Tensor* FindOutput(const std::string& name) const = 0;

 private:
  const OpDesc& op_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_BIND_CONTEXT_H_
