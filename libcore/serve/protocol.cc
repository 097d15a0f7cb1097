// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/protocol.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"
#include "libcore/serve/json_tensor.h"
#include "libcore/serve/picture_reader.h"

namespace pd {
namespace serve {
namespace {

using Json = nlohmann::json;

// A member of an object; null where it is missing.
const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

absl::StatusOr<std::string> TextOf(const Json& object, const char* name,
                                   const std::string& where) {
  const Json* const value = Member(object, name);
  if (value == nullptr || !value->is_string())
    return InvalidArgument("%s: \"%s\" is %s; expected a string", where, name,
                           value == nullptr ? "missing" : value->type_name());
  return value->get<std::string>();
}

absl::StatusOr<bool> SwitchOf(const Json& object, const char* name,
                              const std::string& where, bool otherwise) {
  const Json* const parameters = Member(object, "parameters");
  if (parameters == nullptr || parameters->is_null()) return otherwise;
  if (!parameters->is_object())
    return InvalidArgument("%s: \"parameters\" is %s; expected an object",
                           where, parameters->type_name());
  const Json* const value = Member(*parameters, name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean())
    return InvalidArgument(
        "%s: the parameter \"%s\" is %s; expected true or "
        "false",
        where, name, value->type_name());
  return value->get<bool>();
}

absl::StatusOr<Shape> ShapeMember(const Json& object,
                                  const std::string& where) {
  const Json* const list = Member(object, "shape");
  if (list == nullptr || !list->is_array())
    return InvalidArgument("%s: \"shape\" is %s; expected a list of integers",
                           where,
                           list == nullptr ? "missing" : list->type_name());
  Shape shape;
  for (const Json& extent : *list) {
    if (!extent.is_number_integer() ||
        (extent.is_number_unsigned() &&
         extent.get<uint64_t>() > uint64_t{kMostBytes}))
      return InvalidArgument(
          "%s: \"shape\" has an extent that is no integer "
          "of 64 bits in range",
          where);
    shape.push_back(extent.get<int64_t>());
  }
  return shape;
}

// The bytes that follow the JSON, taken one input after the other.
class Tail {
 public:
  explicit Tail(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<Array> Take(uint64_t size, DType dtype, const Shape& shape,
                             const std::string& where) {
    PD_ASSIGN_OR_RETURN(const int64_t expected,
                        CheckedBytes(shape, SizeOf(dtype)));
    if (size != static_cast<uint64_t>(expected))
      return InvalidArgument("%s: binary_data_size is %d; %s%s has %d bytes",
                             where, size, DatatypeName(dtype), ToString(shape),
                             expected);
    PD_ASSIGN_OR_RETURN(const absl::string_view own, TakeBytes(size, where));
    return ArrayOfBytes(own, dtype, shape, where);
  }
  absl::StatusOr<absl::string_view> TakeBytes(uint64_t size,
                                              const std::string& where) {
    if (size > bytes_.size())
      return InvalidArgument(
          "%s: binary_data_size is %d; %d bytes are left of the body", where,
          size, bytes_.size());
    const absl::string_view own = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return own;
  }
  absl::string_view left() const { return bytes_; }

 private:
  absl::string_view bytes_;
};

// Where the elements of an input are: in the JSON, or behind it.
struct Source {
  const Json* data = nullptr;
  uint64_t size = 0;  // of the bytes, where `data` is null
};

absl::StatusOr<Source> SourceOf(const Json& input, const std::string& where,
                                bool has_tail) {
  Source source;
  source.data = Member(input, "data");
  const Json* const parameters = Member(input, "parameters");
  const Json* const size = parameters != nullptr && parameters->is_object()
                               ? Member(*parameters, "binary_data_size")
                               : nullptr;
  if (size == nullptr) {
    if (source.data != nullptr) return source;
    return InvalidArgument(
        "%s has neither \"data\" nor the parameter binary_data_size", where);
  }
  if (source.data != nullptr)
    return InvalidArgument(
        "%s has both \"data\" and binary_data_size; expected one", where);
  if (!size->is_number_unsigned())
    return InvalidArgument("%s: binary_data_size is no integer of 0 or more",
                           where);
  if (!has_tail)
    return InvalidArgument(
        "%s has binary_data_size, and the request has no header "
        "Inference-Header-Content-Length, which says where the bytes begin",
        where);
  source.size = size->get<uint64_t>();
  return source;
}

absl::StatusOr<Array> ReadEncoded(const Json& list, const TensorInfo& info,
                                  const std::string& where) {
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> pictures,
                      PicturesOfJson(list, where));
  return info.pictures->Read({pictures.begin(), pictures.end()}, info.dtype,
                             info.shape, where);
}

// An input of the datatype BYTES.
absl::StatusOr<Array> ReadPictures(const Json& input, const TensorInfo& info,
                                   const Source& source, Tail* tail) {
  const std::string where = absl::StrCat("input '", info.name, "'");
  PD_ASSIGN_OR_RETURN(const Shape shape, ShapeMember(input, where));
  PD_ASSIGN_OR_RETURN(const int64_t count, PictureCount(shape, where));
  if (source.data != nullptr) {
    if (source.data->is_array() &&
        source.data->size() != static_cast<size_t>(count))
      return InvalidArgument("%s: there are %d pictures; the shape has %d",
                             where, source.data->size(), count);
    return ReadEncoded(*source.data, info, where);
  }
  PD_ASSIGN_OR_RETURN(const absl::string_view bytes,
                      tail->TakeBytes(source.size, where));
  PD_ASSIGN_OR_RETURN(const auto pictures, SplitBytes(bytes, count, where));
  return info.pictures->Read(pictures, info.dtype, info.shape, where);
}

absl::StatusOr<Array> ReadValues(const Json& input, const TensorInfo& info,
                                 size_t body_size, bool has_tail, Tail* tail) {
  const std::string where = absl::StrCat("input '", info.name, "'");
  PD_ASSIGN_OR_RETURN(const std::string name, TextOf(input, "datatype", where));
  if (name == kBytesDatatype && info.pictures != nullptr) {
    PD_ASSIGN_OR_RETURN(const Source source, SourceOf(input, where, has_tail));
    PD_ASSIGN_OR_RETURN(Array array, ReadPictures(input, info, source, tail));
    PD_RETURN_IF_ERROR(CheckInput(info, array.dtype, array.shape));
    return array;
  }
  const auto dtype = DatatypeFromName(name);
  if (!dtype.has_value())
    return InvalidArgument(
        "%s: the datatype '%s' is not known here; the model takes %s", where,
        Printable(name), DatatypeName(info.dtype));
  PD_ASSIGN_OR_RETURN(const Shape shape, ShapeMember(input, where));
  PD_RETURN_IF_ERROR(CheckInput(info, *dtype, shape));
  PD_ASSIGN_OR_RETURN(const Source source, SourceOf(input, where, has_tail));
  if (source.data == nullptr)
    return tail->Take(source.size, *dtype, shape, where);
  PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(*dtype)).status());
  if (static_cast<uint64_t>(NumElements(shape)) > body_size)
    return InvalidArgument(
        "%s: the shape %s has more elements than the body "
        "has bytes",
        where, ToString(shape));
  return ArrayOfJson(*source.data, *dtype, shape, where);
}

absl::StatusOr<Array> ReadInput(const Json& input, const TensorInfo& info,
                                size_t body_size, bool has_tail, Tail* tail) {
  PD_ASSIGN_OR_RETURN(Array array,
                      ReadValues(input, info, body_size, has_tail, tail));
  const Json* const parameters = Member(input, "parameters");
  const Json* const lod = parameters != nullptr && parameters->is_object()
                              ? Member(*parameters, "lod")
                              : nullptr;
  if (lod != nullptr)
    PD_RETURN_IF_ERROR(
        ReadLoD(*lod, absl::StrCat("input '", info.name, "'"), &array));
  return array;
}

absl::Status ReadOutputs(const Json& request, const Signature& signature,
                         bool binary, std::vector<WantedOutput>* wanted) {
  const Json* const list = Member(request, "outputs");
  if (list == nullptr || list->is_null() ||
      (list->is_array() && list->empty())) {
    for (size_t i = 0; i < signature.outputs.size(); ++i)
      wanted->push_back({i, binary});
    return absl::OkStatus();
  }
  if (!list->is_array())
    return InvalidArgument("\"outputs\" is %s; expected a list",
                           list->type_name());
  if (list->size() > signature.outputs.size())
    return InvalidArgument("\"outputs\" has %d entries; the model has %d",
                           list->size(), signature.outputs.size());
  for (const Json& output : *list) {
    if (!output.is_object())
      return InvalidArgument("\"outputs\" has %s in it; expected objects",
                             output.type_name());
    PD_ASSIGN_OR_RETURN(const std::string name,
                        TextOf(output, "name", "an entry of \"outputs\""));
    const TensorInfo* const info = signature.Output(name);
    if (info == nullptr) return NoSuchTensor("output", name, signature.outputs);
    PD_ASSIGN_OR_RETURN(const bool own,
                        SwitchOf(output, "binary_data",
                                 absl::StrCat("output '", name, "'"), binary));
    wanted->push_back(
        {static_cast<size_t>(info - signature.outputs.data()), own});
  }
  return absl::OkStatus();
}

absl::StatusOr<InferRequest> ReadInfer(absl::string_view body,
                                       std::optional<size_t> json_length,
                                       const Signature& signature) {
  if (json_length.has_value() && *json_length > body.size())
    return InvalidArgument(
        "Inference-Header-Content-Length is %d; the body has %d bytes",
        *json_length, body.size());
  const size_t length = json_length.value_or(body.size());
  PD_ASSIGN_OR_RETURN(const Json json, ParseJson(body.substr(0, length)));
  if (!json.is_object())
    return InvalidArgument(
        "the request is %s; expected an object with "
        "\"inputs\"",
        json.type_name());
  InferRequest request;
  if (const Json* const id = Member(json, "id"); id != nullptr) {
    PD_ASSIGN_OR_RETURN(request.id, TextOf(json, "id", "the request"));
  }
  const Json* const inputs = Member(json, "inputs");
  if (inputs == nullptr || !inputs->is_array())
    return InvalidArgument("\"inputs\" is %s; expected a list",
                           inputs == nullptr ? "missing" : inputs->type_name());
  Tail tail(body.substr(length));
  for (const Json& input : *inputs) {
    if (!input.is_object())
      return InvalidArgument("\"inputs\" has %s in it; expected objects",
                             input.type_name());
    PD_ASSIGN_OR_RETURN(const std::string name,
                        TextOf(input, "name", "an entry of \"inputs\""));
    const TensorInfo* const info = signature.Input(name);
    if (info == nullptr) return NoSuchTensor("input", name, signature.inputs);
    if (request.inputs.count(name) > 0)
      return InvalidArgument("input '%s' is given twice", name);
    PD_ASSIGN_OR_RETURN(
        request.inputs[name],
        ReadInput(input, *info, body.size(), json_length.has_value(), &tail));
  }
  if (!tail.left().empty())
    return InvalidArgument(
        "%d bytes of the body belong to no input; their sizes are the "
        "parameters binary_data_size",
        tail.left().size());
  PD_RETURN_IF_ERROR(CheckComplete(signature, request.inputs));
  PD_ASSIGN_OR_RETURN(const bool binary,
                      SwitchOf(json, "binary_data_output", "the request",
                               /*otherwise=*/false));
  PD_RETURN_IF_ERROR(ReadOutputs(json, signature, binary, &request.outputs));
  return request;
}

absl::Status AddValue(const std::string& name, const Json& data,
                      size_t body_size, const Signature& signature,
                      NamedArrays* inputs) {
  const TensorInfo* const info = signature.Input(name);
  if (info == nullptr) return NoSuchTensor("input", name, signature.inputs);
  const std::string where = absl::StrCat("input '", name, "'");
  if (info->pictures != nullptr && data.is_array() && !data.empty() &&
      IsEncodedPicture(data[0])) {
    PD_ASSIGN_OR_RETURN((*inputs)[name], ReadEncoded(data, *info, where));
    return CheckInput(*info, (*inputs)[name].dtype, (*inputs)[name].shape);
  }
  PD_ASSIGN_OR_RETURN(const Shape shape, ShapeOfJson(data, where));
  PD_RETURN_IF_ERROR(CheckInput(*info, info->dtype, shape));
  PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(info->dtype)).status());
  if (static_cast<uint64_t>(NumElements(shape)) > body_size)
    return InvalidArgument("%s: its lists differ in length", where);
  PD_ASSIGN_OR_RETURN((*inputs)[name],
                      ArrayOfJson(data, info->dtype, shape, where));
  return absl::OkStatus();
}

// Rows of one object each, turned into a list for each input.
absl::StatusOr<Json> ByInput(const Json& instances) {
  Json inputs = Json::object();
  for (const Json& row : instances) {
    if (!row.is_object())
      return InvalidArgument("\"instances\" has objects and others in it");
    for (const auto& item : row.items())
      inputs[item.key()].push_back(item.value());
  }
  for (const auto& item : inputs.items())
    if (item.value().size() != instances.size())
      return InvalidArgument("%d of %d instances have '%s'",
                             item.value().size(), instances.size(),
                             Printable(item.key()));
  return inputs;
}

absl::StatusOr<InferRequest> ReadPredict(absl::string_view body,
                                         const Signature& signature) {
  PD_ASSIGN_OR_RETURN(Json json, ParseJson(body));
  const Json* const instances =
      json.is_object() ? Member(json, "instances") : nullptr;
  Json inputs = json.is_object() ? json.value("inputs", Json()) : Json();
  if ((instances == nullptr) == inputs.is_null())
    return InvalidArgument(
        "the request is no object with either \"instances\" or \"inputs\"");
  if (instances != nullptr) {
    if (!instances->is_array() || instances->empty())
      return InvalidArgument("\"instances\" is no list of at least one row");
    if ((*instances)[0].is_object() && !IsEncodedPicture((*instances)[0])) {
      PD_ASSIGN_OR_RETURN(inputs, ByInput(*instances));
    } else {
      inputs = *instances;
    }
  }
  InferRequest request;
  if (!inputs.is_object()) {
    if (signature.inputs.size() != 1)
      return InvalidArgument(
          "the model has %d inputs; expected objects with an array for each",
          signature.inputs.size());
    inputs = Json::object({{signature.inputs[0].name, std::move(inputs)}});
  }
  for (const auto& item : inputs.items())
    PD_RETURN_IF_ERROR(AddValue(item.key(), item.value(), body.size(),
                                signature, &request.inputs));
  PD_RETURN_IF_ERROR(CheckComplete(signature, request.inputs));
  for (size_t i = 0; i < signature.outputs.size(); ++i)
    request.outputs.push_back({i, false});
  return request;
}

std::string Quoted(absl::string_view text) {
  return DumpJson(Json(std::string(text)));
}

}  // namespace

absl::StatusOr<Array> ArrayOfBytes(absl::string_view bytes, DType dtype,
                                   const Shape& shape,
                                   const std::string& where) {
  std::byte* to = nullptr;
  PD_ASSIGN_OR_RETURN(Array array, NewArray(dtype, shape, &to));
  if (bytes.size() != array.size_bytes())
    return InvalidArgument("%s: there are %d bytes; %s%s has %d", where,
                           bytes.size(), DatatypeName(dtype), ToString(shape),
                           array.size_bytes());
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  if (dtype == DType::kBool)
    for (size_t i = 0; i < bytes.size(); ++i)
      if (to[i] > std::byte{1})
        return InvalidArgument("%s: byte %d is %d; a BOOL is 0 or 1", where, i,
                               static_cast<int>(to[i]));
  return array;
}

absl::StatusOr<InferRequest> ReadInferRequest(absl::string_view body,
                                              std::optional<size_t> json_length,
                                              const Signature& signature) {
  return Guarded([&] { return ReadInfer(body, json_length, signature); });
}

absl::StatusOr<InferRequest> ReadPredictRequest(absl::string_view body,
                                                const Signature& signature) {
  return Guarded([&] { return ReadPredict(body, signature); });
}

absl::StatusOr<Body> WriteInferAnswer(const AnswerHead& head,
                                      const Signature& signature,
                                      const std::vector<WantedOutput>& wanted,
                                      const Outputs& outputs) {
  return Guarded([&]() -> absl::StatusOr<Body> {
    Body body;
    std::string tail;
    bool binary = false;
    std::string& text = body.bytes;
    absl::StrAppend(&text, "{\"model_name\":", Quoted(head.model),
                    ",\"model_version\":", Quoted(head.version));
    if (!head.id.empty()) absl::StrAppend(&text, ",\"id\":", Quoted(head.id));
    absl::StrAppend(&text, ",\"outputs\":[");
    for (const WantedOutput& one : wanted) {
      const std::string& name = signature.outputs[one.index].name;
      const Array& array = outputs[one.index];
      if (&one != wanted.data()) text += ',';
      absl::StrAppend(&text, "{\"name\":", Quoted(name), ",\"datatype\":\"",
                      DatatypeName(array.dtype),
                      "\",\"shape\":", DumpJson(Json(array.shape)));
      Json parameters = Json::object();
      if (!array.lod.empty()) parameters["lod"] = LengthsOf(array.lod);
      if (one.binary) parameters["binary_data_size"] = array.size_bytes();
      if (!parameters.empty())
        absl::StrAppend(&text, ",\"parameters\":", DumpJson(parameters));
      if (one.binary) {
        binary = true;
        text += '}';
        tail.append(array.data<char>(), array.size_bytes());
        continue;
      }
      text += ",\"data\":";
      PD_RETURN_IF_ERROR(
          AppendFlat(array, absl::StrCat("output '", name, "'"), &text));
      text += '}';
    }
    text += "]}";
    if (binary) body.json_length = text.size();
    text += tail;
    return body;
  });
}

absl::StatusOr<std::string> WritePredictAnswer(const Signature& signature,
                                               const Outputs& outputs) {
  return Guarded([&]() -> absl::StatusOr<std::string> {
    std::string text = "{\"predictions\":";
    const bool named = outputs.size() != 1;
    if (named) text += '{';
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = signature.outputs[i].name;
      if (named) absl::StrAppend(&text, i > 0 ? "," : "", Quoted(name), ":");
      PD_RETURN_IF_ERROR(
          AppendNested(outputs[i], absl::StrCat("output '", name, "'"), &text));
    }
    text += named ? "}}" : "}";
    return text;
  });
}

std::string ErrorBody(absl::string_view message) {
  return absl::StrCat("{\"error\":", Quoted(Printable(message)), "}");
}

}  // namespace serve
}  // namespace pd
