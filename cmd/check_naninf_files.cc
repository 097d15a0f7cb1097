// SPDX-License-Identifier: Apache-2.0
#include "cmd/check_naninf_files.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cmd/check_naninf_text.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/print_error.h"
#include "cmd/common/table.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_finding.h"
#include "libcore/model/inspect.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

struct BadTensor {
  std::string name;
  InspectedValue look;
  std::vector<ValueSample> samples;
};

// The contents of a checked file.
struct FileCheck {
  std::string path, kind;
  int64_t tensors = 0, numbers = 0;
  std::vector<BadTensor> bad;
};

absl::StatusOr<FileCheck> CheckFile(const OpRegistry& registry,
                                    const std::string& path, bool half,
                                    HalfRanges* ranges) {
  FileCheck check;
  check.path = path;
  const auto look = [&](const std::string& name, const Array& array) {
    ++check.tensors;
    check.numbers += array.size();
    if (half) ranges->Add(absl::StrCat(path, ":", name), "file", array);
    InspectedValue seen = InspectValue(name, array);
    if (seen.first_bad >= 0)
      check.bad.push_back({name, std::move(seen), SamplesOf(array)});
  };
  PD_ASSIGN_OR_RETURN(const Inspection inspection,
                      Inspect(registry, path, /*with_stats=*/false, look));
  check.kind = inspection.kind;
  return check;
}

void Print(const FileCheck& check, std::ostream& out) {
  for (const BadTensor& bad : check.bad) {
    const TensorStats& stats = bad.look.stats;
    for (const ValueSample& sample : bad.samples)
      out << absl::StrFormat("numel:%d index:%d value:%s\n",
                             stats.nan + stats.inf + stats.finite, sample.index,
                             sample.value);
    out << absl::StrFormat("In cpu, there has %d,%d,%d nan,inf,num\n",
                           stats.nan, stats.inf, stats.finite)
        << Printable(check.path) << ": [tensor=" << Printable(bad.name)
        << "] find nan or inf, " << Name(bad.look.dtype)
        << ToString(bad.look.shape) << ", first bad at "
        << IndexText(bad.look.first_bad, bad.look.shape) << "\n";
  }
  out << Printable(check.path) << ": " << check.tensors << " tensors, "
      << check.numbers << " numbers, "
      << (check.bad.empty()
              ? "no NaN and no Inf"
              : absl::StrCat(check.bad.size(), " tensors with NaN or Inf"))
      << "\n";
}

Json ToJson(const FileCheck& check) {
  Json json = {{"path", check.path},
               {"kind", check.kind},
               {"tensors", check.tensors},
               {"numbers", check.numbers},
               {"bad", Json::array()}};
  for (const BadTensor& bad : check.bad) {
    Json one = {{"tensor", bad.name},
                {"dtype", Name(bad.look.dtype)},
                {"shape", bad.look.shape},
                {"nan", bad.look.stats.nan},
                {"inf", bad.look.stats.inf},
                {"num", bad.look.stats.finite},
                {"first_bad", bad.look.first_bad}};
    for (const ValueSample& sample : bad.samples)
      one["values"].push_back(
          {{"index", sample.index}, {"value", sample.value}});
    json["bad"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

absl::Status CheckFiles(const CheckNaninfOptions& options,
                        const OpRegistry& registry, std::ostream& out) {
  const bool json = options.common.json();
  Json files = Json::array();
  HalfRanges ranges;
  size_t bad = 0, tensors = 0;
  absl::Status failed;
  for (const std::string& path : options.files) {
    const auto check = CheckFile(registry, path, options.half, &ranges);
    if (!check.ok()) {
      if (!failed.ok()) PrintError("pd-check-naninf", failed);
      failed = check.status();
      continue;
    }
    bad += check->bad.size();
    tensors += static_cast<size_t>(check->tensors);
    if (json)
      files.push_back(ToJson(*check));
    else
      Print(*check, out);
  }
  if (json) {
    Json object = {{"found", bad > 0}, {"files", std::move(files)}};
    if (options.half) object["half"] = Json::parse(HalfJson(ranges));
    out << object.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else if (options.half) {
    out << HalfText(ranges);
  }
  PD_RETURN_IF_ERROR(failed);
  if (bad > 0)
    return AnswerNo(
        absl::StrCat(bad, " of ", tensors, " tensors hold NaN or Inf"));
  return absl::OkStatus();
}

}  // namespace pd
