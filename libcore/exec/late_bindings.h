// SPDX-License-Identifier: Apache-2.0
// The bindings of one late op on the host that are kept for its next runs, by
// the shapes, dtypes and LoD of its inputs. Internal to libcore/exec.
#ifndef PD_LIBCORE_EXEC_LATE_BINDINGS_H_
#define PD_LIBCORE_EXEC_LATE_BINDINGS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/late_binder.h"
#include "libcore/exec/late_op.h"

namespace pd {

/// An op bound to tensors of its own, which get the bytes of variables in each
/// run: a sub-block makes its variables anew whenever it runs.
class LateBinding {
 public:
  /// `metas` are the outputs', with static shapes; everything is dense.
  static absl::StatusOr<std::unique_ptr<LateBinding>> Make(
      const LateOp& op, const LateOp::Variables& inputs,
      const LateOp::Variables& outputs, const Metas& metas);

  /// Whether these are as the variables that it was made for: dense inputs of
  /// the same dtypes, shapes and LoD.
  bool Fits(const LateOp::Variables& inputs,
            const LateOp::Variables& outputs) const;

  /// Computes the op on variables of the shapes that it was made for.
  absl::Status Run(const RunContext& context, const LateOp::Variables& inputs,
                   const LateOp::Variables& outputs);

  const HostBinding& bound() const { return bound_; }

 private:
  struct Output {
    TensorMeta meta;
    Tensor own;
    Tensor* bound = nullptr;  // `own`, or an input's that is written in place
    bool fixed = false;
    int32_t input = -1;     // the input that is the same variable; -1: none
    bool replaces = false;  // the variable is an input as well
    Tensor spare = {};      // bytes for such a variable's next value
  };
  LateBinding() = default;
  absl::Status Prepare(const OpVariables::Item& variable, Output* output);

  std::deque<Tensor>
      inputs_;  // as many as the op has, in the order of the variables
  std::deque<Output> outputs_;
  HostBinding bound_;
};

class LateBindings {
 public:
  /// More bindings of an op than these are not kept: the oldest goes.
  static constexpr size_t kMost = 64;
  /// Tensors of more elements are no shapes or indices that shapes follow from.
  static constexpr int64_t kMostValues = 64;

  using InferFn = std::function<absl::StatusOr<Metas>(const Metas&)>;

  /// The binding for variables like these, or null.
  LateBinding* Find(const LateOp::Variables& inputs,
                    const LateOp::Variables& outputs);

  /// Whether a binding made for variables like these may be kept: `made`,
  /// which `infer` gave for `inputs`, must follow from shapes, or from the
  /// elements of small tensors, which then belong to the key.
  bool MayKeep(const Metas& inputs, const Metas& made, const InferFn& infer);

  /// Keeps it for such variables.
  LateBinding* Keep(const LateOp::Variables& inputs,
                    const LateOp::Variables& outputs,
                    std::unique_ptr<LateBinding> binding);

 private:
  struct Kept {
    std::unique_ptr<LateBinding> binding;
    uint64_t used = 0;
  };
  void MakeKey(const LateOp::Variables& inputs,
               const LateOp::Variables& outputs);

  absl::flat_hash_map<std::string, Kept> kept_;
  LateBinding* last_ = nullptr;  // the one of the last run, if it is kept
  std::string key_;              // kept for its capacity
  uint64_t uses_ = 0;
  bool by_values_ = false;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_LATE_BINDINGS_H_
