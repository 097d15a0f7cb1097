// SPDX-License-Identifier: Apache-2.0
// Values of TorchScript while a network is written down: numbers, lists and
// modules are known, tensors are values of the graph.
#ifndef PD_LIBCORE_DEPLOY_TORCH_SCRIPT_VALUE_H_
#define PD_LIBCORE_DEPLOY_TORCH_SCRIPT_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"

namespace pd {

/// An integer: `value`, or `value` times the batch where it is open.
struct ScriptInt {
  int64_t value = 0;
  bool open = false;

  bool operator==(const ScriptInt& other) const {
    return value == other.value && open == other.open;
  }
};

using ScriptDims = std::vector<ScriptInt>;

/// Arithmetic. Unimplemented where the answer is no multiple of the batch,
/// OutOfRange beyond 64 bits.
absl::StatusOr<ScriptInt> AddInts(ScriptInt a, ScriptInt b);
absl::StatusOr<ScriptInt> MultiplyInts(ScriptInt a, ScriptInt b);
/// Rounded down. InvalidArgument for a divisor of 0.
absl::StatusOr<ScriptInt> DivideInts(ScriptInt a, ScriptInt b);
/// The number of elements.
absl::StatusOr<ScriptInt> ProductOf(const ScriptDims& dims);

struct ScriptTensor {
  DType dtype = DType::kFloat32;
  ScriptDims dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
};

struct ScriptValue {
  enum class Kind {
    kNone,
    kBool,      ///< `integer`
    kInt,       ///< `integer`
    kFloat,     ///< `real`
    kText,      ///< `text`
    kTensor,    ///< `text` is the name of the graph's value
    kList,      ///< `items`, shared by those who hold the list
    kTuple,     ///< `items`
    kDict,      ///< keys and values in turn
    kObject,    ///< a module: its number in `object`
    kFunction,  ///< `text` is its full name
    kOther,     ///< devices, types: nothing that a network computes with
    kUnknown,   ///< the answer of an operator that is not supported
  };
  Kind kind = Kind::kNone;
  ScriptInt integer;
  double real = 0;
  std::string text;
  int64_t object = -1;
  std::shared_ptr<std::vector<ScriptValue>> items;

  bool Is(Kind other) const { return kind == other; }
  bool IsNumber() const {
    return Is(Kind::kInt) || Is(Kind::kFloat) || Is(Kind::kBool);
  }
  bool IsSequence() const { return Is(Kind::kList) || Is(Kind::kTuple); }
  double Number() const {
    return Is(Kind::kFloat) ? real : static_cast<double>(integer.value);
  }

  static ScriptValue Of(Kind kind, std::string text = "") {
    ScriptValue value;
    value.kind = kind;
    value.text = std::move(text);
    return value;
  }
  static ScriptValue Int(ScriptInt integer) {
    ScriptValue value = Of(Kind::kInt);
    value.integer = integer;
    return value;
  }
  static ScriptValue Bool(bool truth) {
    ScriptValue value = Of(Kind::kBool);
    value.integer.value = truth ? 1 : 0;
    return value;
  }
  static ScriptValue Float(double real) {
    ScriptValue value = Of(Kind::kFloat);
    value.real = real;
    return value;
  }
  static ScriptValue Items(Kind kind, std::vector<ScriptValue> items) {
    ScriptValue value = Of(kind);
    value.items = std::make_shared<std::vector<ScriptValue>>(std::move(items));
    return value;
  }
};

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TORCH_SCRIPT_VALUE_H_
