// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/preprocess.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

constexpr char kPreprocessFile[] = "preprocess.pbtxt";
constexpr char kJobEnding[] = ".pbtxt";
constexpr const char* kNameFolders[] = {"vocabularies", "classes", "columns"};

std::string FolderBeside(const std::string& path) {
  return std::string(absl::StripSuffix(path, kJobEnding));
}

absl::Status FileStatus(const std::error_code& error, const std::string& text) {
  return error ? ErrnoToStatus(error.value(), text) : absl::OkStatus();
}

absl::Status CopyNames(const std::string& run, const std::string& folder) {
  for (const char* part : kNameFolders) {
    const fs::path from = fs::path(run) / part;
    if (!IsFolder(from.string())) continue;
    PD_RETURN_IF_ERROR(MakeDirectories(absl::StrCat(folder, "/", part)));
    std::error_code error;
    for (fs::directory_iterator it(from, error), end; !error && it != end;
         it.increment(error)) {
      PD_ASSIGN_OR_RETURN(const FileBytes names, ReadFile(it->path().string()));
      PD_RETURN_IF_ERROR(WriteFile(
          absl::StrCat(folder, "/", part, "/", it->path().filename().string()),
          names.view()));
    }
    PD_RETURN_IF_ERROR(
        FileStatus(error, absl::StrCat("cannot read '", from.string(), "'")));
  }
  return absl::OkStatus();
}

}  // namespace

std::string PreprocessPath(const std::string& model) {
  const fs::path path(model);
  if (path.filename() == "__model__")
    return (path.parent_path() / kPreprocessFile).string();
  absl::string_view stem = model;
  if (!absl::ConsumeSuffix(&stem, ".pdmodel"))
    absl::ConsumeSuffix(&stem, ".onnx");
  return absl::StrCat(stem, ".", kPreprocessFile);
}

std::string NamesOfPreprocess(const std::string& preprocess) {
  const std::string name = fs::path(preprocess).filename().string();
  if (name != kPreprocessFile &&
      !absl::EndsWith(name, absl::StrCat(".", kPreprocessFile)))
    return "";
  const std::string folder = FolderBeside(preprocess);
  return IsFolder(folder) ? folder : "";
}

absl::Status WritePreprocess(const LoadedJob& job, const std::string& run,
                             const std::string& path) {
  PD_RETURN_IF_ERROR(RemovePreprocess(path));
  const auto drop = [&run](job::Job* edited) {
    const uint64_t seed = edited->train().seed();
    edited->clear_optimizer();
    edited->clear_train();
    edited->mutable_train()->set_seed(seed);
    edited->clear_quant();
    edited->clear_amp();
    edited->clear_init();
    edited->clear_phase();
    edited->clear_copy();
    // A run knows the words and statistics that are learned from data.train.
    if (edited->data().has_eval() && !run.empty())
      edited->mutable_data()->clear_train();
  };
  PD_ASSIGN_OR_RETURN(const LoadedJob part, EditJob(job, drop));
  if (!run.empty()) PD_RETURN_IF_ERROR(CopyNames(run, FolderBeside(path)));
  return WriteFile(path, part.EffectiveText());
}

absl::Status RemovePreprocess(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  PD_RETURN_IF_ERROR(
      FileStatus(error, absl::StrCat("cannot remove '", path, "'")));
  const fs::path folder = FolderBeside(path);
  for (const char* part : kNameFolders) {
    fs::remove_all(folder / part, error);
    PD_RETURN_IF_ERROR(FileStatus(
        error, absl::StrCat("cannot remove '", (folder / part).string(), "'")));
  }
  // Left where somebody keeps something else in it.
  fs::remove(folder, error);
  return absl::OkStatus();
}

}  // namespace pd
