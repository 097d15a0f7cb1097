// SPDX-License-Identifier: Apache-2.0
// A kernel computes one kind of node. `prepare` finds the shapes of the outputs
// and checks all that the node says; `run` computes, and trusts what `prepare`
// has checked.
//
// To add a kernel: its `const Kernel` in a file of its family, its declaration
// in kernels.h, its line in all_kernels.cc, its numbers in attributes.h.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_KERNEL_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/bundle/runtime/error.h"
#include "libcore/bundle/runtime/graph.h"
#include "libcore/bundle/runtime/threads.h"
#include "libcore/bundle/runtime/types.h"

namespace pd_run {

/// A node with its tensors.
class Call {
 public:
  Call(const Node& node, std::vector<Tensor>* tensors, Threads* threads,
       Error* error)
      : node_(&node), tensors_(tensors), threads_(threads), error_(error) {}

  size_t inputs() const { return node_->inputs.size(); }
  size_t outputs() const { return node_->outputs.size(); }
  bool Has(size_t i) const {
    return i < inputs() && node_->inputs[i] != kNoValue;
  }
  /// An input that Has() or that the kernel's arity demands.
  const Tensor& In(size_t i) const { return (*tensors_)[node_->inputs[i]]; }
  const Tensor& Out(size_t i) const { return (*tensors_)[node_->outputs[i]]; }

  size_t ints() const { return node_->ints.size(); }
  int64_t Int(size_t i) const { return node_->ints[i]; }
  const float* floats() const { return node_->floats.data(); }
  float Float(size_t i) const { return node_->floats[i]; }

  /// False, after the reason is kept.
  bool Fail(const char* format, ...) PD_RUN_PRINTF(2, 3);

  // For `prepare`.

  bool Expect(size_t input, DType dtype);
  /// Input `i` is float32 of this rank.
  bool ExpectFloats(size_t i, int rank);
  /// Input `i`, where there is one, is float32 of `count` elements.
  bool ExpectVector(size_t i, int64_t count);
  /// Number `i` of the node lies within bounds.
  bool Within(size_t i, int64_t low, int64_t high);
  /// Number `i` as an axis of `rank`, negative ones counted from the end.
  bool Axis(size_t i, int rank, int* axis);
  /// Says what output `i` is; shapes too large for this machine fail.
  bool Give(size_t i, DType dtype, const Shape& shape);
  /// The elements of an integer input; an error where they are not known yet.
  bool KnownInts(size_t input, std::vector<int64_t>* values);
  /// Output 0 is the bytes of input 0.
  void Share() { shares_ = true; }
  /// Output 0 may lie where input `i` lies, if nothing else needs that.
  void MayReplace(size_t i) { replaces_ = static_cast<int>(i); }
  /// Memory for `run`, of floats for each of the threads.
  bool NeedScratch(int64_t floats_each);

  // For `run`.

  float* Scratch(int thread) const { return scratch_ + thread * scratch_each_; }
  Threads* threads() const { return threads_; }

 private:
  friend class Plan;

  const Node* node_;
  std::vector<Tensor>* tensors_;
  Threads* threads_;
  Error* error_;
  bool shares_ = false;
  int replaces_ = -1;
  int64_t scratch_each_ = 0;
  float* scratch_ = nullptr;
};

struct Kernel {
  struct Arity {
    size_t least, most;
  };
  static constexpr size_t kMany = static_cast<size_t>(-1);

  const char* name;
  Arity inputs, outputs, ints, floats;
  bool (*prepare)(Call* call);
  bool (*run)(Call* call);
  /// It reads the shapes of its inputs, not their elements.
  bool of_shapes = false;
};

/// The kernels that are built in, null behind the last: all_kernels.cc, or the
/// file that `pd-export --to c` writes for one model.
extern const Kernel* const kKernels[];

const Kernel* FindKernel(const std::string& name);

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_KERNEL_H_
