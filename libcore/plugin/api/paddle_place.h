// SPDX-License-Identifier: Apache-2.0
// Places and shapes of paddle::Tensor.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_PLACE_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_PLACE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "paddle_dtype.h"

namespace paddle {

/// The places of programs for PaddlePaddle 2.0; its values are those of
/// AllocationType.
enum class PlaceType { kUNK = 0, kCPU = 1, kGPU = 2, kXPU = 4, kNPU = 5 };

}  // namespace paddle

namespace phi {

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
  Place(paddle::PlaceType type)  // NOLINT: programs compare places with these
      : Place(static_cast<AllocationType>(type)) {}

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

inline bool operator==(paddle::PlaceType type, const Place& place) {
  return place == Place(type);
}
inline bool operator!=(paddle::PlaceType type, const Place& place) {
  return place != Place(type);
}

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
  XPUPlace(const Place& place) : XPUPlace(place.GetDeviceId()) {}  // NOLINT
};
struct IPUPlace : public Place {
  IPUPlace() : IPUPlace(0) {}
  explicit IPUPlace(int id)
      : Place(AllocationType::IPU, static_cast<int8_t>(id)) {}
  IPUPlace(const Place& place) : IPUPlace(place.GetDeviceId()) {}  // NOLINT
};
struct CustomPlace : public Place {
  CustomPlace() : Place(AllocationType::CUSTOM) {}
  explicit CustomPlace(std::string type, int id = 0)
      : Place(AllocationType::CUSTOM, static_cast<int8_t>(id),
              std::move(type)) {}
  CustomPlace(const Place& place)  // NOLINT
      : CustomPlace(place.GetDeviceType(), place.GetDeviceId()) {}
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

inline DDim make_ddim(std::vector<int64_t> extents) {
  return DDim(std::move(extents));
}
template <typename T = int64_t>
std::vector<T> vectorize(const DDim& dims) {
  return std::vector<T>(dims.extents().begin(), dims.extents().end());
}
/// The number of elements.
inline int64_t product(const DDim& dims) {
  int64_t elements = 1;
  for (const int64_t extent : dims.extents()) elements *= extent;
  return elements;
}

}  // namespace phi

namespace paddle {

using phi::AllocationType;
using phi::CPUPlace;
using phi::CustomPlace;
using phi::GPUPinnedPlace;
using phi::GPUPlace;
using phi::IPUPlace;
using phi::Place;
using phi::XPUPlace;

/// The device that is used now: there is one at most.
inline GPUPlace DefaultGPUPlace() { return GPUPlace(0); }

namespace experimental {
using phi::AllocationType;
using phi::Place;
}  // namespace experimental

}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_PLACE_H_
