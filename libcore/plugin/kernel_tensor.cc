// SPDX-License-Identifier: Apache-2.0
// The C functions about tensors and contexts. A status is always written; its
// reason is kept for PD_PluginLastError.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/shape.h"
#include "libcore/plugin/convert.h"
#include "libcore/plugin/kernel_objects.h"

namespace pd {
namespace {

constexpr std::pair<C_DataType, DType> kCTypes[] = {
    {BOOL, DType::kBool},           {UINT8, DType::kUInt8},
    {INT8, DType::kInt8},           {INT16, DType::kInt16},
    {INT32, DType::kInt32},         {INT64, DType::kInt64},
    {FLOAT16, DType::kFloat16},     {BFLOAT16, DType::kBFloat16},
    {FLOAT32, DType::kFloat32},     {FLOAT64, DType::kFloat64},
    {COMPLEX64, DType::kComplex64}, {COMPLEX128, DType::kComplex128},
};
constexpr size_t kMostDims = 64;

thread_local std::string last_error;

// Writes the status of a call, and keeps its reason.
void Say(const absl::Status& status, PD_Status* out) {
  if (!status.ok()) last_error = std::string(status.message());
  if (out != nullptr)
    *out = status.ok()                         ? C_SUCCESS
           : absl::IsResourceExhausted(status) ? C_FAILED
                                               : C_ERROR;
}

absl::Status Exists(const void* tensor) {
  return tensor != nullptr
             ? absl::OkStatus()
             : absl::InvalidArgumentError("a tensor that is absent is used");
}

// The answer of a getter; zero where it is null.
template <typename T, typename Get>
T Read(const PD_Tensor* tensor, PD_Status* status, const Get& get) {
  const absl::Status exists = Exists(tensor);
  Say(exists, status);
  return exists.ok() ? static_cast<T>(get(*tensor)) : T{};
}

absl::StatusOr<size_t> BytesOf(const PD_Tensor& tensor, C_DataType dtype) {
  size_t bytes = SizeOfC(dtype);
  if (bytes == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("memory for elements of type ", NameOfC(dtype)));
  for (const int64_t extent : tensor.dims) {
    if (extent < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("memory for a tensor of shape ", ToString(tensor.dims)));
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes))
      return absl::ResourceExhaustedError(
          absl::StrCat("a tensor of shape ", ToString(tensor.dims),
                       " is larger than any memory"));
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<void>> HostMemory(size_t bytes) {
  void* data = nullptr;
  if (::posix_memalign(&data, 64, bytes == 0 ? 64 : bytes) != 0)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory is left for ", bytes, " bytes"));
  return std::shared_ptr<void>(data, [](void* p) { std::free(p); });
}

absl::StatusOr<void*> AllocateFor(const PD_DeviceContext* context,
                                  PD_Tensor* tensor, size_t bytes,
                                  C_DataType dtype) {
  if (tensor == nullptr) return Exists(tensor);
  const bool on_device = context != nullptr && context->allocate != nullptr;
  const absl::StatusOr<size_t> needed = BytesOf(*tensor, dtype);
  if (!needed.ok()) return needed.status();
  bytes = std::max(bytes, *needed);
  const auto fits = [&](const std::shared_ptr<KernelMemory>& memory) {
    return memory != nullptr && memory->on_device == on_device &&
           memory->bytes >= bytes && memory->bytes - bytes >= tensor->offset;
  };
  tensor->dtype = dtype;
  if (!fits(tensor->memory)) {
    tensor->offset = 0;
    if (fits(tensor->offered)) {
      tensor->memory = std::move(tensor->offered);
    } else {
      auto owner = on_device ? context->allocate(bytes) : HostMemory(bytes);
      if (!owner.ok()) return owner.status();
      auto memory = std::make_shared<KernelMemory>();
      memory->data = owner->get();
      memory->bytes = bytes;
      memory->on_device = on_device;
      memory->owner = *std::move(owner);
      tensor->memory = std::move(memory);
    }
  }
  return static_cast<char*>(tensor->memory->data) + tensor->offset;
}

std::vector<int64_t> StridesOf(const PD_Tensor& tensor) {
  if (!tensor.strides.empty()) return tensor.strides;
  std::vector<int64_t> strides(tensor.dims.size(), 1);
  for (size_t i = strides.size(); i-- > 1;)
    strides[i - 1] = strides[i] * tensor.dims[i];
  return strides;
}

absl::Status SetNumbers(std::vector<int64_t>* to, int64_t count,
                        const int64_t* numbers) {
  if (count < 0 || static_cast<size_t>(count) > kMostDims ||
      (count > 0 && numbers == nullptr))
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", count, " axes"));
  to->assign(numbers, numbers + count);
  return absl::OkStatus();
}

absl::Status SetLoD(PD_Tensor* tensor, const PD_List& data,
                    const PD_List& offset) {
  if (tensor == nullptr) return Exists(tensor);
  const auto* numbers = static_cast<const size_t*>(data.data);
  const auto* begins = static_cast<const size_t*>(offset.data);
  std::vector<std::vector<size_t>> lod;
  for (size_t i = 0; i + 1 < offset.size; ++i) {
    if (begins[i] > begins[i + 1] || begins[i + 1] > data.size)
      return absl::InvalidArgumentError("the levels of a LoD overlap");
    lod.emplace_back(numbers + begins[i], numbers + begins[i + 1]);
  }
  tensor->lod = std::move(lod);
  return absl::OkStatus();
}

PD_List CopiedList(const std::vector<size_t>& values) {
  size_t* data = new size_t[values.size()];
  std::copy(values.begin(), values.end(), data);
  return {values.size(), data};
}

}  // namespace

absl::StatusOr<DType> DTypeOfC(C_DataType dtype) {
  for (const auto& [c, ours] : kCTypes)
    if (c == dtype) return ours;
  return absl::InvalidArgumentError(
      absl::StrCat(NameOfC(dtype), " is no type of tensors here"));
}

C_DataType CTypeOf(DType dtype) {
  for (const auto& [c, ours] : kCTypes)
    if (ours == dtype) return c;
  return UNDEFINED;
}

std::string NameOfC(C_DataType dtype) {
  for (const auto& [c, ours] : kCTypes)
    if (c == dtype) return std::string(Name(ours));
  return absl::StrCat("number ", static_cast<int>(dtype));
}

size_t SizeOfC(C_DataType dtype) {
  for (const auto& [c, ours] : kCTypes)
    if (c == dtype) return SizeOf(ours);
  return 0;
}

void SetPluginError(std::string text) { last_error = std::move(text); }

}  // namespace pd

using pd::Read;
using pd::Say;

extern "C" {

const char* PD_PluginLastError(void) { return pd::last_error.c_str(); }

PD_Tensor* PD_NewTensor(void) { return new PD_Tensor; }
void PD_DeleteTensor(PD_Tensor* tensor) { delete tensor; }

C_DataType PD_TensorGetPDDataType(const PD_Tensor* tensor, PD_Status* status) {
  return Read<C_DataType>(tensor, status, [](auto& t) { return t.dtype; });
}
PD_DataLayout PD_TensorGetDataLayout(const PD_Tensor* tensor,
                                     PD_Status* status) {
  return Read<PD_DataLayout>(tensor, status, [](auto& t) { return t.layout; });
}
int64_t PD_TensorGetElementCount(const PD_Tensor* tensor, PD_Status* status) {
  return Read<int64_t>(tensor, status,
                       [](auto& t) { return pd::NumElements(t.dims); });
}
int64_t PD_TensorGetByteSize(const PD_Tensor* tensor, PD_Status* status) {
  return Read<int64_t>(tensor, status, [](auto& t) {
    return pd::NumElements(t.dims) * static_cast<int64_t>(pd::SizeOfC(t.dtype));
  });
}
void* PD_TensorGetDataPointer(const PD_Tensor* tensor, PD_Status* status) {
  return Read<void*>(tensor, status, [](auto& t) -> void* {
    return t.memory == nullptr || t.memory->data == nullptr
               ? nullptr
               : static_cast<char*>(t.memory->data) + t.offset;
  });
}
int64_t PD_TensorGetNumDims(const PD_Tensor* tensor, PD_Status* status) {
  return Read<int64_t>(tensor, status, [](auto& t) { return t.dims.size(); });
}
int64_t PD_TensorGetNumStrides(const PD_Tensor* tensor, PD_Status* status) {
  return PD_TensorGetNumDims(tensor, status);
}
void* PD_TensorGetHolder(const PD_Tensor* tensor, PD_Status* status) {
  return Read<void*>(tensor, status, [](auto& t) { return t.memory.get(); });
}
size_t PD_TensorGetOffset(const PD_Tensor* tensor, PD_Status* status) {
  return Read<size_t>(tensor, status, [](auto& t) { return t.offset; });
}
int64_t PD_TensorGetDim(const PD_Tensor* tensor, size_t index,
                        PD_Status* status) {
  return Read<int64_t>(tensor, status, [=](auto& t) {
    return index < t.dims.size() ? t.dims[index] : 0;
  });
}
int64_t PD_TensorGetStride(const PD_Tensor* tensor, size_t index,
                           PD_Status* status) {
  return Read<int64_t>(tensor, status, [=](auto& t) {
    const std::vector<int64_t> strides = pd::StridesOf(t);
    return index < strides.size() ? strides[index] : 0;
  });
}
void PD_TensorGetLoD(const PD_Tensor* tensor, PD_List* data, PD_List* offset,
                     PD_Status* status) {
  std::vector<size_t> numbers, begins(1, 0);
  Say(pd::Exists(tensor), status);
  if (tensor != nullptr)
    for (const auto& level : tensor->lod) {
      numbers.insert(numbers.end(), level.begin(), level.end());
      begins.push_back(numbers.size());
    }
  *data = pd::CopiedList(numbers);
  *offset = pd::CopiedList(begins);
}
bool PD_TensorIsInitialized(const PD_Tensor* tensor, PD_Status* status) {
  return Read<bool>(tensor, status,
                    [](auto& t) { return t.memory != nullptr; });
}
bool PD_TensorIsValid(const PD_Tensor* tensor, PD_Status* status) {
  return Read<bool>(tensor, status,
                    [](auto& t) { return t.dtype != UNDEFINED; });
}

void PD_TensorSetDims(PD_Tensor* tensor, int64_t ndims, const int64_t* dims,
                      PD_Status* status) {
  if (tensor == nullptr) return Say(pd::Exists(tensor), status);
  tensor->strides.clear();
  Say(pd::SetNumbers(&tensor->dims, ndims, dims), status);
}
void PD_TensorSetStrides(PD_Tensor* tensor, int64_t nstrides,
                         const int64_t* strides, PD_Status* status) {
  if (tensor == nullptr) return Say(pd::Exists(tensor), status);
  Say(pd::SetNumbers(&tensor->strides, nstrides, strides), status);
}
void PD_TensorSetOffset(PD_Tensor* tensor, int64_t offset, PD_Status* status) {
  if (tensor == nullptr) return Say(pd::Exists(tensor), status);
  const bool inside =
      offset >= 0 && (tensor->memory == nullptr ||
                      static_cast<size_t>(offset) <= tensor->memory->bytes);
  if (inside) tensor->offset = static_cast<size_t>(offset);
  Say(inside ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   "a tensor that begins at byte ", offset, " of its memory")),
      status);
}
void PD_TensorSetDataType(PD_Tensor* tensor, C_DataType dtype,
                          PD_Status* status) {
  Say(pd::Exists(tensor), status);
  if (tensor != nullptr) tensor->dtype = dtype;
}
void PD_TensorSetDataLayout(PD_Tensor* tensor, PD_DataLayout layout,
                            PD_Status* status) {
  Say(pd::Exists(tensor), status);
  if (tensor != nullptr) tensor->layout = layout;
}
void PD_TensorResetLoD(PD_Tensor* tensor, PD_List data, PD_List offset,
                       PD_Status* status) {
  Say(pd::SetLoD(tensor, data, offset), status);
}
void PD_TensorShareDataWith(PD_Tensor* to, const PD_Tensor* from,
                            PD_Status* status) {
  Say(pd::Exists(to == nullptr ? nullptr : from), status);
  if (to == nullptr || from == nullptr || to == from) return;
  to->dims = from->dims;
  to->strides = from->strides;
  to->dtype = from->dtype;
  to->layout = from->layout;
  to->memory = from->memory;
  to->offset = from->offset;
}
void PD_TensorShareLoDWith(PD_Tensor* to, const PD_Tensor* from,
                           PD_Status* status) {
  Say(pd::Exists(to == nullptr ? nullptr : from), status);
  if (to != nullptr && from != nullptr) to->lod = from->lod;
}

PD_Stream PD_DeviceContextGetStream(const PD_DeviceContext* context,
                                    PD_Status* status) {
  Say(absl::OkStatus(), status);
  return context == nullptr ? nullptr : context->stream;
}
void* PD_DeviceContextAllocateTensor(const PD_DeviceContext* context,
                                     PD_Tensor* tensor, size_t bytes,
                                     C_DataType dtype, PD_Status* status) {
  const absl::StatusOr<void*> data =
      pd::AllocateFor(context, tensor, bytes, dtype);
  Say(data.status(), status);
  return data.ok() ? *data : nullptr;
}
void PD_DeviceContextSetSeed(const PD_DeviceContext* context, uint64_t seed,
                             PD_Status* status) {
  Say(absl::OkStatus(), status);
  if (context == nullptr) return;
  context->seed = seed;
  context->engine.seed(seed);
}
uint64_t PD_DeviceContextGetSeed(const PD_DeviceContext* context,
                                 PD_Status* status) {
  Say(absl::OkStatus(), status);
  return context == nullptr ? 0 : context->seed;
}
uint64_t PD_DeviceContextGetRandom(const PD_DeviceContext* context,
                                   PD_Status* status) {
  Say(absl::OkStatus(), status);
  return context == nullptr ? 0 : context->engine();
}
const char* PD_PluginContextDevice(const PD_DeviceContext* context, int* id) {
  *id = context == nullptr ? 0 : context->id;
  return context == nullptr ? "cpu" : context->type.c_str();
}

}  // extern "C"
