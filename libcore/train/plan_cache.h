// SPDX-License-Identifier: Apache-2.0
// Plans of one program for the shapes that batches come in. A shape that was
// seen before costs a look-up and allocates nothing; the plan that was used
// longest ago goes when there are too many. Feeds that are sequences get the
// rows of a padded field one record after the other, and their lengths are part
// of the shape.
#ifndef PD_LIBCORE_TRAIN_PLAN_CACHE_H_
#define PD_LIBCORE_TRAIN_PLAN_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/exec/session.h"
#include "libcore/train/packed_rows.h"

namespace pd {

class PlanCache {
 public:
  static constexpr size_t kMostPlans = 64;
  static constexpr size_t kMostArenaBytes = size_t{4} << 30;

  /// `session` and `program` outlive the cache. `fields` is what a loader
  /// gives; InvalidArgument when it does not fit the feeds (MatchFields).
  /// `label` names the program as in Session::Compile.
  /// `on_plan` (may be null) is told of each plan that is compiled.
  static absl::StatusOr<PlanCache> Create(
      Session* session, const ProgramDesc* program, std::vector<FeedSpec> feeds,
      std::vector<std::string> fetches, const std::vector<BatchField>& fields,
      std::string label = "",
      std::function<void(int64_t records, const Plan& plan)> on_plan = nullptr);

  /// The plan for a batch of these fields, fed with them. Valid until the next
  /// call.
  absl::StatusOr<Plan*> Feed(const std::vector<BatchField>& fields);

  /// The plan that Feed would give, if it is there already; else null.
  const Plan* Find(const std::vector<BatchField>& fields);

  size_t size() const { return plans_.size(); }

 private:
  PlanCache() = default;
  void SetKey(const std::vector<BatchField>& fields);
  absl::StatusOr<Plan*> Compile();
  void MakeRoom();

  struct Use {
    std::unique_ptr<Plan> plan;
    uint64_t last = 0;
  };
  // An unknown extent of a feed and where it stands in a batch.
  struct Unknown {
    size_t feed, axis, field, field_axis;
  };
  Session* session_ = nullptr;
  const ProgramDesc* program_ = nullptr;
  std::vector<FeedSpec> feeds_;
  std::vector<std::string> fetches_;
  std::string label_;
  std::vector<size_t> fields_;              // of a batch, per feed
  std::vector<Unknown> unknowns_;           // extents that tell shapes apart
  std::map<size_t, PackedRows> sequences_;  // by feed
  std::function<void(int64_t, const Plan&)> on_plan_;
  std::map<std::vector<int64_t>, Use> plans_;
  std::vector<int64_t> key_;  // the extents of the batch at hand
  uint64_t uses_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PLAN_CACHE_H_
