// SPDX-License-Identifier: Apache-2.0
// The declaration of an operator:
//   PD_BUILD_OP(custom_relu)
//       .Inputs({"X"})
//       .Outputs({"Out"})
//       .SetKernelFn(PD_KERNEL(ReluForward));
// PD_BUILD_GRAD_OP and PD_BUILD_DOUBLE_GRAD_OP of the same name declare its
// gradients.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_OP_META_INFO_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_OP_META_INFO_H_

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "paddle_kernel_arguments.h"
#include "paddle_plugin_abi.h"

namespace paddle {

/// Names of gradients, lists, and what may be absent.
inline std::string Grad(const std::string& name) { return name + "@GRAD"; }
inline std::string Vec(const std::string& name) { return name + "@VECTOR"; }
inline std::string Optional(const std::string& name) {
  return name + "@OPTIONAL";
}
/// A second gradient of a variable whose gradient's name is taken.
inline std::string New(const std::string& name) { return name + "@NEW"; }

namespace detail {

using Extents = std::vector<int64_t>;

struct KernelFn {
  void (*call)(KernelArguments&) = nullptr;
  std::vector<Parameter> parameters;
};
template <typename T>
struct InferFn {
  void (*call)(InferArguments<T>&) = nullptr;
  std::vector<Parameter> parameters;
};

/// One operator as a plug-in describes it; the library owns this.
struct OpDeclaration {
  std::vector<std::string> inputs, outputs, attrs;
  std::unordered_map<std::string, std::string> inplace;  // input -> output
  KernelFn kernel;
  InferFn<Extents> infer_shape;
  InferFn<DataType> infer_dtype;
  bool has_tensorrt = false;  // functions that nobody calls here
};
/// A function for TensorRT, which is not here.
struct TensorRtFn {};

template <typename Caller>
void CallKernel(KernelArguments& arguments, std::true_type /*void*/) {
  Caller::Call(arguments);
}
template <typename Caller>
void CallKernel(KernelArguments& arguments, std::false_type /*void*/) {
  arguments.results = Caller::Call(arguments);
}

template <typename F, F f>
struct KernelOf {
  using Caller = CallerOf<Tensor, F, f>;
  static_assert(
      std::is_void<typename Caller::Result>::value ||
          std::is_same<typename Caller::Result, std::vector<Tensor>>::value,
      "a kernel returns std::vector<paddle::Tensor>, or nothing "
      "where all its outputs are written in place");
  static void Call(KernelArguments& arguments) {
    CallKernel<Caller>(arguments, std::is_void<typename Caller::Result>());
  }
  static KernelFn Make() { return {&Call, Caller::Parameters()}; }
};

template <typename T, typename F, F f>
struct InferOf {
  using Caller = CallerOf<T, F, f>;
  static_assert(std::is_same<typename Caller::Result, std::vector<T>>::value,
                "inference returns a vector with an entry for each output");
  static void Call(InferArguments<T>& arguments) {
    arguments.results = Caller::Call(arguments);
  }
  static InferFn<T> Make() { return {&Call, Caller::Parameters()}; }
};

}  // namespace detail
}  // namespace paddle

extern "C" {
/// The declaration of operator `name`, its gradient (1) or its second gradient
/// (2), to be filled in. What is wrong with it is said when the plug-in has
/// been loaded.
PD_PLUGIN_DECL paddle::detail::OpDeclaration* PD_PluginDeclare(int abi,
                                                               const char* name,
                                                               size_t order);
}

namespace paddle {

/// Fills in a declaration. The functions may be called in any order.
class OpMetaInfoBuilder {
 public:
  OpMetaInfoBuilder(std::string name, size_t order)
      : op_(PD_PluginDeclare(PD_PLUGIN_ABI, name.c_str(), order)) {}

  OpMetaInfoBuilder& Inputs(std::vector<std::string>&& names) {
    op_->inputs = std::move(names);
    return *this;
  }
  OpMetaInfoBuilder& Outputs(std::vector<std::string>&& names) {
    op_->outputs = std::move(names);
    return *this;
  }
  /// "name: type", of ten types.
  OpMetaInfoBuilder& Attrs(std::vector<std::string>&& attrs) {
    op_->attrs = std::move(attrs);
    return *this;
  }
  /// The kernel writes the output of a pair over its input.
  OpMetaInfoBuilder& SetInplaceMap(
      std::unordered_map<std::string, std::string>&& map) {
    op_->inplace = std::move(map);
    return *this;
  }
  OpMetaInfoBuilder& SetKernelFn(detail::KernelFn&& kernel) {
    op_->kernel = std::move(kernel);
    return *this;
  }
  OpMetaInfoBuilder& SetInferShapeFn(detail::InferFn<detail::Extents>&& infer) {
    op_->infer_shape = std::move(infer);
    return *this;
  }
  OpMetaInfoBuilder& SetInferDtypeFn(detail::InferFn<DataType>&& infer) {
    op_->infer_dtype = std::move(infer);
    return *this;
  }
  /// Accepted and not used.
  OpMetaInfoBuilder& SetTrtInferShapeFn(const detail::TensorRtFn&) {
    op_->has_tensorrt = true;
    return *this;
  }
  OpMetaInfoBuilder& SetTrtSupportsFormatConfig(
      const std::vector<std::string>&) {
    op_->has_tensorrt = true;
    return *this;
  }

 private:
  detail::OpDeclaration* op_;
};

}  // namespace paddle

#define PD_KERNEL(...) \
  ::paddle::detail::KernelOf<decltype(&__VA_ARGS__), &__VA_ARGS__>::Make()
#define PD_INFER_SHAPE(...)                                                    \
  ::paddle::detail::InferOf<::paddle::detail::Extents, decltype(&__VA_ARGS__), \
                            &__VA_ARGS__>::Make()
#define PD_INFER_DTYPE(...)                                             \
  ::paddle::detail::InferOf<::paddle::DataType, decltype(&__VA_ARGS__), \
                            &__VA_ARGS__>::Make()

#define PD_TRT_INFER_SHAPE(...) \
  (static_cast<void>(&__VA_ARGS__), ::paddle::detail::TensorRtFn())

// A declaration stands at the global namespace, where its name is the only one.
#define PD_BUILD_ORDER(name, suffix, order)                          \
  struct pd_check_global_##name##suffix {};                          \
  static_assert(std::is_same<::pd_check_global_##name##suffix,       \
                             pd_check_global_##name##suffix>::value, \
                "an operator is declared in the global namespace");  \
  static ::paddle::OpMetaInfoBuilder pd_builder_##name##suffix       \
      __attribute__((unused)) = ::paddle::OpMetaInfoBuilder(#name, order)
#define PD_BUILD_OP(name) PD_BUILD_ORDER(name, , 0)
#define PD_BUILD_GRAD_OP(name) PD_BUILD_ORDER(name, _grad, 1)
#define PD_BUILD_DOUBLE_GRAD_OP(name) PD_BUILD_ORDER(name, _grad_grad, 2)

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_OP_META_INFO_H_
