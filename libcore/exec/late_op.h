// SPDX-License-Identifier: Apache-2.0
// An op whose shapes are known only when it runs: after where_index, or in the
// block of a while. Each run infers its shapes and binds an implementation, or
// takes the binding of an earlier run with the same shapes (late_bindings.h).
// Its tensors are row-major and own their bytes, in the host's memory or, for a
// plan on a device, in the device's (late_device.h).
#ifndef PD_LIBCORE_EXEC_LATE_OP_H_
#define PD_LIBCORE_EXEC_LATE_OP_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/block_runner.h"
#include "libcore/ops/registry.h"
#include "libcore/tensor/frame.h"
#include "libcore/trace/recorder.h"

namespace pd {

class LateBindings;
class LateDevice;

/// The metadata of variables, by name.
using Metas = std::map<std::string, TensorMeta>;

/// Infers the outputs of a normalized op from the metas of its inputs. For a
/// gradient op `forward` is its forward op, by which the inputs are checked
/// first.
absl::StatusOr<Metas> InferOp(const OpDef& def, const OpDef* forward,
                              const OpDesc& op, int64_t version,
                              const Metas& inputs);

/// The variables that an op reads, or that it writes, each name once, in the
/// order of its slots. The names belong to the op, which outlives them.
class OpVariables {
 public:
  struct Item {
    const std::string& name;
    Frame::Variable variable;
  };
  void Add(const std::string& name, Frame::Variable variable) {
    items_.push_back({name, variable});
  }
  /// Null: there is none.
  const Frame::Variable* Find(absl::string_view name) const;

  size_t size() const { return items_.size(); }
  const Item& operator[](size_t i) const { return items_[i]; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  absl::InlinedVector<Item, 6> items_;
};

/// Copies share the op and its kept bindings. One thread at a time runs it.
class LateOp {
 public:
  using Variables = OpVariables;

  /// Checks `op` against its schema. `version` is the program's.
  static absl::StatusOr<LateOp> Make(const OpRegistry& registry, OpDesc op,
                                     int64_t version);

  const OpDef& def() const { return *self_->def; }
  /// Normalized.
  const OpDesc& op() const { return self_->op; }
  /// The variables of its slots, each once.
  const std::vector<std::string>& inputs() const { return self_->inputs; }
  const std::vector<std::string>& outputs() const { return self_->outputs; }

  /// Whether a run of it reads its dense inputs and writes outputs in memory of
  /// their own, and does nothing else.
  bool is_dense() const { return self_->bindings != nullptr; }

  /// Whether it passes values on in whatever memory they are (values.h): ops
  /// that run blocks, branches, and ops on arrays do.
  bool MovesValues(const Variables& inputs) const;

  /// Computes the op once on these variables. An output that is an input too
  /// may change its shape unless it is fixed. `blocks` serves ops that pass
  /// values on; null: all values are in the host's memory. `device` computes
  /// the op; null: the host does. Errors do not name the op.
  absl::Status Run(const RunContext& context, const Variables& inputs,
                   const Variables& outputs, BlockRunner* blocks,
                   LateDevice* device = nullptr) const;

  /// The implementation that computed the last Run, and the refusals of those
  /// asked before it.
  struct Choice {
    std::string implementation;         ///< its label
    std::vector<std::string> refusals;  ///< "label: reason"
  };
  using ChoicePtr = std::shared_ptr<const Choice>;
  /// Null before the first Run.
  const ChoicePtr& choice() const { return self_->choice; }
  void set_choice(ChoicePtr choice) const { self_->choice = std::move(choice); }
  /// The site in a trace that tells the choice.
  SiteId Site() const;

 private:
  struct Self {
    const OpDef* def;
    const OpDef* forward;  // of a gradient op; else null
    OpDesc op;
    int64_t version;
    std::vector<std::string> inputs, outputs;
    ChoicePtr choice = {};
    std::map<std::string, SiteId> sites = {};     // by choice
    std::shared_ptr<LateBindings> bindings = {};  // null: none can be kept
  };
  explicit LateOp(std::shared_ptr<Self> self) : self_(std::move(self)) {}

  absl::StatusOr<Metas> Infer(const Metas& inputs) const;
  // Copies from a device only the values that a shape depends on.
  absl::StatusOr<Metas> InferOutputs(const Variables& inputs,
                                     LateDevice* device) const;
  // FailedPrecondition when an input has no value.
  absl::Status CheckValues(const Variables& inputs) const;
  // Binds the op to these variables and runs it, for this run only.
  absl::Status RunOnce(const RunContext& context, const Variables& inputs,
                       const Variables& outputs, const Metas& metas,
                       BlockRunner* blocks) const;
  // Runs the binding kept for these shapes, or binds the op and keeps that.
  absl::Status RunKept(const RunContext& context, const Variables& inputs,
                       const Variables& outputs) const;

  std::shared_ptr<Self> self_;
};

/// Sets the inferred LoD, kind and height of a tensor.
void SetMeta(const TensorMeta& meta, Tensor* tensor);
/// InvalidArgument unless `tensor`, the variable `name`, has the inferred dtype
/// and shape.
absl::Status CheckFixed(const std::string& name, const TensorMeta& meta,
                        const Tensor& tensor);

/// "op 'relu' that makes 'relu_0.tmp_0'": what an error is annotated with.
std::string DescribeOp(const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_LATE_OP_H_
