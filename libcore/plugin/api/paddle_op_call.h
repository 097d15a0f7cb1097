// SPDX-License-Identifier: Apache-2.0
// A call of an operator of the library on tensors.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_OP_CALL_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_OP_CALL_H_

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "paddle_host_tensor.h"
#include "paddle_optional.h"
#include "paddle_plugin_abi.h"

namespace paddle {
namespace detail {

/// The call in words. An attribute is one of the types of operators'
/// attributes, or a Scalar, which becomes what the operator declares.
struct OpCall {
  const char* type = "";
  std::vector<std::pair<const char*, std::vector<Tensor>>> inputs;
  std::vector<std::pair<const char*, any>> attrs;
  /// Slots, and the number of tensors in each.
  std::vector<std::pair<const char*, size_t>> outputs;
  /// By slot.
  std::vector<std::vector<Tensor>> results;
};

}  // namespace detail
namespace experimental {

/// The result of a function that has one in PaddlePaddle 2.4 and later, and two
/// in 2.3, the second of which keeps the shape of its input: both sources
/// compile.
class TensorAndShape : public Tensor, public std::tuple<Tensor, Tensor> {
 public:
  TensorAndShape(const Tensor& out, const Tensor& shape)
      : Tensor(out), std::tuple<Tensor, Tensor>(out, shape) {}
};

}  // namespace experimental
}  // namespace paddle

extern "C" {
/// Runs the call: its results are set. Throws phi::enforce::EnforceNotMet,
/// which names the operator.
PD_PLUGIN_DECL void PD_PluginRunOp(int abi, paddle::detail::OpCall* call);
}

namespace paddle {
namespace detail {

/// A call in the making: Op("relu").In("X", x).Out("Out").One().
class Op {
 public:
  explicit Op(const char* type) { call_.type = type; }
  Op& In(const char* slot, const Tensor& tensor) {
    return In(slot, std::vector<Tensor>{tensor});
  }
  Op& In(const char* slot, const std::vector<Tensor>& tensors) {
    call_.inputs.emplace_back(slot, tensors);
    return *this;
  }
  Op& In(const char* slot, const optional<Tensor>& tensor) {
    return tensor ? In(slot, *tensor) : *this;
  }
  template <typename T>
  Op& Attr(const char* name, const T& value) {
    call_.attrs.emplace_back(name, any(value));
    return *this;
  }
  Op& Attr(const char* name, const IntArray& value) {
    return Attr(name, value.GetData());
  }
  Op& Out(const char* slot, size_t count = 1) {
    call_.outputs.emplace_back(slot, count);
    return *this;
  }
  /// All results, by slot.
  std::vector<std::vector<Tensor>> All() {
    PD_PluginRunOp(PD_PLUGIN_ABI, &call_);
    return std::move(call_.results);
  }
  /// The tensors of the first slot, and its first one.
  std::vector<Tensor> Many() { return std::move(All()[0]); }
  Tensor One() { return Many()[0]; }

 private:
  OpCall call_;
};

}  // namespace detail
}  // namespace paddle

namespace std {

template <>
struct tuple_size<paddle::experimental::TensorAndShape>
    : integral_constant<size_t, 2> {};
template <size_t I>
struct tuple_element<I, paddle::experimental::TensorAndShape> {
  using type = paddle::Tensor;
};

}  // namespace std

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_OP_CALL_H_
