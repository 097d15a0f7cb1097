// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/block_moves.h"

#include <algorithm>
#include <map>

#include "libcore/program/outer_names.h"

namespace pd {
namespace {

// The numbers of the ops of a block that read and that write a variable.
struct Uses {
  std::vector<size_t> reads, writes;
};

}  // namespace

const InPlaceSlots* InPlaceSlotsOf(const std::string& op_type) {
  static constexpr InPlaceSlots kPut = {"Input", "Result"};
  return op_type == "put_along_axis" ? &kPut : nullptr;
}

std::vector<OpMove> FindMoves(const ProgramDesc& program,
                              const BlockDesc& block,
                              const std::vector<LateOp>& ops) {
  std::map<std::string, Uses> uses;
  for (size_t i = 0; i < ops.size(); ++i) {
    const OuterNames names = OuterNamesOf(program, ops[i].op());
    for (const std::string& name : names.reads) uses[name].reads.push_back(i);
    for (const std::string& name : names.writes) uses[name].writes.push_back(i);
  }
  std::vector<OpMove> moves(ops.size(), OpMove::kNone);
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpDesc& op = ops[i].op();
    if (op.type != "assign" || ops[i].inputs().size() != 1 ||
        ops[i].outputs().size() != 1)
      continue;
    const std::string& from = ops[i].inputs()[0];
    const std::string& to = ops[i].outputs()[0];
    const Uses& own = uses[from];
    if (from == to || block.FindVar(from) == nullptr ||
        own.writes.size() != 1 || own.writes[0] >= i || own.reads.back() != i)
      continue;
    const auto is_dense = [&](size_t at) { return ops[at].is_dense(); };
    if (!is_dense(own.writes[0]) ||
        !std::all_of(own.reads.begin(), own.reads.end() - 1, is_dense))
      continue;
    moves[i] = OpMove::kMove;
    const size_t maker = own.writes[0];
    const OpDesc& made = ops[maker].op();
    const InPlaceSlots* slots = InPlaceSlotsOf(made.type);
    if (slots == nullptr || made.In(slots->input) != to ||
        made.Out(slots->output) != from || block.FindVar(to) != nullptr)
      continue;
    const Uses& outer = uses[to];
    const auto inputs = std::count_if(
        made.inputs.begin(), made.inputs.end(), [&to](const auto& slot) {
          return std::count(slot.second.begin(), slot.second.end(), to) > 0;
        });
    if (outer.reads.size() == 1 && outer.writes.size() == 1 && inputs == 1)
      moves[maker] = OpMove::kInPlace;
  }
  return moves;
}

}  // namespace pd
