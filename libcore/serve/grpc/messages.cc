// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/grpc/messages.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

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

using Contents = wire::InferTensorContents;
using Input = wire::ModelInferRequest::InferInputTensor;

// A longer shape is refused before it is copied or printed.
constexpr int kMostRank = 64;

// Elements in all fields together: a message has those of one type alone.
int64_t CountOf(const Contents& from) {
  return int64_t{from.bool_contents_size()} + from.int_contents_size() +
         from.int64_contents_size() + from.uint_contents_size() +
         from.uint64_contents_size() + from.fp32_contents_size() +
         from.fp64_contents_size() + from.bytes_contents_size();
}

template <typename T, typename Field>
absl::StatusOr<Array> ArrayOfField(const Field& values, const char* field,
                                   const TensorInfo& info, const Shape& shape,
                                   const Contents& all) {
  const std::string where = absl::StrCat("input '", info.name, "'");
  if (CountOf(all) != values.size())
    return InvalidArgument(
        "%s: %d elements are not in %s, where those of %s are", where,
        CountOf(all) - values.size(), field, DatatypeName(info.dtype));
  // Before memory is taken by the shape.
  PD_RETURN_IF_ERROR(CheckedBytes(shape, sizeof(T)).status());
  if (values.size() != NumElements(shape))
    return InvalidArgument("%s: %s has %d elements; the shape %s has %d", where,
                           field, values.size(), ToString(shape),
                           NumElements(shape));
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array array, NewArray(info.dtype, shape, &bytes));
  T* const to = reinterpret_cast<T*>(bytes);
  for (int i = 0; i < values.size(); ++i) {
    to[i] = static_cast<T>(values[i]);
    // A narrow integer travels as a wide one; NaN is no integer.
    if (std::numeric_limits<T>::is_integer && to[i] != values[i])
      return InvalidArgument("%s: element %d of %s is %s, which is no %s",
                             where, i, field, absl::StrCat(values[i]),
                             DatatypeName(info.dtype));
  }
  return array;
}

absl::StatusOr<Array> ArrayOfContents(const Contents& from,
                                      const TensorInfo& info,
                                      const Shape& shape) {
  switch (info.dtype) {
    case DType::kBool:
      return ArrayOfField<bool>(from.bool_contents(), "bool_contents", info,
                                shape, from);
    case DType::kInt8:
      return ArrayOfField<int8_t>(from.int_contents(), "int_contents", info,
                                  shape, from);
    case DType::kInt16:
      return ArrayOfField<int16_t>(from.int_contents(), "int_contents", info,
                                   shape, from);
    case DType::kInt32:
      return ArrayOfField<int32_t>(from.int_contents(), "int_contents", info,
                                   shape, from);
    case DType::kInt64:
      return ArrayOfField<int64_t>(from.int64_contents(), "int64_contents",
                                   info, shape, from);
    case DType::kUInt8:
      return ArrayOfField<uint8_t>(from.uint_contents(), "uint_contents", info,
                                   shape, from);
    case DType::kFloat32:
      return ArrayOfField<float>(from.fp32_contents(), "fp32_contents", info,
                                 shape, from);
    case DType::kFloat64:
      return ArrayOfField<double>(from.fp64_contents(), "fp64_contents", info,
                                  shape, from);
    default:
      return InvalidArgument(
          "input '%s': %s has no field of contents; send raw_input_contents",
          info.name, DatatypeName(info.dtype));
  }
}

// The parameter "lod", as JSON in a string: lengths of sequences by level.
absl::Status ReadLoDParameter(const Input& input, const std::string& where,
                              Array* to) {
  const auto found = input.parameters().find("lod");
  if (found == input.parameters().end()) return absl::OkStatus();
  if (found->second.parameter_choice_case() !=
      wire::InferParameter::kStringParam)
    return InvalidArgument(
        "%s: the parameter \"lod\" is no string; expected one as \"[[2, 3]]\"",
        where);
  const auto levels = ParseJson(found->second.string_param());
  if (!levels.ok()) return Annotate(levels.status(), "the parameter \"lod\"");
  return ReadLoD(*levels, where, to);
}

// Files of pictures in place of the input's numbers.
absl::StatusOr<Array> ReadPictures(const wire::ModelInferRequest& message,
                                   int i, const TensorInfo& info) {
  const Input& input = message.inputs(i);
  const std::string where = absl::StrCat("input '", info.name, "'");
  if (input.shape_size() > kMostRank)
    return InvalidArgument("%s: the shape has %d extents; expected 1", where,
                           input.shape_size());
  PD_ASSIGN_OR_RETURN(
      const int64_t count,
      PictureCount({input.shape().begin(), input.shape().end()}, where));
  const auto& contents = input.contents().bytes_contents();
  std::vector<absl::string_view> pictures(contents.begin(), contents.end());
  if (message.raw_input_contents_size() > 0) {
    if (CountOf(input.contents()) > 0)
      return InvalidArgument(
          "%s has contents, and the request has raw_input_contents; expected "
          "one",
          where);
    PD_ASSIGN_OR_RETURN(
        pictures, SplitBytes(message.raw_input_contents(i), count, where));
  } else if (CountOf(input.contents()) != count || contents.size() != count) {
    return InvalidArgument("%s: bytes_contents has %d elements; the shape %d",
                           where, contents.size(), count);
  }
  PD_ASSIGN_OR_RETURN(Array array, info.pictures->Read(pictures, info.dtype,
                                                       info.shape, where));
  PD_RETURN_IF_ERROR(CheckInput(info, array.dtype, array.shape));
  return array;
}

absl::StatusOr<Array> ReadTensor(const wire::ModelInferRequest& message, int i,
                                 const TensorInfo& info) {
  const Input& input = message.inputs(i);
  const std::string where = absl::StrCat("input '", info.name, "'");
  if (input.datatype() == kBytesDatatype && info.pictures != nullptr)
    return ReadPictures(message, i, info);
  const auto dtype = DatatypeFromName(input.datatype());
  if (!dtype.has_value())
    return InvalidArgument(
        "%s: the datatype '%s' is not known here; the model takes %s", where,
        Printable(input.datatype()), DatatypeName(info.dtype));
  if (input.shape_size() > kMostRank)
    return InvalidArgument("%s: the shape has %d extents; the model takes %d",
                           where, input.shape_size(), info.shape.size());
  const Shape shape(input.shape().begin(), input.shape().end());
  PD_RETURN_IF_ERROR(CheckInput(info, *dtype, shape));
  if (message.raw_input_contents_size() == 0)
    return ArrayOfContents(input.contents(), info, shape);
  if (CountOf(input.contents()) > 0)
    return InvalidArgument(
        "%s has contents, and the request has raw_input_contents; expected one",
        where);
  const std::string& raw = message.raw_input_contents(i);
  // Before memory is taken by the shape.
  PD_ASSIGN_OR_RETURN(const int64_t expected,
                      CheckedBytes(shape, SizeOf(*dtype)));
  if (static_cast<int64_t>(raw.size()) != expected)
    return InvalidArgument(
        "%s: raw_input_contents[%d] has %d bytes; %s%s has %d", where, i,
        raw.size(), DatatypeName(*dtype), ToString(shape), expected);
  return ArrayOfBytes(raw, *dtype, shape, where);
}

absl::Status ReadWanted(const wire::ModelInferRequest& message,
                        const Signature& signature,
                        std::vector<WantedOutput>* wanted) {
  if (message.outputs_size() == 0)
    for (size_t i = 0; i < signature.outputs.size(); ++i)
      wanted->push_back({i, false});
  if (message.outputs_size() > static_cast<int>(signature.outputs.size()))
    return InvalidArgument("the request has %d outputs; the model has %d",
                           message.outputs_size(), signature.outputs.size());
  for (const auto& output : message.outputs()) {
    const TensorInfo* const info = signature.Output(output.name());
    if (info == nullptr)
      return NoSuchTensor("output", output.name(), signature.outputs);
    wanted->push_back(
        {static_cast<size_t>(info - signature.outputs.data()), false});
  }
  return absl::OkStatus();
}

template <typename T, typename Field>
void Fill(const Array& array, Field* to) {
  to->Reserve(static_cast<int>(array.size()));
  for (int64_t i = 0; i < array.size(); ++i) to->Add(array.data<T>()[i]);
}

// False for a datatype that has no field.
bool WriteContents(const Array& array, Contents* to) {
  switch (array.dtype) {
    case DType::kBool:
      return Fill<bool>(array, to->mutable_bool_contents()), true;
    case DType::kInt8:
      return Fill<int8_t>(array, to->mutable_int_contents()), true;
    case DType::kInt16:
      return Fill<int16_t>(array, to->mutable_int_contents()), true;
    case DType::kInt32:
      return Fill<int32_t>(array, to->mutable_int_contents()), true;
    case DType::kInt64:
      return Fill<int64_t>(array, to->mutable_int64_contents()), true;
    case DType::kUInt8:
      return Fill<uint8_t>(array, to->mutable_uint_contents()), true;
    case DType::kFloat32:
      return Fill<float>(array, to->mutable_fp32_contents()), true;
    case DType::kFloat64:
      return Fill<double>(array, to->mutable_fp64_contents()), true;
    default:
      return false;
  }
}

// Protobuf writes an answer that is too long as no bytes at all. Some are left
// for the message around it.
absl::Status CheckLength(int64_t count, const char* unit) {
  constexpr int64_t kMost = (int64_t{1} << 31) - (int64_t{1} << 16);
  if (count <= kMost) return absl::OkStatus();
  return ResourceExhausted(
      "the answer has %d %s; a message has less than 2 GiB", count, unit);
}

}  // namespace

absl::StatusOr<InferRequest> ReadMessage(const wire::ModelInferRequest& message,
                                         const Signature& signature) {
  InferRequest request;
  request.id = message.id();
  const int raw = message.raw_input_contents_size();
  if (raw > 0 && raw != message.inputs_size())
    return InvalidArgument(
        "the request has %d raw_input_contents and %d inputs; expected one for "
        "each, or none",
        raw, message.inputs_size());
  for (int i = 0; i < message.inputs_size(); ++i) {
    const std::string& name = message.inputs(i).name();
    const TensorInfo* const info = signature.Input(name);
    if (info == nullptr) return NoSuchTensor("input", name, signature.inputs);
    if (request.inputs.count(name) > 0)
      return InvalidArgument("input '%s' is given twice", name);
    PD_ASSIGN_OR_RETURN(Array array, ReadTensor(message, i, *info));
    PD_RETURN_IF_ERROR(ReadLoDParameter(
        message.inputs(i), absl::StrCat("input '", name, "'"), &array));
    request.inputs[name] = std::move(array);
  }
  PD_RETURN_IF_ERROR(CheckComplete(signature, request.inputs));
  PD_RETURN_IF_ERROR(ReadWanted(message, signature, &request.outputs));
  return request;
}

absl::Status WriteMessage(const AnswerHead& head, const Signature& signature,
                          const InferRequest& request, bool raw,
                          const Outputs& outputs,
                          wire::ModelInferResponse* message) {
  // Each takes a byte or more; fields count them as int.
  for (const WantedOutput& one : request.outputs)
    PD_RETURN_IF_ERROR(CheckLength(outputs[one.index].size(), "elements"));
  message->set_model_name(head.model);
  message->set_model_version(head.version);
  message->set_id(head.id);
  for (const WantedOutput& one : request.outputs) {
    const Array& array = outputs[one.index];
    auto* const output = message->add_outputs();
    output->set_name(signature.outputs[one.index].name);
    output->set_datatype(std::string(DatatypeName(array.dtype)));
    for (const int64_t extent : array.shape) output->add_shape(extent);
    if (!array.lod.empty())
      (*output->mutable_parameters())["lod"].set_string_param(
          DumpJson(LengthsOf(array.lod)));
    raw = raw || !WriteContents(array, output->mutable_contents());
  }
  for (size_t i = 0; raw && i < request.outputs.size(); ++i) {
    const Array& array = outputs[request.outputs[i].index];
    message->mutable_outputs(static_cast<int>(i))->clear_contents();
    message->add_raw_output_contents(array.data<char>(), array.size_bytes());
  }
  return CheckLength(static_cast<int64_t>(message->ByteSizeLong()), "bytes");
}

}  // namespace serve
}  // namespace pd
