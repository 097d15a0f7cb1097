// SPDX-License-Identifier: Apache-2.0
// paddle_infer::Tensor: handles of variables.
#include <cstring>
#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/inference/border.h"
#include "libcore/inference/settings.h"

namespace pd {
namespace inference {

DType DTypeOfApi(paddle_infer::DataType type) {
  switch (type) {
    case paddle_infer::DataType::INT64:
      return DType::kInt64;
    case paddle_infer::DataType::INT32:
      return DType::kInt32;
    case paddle_infer::DataType::UINT8:
      return DType::kUInt8;
    case paddle_infer::DataType::INT8:
      return DType::kInt8;
    case paddle_infer::DataType::FLOAT16:
      return DType::kFloat16;
    case paddle_infer::DataType::BOOL:
      return DType::kBool;
    case paddle_infer::DataType::FLOAT64:
      return DType::kFloat64;
    case paddle_infer::DataType::BFLOAT16:
      return DType::kBFloat16;
    case paddle_infer::DataType::FLOAT32:
      break;
  }
  return DType::kFloat32;
}

paddle_infer::DataType ApiTypeOf(DType dtype) {
  using paddle_infer::DataType;
  for (const DataType type : {DataType::INT64, DataType::INT32, DataType::UINT8,
                              DataType::INT8, DataType::FLOAT16, DataType::BOOL,
                              DataType::FLOAT64, DataType::BFLOAT16})
    if (DTypeOfApi(type) == dtype) return type;
  return DataType::FLOAT32;
}

namespace {

// The dtype of an element type of the API.
template <typename T>
constexpr DType kDType = DTypeOf<T>();
template <>
constexpr DType kDType<phi::dtype::float16> = DType::kFloat16;
template <>
constexpr DType kDType<phi::dtype::bfloat16> = DType::kBFloat16;

absl::Status OnCpu(const Variable& variable, paddle_infer::PlaceType place) {
  if (place == paddle_infer::PlaceType::kCPU) return absl::OkStatus();
  return Unavailable(
      "'%s': memory of inputs and outputs is the host's; expected "
      "PlaceType::kCPU",
      variable.name());
}

absl::Status NotNull(const Variable& variable, const void* data) {
  if (data != nullptr || NumElements(variable.shape()) == 0)
    return absl::OkStatus();
  return InvalidArgument("'%s': the pointer to its elements is null",
                         variable.name());
}

size_t BytesOf(const Variable& variable) {
  return static_cast<size_t>(NumElements(variable.shape())) *
         SizeOf(variable.dtype());
}

absl::Status NoStrings(const Variable& variable) {
  return Unimplemented("'%s': no operator here reads strings", variable.name());
}

}  // namespace
}  // namespace inference
}  // namespace pd

namespace paddle_infer {

using pd::inference::Border;
using pd::inference::Check;
using pd::inference::kDType;

Tensor::Tensor(std::shared_ptr<pd::inference::Variable> variable)
    : variable_(std::move(variable)) {}
Tensor::~Tensor() = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(Tensor&&) noexcept = default;

void Tensor::Reshape(const std::vector<int>& shape) {
  Border([&] { return variable_->Reshape(shape); });
}

void Tensor::ReshapeStrings(const std::size_t& /*shape*/) {
  Check(pd::inference::NoStrings(*variable_));
}

void Tensor::CopyStringsFromCpu(const Strings* /*data*/) {
  Check(pd::inference::NoStrings(*variable_));
}

template <typename T>
T* Tensor::mutable_data(PlaceType place) {
  return static_cast<T*>(Border([&]() -> absl::StatusOr<void*> {
    PD_RETURN_IF_ERROR(pd::inference::OnCpu(*variable_, place));
    return variable_->Mutable(kDType<T>);
  }));
}

template <typename T>
T* Tensor::data(PlaceType* place, int* size) const {
  const void* value = Border([&] { return variable_->Value(kDType<T>); });
  if (place != nullptr) *place = PlaceType::kCPU;
  if (size != nullptr)
    *size = static_cast<int>(pd::NumElements(variable_->shape()));
  return static_cast<T*>(const_cast<void*>(value));
}

template <typename T>
void Tensor::CopyFromCpu(const T* data) {
  Border([&]() -> absl::Status {
    if (!variable_->is_input())
      return pd::PermissionDenied(
          "output '%s' is computed; CopyFromCpu is for inputs",
          variable_->name());
    PD_RETURN_IF_ERROR(pd::inference::NotNull(*variable_, data));
    PD_ASSIGN_OR_RETURN(void* to, variable_->Mutable(kDType<T>));
    const size_t bytes = pd::inference::BytesOf(*variable_);
    if (bytes > 0) std::memcpy(to, data, bytes);
    return absl::OkStatus();
  });
}

template <typename T>
void Tensor::ShareExternalData(const T* data, const std::vector<int>& shape,
                               PlaceType place, DataLayout layout) {
  Border([&]() -> absl::Status {
    PD_RETURN_IF_ERROR(pd::inference::OnCpu(*variable_, place));
    if (layout == DataLayout::kNHWC && shape.size() == 4)
      return pd::Unimplemented(
          "'%s': elements are taken in the order of the shape; expected "
          "DataLayout::kNCHW",
          variable_->name());
    return variable_->Share(data, kDType<T>, shape);
  });
}

template <typename T>
void Tensor::CopyToCpuImpl(T* data, void* /*stream*/, CallbackFunc cb,
                           void* params) const {
  Border([&]() -> absl::Status {
    PD_ASSIGN_OR_RETURN(const void* value, variable_->Value(kDType<T>));
    PD_RETURN_IF_ERROR(pd::inference::NotNull(*variable_, data));
    const size_t bytes = pd::inference::BytesOf(*variable_);
    if (bytes > 0) std::memcpy(data, value, bytes);
    return absl::OkStatus();
  });
  if (cb != nullptr) cb(params);
}

template <typename T>
void Tensor::CopyToCpu(T* data) const {
  CopyToCpuImpl<T>(data, nullptr, nullptr, nullptr);
}

template <typename T>
void Tensor::CopyToCpuAsync(T* data, void* exec_stream) const {
  CopyToCpuImpl<T>(data, exec_stream, nullptr, nullptr);
}

template <typename T>
void Tensor::CopyToCpuAsync(T* data, CallbackFunc cb, void* cb_params) const {
  CopyToCpuImpl<T>(data, nullptr, cb, cb_params);
}

#define PD_INSTANTIATE_TENSOR(T)                                          \
  template PD_INFER_DECL T* Tensor::mutable_data<T>(PlaceType);           \
  template PD_INFER_DECL T* Tensor::data<T>(PlaceType*, int*) const;      \
  template PD_INFER_DECL void Tensor::CopyFromCpu<T>(const T*);           \
  template PD_INFER_DECL void Tensor::ShareExternalData<T>(               \
      const T*, const std::vector<int>&, PlaceType, DataLayout);          \
  template PD_INFER_DECL void Tensor::CopyToCpu<T>(T*) const;             \
  template PD_INFER_DECL void Tensor::CopyToCpuAsync<T>(T*, void*) const; \
  template PD_INFER_DECL void Tensor::CopyToCpuAsync<T>(T*, CallbackFunc, \
                                                        void*) const;
PD_INSTANTIATE_TENSOR(float)
PD_INSTANTIATE_TENSOR(double)
PD_INSTANTIATE_TENSOR(int64_t)
PD_INSTANTIATE_TENSOR(int32_t)
PD_INSTANTIATE_TENSOR(uint8_t)
PD_INSTANTIATE_TENSOR(int8_t)
PD_INSTANTIATE_TENSOR(bool)
PD_INSTANTIATE_TENSOR(phi::dtype::float16)
PD_INSTANTIATE_TENSOR(phi::dtype::bfloat16)
#undef PD_INSTANTIATE_TENSOR

std::vector<int> Tensor::shape() const {
  return Border([&]() -> absl::StatusOr<std::vector<int>> {
    if (!variable_->has_shape()) return std::vector<int>{0};
    std::vector<int> extents;
    for (const int64_t extent : variable_->shape()) {
      if (extent > std::numeric_limits<int>::max())
        return pd::OutOfRange("'%s': an extent of shape %s is beyond int",
                              variable_->name(),
                              pd::ToString(variable_->shape()));
      extents.push_back(static_cast<int>(extent));
    }
    return extents;
  });
}

void Tensor::SetLoD(const std::vector<std::vector<size_t>>& x) {
  Border([&]() -> absl::Status {
    pd::LoD lod;
    for (const std::vector<size_t>& level : x)
      lod.emplace_back(level.begin(), level.end());
    return variable_->SetLoD(std::move(lod));
  });
}

std::vector<std::vector<size_t>> Tensor::lod() const {
  std::vector<std::vector<size_t>> lod;
  for (const std::vector<uint64_t>& level : variable_->lod())
    lod.emplace_back(level.begin(), level.end());
  return lod;
}

const std::string& Tensor::name() const { return variable_->name(); }

DataType Tensor::type() const {
  return pd::inference::ApiTypeOf(variable_->dtype());
}

}  // namespace paddle_infer
