// SPDX-License-Identifier: Apache-2.0
// How a kernel's function is declared and called: from the types of its
// parameters follow their kinds, and what each of them is given.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_CALL_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "paddle_capi.h"
#include "paddle_check.h"
#include "paddle_optional.h"

namespace phi {
namespace detail {

/// A parameter's place in the call: it counts among those of its role.
enum class Role { kContext, kInput, kAttribute, kOutput };
struct Source {
  PD_KernelContext* context;
  size_t index;
};

/// The argument of a parameter of type P, without const and reference.
template <typename P>
struct KernelParameter {
  static_assert(sizeof(P) == 0,
                "a kernel's parameter is a context, a dense tensor, a vector "
                "or an optional of tensors, or one of the attribute types");
};
#define PD_KERNEL_ATTRIBUTE(P, kind, value)                            \
  template <>                                                          \
  struct KernelParameter<P> {                                          \
    static constexpr Role kRole = Role::kAttribute;                    \
    static constexpr PD_KernelArgumentType kType = PD_ARG_TYPE_##kind; \
    KernelParameter(const Source& at) : argument(value) { (void)at; }  \
    P& Get() { return argument; }                                      \
    P argument;                                                        \
  }
#define PD_AT(name) PD_KernelContext##name##AttrAt(at.context, at.index)
template <typename T>
std::vector<T> Numbers(const PD_List& list) {
  const T* first = static_cast<const T*>(list.data);
  return std::vector<T>(first, first + list.size);
}
inline std::vector<bool> Booleans(const PD_List& list) {
  const uint8_t* first = static_cast<const uint8_t*>(list.data);
  std::vector<bool> values(first, first + list.size);
  PD_DeleteUInt8List(list);
  return values;
}
inline std::vector<std::string> Texts(const PD_List& list) {
  char** first = static_cast<char**>(list.data);
  std::vector<std::string> values(first, first + list.size);
  PD_DeletePointerList(list);
  return values;
}
PD_KERNEL_ATTRIBUTE(bool, BOOL, PD_AT(Bool));
PD_KERNEL_ATTRIBUTE(int32_t, INT32, PD_AT(Int32));
PD_KERNEL_ATTRIBUTE(int64_t, INT64, PD_AT(Int64));
PD_KERNEL_ATTRIBUTE(float, FLOAT32, PD_AT(Float));
PD_KERNEL_ATTRIBUTE(double, FLOAT64, PD_AT(Double));
PD_KERNEL_ATTRIBUTE(std::string, STRING, PD_AT(String));
PD_KERNEL_ATTRIBUTE(std::vector<bool>, LIST_BOOL, Booleans(PD_AT(ListBool)));
PD_KERNEL_ATTRIBUTE(std::vector<int32_t>, LIST_INT32,
                    Numbers<int32_t>(PD_AT(ListInt32)));
PD_KERNEL_ATTRIBUTE(std::vector<int64_t>, LIST_INT64,
                    Numbers<int64_t>(PD_AT(ListInt64)));
PD_KERNEL_ATTRIBUTE(std::vector<float>, LIST_FLOAT32,
                    Numbers<float>(PD_AT(ListFloat)));
PD_KERNEL_ATTRIBUTE(std::vector<double>, LIST_FLOAT64,
                    Numbers<double>(PD_AT(ListDouble)));
PD_KERNEL_ATTRIBUTE(std::vector<std::string>, LIST_STRING,
                    Texts(PD_AT(ListString)));
/// Objects T of the things in a list, which are lent by the context.
template <typename T, typename Thing>
std::vector<T> Wrapped(const PD_List& list) {
  Thing** first = static_cast<Thing**>(list.data);
  std::vector<T> values;
  values.reserve(list.size);
  for (size_t i = 0; i < list.size; ++i) values.emplace_back(first[i]);
  PD_DeletePointerList(list);
  return values;
}

/// Parameters that are tensors of a form of kernels.
template <typename Tensor>
struct OneTensor {
  static constexpr Role kRole = Role::kInput;
  static constexpr PD_KernelArgumentType kType = PD_ARG_TYPE_TENSOR;
  OneTensor(const Source& at)  // NOLINT
      : tensor(PD_KernelContextInputAt(at.context, at.index)) {}
  const Tensor& Get() { return tensor; }
  Tensor tensor;
};
template <typename Tensor>
struct MaybeTensor {
  static constexpr Role kRole = Role::kInput;
  static constexpr PD_KernelArgumentType kType = PD_ARG_TYPE_OPTIONAL_TENSOR;
  MaybeTensor(const Source& at) {  // NOLINT
    PD_Tensor* given = PD_KernelContextInputAt(at.context, at.index);
    if (given != nullptr) tensor = Tensor(given);
  }
  const paddle::optional<Tensor>& Get() { return tensor; }
  paddle::optional<Tensor> tensor;
};
template <typename Tensor>
struct ManyTensors {
  static constexpr Role kRole = Role::kInput;
  static constexpr PD_KernelArgumentType kType = PD_ARG_TYPE_LIST_TENSOR;
  ManyTensors(const Source& at)  // NOLINT
      : tensors(Wrapped<Tensor, PD_Tensor>(
            PD_KernelContextMultiInputAt(at.context, at.index))) {
    for (Tensor& tensor : tensors) pointers.push_back(&tensor);
  }
  const std::vector<const Tensor*>& Get() { return pointers; }
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> pointers;
};
template <typename Tensor>
struct MaybeManyTensors : ManyTensors<Tensor> {
  static constexpr PD_KernelArgumentType kType =
      PD_ARG_TYPE_OPTIONAL_MULTI_TENSOR;
  MaybeManyTensors(const Source& at) : ManyTensors<Tensor>(at) {  // NOLINT
    if (!this->pointers.empty()) list = this->pointers;
  }
  const paddle::optional<std::vector<const Tensor*>>& Get() { return list; }
  paddle::optional<std::vector<const Tensor*>> list;
};
template <typename Tensor>
struct OneOutput {
  static constexpr Role kRole = Role::kOutput;
  static constexpr PD_KernelArgumentType kType = PD_ARG_TYPE_TENSOR;
  OneOutput(const Source& at)  // NOLINT
      : tensor(PD_KernelContextOutputAt(at.context, at.index)) {}
  Tensor* Get() { return tensor.raw_data() == nullptr ? nullptr : &tensor; }
  Tensor tensor;
};
template <typename Tensor>
struct ManyOutputs {
  static constexpr Role kRole = Role::kOutput;
  static constexpr PD_KernelArgumentType kType = PD_ARG_TYPE_LIST_TENSOR;
  ManyOutputs(const Source& at)  // NOLINT
      : tensors(Wrapped<Tensor, PD_Tensor>(
            PD_KernelContextMultiOutputAt(at.context, at.index))) {
    for (Tensor& tensor : tensors)
      pointers.push_back(tensor.raw_data() == nullptr ? nullptr : &tensor);
  }
  std::vector<Tensor*>& Get() { return pointers; }
  std::vector<Tensor> tensors;
  std::vector<Tensor*> pointers;
};

/// The parameters of a form whose tensors are of this type.
#define PD_KERNEL_TENSORS(Tensor)                                            \
  template <>                                                                \
  struct KernelParameter<Tensor> : OneTensor<Tensor> {                       \
    using OneTensor::OneTensor;                                              \
  };                                                                         \
  template <>                                                                \
  struct KernelParameter<paddle::optional<Tensor>> : MaybeTensor<Tensor> {   \
    using MaybeTensor::MaybeTensor;                                          \
  };                                                                         \
  template <>                                                                \
  struct KernelParameter<std::vector<const Tensor*>> : ManyTensors<Tensor> { \
    using ManyTensors::ManyTensors;                                          \
  };                                                                         \
  template <>                                                                \
  struct KernelParameter<paddle::optional<std::vector<const Tensor*>>>       \
      : MaybeManyTensors<Tensor> {                                           \
    using MaybeManyTensors::MaybeManyTensors;                                \
  };                                                                         \
  template <>                                                                \
  struct KernelParameter<Tensor*> : OneOutput<Tensor> {                      \
    using OneOutput::OneOutput;                                              \
  };                                                                         \
  template <>                                                                \
  struct KernelParameter<std::vector<Tensor*>> : ManyOutputs<Tensor> {       \
    using ManyOutputs::ManyOutputs;                                          \
  }

template <typename P>
using Decayed =
    typename std::remove_cv<typename std::remove_reference<P>::type>::type;

/// A kernel's function for one element type, and the kinds of its parameters.
struct KernelEntry {
  C_DataType dtype;
  std::vector<PD_KernelArgumentType> inputs, attributes, outputs;
  void (*run)(PD_KernelContext* context);
};

/// Calls `f`, a kernel's function.
template <typename F, F f>
struct KernelCall;  // of functions that return nothing
template <typename... P, void (*f)(P...)>
struct KernelCall<void (*)(P...), f> {
  static KernelEntry EntryOf(C_DataType dtype) {
    KernelEntry entry;
    entry.dtype = dtype;
    const Role roles[] = {KernelParameter<Decayed<P>>::kRole...};
    const PD_KernelArgumentType types[] = {
        KernelParameter<Decayed<P>>::kType...};
    for (size_t i = 0; i < sizeof...(P); ++i)
      (roles[i] == Role::kAttribute ? entry.attributes
       : roles[i] == Role::kOutput  ? entry.outputs
                                    : entry.inputs)
          .push_back(types[i]);
    entry.run = &Run;
    return entry;
  }

 private:
  static constexpr size_t CountBefore(size_t at) {
    constexpr Role roles[] = {KernelParameter<Decayed<P>>::kRole...};
    size_t count = 0;
    for (size_t i = 0; i < at; ++i) count += roles[i] == roles[at] ? 1 : 0;
    return count;
  }
  static void Run(PD_KernelContext* context) {
    RunWith(context, std::index_sequence_for<P...>());
  }
  template <size_t... I>
  static void RunWith(PD_KernelContext* context, std::index_sequence<I...>) {
    std::tuple<KernelParameter<Decayed<P>>...> held(
        Source{context, CountBefore(I)}...);
    f(std::get<I>(held).Get()...);
  }
};

/// Declares a kernel for its element types; made by the macros of both forms.
class KernelRegistrar {
 public:
  KernelRegistrar(const char* name, const char* backend, PD_DataLayout layout,
                  void (*define)(const PD_KernelKey*, PD_Kernel*),
                  const std::vector<KernelEntry>& entries) {
    for (const KernelEntry& entry : entries) {
      const auto &in = entry.inputs, &with = entry.attributes;
      const auto& out = entry.outputs;
      const PD_KernelDeclaration declaration = {
          name,       backend,    entry.dtype, layout,
          in.size(),  in.data(),  with.size(), with.data(),
          out.size(), out.data(), define,      entry.run};
      PD_PluginRegisterKernel(PD_PLUGIN_ABI, &declaration);
    }
  }
};

}  // namespace detail
}  // namespace phi

// M(f, T) for each of at most 15 types T, with commas between them.
#define PD_KERNEL_TYPES(M, f, ...)                                           \
  PD_KERNEL_PASTE(PD_KERNEL_TYPES_,                                          \
                  PD_KERNEL_COUNT(__VA_ARGS__, 15, 14, 13, 12, 11, 10, 9, 8, \
                                  7, 6, 5, 4, 3, 2, 1, 0))                   \
  (M, f, __VA_ARGS__)
#define PD_KERNEL_PASTE(a, b) PD_KERNEL_PASTE_(a, b)
#define PD_KERNEL_PASTE_(a, b) a##b
#define PD_KERNEL_COUNT(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, count, \
                        ...)                                                \
  count
#define PD_KERNEL_TYPES_1(M, f, T) M(f, T)
#define PD_KERNEL_TYPES_2(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_1(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_3(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_2(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_4(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_3(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_5(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_4(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_6(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_5(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_7(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_6(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_8(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_7(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_9(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_8(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_10(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_9(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_11(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_10(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_12(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_11(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_13(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_12(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_14(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_13(M, f, __VA_ARGS__)
#define PD_KERNEL_TYPES_15(M, f, T, ...) \
  M(f, T), PD_KERNEL_TYPES_14(M, f, __VA_ARGS__)

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_CALL_H_
