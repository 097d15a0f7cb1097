// SPDX-License-Identifier: Apache-2.0
// A gradient op reads what its forward op read and wrote. Where something has
// overwritten that in between (a loop its variables, an op that works in
// place), the forward program is made to keep a copy, and the gradient op reads
// the copy.
//
// A value of a variable is known by its version: 0 before the block's first
// write, k after the k-th one.
#ifndef PD_LIBCORE_AUTODIFF_KEPT_VALUES_H_
#define PD_LIBCORE_AUTODIFF_KEPT_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "libcore/ir/program_desc.h"

namespace pd {

class KeptValues {
 public:
  /// For the ops of a block, whose order must stay until Insert. `carried`:
  /// what a loop's block finds in its gradient as it was when the run began.
  KeptValues(ProgramDesc* program, int32_t block,
             std::set<std::string> carried);

  /// Whether op `at` writes over a value that the variable had before.
  bool Overwrites(size_t at, const std::string& name) const;
  /// The name by which the gradient of op `at` reads an input or output of the
  /// op as it was before or after the op.
  std::string Before(size_t at, const std::string& name);
  std::string After(size_t at, const std::string& name);
  /// The name by which the block's gradient reads a variable of the blocks
  /// around it as it was before the block ran.
  std::string AtStart(const std::string& name) { return Read(name, 0); }
  /// Has a gradient op of op `at` read the right values.
  void Redirect(size_t at, OpDesc* grad);
  /// The same for what a gradient block reads around it. Op `at` ran its
  /// forward block.
  void RedirectBlock(size_t at, int32_t gradient);
  /// Adds the copies to the block.
  void Insert();

 private:
  BlockDesc& block() { return program_->blocks[static_cast<size_t>(block_)]; }
  std::string Read(const std::string& name, size_t version);
  void RedirectFree(size_t at, int32_t gradient, std::set<std::string> bound);

  ProgramDesc* program_;
  int32_t block_;
  std::set<std::string> carried_;
  absl::flat_hash_set<std::string> local_;  // variables of this block
  absl::flat_hash_map<std::string, size_t> first_read_;
  absl::flat_hash_map<std::string, std::vector<size_t>> writes_;  // by ops
  std::map<std::pair<std::string, size_t>, std::string> copies_;
};

}  // namespace pd

#endif  // PD_LIBCORE_AUTODIFF_KEPT_VALUES_H_
