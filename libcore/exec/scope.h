// SPDX-License-Identifier: Apache-2.0
// The persistable variables: parameters, optimizer states, running statistics.
// Several plans (training, evaluation, a smaller last batch) work on one Scope.
#ifndef PD_LIBCORE_EXEC_SCOPE_H_
#define PD_LIBCORE_EXEC_SCOPE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/exec/device_value.h"
#include "libcore/ir/array.h"
#include "libcore/passes/flat_variables.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class Scope {
 public:
  struct Entry {
    Tensor tensor;  ///< its address is stable
    int pins = 0;   ///< plans with a step that relies on the layout
    /// Where plans on a GPU use the variable: their copy.
    std::unique_ptr<DeviceValue> device;
    /// A caller of Find may read and write the tensor between runs: a run on a
    /// GPU begins with the host's value, and copies its own back when it ends.
    bool lent = false;
  };

  /// Null when there is none, and, with a warning in the log, when its value
  /// cannot be copied from a GPU. The first form sets Entry::lent.
  Entry* Find(const std::string& name);
  const Entry* Find(const std::string& name) const;
  /// As the second form, for plans, which write the tensor.
  Entry* Peek(const std::string& name) const;
  /// A zeroed variable; the one that is there when shape and dtype are equal,
  /// else InvalidArgument with both.
  absl::StatusOr<Entry*> GetOrCreate(const std::string& name, DType dtype,
                                     const Shape& shape);
  /// The variable, made without a value if it is not there.
  Entry* Declare(const std::string& name);
  /// Sets the value, keeping address and layout of one that is there; of a flat
  /// variable, that of its parts too. InvalidArgument with both shapes or
  /// dtypes when they differ.
  absl::Status Set(const std::string& name, const Array& value);
  /// Makes a float32 variable `name` of the shape of `of` and lets `make` write
  /// its elements; one that was made before stays. Where no plan relies on the
  /// layout of `of`, the bytes of `of` are freed. Gives `name`.
  absl::StatusOr<std::string> Remake(
      const std::string& of, const std::string& name,
      const std::function<void(float* out)>& make);
  /// The value, row-major; of a flat variable, that of its parts. NotFound when
  /// there is none.
  absl::StatusOr<Array> Get(const std::string& name) const;
  /// Says that variables share memory (flat_variables.h).
  void Share(FlatVariable flat) { AddFlatVariable(std::move(flat), &flat_); }
  const std::vector<FlatVariable>& flat_variables() const { return flat_; }

  std::vector<std::string> Names() const;
  /// Bytes of all variables.
  size_t bytes() const;

 private:
  const FlatVariable* FindFlat(const std::string& name) const;
  absl::Status SetParts(const FlatVariable& flat, const Array& value);
  absl::Status PutTogether(const FlatVariable& flat, Array* value) const;

  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::vector<FlatVariable> flat_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_SCOPE_H_
