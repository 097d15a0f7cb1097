// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/device_pool.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

// Sizes that differ little share blocks: an eighth of a block is lost at most.
size_t BlockBytes(size_t bytes) {
  size_t step = 256;
  while (step * 16 <= bytes) step *= 2;
  return (std::max<size_t>(bytes, 1) + step - 1) / step * step;
}

}  // namespace

struct DevicePool::State {
  explicit State(std::shared_ptr<Device> on) : device(std::move(on)) {}

  const std::shared_ptr<Device> device;
  mutable std::mutex mutex;
  std::map<size_t, std::vector<std::shared_ptr<void>>> idle;  // by size
  std::map<uintptr_t, size_t> taken;                          // -> size
  size_t bytes = 0, bytes_taken = 0;

  void GiveBack(std::shared_ptr<void> block, size_t size) {
    const std::lock_guard<std::mutex> lock(mutex);
    taken.erase(reinterpret_cast<uintptr_t>(block.get()));
    bytes_taken -= size;
    idle[size].push_back(std::move(block));
  }
  void FreeIdle() {
    for (const auto& [size, blocks] : idle) bytes -= size * blocks.size();
    idle.clear();
  }
};

DevicePool::DevicePool(std::shared_ptr<Device> device)
    : state_(std::make_shared<State>(std::move(device))) {}

absl::StatusOr<std::shared_ptr<void>> DevicePool::Take(size_t bytes) {
  const size_t size = BlockBytes(bytes);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<std::shared_ptr<void>>& idle = state_->idle[size];
  std::shared_ptr<void> block;
  if (!idle.empty()) {
    block = std::move(idle.back());
    idle.pop_back();
  } else {
    absl::StatusOr<std::shared_ptr<void>> fresh =
        state_->device->Allocate(size);
    if (absl::IsResourceExhausted(fresh.status())) {
      state_->FreeIdle();
      fresh = state_->device->Allocate(size);
    }
    if (absl::IsResourceExhausted(fresh.status()))
      return ResourceExhausted(
          "%s, beside %d MiB of values whose shapes follow from data; a "
          "smaller batch needs less",
          std::string(fresh.status().message()), state_->bytes_taken >> 20);
    if (!fresh.ok()) return fresh.status();
    block = *std::move(fresh);
    state_->bytes += size;
  }
  void* const address = block.get();
  state_->taken[reinterpret_cast<uintptr_t>(address)] = size;
  state_->bytes_taken += size;
  return std::shared_ptr<void>(
      address, [state = state_, block = std::move(block), size](void*) mutable {
        state->GiveBack(std::move(block), size);
      });
}

bool DevicePool::Holds(const void* address) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto after = state_->taken.upper_bound(at);
  if (after == state_->taken.begin()) return false;
  --after;
  return at < after->first + after->second;
}

size_t DevicePool::bytes() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->bytes;
}

size_t DevicePool::bytes_taken() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->bytes_taken;
}

}  // namespace pd
