// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/tflite_import/call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/half.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

template <typename T>
void ToFloats(const Array& from, float* to) {
  for (int64_t i = 0; i < from.size(); ++i)
    to[i] = static_cast<float>(from.data<T>()[i]);
}

// scale (i - zero point), where places of an axis may have their own.
template <typename T>
void Scaled(const TfliteTensor& tensor, float* to) {
  const Array& from = *tensor.constant;
  const size_t count = tensor.scales.size();
  const auto axis = static_cast<size_t>(tensor.axis);
  const int64_t inner =
      count == 1 ? 1 : NumElements(from.shape, axis + 1, from.shape.size());
  for (int64_t i = 0; i < from.size(); ++i) {
    const size_t k = static_cast<size_t>(i / inner) % count;
    to[i] = tensor.scales[k] *
            static_cast<float>(static_cast<int64_t>(from.data<T>()[i]) -
                               tensor.zero_points[k]);
  }
}

}  // namespace

absl::StatusOr<Array> TfliteNumbers(const TfliteTensor& tensor) {
  const Array& from = *tensor.constant;
  const bool scaled = !tensor.scales.empty();
  const bool half = from.dtype == DType::kFloat16;
  const bool integer =
      from.dtype == DType::kInt8 || from.dtype == DType::kUInt8 ||
      from.dtype == DType::kInt16 || from.dtype == DType::kInt32;
  if (!half && !(scaled && integer)) return from;
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array out, NewArray(DType::kFloat32, from.shape, &bytes));
  auto* to = reinterpret_cast<float*>(bytes);
  if (half)
    ToFloats<Float16>(from, to);
  else if (from.dtype == DType::kInt8)
    Scaled<int8_t>(tensor, to);
  else if (from.dtype == DType::kUInt8)
    Scaled<uint8_t>(tensor, to);
  else if (from.dtype == DType::kInt16)
    Scaled<int16_t>(tensor, to);
  else
    Scaled<int32_t>(tensor, to);
  return out;
}

bool IsQuantized(const TfliteTensor& tensor) {
  return tensor.scales.size() == 1 &&
         (tensor.dtype == DType::kInt8 || tensor.dtype == DType::kUInt8);
}

std::string Quantize(LayoutGraph* graph, const TfliteTensor& tensor,
                     const std::string& x, bool to, bool back) {
  const std::string scale =
      graph->Constant(MakeArray<float>({}, {tensor.scales[0]}));
  const int64_t zero = tensor.zero_points[0];
  const bool is_signed = tensor.dtype == DType::kInt8;
  if (zero < (is_signed ? -128 : 0) || zero > (is_signed ? 127 : 255))
    graph->Fail(DataLoss("a zero point of %d", zero));
  const std::string point = graph->Constant(
      is_signed ? MakeArray<int8_t>({}, {static_cast<int8_t>(zero)})
                : MakeArray<uint8_t>({}, {static_cast<uint8_t>(zero)}));
  std::string y = x;
  if (to) y = graph->Emit("QuantizeLinear", {y, scale, point});
  if (back) y = graph->Emit("DequantizeLinear", {y, scale, point});
  return y;
}

int64_t TfliteCall::Byte(size_t field) const {
  return field < op_.options.size() ? op_.options[field].byte : 0;
}

int64_t TfliteCall::Word(size_t field, int64_t otherwise) const {
  return field < op_.options.size() && op_.options[field].is_set
             ? op_.options[field].word
             : otherwise;
}

double TfliteCall::Float(size_t field) const {
  const auto bits = static_cast<int32_t>(Word(field));
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

bool TfliteCall::Has(size_t i) const {
  return i < op_.inputs.size() && op_.inputs[i] >= 0;
}

LayoutTensor& TfliteCall::In(size_t i) {
  static thread_local LayoutTensor none;
  none = LayoutTensor();
  if (!Has(i)) {
    Fail(InvalidArgument("it has no input %d", i));
    return none;
  }
  const int32_t tensor = op_.inputs[i];
  const auto value = build_->values.find(tensor);
  if (value != build_->values.end()) return value->second;
  const Array* known = Known(i);
  if (known == nullptr) {
    Fail(DataLoss("tensor %d is made by no operator before it", tensor));
    return none;
  }
  const std::string name = absl::StrCat(build_->prefix, InFact(i).name);
  LayoutTensor& made = build_->values[tensor];
  made = graph().Made(
      graph().Weight(graph().TakeName(name) && !InFact(i).name.empty()
                         ? name
                         : absl::StrCat(build_->prefix, "tensor_", tensor),
                     *known),
      known->shape, false, known->dtype);
  return made;
}

int64_t TfliteCall::Rank(size_t i) { return In(i).rank(); }

void TfliteCall::WantRank(size_t i, int64_t rank) {
  if (Rank(i) != rank)
    Fail(InvalidArgument("input %d has shape %s; expected %d axes", i,
                         ToString(In(i).shape), rank));
}

const TfliteTensor& TfliteCall::FactOf(const std::vector<int32_t>& tensors,
                                       size_t i) {
  static const auto* none = new TfliteTensor;
  if (i < tensors.size() && tensors[i] >= 0)
    return build_->file->tensors[static_cast<size_t>(tensors[i])];
  Fail(InvalidArgument("it has no input or output %d", i));
  return *none;
}

const TfliteTensor& TfliteCall::InFact(size_t i) {
  return FactOf(op_.inputs, i);
}

const TfliteTensor& TfliteCall::OutFact(size_t i) {
  return FactOf(op_.outputs, i);
}

const Array* TfliteCall::Known(size_t i) {
  if (!Has(i)) return nullptr;
  const auto made = build_->made.find(op_.inputs[i]);
  if (made != build_->made.end()) return &made->second;
  const TfliteTensor& fact = InFact(i);
  if (!fact.constant.has_value()) return nullptr;
  auto numbers = TfliteNumbers(fact);
  if (!numbers.ok()) {
    Fail(numbers.status());
    return nullptr;
  }
  return &(build_->made[op_.inputs[i]] = *std::move(numbers));
}

TfliteCall::Ints TfliteCall::KnownInts(size_t i) {
  const Array* array = Known(i);
  Ints ints;
  if (array != nullptr && array->dtype == DType::kInt32)
    ints.assign(array->data<int32_t>(), array->data<int32_t>() + array->size());
  else if (array != nullptr && array->dtype == DType::kInt64)
    ints.assign(array->data<int64_t>(), array->data<int64_t>() + array->size());
  else
    Fail(Unimplemented("input %d is no constant of integers", i));
  return ints;
}

int64_t TfliteCall::KnownInt(size_t i) {
  const Ints ints = KnownInts(i);
  if (ok() && ints.size() != 1)
    Fail(InvalidArgument("input %d has %d numbers", i, ints.size()));
  return ints.size() == 1 ? ints[0] : 0;
}

int64_t TfliteCall::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  Fail(InvalidArgument("axis %d of a tensor of %d axes", axis, rank));
  return 0;
}

std::string TfliteCall::Param(size_t i, const char* suffix,
                              const absl::StatusOr<Array>& array) {
  if (!array.ok()) {
    Fail(array.status());
    return "";
  }
  // Names of tensors need not differ from each other.
  return graph().Weight(
      absl::StrCat(build_->prefix, InFact(i).name, "/", suffix, op_.inputs[i]),
      *array);
}

std::string TfliteCall::Int64(size_t i) {
  if (Known(i) != nullptr) return graph().ConstInts(KnownInts(i));
  const std::string x = X(i);
  return graph().Cast(x, DType::kInt64);
}

void TfliteCall::Give(const std::string& name, bool front, size_t i) {
  if (!ok()) return;
  const TfliteTensor& fact = OutFact(i);
  if (!ok()) return;
  if (!fact.dtype.has_value())
    return Fail(Unimplemented("a tensor of TFLite's type %d", fact.type));
  const bool rounded = IsQuantized(fact);
  const std::string value =
      rounded ? Quantize(&graph(), fact, name, true, true) : name;
  LayoutTensor x = graph().Made(value, fact.shape, front,
                                rounded ? DType::kFloat32 : *fact.dtype);
  // The name of a rounded value is that of the integers. Graphs that others run
  // may give a name again that a graph around them has.
  if (!fact.name.empty() && !rounded)
    graph().Rename(&x, absl::StrCat(build_->prefix, fact.name));
  build_->values[op_.outputs[i]] = std::move(x);
}

void TfliteCall::GiveActivated(const std::string& name, int64_t activation,
                               bool front) {
  const auto clip = [&](double least, double most) {
    return graph().Emit("Clip",
                        {name, graph().Scalar(least), graph().Scalar(most)});
  };
  switch (activation) {
    case 0:
      return Give(name, front);
    case 1:
      return Give(graph().Emit("Relu", {name}), front);
    case 2:
      return Give(clip(-1, 1), front);
    case 3:
      return Give(clip(0, 6), front);
    case 4:
      return Give(graph().Emit("Tanh", {name}), front);
    default:
      Fail(Unimplemented("the fused activation %d", activation));
  }
}

void TfliteCall::GiveConstant(const Array& array) {
  if (op_.outputs.empty()) return Fail(InvalidArgument("it has no output"));
  build_->made[op_.outputs[0]] = array;
  build_->values[op_.outputs[0]] =
      graph().Made(graph().Constant(array), array.shape, false, array.dtype);
}

}  // namespace pd
