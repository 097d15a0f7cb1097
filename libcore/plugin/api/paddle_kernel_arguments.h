// SPDX-License-Identifier: Apache-2.0
// How the functions of an operator are called: from the types of a function's
// parameters follows what each of them is given.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_ARGUMENTS_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_ARGUMENTS_H_

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "paddle_check.h"
#include "paddle_host_tensor.h"
#include "paddle_optional.h"

namespace paddle {
namespace detail {

/// One input slot, in the form that its declaration says.
template <typename T>
struct InputOf {
  T one;
  std::vector<T> many;
  optional<T> maybe;
  optional<std::vector<T>> maybe_many;
};

/// The kind of a parameter.
enum class ParameterKind { kOne, kMany, kMaybe, kMaybeMany, kAttr, kOutput };
/// One parameter of a function. Attributes have their type's spelling.
struct Parameter {
  ParameterKind kind;
  const char* attr_type;
};

/// The arguments of a kernel and its results.
struct KernelArguments {
  std::vector<InputOf<Tensor>> inputs;
  std::vector<any> attrs;
  /// Results that the kernel returns; those it writes through pointers.
  std::vector<Tensor> results;
  std::vector<Tensor> written;
};
/// The same for inference; the attributes are those that its form may name.
template <typename T>
struct InferArguments {
  std::vector<InputOf<T>> inputs;
  std::vector<any> attrs;
  std::vector<T> results;
};

/// Spelling of the attribute types; null for other types.
template <typename T>
struct AttrType {
  static constexpr const char* Name() { return nullptr; }
};
#define PD_ATTR_TYPE(T, spelling)                            \
  template <>                                                \
  struct AttrType<T> {                                       \
    static constexpr const char* Name() { return spelling; } \
  }
PD_ATTR_TYPE(bool, "bool");
PD_ATTR_TYPE(int, "int");
PD_ATTR_TYPE(float, "float");
PD_ATTR_TYPE(double, "double");
PD_ATTR_TYPE(int64_t, "int64_t");
PD_ATTR_TYPE(std::string, "std::string");
PD_ATTR_TYPE(std::vector<int>, "std::vector<int>");
PD_ATTR_TYPE(std::vector<float>, "std::vector<float>");
PD_ATTR_TYPE(std::vector<int64_t>, "std::vector<int64_t>");
PD_ATTR_TYPE(std::vector<std::string>, "std::vector<std::string>");
#undef PD_ATTR_TYPE

/// The argument of a parameter of type P (without const and reference) of a
/// function about values T: argument `i` of its kind.
template <typename T, typename P>
struct ArgumentOf {
  static_assert(AttrType<P>::Name() != nullptr,
                "a parameter is a tensor, a vector of them, an optional of "
                "either, or one of the ten attribute types");
  static constexpr ParameterKind kKind = ParameterKind::kAttr;
  template <typename Arguments>
  static const P& Get(Arguments& arguments, size_t i) {
    return any_cast<P>(arguments.attrs.at(i));
  }
};
#define PD_ARGUMENT(P, kind, field)                             \
  template <typename T>                                         \
  struct ArgumentOf<T, P> {                                     \
    static constexpr ParameterKind kKind = ParameterKind::kind; \
    template <typename Arguments>                               \
    static P& Get(Arguments& arguments, size_t i) {             \
      return arguments.inputs.at(i).field;                      \
    }                                                           \
  }
PD_ARGUMENT(T, kOne, one);
PD_ARGUMENT(std::vector<T>, kMany, many);
PD_ARGUMENT(optional<T>, kMaybe, maybe);
PD_ARGUMENT(optional<std::vector<T>>, kMaybeMany, maybe_many);
#undef PD_ARGUMENT
template <>
struct ArgumentOf<Tensor, Tensor*> {
  static constexpr ParameterKind kKind = ParameterKind::kOutput;
  static Tensor* Get(KernelArguments& arguments, size_t i) {
    return &arguments.written.at(i);
  }
};

/// Parameters of inputs count together, those of attributes and outputs apart.
constexpr int CountsAs(ParameterKind kind) {
  return kind == ParameterKind::kAttr     ? 1
         : kind == ParameterKind::kOutput ? 2
                                          : 0;
}
template <size_t N>
constexpr size_t CountBefore(const ParameterKind (&kinds)[N], size_t at) {
  size_t count = 0;
  for (size_t i = 0; i < at; ++i)
    count += CountsAs(kinds[i]) == CountsAs(kinds[at]) ? 1 : 0;
  return count;
}

template <typename P>
using Plain =
    typename std::remove_cv<typename std::remove_reference<P>::type>::type;

/// Calls `f`, a function about values T.
template <typename T, typename F, F f>
struct CallerOf;
template <typename T, typename R, typename... P, R (*f)(P...)>
struct CallerOf<T, R (*)(P...), f> {
  using Result = R;
  template <typename Arguments>
  static R Call(Arguments& arguments) {
    return CallWith(arguments, std::index_sequence_for<P...>());
  }
  static std::vector<Parameter> Parameters() {
    return {Parameter{ArgumentOf<T, Plain<P>>::kKind,
                      AttrType<Plain<P>>::Name()}...};
  }

 private:
  template <size_t I>
  static constexpr size_t At() {
    // A last entry, so that functions without parameters have an array too.
    constexpr ParameterKind kinds[] = {ArgumentOf<T, Plain<P>>::kKind...,
                                       ParameterKind::kOne};
    return CountBefore(kinds, I);
  }
  template <typename Arguments, size_t... I>
  static R CallWith(Arguments& arguments, std::index_sequence<I...>) {
    (void)arguments;
    return f(ArgumentOf<T, Plain<P>>::Get(arguments, At<I>())...);
  }
};

}  // namespace detail
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_ARGUMENTS_H_
