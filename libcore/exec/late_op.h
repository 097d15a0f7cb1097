// SPDX-License-Identifier: Apache-2.0
// An op that is inferred and bound each time it runs, because its shapes are
// known only then: after where_index, in the block of a while. Its tensors are
// row-major and have bytes of their own, on the host or, where the plan has a
// device, in memory of that (late_device.h).
#ifndef PD_LIBCORE_EXEC_LATE_OP_H_
#define PD_LIBCORE_EXEC_LATE_OP_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/block_runner.h"
#include "libcore/ops/registry.h"
#include "libcore/tensor/frame.h"

namespace pd {

class LateDevice;

/// The metadata of variables, by name.
using Metas = std::map<std::string, TensorMeta>;

/// Infers the outputs of a normalized op from the metas of its inputs; of a
/// gradient op, whose `forward` is given then, those are checked before.
absl::StatusOr<Metas> InferOp(const OpDef& def, const OpDef* forward,
                              const OpDesc& op, int64_t version,
                              const Metas& inputs);

class LateOp {
 public:
  using Variables = std::map<std::string, Frame::Variable>;

  /// Checks `op` against its schema. `version` is the program's.
  static absl::StatusOr<LateOp> Make(const OpRegistry& registry, OpDesc op,
                                     int64_t version);

  const OpDef& def() const { return *def_; }
  /// Normalized.
  const OpDesc& op() const { return op_; }

  /// It hands values on as they are, wherever their bytes are (values.h): ops
  /// that run blocks, branches, and ops on arrays.
  bool MovesValues(const Variables& inputs) const;

  /// Computes the op once on these variables. An output that is an input too
  /// may change its shape unless it is fixed. `blocks` is for ops that hand
  /// values on; null: only host values are there. `device` is where to compute;
  /// null: on the host. Errors do not name the op.
  absl::Status Run(const RunContext& context, const Variables& inputs,
                   const Variables& outputs, BlockRunner* blocks,
                   LateDevice* device = nullptr) const;

  /// The parts of Run for those who have a device. What the outputs will be:
  absl::StatusOr<Metas> InferOutputs(const Variables& inputs,
                                     LateDevice* device) const;
  /// FailedPrecondition when something was not written.
  absl::Status CheckValues(const Variables& inputs) const;
  /// Computes it on the host, where all bytes are, unless it hands values on.
  absl::Status RunOnHost(const RunContext& context, const Variables& inputs,
                         const Variables& outputs, const Metas& metas,
                         BlockRunner* blocks) const;

 private:
  LateOp(const OpDef* def, const OpDef* forward, OpDesc op, int64_t version)
      : def_(def), forward_(forward), op_(std::move(op)), version_(version) {}

  const OpDef* def_;
  const OpDef* forward_;  // of a gradient op; else null
  OpDesc op_;
  int64_t version_;
};

/// Gives a tensor what was inferred besides shape and bytes.
void SetMeta(const TensorMeta& meta, Tensor* tensor);
/// InvalidArgument unless the variable `name` is what its op makes.
absl::Status CheckFixed(const std::string& name, const TensorMeta& meta,
                        const Tensor& tensor);

/// The metadata of a tensor, without its value.
TensorMeta MetaOf(const Tensor& tensor);

/// "op 'relu' that makes 'relu_0.tmp_0'": what an error is annotated with.
std::string DescribeOp(const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_LATE_OP_H_
