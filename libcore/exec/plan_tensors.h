// SPDX-License-Identifier: Apache-2.0
// The tensors of a plan while it is made: where the bytes of each come from,
// which steps touch them, and its copies in other layouts, dtypes or places.
// Internal to libcore/exec.
#ifndef PD_LIBCORE_EXEC_PLAN_TENSORS_H_
#define PD_LIBCORE_EXEC_PLAN_TENSORS_H_

#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libcore/exec/scope.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class PlanTensors {
 public:
  /// kLate: bytes of its own: its shape is known when it runs, or it is a fetch
  /// from a device. kConstant: bytes of its own that no step writes.
  enum class Kind { kArena, kFeed, kPersistable, kLate, kConstant };

  struct Info {
    Kind kind = Kind::kArena;
    Scope::Entry* entry = nullptr;  ///< of a persistable
    Tensor* root = nullptr;         ///< whose bytes it uses; itself mostly
    int first = -1, last = -1;  ///< steps that touch it; of roots, the union
    bool keep = false;          ///< until the end of the run
    bool device = false;        ///< the bytes are in the device's memory
    std::string name;           ///< the variable, where it is one
  };

  /// `tensors` and `pinned` are the plan's: its own tensors, and the variables
  /// of the scope whose layout its steps rely on.
  PlanTensors(std::deque<Tensor>* tensors, std::vector<Scope::Entry*>* pinned)
      : tensors_(tensors), pinned_(pinned) {}

  Tensor* New(DType dtype, Shape shape, Kind kind);
  /// A tensor of the same dtype, shape and kind of value, without its bytes.
  Tensor* CopyOf(const Tensor* tensor, Kind kind);
  /// Makes a variable of the scope known.
  void AddPersistable(const std::string& name, Scope::Entry* entry);
  /// Has `copy` stand for the same variable as `tensor`.
  void ShareName(const Tensor* tensor, const Tensor* copy) {
    persistable_names_[copy] = persistable_names_[tensor];
  }
  /// Null unless it is a persistable variable.
  const std::string* PersistableName(const Tensor* tensor) const;

  /// The tensor was made here.
  Info& InfoOf(const Tensor* tensor);
  /// The tensor whose bytes it uses.
  Tensor* Root(Tensor* tensor);
  /// Records that a step reads or writes it.
  void Touch(Tensor* tensor, int step);

  /// Its shape is known only when it runs.
  bool IsLate(const Tensor* tensor) const { return late_.count(tensor) > 0; }
  void SetLate(const Tensor* tensor) { late_.insert(tensor); }

  /// Row-major or other copies of its value, until it is written again.
  std::vector<Tensor*>& Copies(const Tensor* tensor) { return copies_[tensor]; }
  void ForgetCopies(const Tensor* tensor) { copies_.erase(tensor); }

 private:
  Info& MakeInfo(const Tensor* tensor);

  std::deque<Tensor>* tensors_;
  std::vector<Scope::Entry*>* pinned_;
  std::deque<Info> made_infos_;  // their addresses are stable
  absl::flat_hash_map<const Tensor*, Info*> infos_;
  std::unordered_map<const Tensor*, std::vector<Tensor*>> copies_;
  std::unordered_map<const Tensor*, std::string> persistable_names_;
  std::unordered_set<const Tensor*> late_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_PLAN_TENSORS_H_
