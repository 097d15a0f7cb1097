// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/plan_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

// The axis of `field` whose extent the feed's axis `axis` takes. Shapes that
// MatchFields let pass differ in extents of 1 only.
size_t FieldAxis(const FeedSpec& feed, size_t axis, const BatchField& field) {
  if (axis == 0 || feed.shape.size() == field.shape.size()) return axis;
  size_t before = 0;  // axes in front of it that are not 1
  for (size_t i = 1; i < axis; ++i) before += feed.shape[i] != 1;
  for (size_t i = 1; i < field.shape.size(); ++i)
    if (field.shape[i] != 1 && before-- == 0) return i;
  return 0;
}

}  // namespace

absl::StatusOr<PlanCache> PlanCache::Create(
    Session* session, const ProgramDesc* program, std::vector<FeedSpec> feeds,
    std::vector<std::string> fetches, const std::vector<BatchField>& fields,
    std::string label, std::function<void(int64_t, const Plan&)> on_plan) {
  PlanCache cache;
  PD_ASSIGN_OR_RETURN(cache.fields_, MatchFields(feeds, fields));
  for (size_t feed = 0; feed < feeds.size(); ++feed) {
    const size_t field = cache.fields_[feed];
    if (!feeds[feed].lod.empty()) {
      PD_ASSIGN_OR_RETURN(cache.sequences_[feed],
                          PackedRows::Of(feeds[feed], fields, field));
      continue;
    }
    for (size_t axis = 0; axis < feeds[feed].shape.size(); ++axis)
      if (feeds[feed].shape[axis] < 0)
        cache.unknowns_.push_back(
            {feed, axis, field, FieldAxis(feeds[feed], axis, fields[field])});
  }
  cache.session_ = session;
  cache.program_ = program;
  cache.feeds_ = std::move(feeds);
  cache.fetches_ = std::move(fetches);
  cache.label_ = std::move(label);
  cache.on_plan_ = std::move(on_plan);
  cache.key_.resize(cache.unknowns_.size());
  return cache;
}

void PlanCache::SetKey(const std::vector<BatchField>& fields) {
  key_.resize(unknowns_.size());
  for (size_t i = 0; i < unknowns_.size(); ++i)
    key_[i] = fields[unknowns_[i].field].shape[unknowns_[i].field_axis];
  for (const auto& [feed, rows] : sequences_) rows.AddLengths(fields, &key_);
}

const Plan* PlanCache::Find(const std::vector<BatchField>& fields) {
  SetKey(fields);
  const auto found = plans_.find(key_);
  return found == plans_.end() ? nullptr : found->second.plan.get();
}

absl::StatusOr<Plan*> PlanCache::Feed(const std::vector<BatchField>& fields) {
  SetKey(fields);
  for (auto& [feed, rows] : sequences_)
    PD_RETURN_IF_ERROR(
        Annotate(rows.Pack(fields), absl::StrCat("'", feeds_[feed].name, "'")));
  const auto found = plans_.find(key_);
  Plan* plan = found != plans_.end() ? found->second.plan.get() : nullptr;
  if (plan != nullptr) {
    found->second.last = ++uses_;
  } else {
    PD_ASSIGN_OR_RETURN(plan, Compile());
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    const auto rows = sequences_.find(i);
    plan->SetFeed(i, rows == sequences_.end() ? fields[fields_[i]].data
                                              : rows->second.data());
  }
  return plan;
}

absl::StatusOr<Plan*> PlanCache::Compile() {
  MakeRoom();
  std::vector<FeedSpec> feeds = feeds_;
  for (size_t i = 0; i < unknowns_.size(); ++i)
    feeds[unknowns_[i].feed].shape[unknowns_[i].axis] = key_[i];
  for (const auto& [feed, rows] : sequences_) {
    feeds[feed].shape = rows.shape();
    feeds[feed].lod = {rows.offsets()};
  }
  PD_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan,
                      session_->Compile(*program_, feeds, fetches_, label_));
  if (on_plan_ != nullptr) on_plan_(key_.empty() ? 0 : key_[0], *plan);
  Use& use = plans_[key_];
  use.plan = std::move(plan);
  use.last = ++uses_;
  return use.plan.get();
}

void PlanCache::MakeRoom() {
  const auto full = [this] {
    size_t bytes = 0;
    for (const auto& [key, use] : plans_)
      bytes += use.plan->stats().arena_bytes + use.plan->stats().device_bytes;
    return plans_.size() >= kMostPlans || bytes > kMostArenaBytes;
  };
  while (!plans_.empty() && full()) {
    plans_.erase(std::min_element(plans_.begin(), plans_.end(),
                                  [](const auto& a, const auto& b) {
                                    return a.second.last < b.second.last;
                                  }));
  }
}

}  // namespace pd
