// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/kept_weights.h"

#include <map>
#include <mutex>
#include <utility>

#include "libcore/base/status_macros.h"

namespace pd {
namespace cpu {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::pair<const Tensor*, int>,
           std::weak_ptr<const std::vector<float>>>
      forms;
};

}  // namespace

absl::StatusOr<KeptWeights> KeepWeights(
    const Tensor* weights, int form,
    absl::FunctionRef<absl::StatusOr<KeptWeights>()> make) {
  static auto* const table = new Table;
  const auto key = std::make_pair(weights, form);
  const auto find = [&]() -> KeptWeights {
    const auto found = table->forms.find(key);
    return found == table->forms.end() ? nullptr : found->second.lock();
  };
  {
    const std::lock_guard<std::mutex> lock(table->mutex);
    if (KeptWeights held = find()) return held;
  }
  PD_ASSIGN_OR_RETURN(KeptWeights made, make());
  const std::lock_guard<std::mutex> lock(table->mutex);
  if (KeptWeights held = find()) return held;
  // Entries of scopes that are gone would fill the table.
  for (auto it = table->forms.begin(); it != table->forms.end();)
    it = it->second.expired() ? table->forms.erase(it) : std::next(it);
  table->forms[key] = made;
  return made;
}

}  // namespace cpu
}  // namespace pd
