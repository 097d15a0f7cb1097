// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/recompute.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"

namespace pd {
namespace {

template <typename Body>
void ForEach(const SlotList& slots, const Body& body) {
  for (const auto& [slot, names] : slots)
    for (const std::string& name : names)
      if (name != kEmptyVar) body(name);
}

bool HasBlock(const OpDesc& op) {
  for (const auto& [name, value] : op.attrs)
    if (std::holds_alternative<BlockRef>(value)) return true;
  return false;
}

// An op that another run of may answer otherwise, or that does more than to
// write its outputs.
bool IsRepeatable(const OpDesc& op) {
  static const std::set<std::string> kRandom = {"bernoulli",
                                                "class_center_sample",
                                                "dropout",
                                                "dropout_nd",
                                                "exponential",
                                                "gaussian_random",
                                                "gumbel_softmax",
                                                "multinomial",
                                                "nce",
                                                "poisson",
                                                "print",
                                                "randint",
                                                "randperm",
                                                "rrelu",
                                                "sampling_id",
                                                "shuffle_batch",
                                                "uniform_random",
                                                "truncated_gaussian_random"};
  return kRandom.count(op.type) == 0 && !HasBlock(op);
}

class Recomputer {
 public:
  explicit Recomputer(ProgramDesc* program)
      : block_(program->global()), ops_(block_.ops) {}

  absl::Status Run(const std::vector<std::string>& checkpoints);

 private:
  absl::Status Divide(const std::vector<std::string>& checkpoints);
  void RepeatSegment(size_t begin, size_t end, size_t number);
  bool IsGone(const std::string& name) const {
    return maker_.count(name) > 0 && kept_.count(name) == 0;
  }
  // The ops of [begin, end) that make what the gradient ops read, and what
  // these read in turn.
  std::set<size_t> Wanted(size_t begin, size_t end) const;

  BlockDesc& block_;
  std::vector<OpDesc>& ops_;
  size_t forward_ = 0;  // number of forward ops
  std::vector<size_t> ends_;
  std::map<std::string, size_t> maker_;  // forward op of a variable
  std::set<std::string> kept_;
};

absl::Status Recomputer::Divide(const std::vector<std::string>& checkpoints) {
  while (forward_ < ops_.size() &&
         (RoleOf(ops_[forward_]) & kRoleBackward) == 0)
    ++forward_;
  if (forward_ == ops_.size())
    return InvalidArgument("the program has no gradient ops");
  std::set<std::string> changes;  // variables with several values
  for (size_t i = 0; i < forward_; ++i)
    ForEach(ops_[i].outputs, [&](const std::string& name) {
      const VarDesc* var = block_.FindVar(name);
      const bool again = !maker_.emplace(name, i).second;
      if (again || var == nullptr || var->persistable) changes.insert(name);
    });
  for (size_t i = 0; i < forward_; ++i) {
    bool repeatable = IsRepeatable(ops_[i]);
    const auto check = [&](const std::string& name) {
      repeatable = repeatable && changes.count(name) == 0;
    };
    ForEach(ops_[i].inputs, check);
    ForEach(ops_[i].outputs, check);
    const auto keep = [&](const std::string& name) { kept_.insert(name); };
    if (!repeatable) ForEach(ops_[i].outputs, keep);
    // Variables that a block reads are not among the inputs of its gradient.
    if (HasBlock(ops_[i])) ForEach(ops_[i].inputs, keep);
  }
  for (const std::string& name : checkpoints) {
    const auto maker = maker_.find(name);
    if (maker == maker_.end())
      return NotFound("checkpoint '%s' is made by no forward op", name);
    kept_.insert(name);
    ends_.push_back(maker->second + 1);
  }
  std::sort(ends_.begin(), ends_.end());
  ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
  if (!ends_.empty())
    for (const auto& [name, op] : maker_)
      if (op >= ends_.back()) kept_.insert(name);
  return absl::OkStatus();
}

std::set<size_t> Recomputer::Wanted(size_t begin, size_t end) const {
  std::set<size_t> wanted;
  const auto want = [&](const std::string& name) {
    if (!IsGone(name)) return;
    const size_t maker = maker_.at(name);
    if (maker >= begin && maker < end) wanted.insert(maker);
  };
  for (size_t i = forward_; i < ops_.size(); ++i) ForEach(ops_[i].inputs, want);
  for (size_t i = end; i-- > begin;)
    if (wanted.count(i) > 0) ForEach(ops_[i].inputs, want);
  return wanted;
}

// Renames what an op reads.
void Rename(const std::map<std::string, std::string>& names, SlotList* slots) {
  for (auto& [slot, list] : *slots) {
    for (std::string& name : list) {
      const auto it = names.find(name);
      if (it != names.end()) name = it->second;
    }
  }
}

void Recomputer::RepeatSegment(size_t begin, size_t end, size_t number) {
  std::map<std::string, std::string> names;
  std::vector<OpDesc> copies;
  for (const size_t i : Wanted(begin, end)) {
    OpDesc copy = ops_[i];
    Rename(names, &copy.inputs);
    ForEach(ops_[i].outputs, [&](const std::string& name) {
      if (!IsGone(name)) return;
      VarDesc var = *block_.FindVar(name);
      var.name = absl::StrCat(name, ".subprog_", number);
      names[name] = var.name;
      block_.vars.push_back(std::move(var));
    });
    Rename(names, &copy.outputs);
    copy.attrs[std::string(kOpRoleAttr)] = int32_t{kRoleBackward};
    copies.push_back(std::move(copy));
  }
  if (copies.empty()) return;
  size_t first = ops_.size();
  for (size_t i = ops_.size(); i-- > forward_;) {
    bool reads = false;
    ForEach(ops_[i].inputs, [&](const std::string& name) {
      reads = reads || names.count(name) > 0;
    });
    if (!reads) continue;
    first = i;
    Rename(names, &ops_[i].inputs);
  }
  ops_.insert(ops_.begin() + static_cast<ptrdiff_t>(first),
              std::make_move_iterator(copies.begin()),
              std::make_move_iterator(copies.end()));
}

absl::Status Recomputer::Run(const std::vector<std::string>& checkpoints) {
  PD_RETURN_IF_ERROR(Divide(checkpoints));
  // The last one first: its copies may read what earlier ones make.
  for (size_t i = ends_.size(); i-- > 0;)
    RepeatSegment(i == 0 ? 0 : ends_[i - 1], ends_[i], i);
  return absl::OkStatus();
}

}  // namespace

absl::Status Recompute(const std::vector<std::string>& checkpoints,
                       ProgramDesc* program) {
  return Recomputer(program).Run(checkpoints);
}

}  // namespace pd
