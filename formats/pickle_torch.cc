// SPDX-License-Identifier: Apache-2.0
// The names and calls of torch.save: storages, named by persistent ids, and
// tensors, which are windows on them.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/pickle_machine.h"
#include "formats/torch_window.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd::pickle {
namespace {

constexpr size_t kMaxRank = 64;

struct StorageClass {
  absl::string_view name;
  DType dtype;
};

constexpr StorageClass kStorageClasses[] = {
    {"FloatStorage", DType::kFloat32},
    {"DoubleStorage", DType::kFloat64},
    {"HalfStorage", DType::kFloat16},
    {"BFloat16Storage", DType::kBFloat16},
    {"LongStorage", DType::kInt64},
    {"IntStorage", DType::kInt32},
    {"ShortStorage", DType::kInt16},
    {"CharStorage", DType::kInt8},
    {"ByteStorage", DType::kUInt8},
    {"BoolStorage", DType::kBool},
    {"ComplexFloatStorage", DType::kComplex64},
    {"ComplexDoubleStorage", DType::kComplex128},
};

absl::Status BadTensor() {
  return PermissionDenied(
      "it makes a tensor in a way that state dicts do not need: refused, "
      "nothing was executed");
}

absl::Status ReadInts(const Node& tuple, Shape* out) {
  if (tuple.kind != Kind::kTuple) return BadTensor();
  if (tuple.items.size() > kMaxRank)
    return InvalidArgument("a tensor's rank is %d; expected at most %d",
                           tuple.items.size(), kMaxRank);
  for (const Node* item : tuple.items) {
    if (item->kind != Kind::kInt || item->integer < 0)
      return DataLoss(
          "a tensor's extent or stride is no integer of at least 0");
    out->push_back(item->integer);
  }
  return absl::OkStatus();
}

}  // namespace

bool FindTorchGlobal(absl::string_view module, absl::string_view name,
                     Node* node) {
  if (module == "torch._utils") {
    if (name == "_rebuild_tensor")
      node->global = Global::kTorchTensor;
    else if (name == "_rebuild_tensor_v2")
      node->global = Global::kTorchTensorV2;
    else if (name == "_rebuild_parameter")
      node->global = Global::kTorchParameter;
    else
      return false;
    return true;
  }
  if (module != "torch" && module != "torch.storage") return false;
  if (name == "Size") {
    node->global = Global::kTorchSize;
    return true;
  }
  for (const StorageClass& known : kStorageClasses) {
    if (known.name != name) continue;
    node->global = Global::kTorchStorage;
    node->layout.dtype = known.dtype;
    return true;
  }
  return false;
}

bool FindScriptGlobal(absl::string_view module, absl::string_view name,
                      Node* node) {
  if (module == "__torch__" || absl::StartsWith(module, "__torch__.")) {
    node->global = Global::kTorchClass;
    node->SetOwned(absl::StrCat(module, ".", name));
    return true;
  }
  if (module != "torch.jit._pickle") return false;
  if (name == "restore_type_tag")
    node->global = Global::kTorchTag;
  else if (absl::StartsWith(name, "build_"))
    node->global = Global::kTorchList;
  else
    return false;
  return true;
}

// An object of a class, without arguments; BUILD gives its attributes.
absl::Status Machine::NewObject() {
  PD_ASSIGN_OR_RETURN(const Node* args, Pop());
  PD_ASSIGN_OR_RETURN(const Node* type, Pop());
  if (type->kind != Kind::kGlobal || type->global != Global::kTorchClass ||
      args->kind != Kind::kTuple || !args->items.empty())
    return DataLoss("an object of what is no class");
  PD_ASSIGN_OR_RETURN(Node * object, New(Kind::kDict));
  object->object = true;
  object->text = type->text;
  object->owner = type->owner;
  return Push(object);
}

// ('storage', class, key, device, number of elements); the older form has a
// sixth, which is None but for a storage that is a part of another.
absl::Status Machine::PersistentId() {
  PD_ASSIGN_OR_RETURN(const Node* id, Pop());
  const auto& items = id->items;
  if (id->kind != Kind::kTuple || items.size() < 5 || items.size() > 6 ||
      !items[0]->IsText() || items[0]->text != "storage" ||
      items[1]->kind != Kind::kGlobal ||
      items[1]->global != Global::kTorchStorage || !items[2]->IsText() ||
      items[4]->kind != Kind::kInt || items[4]->integer < 0)
    return BadTensor();
  if (items.size() == 6 && items[5]->kind != Kind::kNone)
    return Unimplemented("storage '%s' is a part of another storage",
                         items[2]->text.substr(0, 64));
  PD_ASSIGN_OR_RETURN(Node * storage, New(Kind::kStorage));
  storage->text = items[2]->text;
  storage->owner = items[2]->owner;
  storage->layout = items[1]->layout;
  storage->integer = items[4]->integer;
  return Push(storage);
}

absl::Status Machine::CallTorch(Global callable, const Node& args) {
  const auto& a = args.items;
  if (callable == Global::kTorchSize) {
    if (a.size() == 1 && a[0]->kind == Kind::kTuple) return Push(a[0]);
    return BadTensor();
  }
  // build_intlist([1, 2]) and restore_type_tag(value, "List[int]").
  if (callable == Global::kTorchList || callable == Global::kTorchTag) {
    const size_t count = callable == Global::kTorchList ? 1 : 2;
    if (a.size() == count && a[0]->kind != Kind::kGlobal) return Push(a[0]);
    return BadTensor();
  }
  // (tensor, requires_grad, hooks)
  if (callable == Global::kTorchParameter) {
    if (a.size() == 3 && a[0]->kind == Kind::kArray) return Push(a[0]);
    return BadTensor();
  }
  // (storage, offset, size, strides), and (..., requires_grad, hooks,
  // metadata): a conjugate or negated view is not its storage's elements.
  const bool v2 = callable == Global::kTorchTensorV2;
  if ((!v2 && (callable != Global::kTorchTensor || a.size() != 4)) ||
      (v2 && a.size() != 6 && a.size() != 7) || a[0]->kind != Kind::kStorage ||
      a[1]->kind != Kind::kInt)
    return BadTensor();
  if (a.size() == 7 && a[6]->kind != Kind::kNone &&
      (a[6]->kind != Kind::kDict || !a[6]->items.empty()))
    return Unimplemented("a tensor is a conjugate or negated view");
  PD_ASSIGN_OR_RETURN(Node * array, New(Kind::kArray));
  PD_RETURN_IF_ERROR(SetTensor(*a[0], *a[1], *a[2], *a[3], array));
  return Push(array);
}

absl::Status Machine::SetTensor(const Node& storage, const Node& offset,
                                const Node& shape, const Node& strides,
                                Node* array) {
  TorchWindow window;
  window.offset = offset.integer;
  PD_RETURN_IF_ERROR(ReadInts(shape, &window.shape));
  PD_RETURN_IF_ERROR(ReadInts(strides, &window.strides));
  if (window.strides.size() != window.shape.size())
    return DataLoss("a tensor has %d extents and %d strides",
                    window.shape.size(), window.strides.size());
  // The stride of a single element leads nowhere.
  for (size_t i = 0; i < window.shape.size(); ++i)
    if (window.shape[i] == 1) window.strides[i] = 0;
  RawLayout layout = storage.layout;
  layout.big_endian = storages_->big_endian();
  layout.alignment = alignment_;
  const size_t element = SizeOf(layout.dtype);
  PD_ASSIGN_OR_RETURN(const int64_t size, CheckedBytes(window.shape, element));
  PD_ASSIGN_OR_RETURN(const int64_t held,
                      CheckedBytes({storage.integer}, element));
  if (window.offset < 0 || !LiesWithin(window, storage.integer))
    return DataLoss(
        "a tensor of shape %s, strides %s and offset %d reaches beyond storage "
        "'%s', which has %d elements",
        ToString(window.shape), ToString(window.strides), window.offset,
        storage.text.substr(0, 64), storage.integer);
  PD_RETURN_IF_ERROR(Charge(static_cast<uint64_t>(size)));
  PD_ASSIGN_OR_RETURN(
      const FileBytes bytes,
      storages_->Storage(storage.text, layout, storage.integer));
  if (bytes.data == nullptr) return absl::OkStatus();
  if (bytes.size != static_cast<uint64_t>(held))
    return DataLoss("storage '%s' has %d bytes; %d elements of %s take %d",
                    storage.text.substr(0, 64), bytes.size, storage.integer,
                    Name(layout.dtype), held);
  std::shared_ptr<const std::byte> from(bytes.data, bytes.data.get());
  if (size > 0 && IsContiguous(window)) {
    from = {bytes.data,
            bytes.data.get() + static_cast<size_t>(window.offset) * element};
  } else if (size > 0) {
    std::byte* to = nullptr;
    PD_ASSIGN_OR_RETURN(const Array copy,
                        NewArray(layout.dtype, window.shape, &to));
    Gather(window, bytes.data.get(), element, to);
    from = copy.bytes;
  }
  PD_ASSIGN_OR_RETURN(Array filled,
                      ArrayFromRaw(std::move(from), static_cast<size_t>(size),
                                   layout, std::move(window.shape)));
  array->array = std::make_unique<Array>(std::move(filled));
  return absl::OkStatus();
}

}  // namespace pd::pickle
