// SPDX-License-Identifier: Apache-2.0
// The update of a large parameter moves up to where its gradient is ready and
// nobody needs the old value any more:
//
//   ... linear_2_grad ... linear_1_grad ... adam(1) adam(2)
//   ... linear_2_grad adam(2) ... linear_1_grad adam(1)
//
// The gradient's memory is free for the next one then, instead of all gradients
// waiting for the end, and its numbers are still in the cache. Small ones stay
// where merge_updates puts them into one op.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libcore/base/shape.h"
#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

constexpr int64_t kLarge = int64_t{1} << 18;  // elements

bool UpdatesALargeParameter(const OpDesc& op, const ProgramDesc& program) {
  if (op.Input("Param").size() != 1 || op.Input("Grad").size() != 1 ||
      op.Output("ParamOut") != op.Input("Param"))
    return false;
  const VarDesc* param = program.FindVar(0, op.In("Param"));
  return param != nullptr && NumElements(param->shape) >= kLarge;
}

// Behind which op each variable was last written, and last touched.
class Uses {
 public:
  explicit Uses(const ProgramDesc* program) : program_(program) {}

  /// The first place that op may have: behind whoever writes what it reads,
  /// and whoever touches what it writes.
  size_t Earliest(const OpDesc& op) const {
    size_t place = 0;
    for (const std::string& name : NamesOf(op.inputs))
      place = std::max(place, After(written_, name));
    for (const std::string& name : NamesOf(op.outputs))
      place = std::max(place, After(touched_, name));
    return place;
  }
  void Add(size_t i, const OpDesc& op) {
    ForEachUse(
        *program_, op, [&](const std::string& name) { touched_[name] = i + 1; },
        [&](const std::string& name) {
          touched_[name] = written_[name] = i + 1;
        });
  }

 private:
  using Places = absl::flat_hash_map<std::string, size_t>;
  static size_t After(const Places& places, const std::string& name) {
    const auto found = places.find(name);
    return found == places.end() ? 0 : found->second;
  }
  const ProgramDesc* program_;
  Places written_, touched_;  // the op's number + 1
};

}  // namespace

absl::Status AdvanceUpdates(const PassContext&, ProgramDesc* program) {
  std::vector<OpDesc>& ops = program->global().ops;
  if (std::none_of(ops.begin(), ops.end(), [&](const OpDesc& op) {
        return UpdatesALargeParameter(op, *program);
      }))
    return absl::OkStatus();
  std::map<size_t, std::vector<size_t>> moved;  // by the op that they precede
  std::vector<bool> leaves(ops.size(), false);
  Uses uses(program);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (UpdatesALargeParameter(ops[i], *program)) {
      const size_t place = uses.Earliest(ops[i]);
      leaves[i] = place < i;
      if (place < i) moved[place].push_back(i);
    }
    uses.Add(i, ops[i]);
  }
  if (moved.empty()) return absl::OkStatus();
  std::vector<OpDesc> order;
  order.reserve(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    for (size_t update : moved[i]) order.push_back(std::move(ops[update]));
    if (!leaves[i]) order.push_back(std::move(ops[i]));
  }
  ops = std::move(order);
  return absl::OkStatus();
}

}  // namespace pd
