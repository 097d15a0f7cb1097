// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/json_tensor.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/half.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/lod_json.h"

namespace pd {
namespace serve {
namespace {

using Json = nlohmann::json;

constexpr int kMostLevels = 32;

// Before the parser allocates anything; brackets in strings do not count.
bool TooDeep(absl::string_view text) {
  int level = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    if ((c == '[' || c == '{') && ++level > kMostLevels) return true;
    if (c == ']' || c == '}') --level;
  }
  return false;
}

// A number out of a client's text, as far as a message shows it.
std::string Shown(const Json& value) {
  std::string text =
      value.is_structured()
          ? value.type_name()
          : value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

template <typename T>
bool Fits(const Json& value, T* out) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.is_boolean()) return *out = value.get<bool>(), true;
    if (!value.is_number_integer()) return false;
    const int64_t number = value.get<int64_t>();
    *out = number == 1;
    return number == 0 || number == 1;
  } else if constexpr (std::is_integral_v<T>) {
    if (value.is_number_unsigned()) {
      const uint64_t number = value.get<uint64_t>();
      *out = static_cast<T>(number);
      return number <= static_cast<uint64_t>(std::numeric_limits<T>::max());
    }
    if (!value.is_number_integer()) return false;
    const int64_t number = value.get<int64_t>();
    *out = static_cast<T>(number);
    return number >= static_cast<int64_t>(std::numeric_limits<T>::min());
  } else if constexpr (std::is_same_v<T, double>) {
    if (!value.is_number()) return false;
    *out = value.get<double>();
    return std::isfinite(*out);
  } else {
    if (!value.is_number()) return false;
    const double number = value.get<double>();
    if (std::fabs(number) > std::numeric_limits<float>::max()) return false;
    *out = T(static_cast<float>(number));
    return std::isfinite(static_cast<float>(*out));
  }
}

template <typename T>
class Filler {
 public:
  Filler(const Shape& shape, const std::string& where, T* to)
      : shape_(shape), where_(where), to_(to) {}

  absl::Status Flat(const Json& list) {
    for (const Json& value : list) PD_RETURN_IF_ERROR(One(value));
    return absl::OkStatus();
  }
  absl::Status Nested(const Json& list, size_t axis) {
    if (axis == shape_.size()) return One(list);
    if (!list.is_array() || list.size() != static_cast<uint64_t>(shape_[axis]))
      return InvalidArgument(
          "%s: its data does not have the shape %s: at level %d stands %s",
          where_, ToString(shape_), axis,
          list.is_array() ? absl::StrCat("a list of ", list.size())
                          : Shown(list));
    for (const Json& value : list) PD_RETURN_IF_ERROR(Nested(value, axis + 1));
    return absl::OkStatus();
  }

 private:
  absl::Status One(const Json& value) {
    if (Fits(value, to_++)) return absl::OkStatus();
    return InvalidArgument("%s: %s is no %s", where_, Shown(value),
                           Name(DTypeOf<T>()));
  }

  const Shape& shape_;
  const std::string& where_;
  T* to_;
};

template <typename T>
absl::Status Fill(const Json& data, const Shape& shape,
                  const std::string& where, std::byte* bytes) {
  Filler<T> filler(shape, where, reinterpret_cast<T*>(bytes));
  const bool nested =
      shape.empty() ? !data.is_array() : !data.empty() && data[0].is_array();
  if (nested) return filler.Nested(data, 0);
  if (data.size() != static_cast<uint64_t>(NumElements(shape)))
    return InvalidArgument("%s: its data has %d numbers; the shape %s has %d",
                           where, data.size(), ToString(shape),
                           NumElements(shape));
  return filler.Flat(data);
}

template <typename T>
bool AppendNumber(T value, std::string* text) {
  if constexpr (std::is_same_v<T, bool>) {
    text->append(value ? "true" : "false");
    return true;
  } else {
    char buffer[32];
    std::to_chars_result end{};
    if constexpr (std::is_integral_v<T>) {
      end = std::to_chars(buffer, buffer + sizeof(buffer), value);
    } else if constexpr (std::is_same_v<T, double>) {
      if (!std::isfinite(value)) return false;
      end = std::to_chars(buffer, buffer + sizeof(buffer), value);
    } else {
      const float number = static_cast<float>(value);
      if (!std::isfinite(number)) return false;
      end = std::to_chars(buffer, buffer + sizeof(buffer), number);
    }
    text->append(buffer, end.ptr - buffer);
    return true;
  }
}

template <typename T>
absl::Status AppendAll(const Array& array, size_t levels,
                       const std::string& where, std::string* text) {
  const T* values = array.data<T>();
  const int64_t size = array.size();
  // After how many elements a list of each level ends.
  std::vector<int64_t> spans;
  int64_t span = 1;
  for (size_t level = levels; level-- > 0;)
    spans.push_back(span *= levels == 1 ? size : array.shape[level]);
  if (size == 0) {
    text->append("[]");
    return absl::OkStatus();
  }
  text->append(levels, '[');
  for (int64_t i = 0; i < size; ++i) {
    if (!AppendNumber(values[i], text))
      return InvalidArgument(
          "%s: element %d is %g, which JSON has no word for; ask for the "
          "output with the parameter binary_data",
          where, i, static_cast<double>(values[i]));
    size_t ended = 0;
    for (const int64_t length : spans) ended += (i + 1) % length == 0;
    text->append(ended, ']');
    if (i + 1 == size) break;
    text->push_back(',');
    text->append(ended, '[');
  }
  return absl::OkStatus();
}

// Calls `body` with the type of the elements; `otherwise` for complex numbers,
// which the protocol does not have.
template <typename Body>
absl::Status WithType(DType dtype, const absl::Status& otherwise,
                      const Body& body) {
  if (IsComplex(dtype)) return otherwise;
  return DispatchTypes<bool, uint8_t, int8_t, int16_t, int32_t, int64_t,
                       Float16, BFloat16, float, double>(dtype, body);
}

absl::Status Append(const Array& array, size_t levels, const std::string& where,
                    std::string* text) {
  return WithType(array.dtype,
                  Unimplemented("%s holds %s", where, Name(array.dtype)),
                  [&](auto tag) {
                    using T = typename decltype(tag)::type;
                    return AppendAll<T>(array, levels, where, text);
                  });
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  if (TooDeep(text))
    return InvalidArgument("the JSON has more than %d levels", kMostLevels);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {
    const std::string what = error.what();
    const size_t at = what.find("] ");
    return InvalidArgument(
        "the body is no JSON: %s",
        Printable(at == std::string::npos ? what : what.substr(at + 2)));
  }
}

absl::StatusOr<Array> ArrayOfJson(const Json& data, DType dtype,
                                  const Shape& shape,
                                  const std::string& where) {
  if (!data.is_array() && !shape.empty())
    return InvalidArgument("%s: its data is %s; expected a list", where,
                           Shown(data));
  // Before memory for the shape: the text has to be as long at least.
  std::byte* bytes = nullptr;
  PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(dtype)).status());
  if (!shape.empty() && (data.empty() || !data[0].is_array()) &&
      data.size() != static_cast<uint64_t>(NumElements(shape)))
    return InvalidArgument("%s: its data has %d numbers; the shape %s has %d",
                           where, data.size(), ToString(shape),
                           NumElements(shape));
  PD_ASSIGN_OR_RETURN(Array array, NewArray(dtype, shape, &bytes));
  PD_RETURN_IF_ERROR(WithType(
      dtype,
      Unimplemented("%s: %s is no type of the protocol", where, Name(dtype)),
      [&](auto tag) {
        using T = typename decltype(tag)::type;
        return Fill<T>(data, shape, where, bytes);
      }));
  return array;
}

absl::StatusOr<Shape> ShapeOfJson(const Json& data, const std::string& where) {
  Shape shape;
  for (const Json* list = &data; list->is_array(); list = &(*list)[0]) {
    shape.push_back(static_cast<int64_t>(list->size()));
    if (list->empty())
      return InvalidArgument("%s: its data has an empty list", where);
  }
  return shape;
}

absl::Status ReadLoD(const Json& levels, const std::string& where, Array* to) {
  auto lods = ParseLoDs(DumpJson(Json{{where, levels}}));
  if (!lods.ok()) return Annotate(lods.status(), "the parameter \"lod\"");
  to->lod = std::move(lods->at(where));
  return absl::OkStatus();
}

Json LengthsOf(const LoD& lod) { return Json::parse(LoDText({{"", lod}}))[""]; }

absl::Status AppendFlat(const Array& array, const std::string& where,
                        std::string* text) {
  return Append(array, 1, where, text);
}

absl::Status AppendNested(const Array& array, const std::string& where,
                          std::string* text) {
  return Append(array, array.shape.size(), where, text);
}

}  // namespace serve
}  // namespace pd
