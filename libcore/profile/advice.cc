// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/advice.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/profile/roofline.h"
#include "libcore/profile/text_table.h"

namespace pd {
namespace {

class Adviser {
 public:
  Adviser(const ProfileTrace& trace, const ProfileSummary& summary)
      : trace_(trace), summary_(summary) {}

  std::vector<Advice> Run() {
    if (summary_.step_time <= 0) return {};
    Data();
    Moves();
    SmallOps();
    Others();
    IdleThreads();
    SlowOps();
    Rest();
    Lost();
    std::stable_sort(
        advice_.begin(), advice_.end(),
        [](const Advice& a, const Advice& b) { return a.share > b.share; });
    return std::move(advice_);
  }

 private:
  double Share(int64_t ns) const {
    return static_cast<double>(ns) / static_cast<double>(summary_.step_time);
  }
  static std::string Percent(double share) {
    return absl::StrFormat("%.1f %%", share * 100);
  }
  double Ms(double ns) const { return ns / 1e6; }

  // Steps wait for batches.
  void Data() {
    const double share = Share(summary_.coverage.reading);
    if (share < 0.1) return;
    std::string evidence =
        absl::StrCat("steps wait for data ", Percent(share), " of their time");
    for (const TimeItem& item : summary_.user.items)
      if (item.name == "make batch")
        absl::StrAppend(
            &evidence,
            absl::StrFormat("; a worker needs %.2f ms for a batch, a step "
                            "lasts %.2f ms",
                            Ms(item.average()),
                            Ms(static_cast<double>(summary_.step_time) /
                               static_cast<double>(summary_.steps))));
    advice_.push_back({"data",
                       "raise data.train.num_workers, move transforms out of "
                       "the job, or keep the data in a form that is read "
                       "faster",
                       std::move(evidence), share});
  }

  // Layouts are changed between ops.
  void Moves() {
    const double share = Share(summary_.coverage.moves);
    if (share < 0.05) return;
    int64_t calls = 0;
    for (const TimeItem& item : summary_.memory) calls += item.calls;
    advice_.push_back(
        {"reorders",
         "ops that want different layouts take turns; --explain says which "
         "ones ran row-major, and why",
         absl::StrFormat("%d reorders and copies a step take %s of it",
                         calls / std::max<int64_t>(summary_.steps, 1),
                         Percent(share)),
         share});
  }

  // Many ops that are over before they have begun.
  void SmallOps() {
    constexpr double kSmallNs = 5000;
    int64_t time = 0, calls = 0, all = 0;
    for (const TimeItem& item : summary_.operators.items) {
      all += item.calls;
      if (item.average() >= kSmallNs) continue;
      time += item.total;
      calls += item.calls;
    }
    const double share = Share(time + summary_.coverage.rest());
    if (calls * 2 < all || share < 0.1) return;
    advice_.push_back(
        {"small ops",
         "a larger batch gives each op more to do; the cost of starting it "
         "stays the same",
         absl::StrFormat("%d of %d ops a step take less than 5 us on average; "
                         "they and what lies between ops take %s of the steps",
                         calls / std::max<int64_t>(summary_.steps, 1),
                         all / std::max<int64_t>(summary_.steps, 1),
                         Percent(share)),
         share});
  }

  // Somebody else works here, too: times are not to be trusted.
  void Others() {
    double mine = 0, system = 0, cpus = 0;
    if (!absl::SimpleAtod(trace_.Fact("Process Cpu Utilization"), &mine) ||
        !absl::SimpleAtod(trace_.Fact("System Cpu Utilization"), &system) ||
        !absl::SimpleAtod(trace_.Fact("cpus"), &cpus) || cpus < 1)
      return;
    const double others = system * cpus - mine;
    if (others < 0.25 * cpus) return;
    advice_.push_back(
        {"busy machine",
         "let the other processes end first: times and roofline are those of "
         "a shared machine",
         absl::StrFormat("other processes kept %.2f of %.0f cores busy", others,
                         cpus),
         others / cpus});
  }

  // Cores that have nothing to do.
  void IdleThreads() {
    double busy = 0, threads = 0;
    if (!absl::SimpleAtod(trace_.Fact("Process Cpu Utilization"), &busy) ||
        !absl::SimpleAtod(trace_.Fact("threads"), &threads) || threads < 2)
      return;
    if (busy > 0.75 * threads) return;
    advice_.push_back(
        {"threads",
         "part of the work runs on one thread, waits for data, or shares the "
         "cores with other processes; a larger batch gives more to split",
         absl::StrFormat("%.2f of %.0f cores were busy with this process", busy,
                         threads),
         1 - busy / threads});
  }

  // A large share of the time, far from what the machine can do.
  void SlowOps() {
    const auto roofline = RooflineOf(trace_);
    if (!roofline.has_value()) return;
    for (const TimeItem& item : summary_.operators.items) {
      const double share = Share(item.total);
      if (share < 0.15 || item.bytes == 0) continue;
      const auto ns = static_cast<double>(std::max<int64_t>(item.total, 1));
      const auto flops = static_cast<double>(item.flops);
      const auto bytes = static_cast<double>(item.bytes);
      const double reached =
          flops > 0 ? flops / ns / roofline->Attainable(flops / bytes)
                    : bytes / ns / roofline->gbytes;
      if (reached >= 0.25) continue;
      advice_.push_back(
          {"slow op",
           absl::StrCat("look at '", item.name,
                        "': --explain says which implementation ran and why "
                        "faster ones refused"),
           absl::StrFormat("'%s' takes %s of the steps and reaches %s of what "
                           "the machine can do",
                           item.name, Percent(share), Percent(reached)),
           share * (1 - reached)});
    }
  }

  void Rest() {
    const double share = Share(summary_.coverage.rest());
    if (share < 0.03) return;
    advice_.push_back(
        {"between ops",
         "time that no op accounts for: ranges of one's own "
         "(RecordEvent) show what it is",
         absl::StrCat(Percent(share), " of the steps is covered by nothing"),
         share});
  }

  void Lost() {
    if (trace_.lost() == 0) return;
    advice_.push_back({"lost events",
                       "record fewer steps or give --buffer more events: the "
                       "tables lack the oldest ones",
                       absl::StrFormat("%d events were lost", trace_.lost()),
                       1});
  }

  const ProfileTrace& trace_;
  const ProfileSummary& summary_;
  std::vector<Advice> advice_;
};

}  // namespace

std::vector<Advice> Advise(const ProfileTrace& trace,
                           const ProfileSummary& summary) {
  return Adviser(trace, summary).Run();
}

std::string AdviceText(const std::vector<Advice>& advice) {
  std::string out = TextTable::Title(100, "Advice");
  if (advice.empty()) out += "nothing stands out\n";
  for (const Advice& one : advice)
    absl::StrAppend(&out, one.topic, ": ", one.evidence, "\n    ", one.text,
                    "\n");
  return out + "\n";
}

}  // namespace pd
