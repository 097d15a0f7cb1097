// SPDX-License-Identifier: Apache-2.0
// A tree of Python values as JSON. Each value is an object of one member that
// names its type, because JSON knows neither tuples nor the size of a number:
// {"tuple": [{"int": "1"}, {"array": "t/1"}]}.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/json_text.h"
#include "formats/tensor_stream.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/tree.h"

namespace pd {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kMaxDepth = 64;  // as deep as a pickle that is read

// Text as it is; bytes that are no UTF-8 (of Python 2) in hexadecimal.
OrderedJson TextJson(const std::string& text) {
  return IsUtf8(text) ? OrderedJson{{"value", text}}
                      : OrderedJson{{"raw", absl::BytesToHexString(text)}};
}

class Encoder {
 public:
  explicit Encoder(const std::string& alone) : alone_(alone) {}

  OrderedJson Encode(const PickleValue& value, const std::string& path) const {
    if (const auto* array = value.As<Array>()) return ArrayJson(*array, path);
    if (const PickleTuple* tensor = AsTensor(value)) {
      OrderedJson json = ArrayJson(*tensor->items[1].As<Array>(), path);
      json["tensor"] = TextJson(*tensor->items[0].As<std::string>());
      return json;
    }
    if (const auto* list = value.As<PickleList>())
      return {{"list", Items(list->items, path)}};
    if (const auto* tuple = value.As<PickleTuple>())
      return {{"tuple", Items(tuple->items, path)}};
    if (const auto* dict = value.As<PickleDict>())
      return {{dict->ordered ? "ordered_dict" : "dict", Dict(*dict, path)}};
    return Plain(value);
  }

 private:
  OrderedJson ArrayJson(const Array& array, const std::string& path) const {
    OrderedJson json = {{"array", path.empty() ? alone_ : path}};
    if (!array.lod.empty()) json["lod"] = array.lod;
    return json;
  }

  OrderedJson Items(const std::vector<PickleValue>& items,
                    const std::string& path) const {
    OrderedJson json = OrderedJson::array();
    for (size_t i = 0; i < items.size(); ++i)
      json.push_back(Encode(items[i], TreePath(path, absl::StrCat(i))));
    return json;
  }

  OrderedJson Dict(const PickleDict& dict, const std::string& path) const {
    OrderedJson json = OrderedJson::array();
    for (const auto& [key, value] : dict.items)
      json.push_back(OrderedJson::array(
          {Encode(key, ""), Encode(value, TreePath(path, TreeKey(key)))}));
    return json;
  }

  static OrderedJson Plain(const PickleValue& value) {
    if (const auto* on = value.As<bool>()) return {{"value", *on}};
    if (const auto* text = value.As<std::string>()) return TextJson(*text);
    if (const auto* n = value.As<int64_t>()) return {{"int", absl::StrCat(*n)}};
    if (const auto* x = value.As<double>())
      return {{"float", absl::StrFormat("%.17g", *x)}};
    if (const auto* big = value.As<PickleBigInt>())
      return {{"bigint", absl::BytesToHexString(big->bytes)}};
    if (const auto* bytes = value.As<PickleBytes>())
      return {{"bytes", absl::BytesToHexString(bytes->bytes)}};
    if (const auto* z = value.As<std::complex<double>>())
      return {{"complex",
               OrderedJson::array({absl::StrFormat("%.17g", z->real()),
                                   absl::StrFormat("%.17g", z->imag())})}};
    return {{"value", nullptr}};
  }

  std::string alone_;
};

absl::Status Damaged(absl::string_view what) {
  return DataLoss("the tree of values: %s", what);
}

class Decoder {
 public:
  explicit Decoder(const NamedArrays& arrays) : arrays_(arrays) {}

  absl::StatusOr<PickleValue> Decode(const OrderedJson& json, int depth) const {
    if (depth > kMaxDepth) return Damaged("it is over 64 levels deep");
    if (!json.is_object() || json.empty()) return Damaged("no typed value");
    const std::string& type = json.begin().key();
    const OrderedJson& value = json.begin().value();
    if (type == "array") return Leaf(json);
    if (type == "list") return Items<PickleList>(value, depth);
    if (type == "tuple") return Items<PickleTuple>(value, depth);
    if (type == "dict" || type == "ordered_dict")
      return Dict(value, type == "ordered_dict", depth);
    if (type == "complex" && value.is_array() && value.size() == 2) {
      PD_ASSIGN_OR_RETURN(const double re, Real(value[0]));
      PD_ASSIGN_OR_RETURN(const double im, Real(value[1]));
      return PickleValue{std::complex<double>(re, im)};
    }
    if (type == "value" && value.is_boolean())
      return PickleValue{value.get<bool>()};
    if (type == "value" && value.is_null()) return PickleValue();
    return Text(type, value);
  }

 private:
  static absl::StatusOr<double> Real(const OrderedJson& json) {
    double value = 0;
    if (!json.is_string() ||
        !absl::SimpleAtod(json.get_ref<const std::string&>(), &value))
      return Damaged("a float is no number");
    return value;
  }

  // The types whose value is written as a string.
  static absl::StatusOr<PickleValue> Text(const std::string& type,
                                          const OrderedJson& json) {
    if (!json.is_string()) return Damaged("a value is no string");
    const auto& text = json.get_ref<const std::string&>();
    if (type == "value") return PickleValue{text};
    int64_t number = 0;
    if (type == "int" && absl::SimpleAtoi(text, &number))
      return PickleValue{number};
    if (type == "float") {
      PD_ASSIGN_OR_RETURN(const double real, Real(json));
      return PickleValue{real};
    }
    const bool hex = text.size() % 2 == 0 &&
                     std::all_of(text.begin(), text.end(), [](unsigned char c) {
                       return std::isxdigit(c) != 0;
                     });
    if (hex && type == "raw") return PickleValue{absl::HexStringToBytes(text)};
    if (hex && type == "bytes")
      return PickleValue{PickleBytes{absl::HexStringToBytes(text)}};
    if (hex && type == "bigint")
      return PickleValue{PickleBigInt{absl::HexStringToBytes(text)}};
    return Damaged("a value of an unknown type");
  }

  absl::StatusOr<PickleValue> Leaf(const OrderedJson& json) const {
    const OrderedJson& name = json["array"];
    const auto found = name.is_string()
                           ? arrays_.find(name.get_ref<const std::string&>())
                           : arrays_.end();
    if (found == arrays_.end())
      return Damaged(absl::StrCat(
          "there is no array ",
          name.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)));
    Array array = found->second;
    if (json.contains("lod")) PD_RETURN_IF_ERROR(Offsets(json["lod"], &array));
    if (!json.contains("tensor")) return PickleValue{std::move(array)};
    PD_ASSIGN_OR_RETURN(PickleValue variable, Decode(json["tensor"], 0));
    if (variable.As<std::string>() == nullptr)
      return Damaged("a tensor's name is no string");
    PickleTuple tensor;
    tensor.items.push_back(std::move(variable));
    tensor.items.push_back(PickleValue{std::move(array)});
    return PickleValue{std::move(tensor)};
  }

  static absl::Status Offsets(const OrderedJson& json, Array* array) {
    if (!json.is_array() || array->shape.empty()) return Damaged("a bad LoD");
    LoD lod;
    for (const OrderedJson& level : json) {
      if (!level.is_array()) return Damaged("a bad LoD");
      lod.emplace_back();
      for (const OrderedJson& offset : level) {
        if (!offset.is_number_unsigned()) return Damaged("a bad LoD");
        lod.back().push_back(offset.get<uint64_t>());
      }
    }
    array->lod = std::move(lod);
    return CheckLoD(array->lod, array->shape[0]);
  }

  template <typename Sequence>
  absl::StatusOr<PickleValue> Items(const OrderedJson& json, int depth) const {
    if (!json.is_array()) return Damaged("a list is none");
    Sequence sequence;
    for (const OrderedJson& item : json) {
      PD_ASSIGN_OR_RETURN(PickleValue value, Decode(item, depth + 1));
      sequence.items.push_back(std::move(value));
    }
    return PickleValue{std::move(sequence)};
  }

  absl::StatusOr<PickleValue> Dict(const OrderedJson& json, bool ordered,
                                   int depth) const {
    if (!json.is_array()) return Damaged("a dict is none");
    PickleDict dict;
    dict.ordered = ordered;
    for (const OrderedJson& item : json) {
      if (!item.is_array() || item.size() != 2)
        return Damaged("an entry of a dict is no pair");
      PD_ASSIGN_OR_RETURN(PickleValue key, Decode(item[0], depth + 1));
      PD_ASSIGN_OR_RETURN(PickleValue value, Decode(item[1], depth + 1));
      dict.items.emplace_back(std::move(key), std::move(value));
    }
    return PickleValue{std::move(dict)};
  }

  const NamedArrays& arrays_;
};

}  // namespace

std::string TreeToJson(const PickleValue& root, const std::string& alone) {
  // A name that is no UTF-8 is one that neither npz nor safetensors can have.
  return Encoder(alone).Encode(root, "").dump(
      -1, ' ', false, OrderedJson::error_handler_t::replace);
}

absl::StatusOr<PickleValue> TreeFromJson(absl::string_view text,
                                         const NamedArrays& arrays) {
  const OrderedJson json = OrderedJson::parse(text.begin(), text.end(), nullptr,
                                              /*allow_exceptions=*/false);
  if (json.is_discarded()) return Damaged("it is no JSON");
  return Decoder(arrays).Decode(json, 0);
}

}  // namespace pd
