// SPDX-License-Identifier: Apache-2.0
// The part of a plan that is about a GPU: its arena there, the persistable
// variables that runs read and write on either side, and the device error flags
// of kernels. Internal to libcore/exec.
//
// A plan for a device has two arenas. Every op is bound on the device where it
// has an implementation there that takes it, else on the host with row-major
// kernels; copies stand between the two where a value crosses, each once, until
// it is written again. All work goes to the device's one stream, so steps of
// the device wait for nobody; a copy to the host is waited for by the step that
// makes it. A persistable variable has a copy on each side (DeviceValue): a run
// brings up to date, before its first step, what its steps will read.
//
// Feeds and fetches lie in pinned memory, twice, so that the host can feed
// a run while the device computes the one before. Where every step is the
// device's and does the same work each time, a run is captured once for each of
// the two and then started as a whole.
#ifndef PD_LIBCORE_EXEC_PLAN_DEVICE_H_
#define PD_LIBCORE_EXEC_PLAN_DEVICE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/exec/plan.h"
#include "libcore/exec/scope.h"
#include "libcore/ops/device_binding.h"

namespace pd {

class PlanDevice : public DeviceBinding {
 public:
  /// The accesses of the runs to one persistable variable.
  struct Use {
    Scope::Entry* entry = nullptr;
    bool host_reads = false, device_reads = false;
    /// The side that writes it last.
    bool host_writes = false, device_writes = false;
  };

  explicit PlanDevice(std::shared_ptr<const DevicePlace> place)
      : place_(std::move(place)) {}

  Device* device() override { return place_->device.get(); }
  absl::StatusOr<int32_t*> ErrorFlag(std::string message) override;
  absl::StatusOr<void*> Keep(size_t bytes) override;
  absl::StatusOr<const Tensor*> ValueOf(const Tensor* tensor) override;
  absl::StatusOr<const uint64_t*> SeedAndStep() override;
  absl::StatusOr<int64_t*> RowsOf(const Tensor* selected) override;
  /// The row numbers that RowsOf gave before; null where it was not called.
  int64_t* FindRows(const Tensor* selected) const {
    const auto it = rows_.find(selected);
    return it == rows_.end() ? nullptr : it->second;
  }

  /// Between a tensor on the host and its copy in device memory, with the row
  /// numbers of selected rows. Bring waits: the bytes are there.
  absl::Status Send(const Tensor& from, const Tensor& to);
  absl::Status Bring(const Tensor& from, Tensor* to);

  const DevicePlace& place() const { return *place_; }
  /// ResourceExhausted names the largest of `buffers`.
  absl::StatusOr<void*> AllocateArena(
      size_t bytes, const std::vector<PlannedBuffer>& buffers);
  void AddUse(const Use& use) { uses_.push_back(use); }
  /// `twin` stands for the variable in this plan.
  void AddTwin(const Tensor* twin, Scope::Entry* entry) {
    twins_[twin] = entry;
  }
  /// Pinned bytes of a feed; the next one.
  absl::Status AddFeed(size_t bytes);
  /// A tensor for a fetch: its bytes are those of the last run that has ended.
  /// The step copies them from `from`.
  absl::StatusOr<Step> AddFetch(const Tensor* from, Tensor* to);
  /// The plan is complete. `all_here`: every step and fetch is the device's.
  absl::Status Complete(bool all_here, bool capture);

  /// Memory of a plan that runs ahead for what SendFeeds sends.
  absl::Status StageFeeds();

  bool runs_ahead() const { return all_here_; }

  /// To be called before the first step of a run.
  absl::Status Begin(const RunContext& context);
  /// Where the bytes of feed i go, after Begin: they are copied from there.
  void* FeedBytes(size_t i) { return At(started_).feeds[i].bytes.get(); }
  /// To be called when the bytes of all feeds are there. `beside`: those of a
  /// plan that runs ahead are on their way to the device from now on, while it
  /// still does the work of the run before; else steps send them.
  absl::Status SendFeeds(bool beside);
  /// Runs the steps, or the CUDA graph that was captured of them. `captures`:
  /// the run may be captured; false for a run with a hook.
  absl::Status Run(bool captures, const std::function<absl::Status()>& steps);
  /// To be called after the last step, or the one that failed: records which
  /// side has written each persistable variable.
  void NoteWrites();
  /// To be called after a run without a failure, which is under way from now
  /// on.
  absl::Status End();
  /// Runs that are under way.
  int64_t under_way() const { return started_ - ended_; }
  /// Waits for the oldest of them. InvalidArgument with the message of its
  /// first error flag that is set.
  absl::Status Wait();

 private:
  static constexpr size_t kMostErrorFlags = 4096;
  static constexpr size_t kSlots = 2;

  struct Feed {
    std::shared_ptr<void> bytes;      // pinned
    std::shared_ptr<void> on_device;  // where a plan that runs ahead has it
    size_t size;
  };
  // The resources of one run, while another is under way.
  struct Slot {
    std::vector<Feed> feeds;
    std::vector<std::shared_ptr<void>> fetches;  // pinned
    std::shared_ptr<void> answers;               // the error flags
    std::shared_ptr<void> numbers;               // of this run; pinned
    std::unique_ptr<DeviceMark> end;
    std::unique_ptr<CapturedWork> work;
    bool warm = false;        // it has run
    bool feeds_sent = false;  // beside the work, in this run
  };
  Slot& At(int64_t run) { return slots_[static_cast<size_t>(run) % kSlots]; }

  std::shared_ptr<const DevicePlace> place_;
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<Use> uses_;
  std::map<const Tensor*, Scope::Entry*> twins_;
  std::vector<std::string> error_messages_;
  int32_t* flags_ = nullptr;  // error flags, on the device
  uint64_t* seed_and_step_ =
      nullptr;  // on the device; null: no kernel reads it
  std::map<const Tensor*, int64_t*> rows_;
  std::vector<Tensor*> fetches_;  // on the host
  std::array<Slot, kSlots> slots_;
  int64_t started_ = 0, ended_ = 0;  // runs
  bool same_work_ = true, all_here_ = false;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_PLAN_DEVICE_H_
