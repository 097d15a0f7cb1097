// SPDX-License-Identifier: Apache-2.0
// An op whose formula is a few other ops in a row, as those that PaddlePaddle's
// passes fuse: a function lists the ops, and inference, the reference kernel
// and the gradient follow from theirs. The values between the ops are scratch
// memory of the step.
#ifndef PD_LIBCORE_OPS_COMMON_COMPOSED_H_
#define PD_LIBCORE_OPS_COMMON_COMPOSED_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/registry.h"

namespace pd {

/// The version of the programs that such ops are parts of: values inside have
/// rank 0.
inline constexpr int64_t kPartsVersion = 2006000;

/// Every operator with its reference kernel alone: what others are made of.
const OpRegistry& ReferenceOps();

/// The ops that an op consists of, in the making.
class Composition {
 public:
  using Names = std::vector<std::string>;
  using Slots = std::vector<std::pair<std::string, Names>>;
  using Attrs = std::map<std::string, Attribute>;
  using FindFn =
      std::function<const TensorMeta*(absl::string_view slot, size_t i)>;

  /// `op` is normalized; `find` gives the meta of an input, null if unknown.
  Composition(const OpDesc& op, FindFn find);

  const OpDesc& op() const { return op_; }
  bool HasInput(absl::string_view slot) const;
  bool HasOutput(absl::string_view slot) const;
  /// Of an input; extents may be -1. Throws MissingInput where it is not there.
  const TensorMeta& Meta(absl::string_view slot, size_t i = 0) const;
  template <typename T>
  const T& Attr(absl::string_view name) const {
    return op_.Attr<T>(name);
  }

  /// The name by which parts read the i-th variable of an input slot.
  std::string In(absl::string_view slot, size_t i = 0) const;
  /// All of a slot.
  Names Ins(absl::string_view slot) const;
  /// The name by which parts write the i-th variable of an output slot, which
  /// may be absent: then the value stays inside.
  std::string Out(absl::string_view slot, size_t i = 0) const;
  /// A name for a value between parts.
  std::string Temp();

  /// Adds an op.
  void Add(absl::string_view type, const Slots& inputs, const Slots& outputs,
           Attrs attrs = {});
  /// Adds an op of one wanted output and gives the name of that.
  std::string Apply(absl::string_view type, const Slots& inputs,
                    Attrs attrs = {}, absl::string_view slot = "Out");

  std::vector<OpDesc>& parts() { return parts_; }
  const std::vector<OpDesc>& parts() const { return parts_; }

 private:
  friend class PartTable;
  std::string NameOf(absl::string_view kind, absl::string_view slot,
                     size_t i) const;

  const OpDesc& op_;
  FindFn find_;
  std::string prefix_;  // unique in a program: random numbers depend on names
  size_t temps_ = 0;
  std::vector<OpDesc> parts_;
};

/// Lists the parts of an op.
using ComposeFn = absl::Status (*)(Composition* parts);

absl::Status InferParts(InferContext* context, ComposeFn compose);
absl::StatusOr<Step> BindParts(BindContext* context, ComposeFn compose);
/// The parts' gradients in reverse order, after the parts themselves: the op
/// has the forward op's inputs, "<output>@GRAD", and writes "<input>@GRAD".
absl::StatusOr<Step> BindPartsGrad(BindContext* context, ComposeFn compose);

/// The parts under the names of the program's variables.
absl::StatusOr<Expansion> ExpandParts(const OpDesc& op, const FindMetaFn& find,
                                      ComposeFn compose);

template <ComposeFn compose>
absl::StatusOr<Expansion> ExpandComposed(const OpDesc& op,
                                         const FindMetaFn& find) {
  return ExpandParts(op, find, compose);
}
template <ComposeFn compose>
absl::Status InferComposed(InferContext* context) {
  return InferParts(context, compose);
}
template <ComposeFn compose>
absl::StatusOr<Step> BindComposed(BindContext* context) {
  return BindParts(context, compose);
}
template <ComposeFn compose>
absl::StatusOr<Step> BindComposedGrad(BindContext* context) {
  return BindPartsGrad(context, compose);
}

/// Adds `def`, which has all but inference and kernel, as an op without a
/// gradient.
template <ComposeFn compose>
absl::Status AddComposed(OpRegistry* registry, OpDef def) {
  def.Infer(InferComposed<compose>).NoGrad().Reference(BindComposed<compose>);
  return registry->Add(std::move(def));
}

/// Adds `def`, which has all but its gradient, and its gradient op: it reads
/// every input and the gradients of the outputs `from`, and writes those of the
/// inputs `to`. `bind` is BindComposedGrad.
absl::Status AddWithComposedGrad(OpRegistry* registry, OpDef def,
                                 GradSpec::Names from, GradSpec::Names to,
                                 BindFn bind);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_COMPOSED_H_
