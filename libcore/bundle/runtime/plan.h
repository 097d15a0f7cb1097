// SPDX-License-Identifier: Apache-2.0
// A graph made ready for given shapes of its inputs: every shape is inferred,
// every tensor has its place in one block of memory, in which tensors that are
// never needed together share bytes.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_PLAN_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_PLAN_H_

#include <memory>
#include <vector>

#include "libcore/bundle/runtime/kernel.h"

namespace pd_run {

class Plan {
 public:
  /// `inputs` have their memory and no -1. Null after an error.
  static std::unique_ptr<Plan> Make(std::shared_ptr<const Graph> graph,
                                    const std::vector<Tensor>& inputs,
                                    Threads* threads, size_t memory_limit,
                                    Error* error);

  const Tensor& tensor(uint32_t value) const { return tensors_[value]; }
  /// Computes the outputs. On an error `error` has the reason.
  bool Run(Error* error);

 private:
  // Bytes that one tensor or, by Call::Share, several lie in.
  struct Storage {
    size_t bytes = 0, place = 0;
    size_t last = 0;    // node that reads it last
    bool kept = false;  // an output: nothing may write over it
    bool placed = false;
  };

  Plan(std::shared_ptr<const Graph> graph, Threads* threads,
       size_t memory_limit)
      : graph_(std::move(graph)), threads_(threads), limit_(memory_limit) {}

  bool Prepare(const std::vector<Tensor>& inputs, Error* error);
  bool PrepareNode(size_t index);
  bool RunNow(Call* call);
  void AddStorage(uint32_t value);
  void Place();
  bool AllocateAll(Error* error);

  std::shared_ptr<const Graph> graph_;
  Threads* threads_;
  size_t limit_;
  Error* error_ = nullptr;  // of the call that is going on
  std::vector<Tensor> tensors_;
  std::vector<Call> calls_;
  std::vector<size_t> order_;        // calls that Run() makes
  std::vector<int64_t> storage_of_;  // by value; -1: not in memory_
  std::vector<Storage> storages_;
  size_t arena_bytes_ = 0, known_bytes_ = 0;
  std::shared_ptr<void> memory_, scratch_;
  std::vector<std::shared_ptr<void>> known_;  // bytes of known results
};

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_PLAN_H_
