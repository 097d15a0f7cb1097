// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file_target.h"
#include "libcore/base/log.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"

namespace pd {

std::vector<std::string> SplitNames(const std::string& names) {
  return absl::StrSplit(names, ',', absl::SkipEmpty());
}

std::string Megabytes(size_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / (1 << 20));
}

std::string BenchLine(const BenchReport& r) {
  nlohmann::ordered_json line = {{"workload", r.workload},
                                 {"mode", r.mode},
                                 {"batch", r.batch},
                                 {"threads", Threads()},
                                 {"first_step_s", r.first_step_s}};
  if (r.steps > 0) {
    line["step_ms_median"] = r.step_ms_median;
    line["step_ms_p90"] = r.step_ms_p90;
    line["samples_per_s"] = r.samples_per_s;
    line["steps"] = r.steps;
    if (r.unchecked_ms_median > 0)
      line["unchecked_ms_median"] = r.unchecked_ms_median;
  }
  line["peak_rss_mb"] = r.peak_rss_mb;
  if (r.peak_device_mb > 0) line["peak_device_mb"] = r.peak_device_mb;
  line["first_value"] = r.first_value;
  line["last_value"] = r.last_value;
  return DumpJson(line);
}

void LogTimes(const BenchReport& report) {
  double all = 0;
  for (const StepTimes::Share& share : report.times) all += share.seconds;
  for (const StepTimes::Share& share : report.times)
    LogVerbose("%5.1f %%  %4d x %s (%s)", 100 * share.seconds / all,
               share.steps, share.op_type, share.implementation);
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(
    const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileTarget target, ResolveTarget(path));
  int fd = -1;
  if (target.direct()) {
    PD_ASSIGN_OR_RETURN(fd, OpenDirect(target));
  } else {
    fd = ::open(target.place.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                0666);
    if (fd < 0)
      return ErrnoToStatus(errno, absl::StrCat("cannot write ", target.shown));
  }
  return std::unique_ptr<OutputFile>(new OutputFile(fd, target.shown));
}

OutputFile::OutputFile(int fd, const std::string& shown)
    : fd_(fd), stream_(fd, absl::StrCat("cannot write ", shown)) {}

OutputFile::~OutputFile() {
  stream_.flush();
  ::close(fd_);
}

}  // namespace pd
