// SPDX-License-Identifier: Apache-2.0
#include "cmd/check_naninf_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/nan_report.h"
#include "cmd/common/table.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_dump.h"
#include "libcore/exec/nan_check.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

// A tensor that loses more than this share of its elements is worth a word.
constexpr double kShare = 0.01;

double Share(int64_t part, int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

std::string Percent(int64_t part, int64_t all) {
  return part == 0 ? "-" : absl::StrFormat("%.3g%%", 100 * Share(part, all));
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json RangesJson(const HalfRanges& ranges) {
  Json list = Json::array();
  for (const HalfRanges::Entry& entry : ranges.entries()) {
    const HalfRange& r = entry.range;
    list.push_back({{"name", entry.name},
                    {"what", entry.what},
                    {"finite", r.finite},
                    {"smallest", r.smallest},
                    {"largest", r.largest},
                    {"float16",
                     {{"overflow", r.fp16_over},
                      {"underflow", r.fp16_under},
                      {"denormal", r.fp16_denormal}}},
                    {"bfloat16",
                     {{"overflow", r.bf16_over},
                      {"underflow", r.bf16_under},
                      {"denormal", r.bf16_denormal}}}});
  }
  return list;
}

// "float16: 2 of 40 tensors overflow: 'a', 'b'; ...".
std::string Verdict(const char* type, const HalfRanges& ranges,
                    int64_t HalfRange::*over, int64_t HalfRange::*under) {
  std::vector<std::string> too_large, too_small;
  for (const HalfRanges::Entry& entry : ranges.entries()) {
    const HalfRange& r = entry.range;
    const std::string name = absl::StrCat("'", Printable(entry.name), "'");
    if (r.*over > 0) too_large.push_back(name);
    if (Share(r.*under, r.finite) > kShare) too_small.push_back(name);
  }
  const size_t all = ranges.entries().size();
  const auto part = [all](const std::vector<std::string>& names,
                          const char* what) {
    constexpr size_t kMost = 8;
    if (names.empty()) return std::string();
    const auto end =
        names.begin() + static_cast<int64_t>(std::min(names.size(), kMost));
    return absl::StrCat(names.size(), " of ", all, " tensors ", what, ": ",
                        absl::StrJoin(names.begin(), end, ", "),
                        names.size() > kMost ? ", ..." : "");
  };
  const std::string large = part(too_large, "overflow");
  const std::string small = part(too_small, "lose over 1% to zero");
  if (large.empty() && small.empty())
    return absl::StrCat(type, ": all ", all, " tensors keep their range\n");
  return absl::StrCat(type, ": ", large,
                      large.empty() || small.empty() ? "" : "; ", small, "\n");
}

}  // namespace

absl::StatusOr<NanRules> RulesOf(const CheckNaninfOptions& options) {
  PD_ASSIGN_OR_RETURN(NanRules rules, NanRulesOfEnvironment());
  if (!options.skip_ops.empty()) rules.SkipOps(options.skip_ops);
  if (!options.skip_roles.empty())
    PD_RETURN_IF_ERROR(rules.SkipRoles(options.skip_roles));
  if (!options.skip_variables.empty())
    PD_RETURN_IF_ERROR(rules.SkipVariables(options.skip_variables));
  rules.AllowInfinities(options.allow_infinities);
  return rules;
}

std::string HalfText(const HalfRanges& ranges) {
  Table table(2);
  table.Add({"tensor", "of", "least", "largest", "float16: inf", "to 0",
             "denormal", "bfloat16: inf", "to 0", "denormal"});
  for (const HalfRanges::Entry& entry : ranges.entries()) {
    const HalfRange& r = entry.range;
    table.Add({Printable(entry.name), Printable(entry.what),
               absl::StrFormat("%.3g", r.smallest),
               absl::StrFormat("%.3g", r.largest),
               Percent(r.fp16_over, r.finite), Percent(r.fp16_under, r.finite),
               Percent(r.fp16_denormal, r.finite),
               Percent(r.bf16_over, r.finite), Percent(r.bf16_under, r.finite),
               Percent(r.bf16_denormal, r.finite)});
  }
  return absl::StrCat(
      table.ToString(),
      Verdict("float16", ranges, &HalfRange::fp16_over, &HalfRange::fp16_under),
      Verdict("bfloat16", ranges, &HalfRange::bf16_over,
              &HalfRange::bf16_under));
}

std::string HalfJson(const HalfRanges& ranges) {
  return Dump(RangesJson(ranges));
}

std::string WatchLine(int64_t step, const std::vector<WatchedKind>& kinds,
                      bool json) {
  Json object = {{"step", step}};
  std::string text = absl::StrCat("step ", step, ":");
  for (const WatchedKind& kind : kinds) {
    object[kind.kind] = {{"norm", kind.norm},
                         {"largest", kind.largest},
                         {"in", kind.largest_in}};
    if (kind.kind == "loss")
      absl::StrAppendFormat(&text, "  loss %.6g", kind.largest);
    else
      absl::StrAppendFormat(&text, "  %s norm %.4g, largest %.4g in '%s'",
                            kind.kind, kind.norm, kind.largest,
                            Printable(kind.largest_in));
  }
  return json ? Dump(object) : text;
}

absl::Status ReportCheck(const CheckNaninfOptions& options,
                         const absl::Status& status,
                         const std::optional<NanFinding>& finding,
                         const Checked& checked, const HalfRanges& ranges,
                         std::ostream& out) {
  if (!status.ok() && !IsNanFound(status)) return status;
  const bool json = options.common.json();
  Json object = {
      {"found", false}, {"checked", checked.count}, {"unit", checked.unit}};
  std::string text = absl::StrCat("no NaN and no Inf in ", checked.count, " ",
                                  checked.unit, "\n");
  absl::Status answer;
  if (IsNanFound(status)) {
    std::ostringstream report;
    answer = ReportNan(status, finding, json, report);
    text = report.str();
    object = {{"found", true}};
    if (json && finding.has_value()) object = Json::parse(text);
  }
  std::vector<std::string> files;
  absl::Status dumped;
  if (!options.dump.empty() && finding.has_value()) {
    auto paths = DumpFinding(*finding, options.dump);
    dumped = paths.status();
    if (paths.ok()) files = *std::move(paths);
  }
  if (!files.empty()) {
    object["dump"] = files;
    absl::StrAppend(&text, "saved ", absl::StrJoin(files, ", "), "\n");
  }
  if (options.half) {
    object["half"] = RangesJson(ranges);
    absl::StrAppend(&text, HalfText(ranges));
  }
  out << (json ? Dump(object) + "\n" : text);
  PD_RETURN_IF_ERROR(Annotate(dumped, "--dump"));
  return answer;
}

}  // namespace pd
