// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/distribution.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/paddle_trace.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Span = std::pair<int64_t, int64_t>;

// Numbers that tie events together are rank 0's below this, rank 1's below
// twice this, and so on.
constexpr int64_t kIdsOfRank = int64_t{1} << 40;
// Above the numbers of threads and of rows that are no thread's.
constexpr uint64_t kThreadsOfRank = uint64_t{1} << 23;

constexpr char kRanksFact[] = "ranks";

// The rank in a row's name.
std::optional<int> RankOfRow(absl::string_view name) {
  int rank = 0;
  const size_t end = name.find(": ");
  if (!absl::StartsWith(name, "rank ") || end == absl::string_view::npos ||
      !absl::SimpleAtoi(name.substr(5, end - 5), &rank))
    return std::nullopt;
  return rank;
}

// The ranges that cover the same time, ascending and apart.
std::vector<Span> Merged(std::vector<Span> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<Span> merged;
  for (const Span& range : ranges) {
    if (merged.empty() || range.first > merged.back().second)
      merged.push_back(range);
    else
      merged.back().second = std::max(merged.back().second, range.second);
  }
  return merged;
}

// The parts of the ranges that lie in one of `within`, which are merged. Both
// are, so that the parts are not more than the two together.
std::vector<Span> Clip(std::vector<Span> ranges,
                       const std::vector<Span>& within) {
  std::vector<Span> parts;
  for (const auto& [begin, end] : Merged(std::move(ranges))) {
    auto at = std::partition_point(
        within.begin(), within.end(),
        [begin = begin](const Span& step) { return step.second <= begin; });
    for (; at != within.end() && at->first < end; ++at)
      parts.emplace_back(std::max(begin, at->first), std::min(end, at->second));
  }
  return parts;
}

// Events of one process, by what they are.
struct RankSpans {
  std::vector<Span> steps, communication, operators, kernels;

  void Add(const TraceSite& site, const TraceEvent& event) {
    const Span span = {event.begin_ns, event.end_ns};
    if (site.type == EventType::kProfileStep)
      steps.push_back(span);
    else if (IsCommunication(site))
      communication.push_back(span);
    else if (site.type == EventType::kOperator)
      operators.push_back(span);
    else if (site.type == EventType::kKernel)
      kernels.push_back(span);
  }
};

Distribution TimesOf(RankSpans spans) {
  const std::vector<Span> steps = Merged(std::move(spans.steps));
  std::vector<Span> communication = Clip(std::move(spans.communication), steps);
  const std::vector<Span> computation =
      Clip(std::move(spans.kernels.empty() ? spans.operators : spans.kernels),
           steps);
  std::vector<Span> either = communication;
  either.insert(either.end(), computation.begin(), computation.end());
  Distribution times;
  times.steps = CoveredTime(steps);
  times.communication = CoveredTime(std::move(communication));
  times.computation = CoveredTime(computation);
  times.overlap =
      times.communication + times.computation - CoveredTime(std::move(either));
  return times;
}

}  // namespace

int64_t CoveredTime(std::vector<std::pair<int64_t, int64_t>> ranges) {
  int64_t total = 0;
  for (const auto& [from, to] : Merged(std::move(ranges))) total += to - from;
  return total;
}

bool IsCommunication(const TraceSite& site) {
  if (site.type == EventType::kCommunication) return true;
  if (site.type != EventType::kOperator) return false;
  const std::string lower = absl::AsciiStrToLower(site.name);
  return absl::StrContains(lower, "allreduce") ||
         absl::StrContains(lower, "broadcast") ||
         absl::StrContains(lower, "rpc");
}

// Each rank has a row at least; a file may say anything.
int RanksOf(const ProfileTrace& trace) {
  int64_t ranks = 1;
  (void)absl::SimpleAtoi(trace.Fact(kRanksFact), &ranks);
  const auto rows = static_cast<int64_t>(trace.threads.size());
  return static_cast<int>(std::max<int64_t>(std::min(ranks, rows), 1));
}

std::vector<Distribution> DistributionsOf(const ProfileTrace& trace) {
  const auto ranks = static_cast<size_t>(RanksOf(trace));
  std::vector<size_t> rank_of_row(trace.threads.size(), 0);
  for (size_t row = 0; row < rank_of_row.size() && ranks > 1; ++row)
    rank_of_row[row] =
        static_cast<size_t>(RankOfRow(trace.threads[row].name).value_or(0));
  std::vector<RankSpans> spans(ranks);
  for (const TraceEvent& event : trace.events)
    if (rank_of_row[event.thread] < ranks)
      spans[rank_of_row[event.thread]].Add(trace.SiteOf(event), event);
  std::vector<Distribution> all;
  for (size_t rank = 0; rank < ranks; ++rank) {
    all.push_back(TimesOf(std::move(spans[rank])));
    all.back().rank = static_cast<int>(rank);
    all.back().host = trace.Fact(absl::StrCat("host of rank ", rank));
  }
  return all;
}

ProfileTrace TraceOfRank(const ProfileTrace& trace, int rank) {
  if (RanksOf(trace) == 1) return trace;
  ProfileTrace part = trace;
  part.threads.clear();
  part.events.clear();
  part.sites.clear();
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> threads, sites(trace.sites.size(), kNone);
  for (const TraceThread& thread : trace.threads) {
    const bool own = RankOfRow(thread.name).value_or(0) == rank;
    threads.push_back(own ? static_cast<uint32_t>(part.threads.size()) : kNone);
    if (own) part.threads.push_back(thread);
  }
  for (TraceEvent event : trace.events) {
    if (threads[event.thread] == kNone) continue;
    if (sites[event.site] == kNone) {
      sites[event.site] = static_cast<uint32_t>(part.sites.size());
      part.sites.push_back(trace.sites[event.site]);
    }
    event.site = sites[event.site];
    event.thread = threads[event.thread];
    part.events.push_back(event);
  }
  return part;
}

ProfileTrace MergeRanks(std::vector<ProfileTrace> traces,
                        const std::vector<std::string>& hosts) {
  ProfileTrace all = traces[0];
  all.sites.clear();
  all.threads.clear();
  all.events.clear();
  for (const ProfileTrace& trace : traces)
    all.start_unix_ns = std::min(all.start_unix_ns, trace.start_unix_ns);
  const int64_t moved = traces[0].start_unix_ns - all.start_unix_ns;
  for (TraceCounter& counter : all.counters)
    for (auto& [at, value] : counter.points) at += moved;
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    ProfileTrace& trace = traces[rank];
    const auto site = static_cast<uint32_t>(all.sites.size());
    const auto thread = static_cast<uint32_t>(all.threads.size());
    const int64_t later = trace.start_unix_ns - all.start_unix_ns;
    std::move(trace.sites.begin(), trace.sites.end(),
              std::back_inserter(all.sites));
    for (TraceThread& row : trace.threads) {
      row.name = absl::StrCat("rank ", rank, ": ", row.name);
      row.id += rank * kThreadsOfRank;
      all.threads.push_back(std::move(row));
    }
    for (TraceEvent event : trace.events) {
      event.site += site;
      event.thread += thread;
      event.begin_ns += later;
      event.end_ns += later;
      if (event.id != 0 &&
          all.sites[event.site].type != EventType::kProfileStep)
        event.id += static_cast<int64_t>(rank) * kIdsOfRank;
      all.events.push_back(event);
    }
    all.facts.emplace_back(absl::StrCat("host of rank ", rank), hosts[rank]);
  }
  all.facts.emplace_back(kRanksFact, absl::StrCat(traces.size()));
  SortEvents(&all);
  return all;
}

absl::StatusOr<ProfileTrace> GatherTraces(const World& world,
                                          ProfileTrace own) {
  if (world.rank() > 0) {
    const std::string bytes = PaddleTraceBytes(own);
    const uint64_t size = bytes.size();
    PD_RETURN_IF_ERROR(world.all().Send(0, &size, sizeof(size)));
    PD_RETURN_IF_ERROR(world.all().Send(0, bytes.data(), bytes.size()));
    return ProfileTrace();
  }
  std::vector<ProfileTrace> traces = {std::move(own)};
  for (int rank = 1; rank < world.size(); ++rank) {
    uint64_t size = 0;
    PD_RETURN_IF_ERROR(world.all().Receive(rank, &size, sizeof(size)));
    std::string bytes(size, '\0');
    PD_RETURN_IF_ERROR(world.all().Receive(rank, bytes.data(), bytes.size()));
    PD_ASSIGN_OR_RETURN(traces.emplace_back(), ParsePaddleTrace(bytes));
  }
  return MergeRanks(std::move(traces), world.hosts());
}

}  // namespace pd
