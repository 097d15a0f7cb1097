// SPDX-License-Identifier: Apache-2.0
// Variables by name, as the ops of a sub-block see them: those of this run of
// the block, then those of the block around it.
#ifndef PD_LIBCORE_TENSOR_FRAME_H_
#define PD_LIBCORE_TENSOR_FRAME_H_

#include <cstdint>
#include <string>

#include "absl/container/node_hash_map.h"
#include "libcore/tensor/tensor.h"

namespace pd {

class Frame {
 public:
  struct Variable {
    Tensor* tensor = nullptr;
    /// Others rely on where its bytes are: it may be written, not resized.
    bool fixed = false;
  };

  explicit Frame(Frame* parent = nullptr)
      : parent_(parent), changed_(NextChange()) {}
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// The frame around this one; it may be another one when a gradient block
  /// comes back to the variables of a forward block.
  void set_parent(Frame* parent) {
    parent_ = parent;
    changed_ = NextChange();
  }

  /// A variable of this frame or of those around it; null when there is none.
  const Variable* Find(const std::string& name) const;
  /// A variable of this frame alone.
  const Variable* FindLocal(const std::string& name) const;
  /// The variable of this frame, made without a value if it is not there.
  const Variable& Make(const std::string& name);
  /// Gives somebody else's tensor a name here. It outlives the frame.
  void Lend(const std::string& name, Variable variable) {
    variables_[name].variable = variable;
    changed_ = NextChange();
  }

  /// A number that grows when a name gets another variable, here or in a frame
  /// around this one: as long as it stays, Find finds what it found before.
  /// Frames that come after this one have greater numbers.
  uint64_t LastChange() const;

 private:
  static uint64_t NextChange();

  Frame* parent_;
  uint64_t changed_;
  struct Slot {
    Variable variable;
    Tensor own;  // unless the variable is lent
  };
  // Find hands out pointers to its variables, and they to their tensors.
  absl::node_hash_map<std::string, Slot> variables_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TENSOR_FRAME_H_
