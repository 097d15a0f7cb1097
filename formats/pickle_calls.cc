// SPDX-License-Identifier: Apache-2.0
// REDUCE and BUILD: the shapes of call that numpy and PaddlePaddle
// write for arrays, element types, OrderedDict and saved tensors. A call of a
// known name in another shape is refused like an unknown name.
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/pickle_machine.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd::pickle {
namespace {

constexpr uint64_t kFreeBytes = uint64_t{1} << 20;
constexpr uint64_t kCopiesPerByte = 8;

absl::Status BadCall(absl::string_view name) {
  return PermissionDenied(
      "it calls '%s' in a way that state dicts do not need: refused, nothing "
      "was executed",
      name);
}

bool IsInt(const Node& node) {
  return node.kind == Kind::kInt || node.kind == Kind::kBool;
}

bool IsTextOf(const Node& node, absl::string_view text) {
  return node.IsText() && node.text == text;
}

// Latin-1 text in UTF-8 back to bytes; nothing when a character is beyond.
bool Latin1ToBytes(absl::string_view text, std::string* out) {
  out->reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      *out += text[i];
      continue;
    }
    if ((c != 0xc2 && c != 0xc3) || i + 1 == text.size()) return false;
    const auto next = static_cast<unsigned char>(text[++i]);
    if ((next & 0xc0) != 0x80) return false;
    *out += static_cast<char>((c & 0x03) << 6 | (next & 0x3f));
  }
  return true;
}

}  // namespace

absl::Status Machine::Charge(uint64_t bytes) {
  const uint64_t size =
      storages_ != nullptr ? storages_->file_size() : file_.size;
  copied_ += bytes;
  if (copied_ > kFreeBytes + kCopiesPerByte * size)
    return ResourceExhausted(
        "its %d bytes make arrays of %d bytes by naming data again and again",
        size, copied_);
  return absl::OkStatus();
}

absl::Status Machine::Reduce() {
  PD_ASSIGN_OR_RETURN(const Node* args, Pop());
  PD_ASSIGN_OR_RETURN(const Node* callable, Pop());
  if (callable->kind != Kind::kGlobal || args->kind != Kind::kTuple)
    return DataLoss("a call of what is not a name");
  switch (callable->global) {
    case Global::kReconstruct:
      return CallReconstruct(*args);
    case Global::kScalar:
      return CallScalar(*args);
    case Global::kFromBuffer:
      return CallFromBuffer(*args);
    case Global::kDtype:
      return CallDtype(*args);
    case Global::kOrderedDict:
      return CallOrderedDict(*args);
    case Global::kEval:
      return CallEval(*args);
    case Global::kTuple:
      if (args->items.size() == 1 && args->items[0]->kind == Kind::kTuple)
        return Push(args->items[0]);
      return BadCall("tuple");
    case Global::kComplex:
      return CallComplex(*args);
    case Global::kBytes:  // how protocol 2 says b''
      if (args->items.empty()) return PushText(Kind::kBytes, "");
      return BadCall("bytes");
    case Global::kEncode:
      return CallEncode(*args);
    case Global::kNdarray:
      break;
    case Global::kTorchStorage:
    case Global::kTorchTensor:
    case Global::kTorchTensorV2:
    case Global::kTorchParameter:
    case Global::kTorchSize:
    case Global::kTorchClass:
    case Global::kTorchList:
    case Global::kTorchTag:
      return CallTorch(callable->global, *args);
  }
  return BadCall("numpy.ndarray");
}

// _reconstruct(ndarray, (0,), b'b'): an array that BUILD fills.
absl::Status Machine::CallReconstruct(const Node& args) {
  if (args.items.size() != 3 || args.items[0]->kind != Kind::kGlobal ||
      args.items[0]->global != Global::kNdarray)
    return BadCall("numpy._reconstruct");
  return PushNew(Kind::kArray);
}

// scalar(dtype, bytes).
absl::Status Machine::CallScalar(const Node& args) {
  if (args.items.size() != 2 || args.items[0]->kind != Kind::kDtype ||
      !args.items[1]->IsBytes())
    return BadCall("numpy.scalar");
  PD_ASSIGN_OR_RETURN(Node * array, New(Kind::kArray));
  const Node no_extents;
  PD_RETURN_IF_ERROR(SetArray(*args.items[1], args.items[0]->layout, no_extents,
                              false, array));
  return Push(array);
}

// _frombuffer(bytes, dtype, shape, 'C' or 'F'): protocol 5.
absl::Status Machine::CallFromBuffer(const Node& args) {
  const auto& a = args.items;
  if (a.size() != 4 || !a[0]->IsBytes() || a[1]->kind != Kind::kDtype ||
      a[2]->kind != Kind::kTuple ||
      !(IsTextOf(*a[3], "C") || IsTextOf(*a[3], "F")))
    return BadCall("numpy._frombuffer");
  PD_ASSIGN_OR_RETURN(Node * array, New(Kind::kArray));
  PD_RETURN_IF_ERROR(
      SetArray(*a[0], a[1]->layout, *a[2], a[3]->text == "F", array));
  return Push(array);
}

// dtype('f4', False, True); its byte order comes with BUILD.
absl::Status Machine::CallDtype(const Node& args) {
  if (args.items.empty() || args.items.size() > 3 || !args.items[0]->IsText())
    return BadCall("numpy.dtype");
  PD_ASSIGN_OR_RETURN(Node * dtype, New(Kind::kDtype));
  PD_ASSIGN_OR_RETURN(dtype->layout, ParseNumpyDtype(args.items[0]->text));
  return Push(dtype);
}

// OrderedDict(), or OrderedDict([[key, value], ...]) of Python 2.
absl::Status Machine::CallOrderedDict(const Node& args) {
  PD_ASSIGN_OR_RETURN(Node * dict, New(Kind::kDict));
  dict->ordered = true;
  if (args.items.size() > 1) return BadCall("collections.OrderedDict");
  for (const Node* list : args.items) {
    if (list->kind != Kind::kList) return BadCall("collections.OrderedDict");
    for (const Node* pair : list->items) {
      if ((pair->kind != Kind::kList && pair->kind != Kind::kTuple) ||
          pair->items.size() != 2)
        return BadCall("collections.OrderedDict");
      dict->items.insert(dict->items.end(), pair->items.begin(),
                         pair->items.end());
    }
  }
  return Push(dict);
}

// eval('data', {'data': array}): how PaddlePaddle saves a LoDTensor.
absl::Status Machine::CallEval(const Node& args) {
  if (args.items.size() != 2 || !IsTextOf(*args.items[0], "data") ||
      args.items[1]->kind != Kind::kDict)
    return BadCall("eval");
  const auto& names = args.items[1]->items;
  if (names.size() != 2 || !IsTextOf(*names[0], "data") ||
      names[1]->kind != Kind::kArray)
    return BadCall("eval");
  return Push(names[1]);
}

absl::Status Machine::CallComplex(const Node& args) {
  if (args.items.size() != 2 || args.items[0]->kind != Kind::kFloat ||
      args.items[1]->kind != Kind::kFloat)
    return BadCall("complex");
  PD_ASSIGN_OR_RETURN(Node * node, New(Kind::kComplex));
  node->real = args.items[0]->real;
  node->imag = args.items[1]->real;
  return Push(node);
}

// encode(text, 'latin1'): how protocol 2 says bytes.
absl::Status Machine::CallEncode(const Node& args) {
  if (args.items.size() != 2 || !args.items[0]->IsText() ||
      !IsTextOf(*args.items[1], "latin1"))
    return BadCall("_codecs.encode");
  const absl::string_view text = args.items[0]->text;
  PD_RETURN_IF_ERROR(Charge(text.size()));
  std::string bytes;
  if (!Latin1ToBytes(text, &bytes))
    return DataLoss("bytes written as text hold a character beyond Latin-1");
  PD_ASSIGN_OR_RETURN(Node * node, New(Kind::kBytes));
  node->SetOwned(std::move(bytes));
  return Push(node);
}

absl::Status Machine::Build() {
  PD_ASSIGN_OR_RETURN(const Node* state, Pop());
  PD_ASSIGN_OR_RETURN(Node * target, Top());
  if (state->kind == Kind::kTuple && target->kind == Kind::kDtype)
    return BuildDtype(*state, target);
  if (state->kind == Kind::kTuple && target->kind == Kind::kArray)
    return BuildArray(*state, target);
  if (state->kind == Kind::kDict && target->kind == Kind::kDict &&
      target->object) {
    if (!target->items.empty()) return DataLoss("an object has two states");
    target->items = state->items;
    return absl::OkStatus();
  }
  // The versions of modules that a state_dict of PyTorch carries: no values.
  if (storages_ != nullptr && state->kind == Kind::kDict &&
      target->kind == Kind::kDict && target->ordered)
    return absl::OkStatus();
  return DataLoss("a state is set on what is not an array");
}

// (version, byte order, None, None, None, -1, -1, flags).
absl::Status Machine::BuildDtype(const Node& state, Node* dtype) {
  if (state.items.size() < 2 || !state.items[1]->IsText())
    return DataLoss("the state of an element type has no byte order");
  const absl::string_view order = state.items[1]->text;
  if (order != "<" && order != ">" && order != "|" && order != "=")
    return DataLoss("byte order '%s' is not one of '<', '>', '|'",
                    order.substr(0, 8));
  dtype->layout.big_endian = order == ">";
  return absl::OkStatus();
}

// (version, shape, dtype, is Fortran order, bytes).
absl::Status Machine::BuildArray(const Node& state, Node* array) {
  const auto& s = state.items;
  if (array->array != nullptr) return DataLoss("an array's state is set twice");
  if (s.size() != 5 || s[1]->kind != Kind::kTuple ||
      s[2]->kind != Kind::kDtype || !IsInt(*s[3]) || !s[4]->IsBytes())
    return DataLoss(
        "an array's state is not (version, shape, dtype, order, bytes)");
  return SetArray(*s[4], s[2]->layout, *s[1], s[3]->integer != 0, array);
}

absl::Status Machine::SetArray(const Node& data, RawLayout layout,
                               const Node& shape, bool fortran_order,
                               Node* array) {
  constexpr size_t kMaxRank = 64;
  if (shape.items.size() > kMaxRank)
    return InvalidArgument("an array's rank is %d; expected at most %d",
                           shape.items.size(), kMaxRank);
  Shape extents;
  for (const Node* extent : shape.items) {
    if (extent->kind != Kind::kInt)
      return DataLoss("an array's extent is not an integer");
    extents.push_back(extent->integer);
  }
  layout.fortran_order = fortran_order;
  layout.alignment = alignment_;
  PD_ASSIGN_OR_RETURN(const int64_t size,
                      CheckedBytes(extents, SizeOf(layout.dtype)));
  if (static_cast<uint64_t>(size) != data.text.size())
    return DataLoss("a %s array of shape %s takes %d bytes; %d are there",
                    Name(layout.dtype), ToString(extents), size,
                    data.text.size());
  PD_RETURN_IF_ERROR(Charge(data.text.size()));
  std::shared_ptr<const std::byte> bytes(
      data.owner != nullptr ? data.owner : file_.data,
      reinterpret_cast<const std::byte*>(data.text.data()));
  PD_ASSIGN_OR_RETURN(Array filled,
                      ArrayFromRaw(std::move(bytes), data.text.size(), layout,
                                   std::move(extents)));
  array->array = std::make_unique<Array>(std::move(filled));
  return absl::OkStatus();
}

}  // namespace pd::pickle
