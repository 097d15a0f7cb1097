// SPDX-License-Identifier: Apache-2.0
// TensorList* and TensorArray*V3, in which loops keep a tensor of each round.
// A list that is made of a tensor stays the tensor. Another one is a tensor
// array of the program, by nodes of the domain "tensorflow".
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/node.h"
#include "libcore/deploy/tensorflow_import/call.h"

namespace pd {
namespace {

using Ints = TfCall::Ints;

// The list of an input, as it is now.
TfValue* ListOf(TfCall* call, size_t i) {
  TfValue* value = call->Value(i);
  if (value == nullptr) return nullptr;
  if (value->list == nullptr)
    call->Fail(InvalidArgument("input %d is no list of tensors", i));
  else if (value->list->written && value->version != value->list->version)
    call->Fail(
        Unimplemented("it reads a list of tensors as it was before a write"));
  return call->ok() ? value : nullptr;
}

bool WrittenList(TfCall* call, size_t i) {
  TfValue* value = ListOf(call, i);
  if (value != nullptr && value->list->written) return true;
  if (value != nullptr)
    call->Fail(
        Unimplemented("a list that is made of a tensor, as one to "
                      "write to"));
  return false;
}

// The number of axes of an element that input `i` says; -1: open.
int64_t ElementRank(TfCall* call, size_t i) {
  const Array* shape = i < call->InputCount() ? call->Known(i) : nullptr;
  if (shape == nullptr || shape->shape.size() != 1) return -1;
  return shape->size();
}

// One more than a rank that is known, or one less.
int64_t OtherRank(int64_t rank, int64_t by) {
  return rank < 0 ? -1 : std::max<int64_t>(0, rank + by);
}

void GiveList(TfCall* call, const std::string& name, bool written, int64_t rank,
              size_t i = 0) {
  TfValue value;
  value.plain = name;
  value.rank = rank;
  value.list = std::make_shared<TfList>();
  value.list->written = written;
  call->GiveValue(std::move(value), i);
}

void ImportReserved(TfCall* call) {
  const int64_t rank = ElementRank(call, 0);
  GiveList(call, call->Emit("tensorflow:ListReserve", {}), true,
           OtherRank(rank, 1));
}

void ImportSized(TfCall* call) {
  ImportReserved(call);
  const std::string size = call->In(1);
  if (call->ok()) call->build().values.at(call->node().name)->list->size = size;
}

void ImportFromTensor(TfCall* call) {
  GiveList(call, call->In(0), false, call->Rank(0));
}

// An element, or all of them, by indices of any shape.
std::string Element(TfCall* call, size_t list, size_t index) {
  const TfValue* value = ListOf(call, list);
  const std::string at = call->In(index);
  if (!call->ok()) return "";
  if (value->list->written)
    return call->Emit("tensorflow:ListRead", {value->plain, at});
  return call->Emit("Gather", {value->plain, at}, {{"axis", OnnxInt(0)}});
}

void ImportGetItem(TfCall* call) {
  int64_t rank = ElementRank(call, 2);
  const std::string item = Element(call, 0, 1);
  if (rank < 0 && call->ok()) rank = OtherRank(call->Value(0)->rank, -1);
  call->Give(item, rank);
}

void GiveWritten(TfCall* call, size_t list, const std::string& index,
                 size_t item) {
  const std::string x = call->In(item);
  if (!WrittenList(call, list)) return;
  TfValue value = *call->Value(list);
  value.plain = call->Emit("tensorflow:ListWrite", {value.plain, index, x});
  value.version = ++value.list->version;
  if (value.rank < 0) value.rank = OtherRank(call->Rank(item), 1);
  call->GiveValue(std::move(value));
}

void ImportSetItem(TfCall* call) { GiveWritten(call, 0, call->In(1), 2); }

void ImportPush(TfCall* call) {
  if (!WrittenList(call, 0)) return;
  if (!call->Value(0)->list->size.empty())
    return call->Fail(
        Unimplemented("an element behind the last one of a list of a size"));
  const std::string end =
      call->Emit("tensorflow:ListLength", {call->Value(0)->plain});
  GiveWritten(call, 0, end, 1);
}

// All elements as one tensor.
std::string Stacked(TfCall* call, size_t list, int64_t* rank) {
  const TfValue* value = ListOf(call, list);
  if (value == nullptr) return "";
  if (*rank < 0) *rank = value->rank;
  if (!value->list->written) return value->plain;
  return call->Emit("tensorflow:ListStack", {value->plain});
}

void ImportStack(TfCall* call) {
  int64_t rank = OtherRank(ElementRank(call, 1), 1);
  std::string all = Stacked(call, 0, &rank);
  const int64_t count = call->Int("num_elements", -1);
  // As many as TensorFlow expects, or an error while it runs.
  if (count > 0 && rank > 0) {
    Ints shape(static_cast<size_t>(rank), 0);
    shape[0] = count;
    all = call->Emit("Reshape", {all, call->ConstInts(shape)});
  }
  call->Give(all, rank);
}

void ImportGatherElements(TfCall* call) {
  int64_t rank = OtherRank(ElementRank(call, 2), 1);
  const std::string all = Stacked(call, 0, &rank);
  call->Give(call->Emit("Gather", {all, call->In(1)}, {{"axis", OnnxInt(0)}}),
             rank);
}

// A list of the program has the elements that were written.
void GiveLength(TfCall* call, size_t list) {
  const TfValue* value = ListOf(call, list);
  if (value == nullptr) return;
  if (!value->list->size.empty())
    return call->Give(call->Emit("Identity", {value->list->size}), 0);
  if (value->list->written && value->list->version == 0)
    return call->Fail(
        Unimplemented("the length of a list before it is written to"));
  const std::string length =
      value->list->written
          ? call->Emit("tensorflow:ListLength", {value->plain})
          : call->Emit("Gather", {call->Emit("Shape", {value->plain}),
                                  call->ConstInts({0})});
  call->Give(call->Cast(call->Emit("Squeeze", {length}), DType::kInt32), 0);
}

void ImportLengthOf(TfCall* call) { GiveLength(call, 0); }

// TensorArrays of TensorFlow 1: (handle, flow). The flow is the list here.
void ImportArray(TfCall* call) {
  const std::string array = call->Emit("tensorflow:ListReserve", {});
  const auto element = call->node().attrs.find("element_shape");
  const bool ranked =
      element != call->node().attrs.end() && element->second.shape.has_value();
  GiveList(
      call, array, true,
      ranked ? static_cast<int64_t>(element->second.shape->size()) + 1 : -1, 1);
  const std::string size = call->Bool("dynamic_size") ? "" : call->In(0);
  if (call->ok()) call->build().values.at(call->OutName(1))->list->size = size;
  TfValue handle;  // nobody reads it but these operators
  handle.plain = array;
  handle.list = std::make_shared<TfList>();
  call->GiveValue(std::move(handle), 0);
}

// All of its elements at once, which is how a sequence gets into a loop.
void ImportScatterArray(TfCall* call) {
  const TfNode* order = call->Maker(call->node(), 1, "Range");
  const auto known = [&](size_t i) -> std::optional<Ints> {
    if (order == nullptr || i >= order->inputs.size()) return std::nullopt;
    const Array* number = call->build().Constant(order->inputs[i]);
    return number == nullptr ? std::nullopt : OnnxInts(*number);
  };
  std::string rows = call->In(2);
  if (known(0) != Ints{0} || known(2) != Ints{1}) {
    // Constant places: where each element's row is.
    const std::optional<Ints> places = call->KnownInts(1);
    Ints row_of(places.has_value() ? places->size() : 0, -1);
    const auto count = static_cast<int64_t>(row_of.size());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = (*places)[static_cast<size_t>(i)];
      if (place < count && place >= 0) row_of[static_cast<size_t>(place)] = i;
    }
    if (count == 0 || std::count(row_of.begin(), row_of.end(), -1) > 0)
      return call->Fail(Unimplemented(
          "elements that are no range from 0, in this or another order"));
    rows = call->Emit("Gather", {rows, call->ConstInts(row_of)},
                      {{"axis", OnnxInt(0)}});
  }
  GiveList(call, rows, false, call->Rank(2));
}

void ImportReadArray(TfCall* call) {
  const std::string item = Element(call, 2, 1);
  if (call->ok()) call->Give(item, OtherRank(call->Value(2)->rank, -1));
}

void ImportWriteArray(TfCall* call) { GiveWritten(call, 3, call->In(1), 2); }

void ImportGatherArray(TfCall* call) {
  int64_t rank = -1;
  const std::string all = Stacked(call, 2, &rank);
  call->Give(call->Emit("Gather", {all, call->In(1)}, {{"axis", OnnxInt(0)}}),
             rank);
}

void ImportArraySize(TfCall* call) { GiveLength(call, 1); }

}  // namespace

TfImportEntries TfListImports() {
  return {
      {"EmptyTensorList", ImportReserved},
      {"TensorArrayGatherV3", ImportGatherArray},
      {"TensorArrayReadV3", ImportReadArray},
      {"TensorArrayScatterV3", ImportScatterArray},
      {"TensorArraySizeV3", ImportArraySize},
      {"TensorArrayV3", ImportArray},
      {"TensorArrayWriteV3", ImportWriteArray},
      {"TensorListFromTensor", ImportFromTensor},
      {"TensorListGather", ImportGatherElements},
      {"TensorListGetItem", ImportGetItem},
      {"TensorListLength", ImportLengthOf},
      {"TensorListPushBack", ImportPush},
      {"TensorListReserve", ImportSized},
      {"TensorListSetItem", ImportSetItem},
      {"TensorListStack", ImportStack},
  };
}

}  // namespace pd
