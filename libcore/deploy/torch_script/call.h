// SPDX-License-Identifier: Apache-2.0
// One call of an ATen operator in TorchScript: its arguments by parameter, and
// what is inferred of its outputs. The first error sticks.
#ifndef PD_LIBCORE_DEPLOY_TORCH_SCRIPT_CALL_H_
#define PD_LIBCORE_DEPLOY_TORCH_SCRIPT_CALL_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/base/error.h"
#include "libcore/deploy/torch_script/value.h"

namespace pd {

class ScriptCall {
 public:
  ScriptCall(std::map<std::string, ScriptValue> arguments,
             const std::map<std::string, ScriptTensor>* tensors)
      : arguments_(std::move(arguments)), tensors_(tensors) {}

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  void Fail(const absl::Status& status) {
    if (ok()) status_ = status;
  }
  /// The value, or the error kept.
  template <typename T>
  T Or(absl::StatusOr<T> value) {
    if (value.ok()) return *std::move(value);
    Fail(value.status());
    return T();
  }

  const std::map<std::string, ScriptValue>& arguments() const {
    return arguments_;
  }
  const ScriptValue* Find(const char* name) const;  ///< null: not given, None
  bool Has(const char* name) const { return Find(name) != nullptr; }
  const ScriptTensor& Tensor(const char* name);
  std::vector<ScriptTensor> Tensors(const char* name);
  int64_t Int(const char* name, int64_t otherwise);
  double Number(const char* name, double otherwise);
  /// A list, or one integer as a list. Empty where it is not given.
  ScriptDims Ints(const char* name);
  /// The same without the batch, one integer as `count`.
  std::vector<int64_t> IntsOf(const char* name, size_t count,
                              int64_t otherwise);
  /// PyTorch's number of a dtype.
  DType TypeOr(const char* name, DType otherwise);

  /// `axis` in [-rank, rank) made non-negative.
  size_t Axis(int64_t axis, int64_t rank);
  /// An extent that is no batch.
  int64_t Known(ScriptInt extent);
  ScriptDims Broadcast(const ScriptDims& a, const ScriptDims& b);

  void Give(DType dtype, ScriptDims dims) {
    outputs.push_back({dtype, std::move(dims)});
  }

  const std::map<std::string, ScriptTensor>* tensors() const {
    return tensors_;
  }

  std::vector<ScriptTensor> outputs;
  bool gives_list = false;  ///< the outputs are one list

 private:
  std::map<std::string, ScriptValue> arguments_;
  const std::map<std::string, ScriptTensor>* tensors_;
  absl::Status status_;
};

/// The dtype of operands together, numbers and tensors without axes giving way.
DType Promoted(ScriptCall* call, const std::vector<const char*>& names);

/// An overload: what it is called in torch.export's graphs, and its parameters
/// in their order, each with a letter for what it takes: t tensor, o tensor or
/// None, T tensors, s number, i integer, l integers, b bool, S text, d device,
/// n whatever; None fits all but t, T and capital N, I and B, which
/// must be given. Parameters behind | are given by name. The first overload
/// that all arguments fit is taken.
struct ScriptOperator {
  const char* name;        ///< in TorchScript: "add"
  const char* target;      ///< "add.Tensor"
  const char* parameters;  ///< "t self, t other, s alpha"
  void (*infer)(ScriptCall* call);
};

using ScriptOperators = std::vector<ScriptOperator>;

// The parts, by family.
ScriptOperators ScriptElementwise();
ScriptOperators ScriptNetworkOperators();
ScriptOperators ScriptShapeOperators();

/// The overloads of all operators, by name.
const std::multimap<std::string, ScriptOperator>& AllScriptOperators();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_SCRIPT_CALL_H_
