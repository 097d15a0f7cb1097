// SPDX-License-Identifier: Apache-2.0
// Attributes of ops in the types that the parameters of kernels have.
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/plugin_kernels.h"

namespace pd {
namespace {

absl::Status NotOfKind(const std::string& name) {
  return Unimplemented(
      "its parameter for attribute '%s' has a type that the attribute cannot "
      "become",
      name);
}

template <typename T>
constexpr bool kIsNumber =
    std::is_same_v<T, bool> || std::is_same_v<T, int32_t> ||
    std::is_same_v<T, int64_t> || std::is_same_v<T, float> ||
    std::is_same_v<T, double>;

// An attribute as a list of numbers; a number is a list of one.
struct AttrNumbers {
  bool is_real = false, is_list = false, is_bool = false;
  std::vector<double> reals;
  std::vector<int64_t> integers;

  size_t size() const { return is_real ? reals.size() : integers.size(); }
  double Real(size_t i) const {
    return is_real ? reals[i] : static_cast<double>(integers[i]);
  }
  void Add(bool v) { integers.push_back(v), is_bool = true; }
  void Add(int32_t v) { integers.push_back(v); }
  void Add(int64_t v) { integers.push_back(v); }
  void Add(float v) { reals.push_back(v), is_real = true; }
  void Add(double v) { reals.push_back(v), is_real = true; }
};

absl::StatusOr<AttrNumbers> NumbersOf(const std::string& name,
                                      const Attribute& attr) {
  return std::visit(
      [&](const auto& value) -> absl::StatusOr<AttrNumbers> {
        using T = std::decay_t<decltype(value)>;
        AttrNumbers values;
        if constexpr (kIsNumber<T>) {
          values.Add(value);
          return values;
        } else if constexpr (std::is_same_v<T, std::vector<bool>> ||
                             std::is_same_v<T, std::vector<int32_t>> ||
                             std::is_same_v<T, std::vector<int64_t>> ||
                             std::is_same_v<T, std::vector<double>> ||
                             std::is_same_v<T, std::vector<float>>) {
          values.is_list = true;
          values.is_real = std::is_floating_point_v<typename T::value_type>;
          for (const auto v : value) values.Add(v);
          return values;
        }
        return NotOfKind(name);
      },
      static_cast<const AttributeValue&>(attr));
}

PD_Scalar ScalarAt(const AttrNumbers& values, size_t i) {
  PD_Scalar scalar;
  scalar.dtype = values.is_real ? FLOAT32 : values.is_bool ? BOOL : INT64;
  scalar.real = values.Real(i);
  scalar.integer = values.is_real ? 0 : values.integers[i];
  return scalar;
}

// Integers that fit; a real number is none.
template <typename T>
absl::StatusOr<std::vector<T>> Integers(const std::string& name,
                                        const AttrNumbers& values) {
  std::vector<T> list;
  if (values.is_real && !values.reals.empty()) return NotOfKind(name);
  for (const int64_t value : values.integers) {
    if (static_cast<int64_t>(static_cast<T>(value)) != value)
      return Unimplemented("attribute '%s' is %d, too large for its parameter",
                           name, value);
    list.push_back(static_cast<T>(value));
  }
  return list;
}

template <typename T>
std::vector<T> Reals(const AttrNumbers& values) {
  std::vector<T> list;
  for (size_t i = 0; i < values.size(); ++i)
    list.push_back(static_cast<T>(values.Real(i)));
  return list;
}

absl::StatusOr<KernelAttr> ListFor(const std::string& name,
                                   const AttrNumbers& values,
                                   PD_KernelArgumentType kind) {
  switch (kind) {
    case PD_ARG_TYPE_LIST_BOOL: {
      PD_ASSIGN_OR_RETURN(auto list, Integers<uint8_t>(name, values));
      return KernelAttr(std::move(list));
    }
    case PD_ARG_TYPE_LIST_INT32: {
      PD_ASSIGN_OR_RETURN(auto list, Integers<int32_t>(name, values));
      return KernelAttr(std::move(list));
    }
    case PD_ARG_TYPE_LIST_INT64: {
      PD_ASSIGN_OR_RETURN(auto list, Integers<int64_t>(name, values));
      return KernelAttr(std::move(list));
    }
    case PD_ARG_TYPE_INT_ARRAY: {
      auto array = std::make_unique<PD_IntArray>();
      PD_ASSIGN_OR_RETURN(array->values, Integers<int64_t>(name, values));
      return KernelAttr(std::move(array));
    }
    case PD_ARG_TYPE_LIST_FLOAT32:
      return KernelAttr(Reals<float>(values));
    case PD_ARG_TYPE_LIST_FLOAT64:
      return KernelAttr(Reals<double>(values));
    case PD_ARG_TYPE_LIST_SCALAR: {
      std::vector<PD_Scalar> list;
      for (size_t i = 0; i < values.size(); ++i)
        list.push_back(ScalarAt(values, i));
      return KernelAttr(std::move(list));
    }
    default:
      return NotOfKind(name);
  }
}

// PaddlePaddle's code of a type; -1 leaves it open.
absl::StatusOr<KernelAttr> TypeFor(const std::string& name, int64_t code) {
  if (code == -1) return KernelAttr(C_DataType{UNDEFINED});
  const std::optional<DType> dtype = DTypeFromCode(static_cast<int32_t>(code));
  if (!dtype.has_value())
    return Unimplemented("attribute '%s' is %d, which is no element type", name,
                         code);
  return KernelAttr(CTypeOf(*dtype));
}

absl::StatusOr<KernelAttr> NumberFor(const std::string& name,
                                     const AttrNumbers& values,
                                     PD_KernelArgumentType kind) {
  if (values.is_list || values.size() != 1) return ListFor(name, values, kind);
  switch (kind) {
    case PD_ARG_TYPE_BOOL: {
      PD_ASSIGN_OR_RETURN(const auto list, Integers<int64_t>(name, values));
      return KernelAttr(list[0] != 0);
    }
    case PD_ARG_TYPE_INT32: {
      PD_ASSIGN_OR_RETURN(const auto list, Integers<int32_t>(name, values));
      return KernelAttr(list[0]);
    }
    case PD_ARG_TYPE_INT64: {
      PD_ASSIGN_OR_RETURN(const auto list, Integers<int64_t>(name, values));
      return KernelAttr(list[0]);
    }
    case PD_ARG_TYPE_FLOAT32:
      return KernelAttr(static_cast<float>(values.Real(0)));
    case PD_ARG_TYPE_FLOAT64:
      return KernelAttr(values.Real(0));
    case PD_ARG_TYPE_SCALAR:
      return KernelAttr(std::make_unique<PD_Scalar>(ScalarAt(values, 0)));
    case PD_ARG_TYPE_DATA_TYPE: {
      PD_ASSIGN_OR_RETURN(const auto list, Integers<int64_t>(name, values));
      return TypeFor(name, list[0]);
    }
    default:
      return ListFor(name, values, kind);
  }
}

absl::StatusOr<KernelAttr> TextFor(const std::string& name,
                                   const std::string& text,
                                   PD_KernelArgumentType kind) {
  if (kind == PD_ARG_TYPE_STRING) return KernelAttr(text);
  if (kind != PD_ARG_TYPE_DATA_LAYOUT) return NotOfKind(name);
  for (const auto& [layout, spelling] :
       {std::pair(NHWC, "NHWC"), std::pair(NCHW, "NCHW"),
        std::pair(NDHWC, "NDHWC"), std::pair(NCDHW, "NCDHW"),
        std::pair(ANY, "AnyLayout")})
    if (text == spelling) return KernelAttr(PD_DataLayout{layout});
  return Unimplemented("attribute '%s' is '%s', which is no layout", name,
                       text);
}

// "$value" of fill_constant: a text where it has one, else a number.
absl::StatusOr<KernelAttr> FillValue(const OpDesc& op,
                                     PD_KernelArgumentType kind) {
  const Attribute* text = op.FindAttr("str_value");
  const Attribute* value = op.FindAttr("value");
  AttrNumbers values;
  double number = 0;
  if (text != nullptr && std::holds_alternative<std::string>(*text) &&
      !std::get<std::string>(*text).empty()) {
    const std::string& written = std::get<std::string>(*text);
    int64_t integer = 0;
    if (absl::SimpleAtoi(written, &integer))
      values.Add(integer);
    else if (absl::SimpleAtod(written, &number))
      values.Add(number);
    else
      return Unimplemented("attribute 'str_value' is '%s', no number", written);
  } else if (value != nullptr) {
    PD_ASSIGN_OR_RETURN(values, NumbersOf("value", *value));
  }
  return NumberFor("value", values, kind);
}

// "$values" of assign_value: the list that is not empty.
absl::StatusOr<KernelAttr> AssignedValues(const OpDesc& op,
                                          PD_KernelArgumentType kind) {
  AttrNumbers values;
  values.is_list = true;
  for (const char* name :
       {"bool_values", "fp32_values", "int32_values", "int64_values"}) {
    const Attribute* attr = op.FindAttr(name);
    if (attr == nullptr) continue;
    PD_ASSIGN_OR_RETURN(AttrNumbers found, NumbersOf(name, *attr));
    if (found.size() > 0) values = std::move(found);
  }
  return NumberFor("values", values, kind);
}

}  // namespace

absl::StatusOr<KernelAttr> AttrFor(const SignatureAttr& attr, const OpDesc& op,
                                   PD_KernelArgumentType kind) {
  for (const std::string& slot : attr.slots)
    if (!op.Input(slot).empty())
      return Unimplemented("it takes '%s' as an attribute; the op has '%s'",
                           attr.name, slot);
  if (attr.fixed.has_value()) {
    AttrNumbers value;
    value.Add(*attr.fixed);
    return NumberFor(attr.name, value, kind);
  }
  if (attr.name == "$value") return FillValue(op, kind);
  if (attr.name == "$values") return AssignedValues(op, kind);
  const std::string name = attr.name == "$dims" ? "dim" : attr.name;
  const Attribute* value = op.FindAttr(name);
  if (value == nullptr)
    return Unimplemented("the op has no attribute '%s'", name);
  if (const auto* text = std::get_if<std::string>(value))
    return TextFor(name, *text, kind);
  if (const auto* texts = std::get_if<std::vector<std::string>>(value)) {
    if (kind != PD_ARG_TYPE_LIST_STRING) return NotOfKind(name);
    return KernelAttr(*texts);
  }
  PD_ASSIGN_OR_RETURN(AttrNumbers values, NumbersOf(name, *value));
  // All axes: an empty list.
  const Attribute* all = op.FindAttr("reduce_all");
  if (attr.name == "$dims" && all != nullptr &&
      std::holds_alternative<bool>(*all) && std::get<bool>(*all))
    values.integers.clear(), values.is_list = true;
  return NumberFor(name, values, kind);
}

}  // namespace pd
