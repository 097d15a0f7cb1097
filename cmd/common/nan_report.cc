// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/nan_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/table.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/nan_check.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

std::string NumberText(const std::optional<Number>& value) {
  if (!value.has_value()) return "-";
  if (const auto* integer = std::get_if<int64_t>(&*value))
    return absl::StrCat(*integer);
  return absl::StrFormat("%.6g", std::get<double>(*value));
}

Json NumberJson(const std::optional<Number>& value) {
  if (!value.has_value()) return nullptr;
  return std::visit([](auto x) { return Json(x); }, *value);
}

const char* OriginText(ValueOrigin origin) {
  switch (origin) {
    case ValueOrigin::kFed:
      return "fed";
    case ValueOrigin::kLabel:
      return "label";
    case ValueOrigin::kVariable:
      return "variable";
    case ValueOrigin::kMade:
      break;
  }
  return "computed";
}

const char* RoleText(const OpDesc& op) {
  const int32_t role = op.AttrOr<int32_t>(kOpRoleAttr.data(), kRoleForward);
  if ((role & kRoleOptimize) != 0) return "optimize";
  if ((role & kRoleLRSched) != 0) return "lrsched";
  if ((role & kRoleBackward) != 0) return "backward";
  if ((role & kRoleLoss) != 0) return "loss";
  return "forward";
}

// Numbers of records, the first ones where there are many.
std::string RecordsText(const std::vector<int64_t>& records) {
  constexpr size_t kMost = 16;
  const size_t shown = std::min(records.size(), kMost);
  std::string text = absl::StrJoin(
      records.begin(), records.begin() + static_cast<int64_t>(shown), ", ");
  if (shown < records.size())
    absl::StrAppend(&text, ", and ", records.size() - shown, " more");
  return text;
}

// The lines of PaddlePaddle's manual.
std::string ManualLines(const NanFinding& f) {
  const TensorStats& stats = f.output.stats;
  const int64_t numel = stats.nan + stats.inf + stats.finite;
  std::string text;
  for (const auto& [number, block] : f.device_blocks) {
    for (const ValueSample& sample : block.samples)
      absl::StrAppendFormat(&text, "numel:%d idx:%d value:%s\n", numel,
                            sample.index, sample.value);
    absl::StrAppendFormat(&text,
                          "In block %d, there has %d,%d,%d nan,inf,num\n",
                          number, block.nan, block.inf, block.finite);
  }
  if (f.device_blocks.empty()) {
    for (const ValueSample& sample : f.samples)
      absl::StrAppendFormat(&text, "numel:%d index:%d value:%s\n", numel,
                            sample.index, sample.value);
    absl::StrAppendFormat(&text, "In cpu, there has %d,%d,%d nan,inf,num\n",
                          stats.nan, stats.inf, stats.finite);
  }
  absl::StrAppendFormat(
      &text,
      "PreconditionNotMetError: ===ERROR: in [op=%s] [tensor=%s] find nan or "
      "inf===\n  [Hint: Expected has_nan_inf == false, but received "
      "has_nan_inf:1 != false:0.]\n  [operator < %s > error]\n",
      Printable(f.op.type), Printable(f.output.name), Printable(f.op.type));
  return text;
}

std::string InputsText(const NanFinding& f) {
  if (f.inputs.empty()) return "";
  Table table(4);
  table.Add({"input", "tensor", "", "from", "min", "max", "mean", "nan", "inf",
             "first bad"});
  for (const InspectedValue& look : f.inputs)
    table.Add(
        {look.slot, Printable(look.name),
         absl::StrCat(Name(look.dtype), ToString(look.shape)),
         OriginText(look.origin), NumberText(look.stats.min),
         NumberText(look.stats.max),
         look.stats.mean.has_value() ? absl::StrFormat("%.6g", *look.stats.mean)
                                     : "-",
         absl::StrCat(look.stats.nan), absl::StrCat(look.stats.inf),
         look.first_bad < 0 ? "-" : IndexText(look.first_bad, look.shape)});
  return absl::StrCat(f.clean_inputs() ? "its inputs are clean:\n"
                                       : "its inputs are not clean:\n",
                      table.ToString());
}

std::string PlaceText(const NanPlace& place) {
  std::string text;
  if (place.phase == "eval") text = "evaluation, ";
  if (place.step >= 0) absl::StrAppend(&text, "step ", place.step, ", ");
  if (!place.part.empty()) absl::StrAppend(&text, "phase '", place.part, "', ");
  if (place.epoch >= 0) absl::StrAppend(&text, "epoch ", place.epoch, ", ");
  if (place.batch >= 0) absl::StrAppend(&text, "batch ", place.batch, ", ");
  return text.substr(0, text.size() - std::min<size_t>(text.size(), 2));
}

Json InspectedJson(const InspectedValue& look) {
  Json json = {{"name", look.name},
               {"slot", look.slot},
               {"dtype", Name(look.dtype)},
               {"shape", look.shape},
               {"nan", look.stats.nan},
               {"inf", look.stats.inf},
               {"num", look.stats.finite},
               {"min", NumberJson(look.stats.min)},
               {"max", NumberJson(look.stats.max)},
               {"mean", nullptr},
               {"first_bad", nullptr}};
  if (look.stats.mean.has_value()) json["mean"] = *look.stats.mean;
  if (look.first_bad >= 0) json["first_bad"] = look.first_bad;
  return json;
}

}  // namespace

std::string FindingText(const NanFinding& f) {
  std::string text = ManualLines(f);
  const std::string place = PlaceText(f.place);
  if (!place.empty()) absl::StrAppend(&text, "at ", place, "\n");
  absl::StrAppend(&text, "op ", f.index, f.block == 0 ? "" : " of block ",
                  f.block == 0 ? "" : absl::StrCat(f.block), " (",
                  RoleText(f.op), ") '", Printable(f.op.type), "' makes '",
                  Printable(f.output.name), "', ", Name(f.output.dtype),
                  ToString(f.output.shape));
  if (f.output.first_bad >= 0)
    absl::StrAppend(&text, ", first bad at ",
                    IndexText(f.output.first_bad, f.output.shape));
  absl::StrAppend(&text, "\n");
  if (!f.layer.empty())
    absl::StrAppend(&text, "in layer '", Printable(f.layer), "' (", f.kind,
                    ")\n");
  if (!f.source.empty())
    absl::StrAppend(&text, "made at ", Printable(f.source), "\n");
  if (!f.stands_for.empty())
    absl::StrAppend(&text, "it stands for ", absl::StrJoin(f.stands_for, ", "),
                    "\n");
  absl::StrAppend(&text, InputsText(f));
  if (!f.bad_records.empty())
    absl::StrAppend(&text, "its rows are bad for the records ",
                    RecordsText(f.bad_records), "\n");
  if (!f.place.records.empty())
    absl::StrAppend(&text, "the batch holds the records ",
                    RecordsText(f.place.records), "\n");
  for (const std::string& cause : f.causes)
    absl::StrAppend(&text, "likely cause: ", Printable(cause), "\n");
  return text;
}

std::string FindingJson(const NanFinding& f) {
  Json json = {{"found", true},
               {"op", f.op.type},
               {"tensor", f.output.name},
               {"nan", f.output.stats.nan},
               {"inf", f.output.stats.inf},
               {"num", f.output.stats.finite},
               {"block", f.block},
               {"index", f.index},
               {"role", RoleText(f.op)},
               {"output", InspectedJson(f.output)}};
  for (const ValueSample& sample : f.samples)
    json["values"].push_back(
        {{"index", sample.index}, {"value", sample.value}});
  if (!f.layer.empty()) json["layer"] = {{"name", f.layer}, {"kind", f.kind}};
  if (!f.source.empty()) json["source"] = f.source;
  if (!f.stands_for.empty()) json["stands_for"] = f.stands_for;
  const NanPlace& place = f.place;
  if (!place.phase.empty()) json["phase"] = place.phase;
  if (!place.part.empty()) json["job_phase"] = place.part;
  if (place.step >= 0) json["step"] = place.step;
  if (place.epoch >= 0) json["epoch"] = place.epoch;
  if (place.batch >= 0) json["batch"] = place.batch;
  json["inputs_clean"] = f.clean_inputs();
  json["inputs"] = Json::array();
  for (const InspectedValue& look : f.inputs) {
    json["inputs"].push_back(InspectedJson(look));
    json["inputs"].back()["from"] = OriginText(look.origin);
  }
  if (!place.records.empty()) json["records"] = place.records;
  if (!f.bad_records.empty()) json["bad_records"] = f.bad_records;
  for (const auto& [step, largest] : f.gradients)
    json["gradients"].push_back({{"step", step}, {"largest", largest}});
  json["causes"] = f.causes;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status ReportNan(const absl::Status& status,
                       const std::optional<NanFinding>& finding, bool json,
                       std::ostream& out) {
  if (!IsNanFound(status)) return status;
  if (!finding.has_value()) return AnswerNo(status.message());
  if (json)
    out << FindingJson(*finding) << "\n";
  else
    out << FindingText(*finding);
  const NanPlace& place = finding->place;
  return AnswerNo(absl::StrCat(
      place.step >= 0 ? absl::StrCat("step ", place.step, ": ") : "",
      place.part.empty() ? "" : absl::StrCat("phase '", place.part, "': "),
      "op '", finding->op.type, "' makes NaN or Inf in '", finding->output.name,
      "'"));
}

absl::StatusOr<NanRules> NanRulesOfEnvironment() {
  absl::StatusOr<NanRules> rules = NanRules::FromEnvironment();
  if (!rules.ok()) return UsageError(rules.status());
  return rules;
}

}  // namespace pd
