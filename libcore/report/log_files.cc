// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/log_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "formats/json_text.h"
#include "formats/tfevents.h"
#include "formats/visualdl.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

constexpr char kVisualDlPrefix[] = "vdlrecords.";
constexpr char kTensorBoardPrefix[] = "events.out.tfevents.";

// Files of this kind in the folder, by name, which is by time.
std::vector<std::string> FilesOf(LogKind kind, const std::string& run) {
  const char* prefix =
      kind == LogKind::kVisualDl ? kVisualDlPrefix : kTensorBoardPrefix;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(run, error), end; !error && it != end;
       it.increment(error))
    if (absl::StartsWith(it->path().filename().string(), prefix))
      files.push_back(it->path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string NewName(LogKind kind) {
  const auto now = static_cast<int64_t>(WallSeconds());
  if (kind == LogKind::kVisualDl)
    return absl::StrFormat("%s%010d.log", kVisualDlPrefix, now);
  char host[256] = "host";
  ::gethostname(host, sizeof(host) - 1);
  return absl::StrFormat("%s%010d.%s", kTensorBoardPrefix, now,
                         absl::StrReplaceAll(host, {{"/", "_"}}));
}

// Python reads tags as UTF-8, and VisualDL cannot take a '%'.
std::string CleanTag(const std::string& tag) {
  if (!IsUtf8(tag)) {
    std::string clean = tag;
    for (char& c : clean)
      if ((static_cast<uint8_t>(c) & 0x80) != 0) c = '_';
    return CleanTag(clean);
  }
  return absl::StrReplaceAll(tag, {{"%", "_"}});
}

}  // namespace

double WallSeconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<std::unique_ptr<LogFile>> LogFile::Open(LogKind kind,
                                                       const std::string& run,
                                                       int64_t step) {
  std::vector<std::string> files = FilesOf(kind, run);
  if (step == 0) {
    std::error_code ignored;  // a new file says so if the folder is read-only
    for (const std::string& file : files) fs::remove(file, ignored);
    files.clear();
  }
  std::unique_ptr<LogFile> log(new LogFile);
  log->kind_ = kind;
  const bool goes_on = !files.empty();
  log->path_ = goes_on ? files.back() : absl::StrCat(run, "/", NewName(kind));
  log->file_ = std::fopen(log->path_.c_str(), "ab");
  if (log->file_ == nullptr)
    return ErrnoToStatus(errno,
                         absl::StrCat("cannot write '", log->path_, "'"));
  if (goes_on) PD_RETURN_IF_ERROR(log->CutBack(step));
  if (std::ftell(log->file_) > 0) return log;
  const std::string head = kind == LogKind::kVisualDl
                               ? VisualDlHead(WallSeconds())
                               : TfEventsHead(WallSeconds());
  std::fwrite(head.data(), 1, head.size(), log->file_);
  PD_RETURN_IF_ERROR(log->Flush());
  return log;
}

// Keeps the records up to `step`.
absl::Status LogFile::CutBack(int64_t step) {
  PD_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(path_));
  const auto marks = kind_ == LogKind::kVisualDl ? ScanVisualDl(bytes.view())
                                                 : ScanTfEvents(bytes.view());
  if (!marks.ok())
    return Annotate(marks.status(), absl::StrCat("'", path_, "'"));
  size_t keep = 0;
  for (const LogMark& mark : *marks) {
    // A run that goes on has not ended.
    if (mark.step > step || mark.tag == kLogEndTag) break;
    keep = mark.end;
    held_.emplace(mark.tag, mark.step);
  }
  const std::string what = absl::StrCat("cannot write '", path_, "'");
  if (::ftruncate(fileno(file_), static_cast<off_t>(keep)) != 0 ||
      std::fseek(file_, 0, SEEK_END) != 0)
    return ErrnoToStatus(errno, what);
  return absl::OkStatus();
}

LogFile::~LogFile() {
  if (file_ != nullptr) std::fclose(file_);
}

absl::Status LogFile::Add(std::string tag, int64_t step, LogContent content) {
  LogRecord record{CleanTag(tag), step, WallSeconds(), std::move(content)};
  std::pair<std::string, int64_t> key = {record.tag, step};
  if (kind_ == LogKind::kVisualDl &&
      std::holds_alternative<LogHyperParameters>(record.content))
    key = {kHyperTag, kHyperStep};
  if (held_.count(key) > 0) return absl::OkStatus();
  const std::string bytes = kind_ == LogKind::kVisualDl ? EncodeVisualDl(record)
                                                        : EncodeTfEvent(record);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size())
    return ErrnoToStatus(errno, absl::StrCat("cannot write '", path_, "'"));
  return absl::OkStatus();
}

absl::Status LogFile::Flush() {
  if (std::fflush(file_) != 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot write '", path_, "'"));
  return absl::OkStatus();
}

}  // namespace pd
