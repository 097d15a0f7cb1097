// SPDX-License-Identifier: Apache-2.0
// Element types, places, layouts and shapes of paddle::Tensor.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_PLACE_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_PLACE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "paddle_half.h"

namespace phi {

enum class DataType {
  UNDEFINED = 0,
  BOOL,
  UINT8,
  INT8,
  UINT16,
  INT16,
  UINT32,
  INT32,
  UINT64,
  INT64,
  FLOAT32,
  FLOAT64,
  COMPLEX64,
  COMPLEX128,
  PSTRING,
  FLOAT16,
  BFLOAT16,
  NUM_DATA_TYPES,
  ALL_DTYPE = UNDEFINED,
};

/// Bytes of an element; 0 for UNDEFINED and PSTRING.
inline size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::BOOL:
    case DataType::UINT8:
    case DataType::INT8:
      return 1;
    case DataType::UINT16:
    case DataType::INT16:
    case DataType::FLOAT16:
    case DataType::BFLOAT16:
      return 2;
    case DataType::UINT32:
    case DataType::INT32:
    case DataType::FLOAT32:
      return 4;
    case DataType::UINT64:
    case DataType::INT64:
    case DataType::FLOAT64:
    case DataType::COMPLEX64:
      return 8;
    case DataType::COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

/// "float32", "bool", "Undefined".
inline const char* DataTypeToString(DataType type) {
  static const char* const kNames[] = {
      "Undefined", "bool",       "uint8",   "int8",    "uint16",  "int16",
      "uint32",    "int32",      "uint64",  "int64",   "float32", "float64",
      "complex64", "complex128", "pstring", "float16", "bfloat16"};
  const size_t index = static_cast<size_t>(type);
  return index < sizeof(kNames) / sizeof(kNames[0]) ? kNames[index] : "unknown";
}

inline std::ostream& operator<<(std::ostream& out, DataType type) {
  return out << DataTypeToString(type);
}

/// The DataType of a type of C++.
template <typename T>
struct CppTypeToDataType;
#define PD_CPP_TYPE(T, type)                                    \
  template <>                                                   \
  struct CppTypeToDataType<T> {                                 \
    static constexpr DataType Type() { return DataType::type; } \
  }
PD_CPP_TYPE(bool, BOOL);
PD_CPP_TYPE(uint8_t, UINT8);
PD_CPP_TYPE(int8_t, INT8);
PD_CPP_TYPE(uint16_t, UINT16);
PD_CPP_TYPE(int16_t, INT16);
PD_CPP_TYPE(uint32_t, UINT32);
PD_CPP_TYPE(int32_t, INT32);
PD_CPP_TYPE(uint64_t, UINT64);
PD_CPP_TYPE(int64_t, INT64);
PD_CPP_TYPE(float, FLOAT32);
PD_CPP_TYPE(double, FLOAT64);
PD_CPP_TYPE(phi::dtype::float16, FLOAT16);
PD_CPP_TYPE(phi::dtype::bfloat16, BFLOAT16);
#undef PD_CPP_TYPE

enum class DataLayout {
  ANY = 0,
  UNDEFINED = 0,
  ALL_LAYOUT = 0,
  kAnyLayout = 0,
  NHWC,
  kNHWC = NHWC,
  NCHW,
  kNCHW = NCHW,
  ONEDNN,
  kMKLDNN = ONEDNN,
  SPARSE_COO,
  SPARSE_CSR,
  PSTRING_UNION,
  NDHWC,
  kNDHWC = NDHWC,
  NCDHW,
  kNCDHW = NCDHW,
};

enum class AllocationType : int8_t {
  UNDEFINED = 0,
  CPU = 1,
  GPU = 2,
  GPUPINNED = 3,
  XPU = 4,
  NPU = 5,
  NPUPINNED = 6,
  IPU = 7,
  CUSTOM = 9,
};

/// A kind of memory, and the number of its device.
class Place {
 public:
  Place() = default;
  explicit Place(AllocationType type, int8_t id, std::string dev_type = "")
      : type_(type), device_(id), dev_type_(std::move(dev_type)) {}
  explicit Place(AllocationType type, std::string dev_type = "")
      : Place(type, 0, std::move(dev_type)) {}

  AllocationType GetType() const { return type_; }
  int8_t GetDeviceId() const { return device_; }
  const std::string& GetDeviceType() const { return dev_type_; }
  /// "Place(cpu)", "Place(gpu:0)".
  std::string DebugString() const {
    static const char* const kNames[] = {"undefined",  "cpu", "gpu",
                                         "gpu_pinned", "xpu", "npu",
                                         "npu_pinned", "ipu"};
    std::string text = type_ == AllocationType::CUSTOM
                           ? dev_type_
                           : kNames[static_cast<int>(type_) & 7];
    const bool numbered = type_ != AllocationType::CPU &&
                          type_ != AllocationType::UNDEFINED &&
                          type_ != AllocationType::GPUPINNED &&
                          type_ != AllocationType::NPUPINNED;
    if (numbered) text += ":" + std::to_string(device_);
    return "Place(" + text + ")";
  }
  uint32_t HashValue() const {
    const size_t hash = std::hash<std::string>()(dev_type_);
    return static_cast<uint32_t>(hash << 12) |
           static_cast<uint32_t>(static_cast<uint8_t>(type_)) << 8 |
           static_cast<uint8_t>(device_);
  }
  bool operator==(const Place& other) const {
    return type_ == other.type_ && device_ == other.device_ &&
           dev_type_ == other.dev_type_;
  }
  bool operator!=(const Place& other) const { return !(*this == other); }
  bool operator<(const Place& other) const {
    if (type_ != other.type_) return type_ < other.type_;
    if (device_ != other.device_) return device_ < other.device_;
    return dev_type_ < other.dev_type_;
  }

 private:
  AllocationType type_ = AllocationType::UNDEFINED;
  int8_t device_ = 0;
  std::string dev_type_;
};

struct CPUPlace : public Place {
  CPUPlace() : Place(AllocationType::CPU) {}
  CPUPlace(const Place&) : CPUPlace() {}  // NOLINT
};
struct GPUPlace : public Place {
  GPUPlace() : GPUPlace(0) {}
  explicit GPUPlace(int id)
      : Place(AllocationType::GPU, static_cast<int8_t>(id)) {}
  GPUPlace(const Place& place) : GPUPlace(place.GetDeviceId()) {}  // NOLINT
};
struct GPUPinnedPlace : public Place {
  GPUPinnedPlace() : Place(AllocationType::GPUPINNED) {}
  GPUPinnedPlace(const Place&) : GPUPinnedPlace() {}  // NOLINT
};
struct XPUPlace : public Place {
  XPUPlace() : XPUPlace(0) {}
  explicit XPUPlace(int id)
      : Place(AllocationType::XPU, static_cast<int8_t>(id)) {}
};
struct IPUPlace : public Place {
  IPUPlace() : IPUPlace(0) {}
  explicit IPUPlace(int id)
      : Place(AllocationType::IPU, static_cast<int8_t>(id)) {}
};
struct CustomPlace : public Place {
  CustomPlace() : Place(AllocationType::CUSTOM) {}
  explicit CustomPlace(std::string type, int id = 0)
      : Place(AllocationType::CUSTOM, static_cast<int8_t>(id),
              std::move(type)) {}
};

inline std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.DebugString();
}

/// Extents of a tensor.
class DDim {
 public:
  DDim() = default;
  DDim(std::initializer_list<int64_t> extents) : extents_(extents) {}
  explicit DDim(std::vector<int64_t> extents) : extents_(std::move(extents)) {}
  int size() const { return static_cast<int>(extents_.size()); }
  int64_t operator[](int i) const { return extents_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return extents_[static_cast<size_t>(i)]; }
  int64_t at(int i) const { return extents_.at(static_cast<size_t>(i)); }
  const std::vector<int64_t>& extents() const { return extents_; }
  bool operator==(const DDim& other) const {
    return extents_ == other.extents_;
  }
  bool operator!=(const DDim& other) const { return !(*this == other); }

 private:
  std::vector<int64_t> extents_;
};

}  // namespace phi

namespace paddle {

using phi::AllocationType;
using phi::CPUPlace;
using phi::CustomPlace;
using phi::DataLayout;
using phi::DataType;
using phi::GPUPinnedPlace;
using phi::GPUPlace;
using phi::IPUPlace;
using phi::Place;
using phi::XPUPlace;

namespace experimental {
using phi::AllocationType;
using phi::DataLayout;
using phi::DataType;
}  // namespace experimental

}  // namespace paddle

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_PLACE_H_
