// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pd_run {
namespace {

// Results of up to so many elements are computed while the plan is made, where
// all that they are made of is known.
constexpr int64_t kMostKnown = 4096;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Free ranges of a block of memory that grows at its end.
class Ranges {
 public:
  size_t Take(size_t bytes) {
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (it->second >= bytes &&
          (best == free_.end() || it->second < best->second))
        best = it;
    if (best == free_.end()) return Grow(bytes);
    const auto [place, size] = *best;
    free_.erase(best);
    if (size > bytes) free_[place + bytes] = size - bytes;
    return place;
  }
  void Give(size_t place, size_t bytes) {
    if (bytes == 0) return;
    auto next = free_.upper_bound(place);
    if (next != free_.end() && place + bytes == next->first) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == place) {
        before->second += bytes;
        return;
      }
    }
    free_[place] = bytes;
  }
  size_t end() const { return end_; }

 private:
  // A free range at the end becomes the beginning of the new one.
  size_t Grow(size_t bytes) {
    size_t place = end_;
    if (!free_.empty()) {
      const auto last = std::prev(free_.end());
      if (last->first + last->second == end_) {
        place = last->first;
        free_.erase(last);
      }
    }
    end_ = place + bytes;
    return place;
  }

  std::map<size_t, size_t> free_;  // place -> bytes
  size_t end_ = 0;
};

}  // namespace

std::unique_ptr<Plan> Plan::Make(std::shared_ptr<const Graph> graph,
                                 const std::vector<Tensor>& inputs,
                                 Threads* threads, size_t memory_limit,
                                 Error* error) {
  std::unique_ptr<Plan> plan(new Plan(std::move(graph), threads, memory_limit));
  if (!plan->Prepare(inputs, error)) return nullptr;
  plan->Place();
  return plan->AllocateAll(error) ? std::move(plan) : nullptr;
}

bool Plan::Prepare(const std::vector<Tensor>& inputs, Error* error) {
  error_ = error;
  tensors_.resize(graph_->values.size());
  storage_of_.assign(graph_->values.size(), -1);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Value& value = graph_->values[i];
    if (value.constant == nullptr) continue;
    tensors_[i] = {value.dtype, value.shape, const_cast<void*>(value.constant),
                   true};
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors_[graph_->inputs[i]] = inputs[i];
  calls_.reserve(graph_->nodes.size());
  for (size_t i = 0; i < graph_->nodes.size(); ++i)
    if (!PrepareNode(i)) return false;
  for (const uint32_t value : graph_->outputs)
    if (storage_of_[value] >= 0)
      storages_[static_cast<size_t>(storage_of_[value])].kept = true;
  return true;
}

void Plan::AddStorage(uint32_t value) {
  storage_of_[value] = static_cast<int64_t>(storages_.size());
  storages_.emplace_back();
  storages_.back().bytes = Aligned(tensors_[value].bytes());
}

bool Plan::PrepareNode(size_t index) {
  const Node& node = graph_->nodes[index];
  calls_.emplace_back(node, &tensors_, threads_, error_);
  Call& call = calls_.back();
  if (!node.kernel->prepare(&call)) return false;
  bool known = true;
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (!call.Has(i)) continue;
    known = known && (call.In(i).known || node.kernel->of_shapes);
    if (const int64_t s = storage_of_[node.inputs[i]]; s >= 0)
      storages_[static_cast<size_t>(s)].last = index;
  }
  if (call.shares_) {
    Tensor& out = tensors_[node.outputs[0]];
    out.data = call.In(0).data;
    out.known = call.In(0).known;
    storage_of_[node.outputs[0]] = storage_of_[node.inputs[0]];
    return true;
  }
  for (size_t i = 0; i < call.outputs(); ++i)
    known = known && call.Out(i).size() <= kMostKnown;
  if (known && call.scratch_each_ == 0) return RunNow(&call);
  order_.push_back(index);
  for (const uint32_t output : node.outputs) {
    AddStorage(output);
    storages_.back().last = index;
  }
  return true;
}

bool Plan::RunNow(Call* call) {
  for (const uint32_t output : call->node_->outputs) {
    Tensor& tensor = tensors_[output];
    const size_t bytes = Aligned(tensor.bytes());
    known_bytes_ += bytes;
    if (limit_ == 0 || known_bytes_ <= limit_)
      known_.push_back(Allocate(bytes));
    if (known_.empty() || (limit_ > 0 && known_bytes_ > limit_) ||
        known_.back() == nullptr)
      return error_->Fail(PD_RUN_NO_MEMORY, "no memory for known values");
    tensor.data = known_.back().get();
    tensor.known = true;
  }
  return call->node_->kernel->run(call);
}

// Walks the nodes as they run. An output takes the bytes of an input that it
// may replace, else free ones; what is read for the last time becomes free.
void Plan::Place() {
  Ranges ranges;
  const auto place = [&](uint32_t value) {
    const int64_t at = storage_of_[value];
    if (at < 0) return;
    Storage& storage = storages_[static_cast<size_t>(at)];
    if (storage.placed) return;
    storage.placed = true;
    storage.place = ranges.Take(storage.bytes);
  };
  std::vector<char> freed(storages_.size(), 0);
  for (size_t index = 0; index < calls_.size(); ++index) {
    const Call& call = calls_[index];
    const Node& node = *call.node_;
    if (call.replaces_ >= 0 && storage_of_[node.outputs[0]] >= 0) {
      const int64_t in =
          storage_of_[node.inputs[static_cast<size_t>(call.replaces_)]];
      Storage& to =
          storages_[static_cast<size_t>(storage_of_[node.outputs[0]])];
      if (in >= 0) {
        const Storage& from = storages_[static_cast<size_t>(in)];
        if (!from.kept && from.last == index && from.bytes == to.bytes &&
            !freed[static_cast<size_t>(in)]) {
          to.place = from.place;
          to.placed = true;
          freed[static_cast<size_t>(in)] = 1;
        }
      }
    }
    for (const uint32_t output : node.outputs) place(output);
    const auto free = [&](uint32_t value) {
      const int64_t at = value == kNoValue ? -1 : storage_of_[value];
      if (at < 0) return;
      const Storage& storage = storages_[static_cast<size_t>(at)];
      if (storage.kept || storage.last != index ||
          freed[static_cast<size_t>(at)])
        return;
      freed[static_cast<size_t>(at)] = 1;
      ranges.Give(storage.place, storage.bytes);
    };
    for (const uint32_t input : node.inputs) free(input);
    for (const uint32_t output : node.outputs) free(output);
  }
  arena_bytes_ = ranges.end();
}

bool Plan::AllocateAll(Error* error) {
  int64_t scratch = 0;
  for (const size_t index : order_)
    scratch = std::max(scratch, calls_[index].scratch_each_);
  const size_t scratch_bytes = static_cast<size_t>(scratch) * sizeof(float) *
                               static_cast<size_t>(threads_->count());
  const size_t all = arena_bytes_ + scratch_bytes + known_bytes_;
  if (limit_ > 0 && all > limit_)
    return error->Fail(PD_RUN_NO_MEMORY,
                       "the model needs %zu bytes; the limit is %zu", all,
                       limit_);
  memory_ = Allocate(arena_bytes_);
  scratch_ = Allocate(scratch_bytes);
  if (memory_ == nullptr || scratch_ == nullptr)
    return error->Fail(PD_RUN_NO_MEMORY, "no memory for %zu bytes", all);
  auto* base = static_cast<char*>(memory_.get());
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (storage_of_[i] >= 0)
      tensors_[i].data =
          base + storages_[static_cast<size_t>(storage_of_[i])].place;
  for (const size_t index : order_)
    calls_[index].scratch_ = static_cast<float*>(scratch_.get());
  return true;
}

bool Plan::Run(Error* error) {
  for (const size_t index : order_) {
    Call& call = calls_[index];
    call.error_ = error;
    if (!call.node_->kernel->run(&call)) return false;
  }
  return true;
}

}  // namespace pd_run
