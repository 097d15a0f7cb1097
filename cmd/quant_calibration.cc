// SPDX-License-Identifier: Apache-2.0
#include "cmd/quant_calibration.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cmd/common/engine.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/quant/calibration_data.h"
#include "libcore/train/open_data.h"
#include "libcore/train/prediction_data.h"
#include "libcore/train/run_log.h"

namespace pd {
namespace {

constexpr int64_t kNpzBatch = 32;
constexpr int64_t kJobBatches = 16;

// Whether --calib is a file of arrays, not a job.
bool TakesArrays(const QuantOptions& options) {
  return absl::EndsWith(options.calib, ".npz") ||
         absl::EndsWith(options.calib, ".npy");
}

// Whether files are given, or --calib is a folder.
bool TakesPictures(const QuantOptions& options) {
  return !options.pictures.empty() || IsFolder(options.calib);
}

// Pictures as the model's job makes its inputs of them: by the transforms of
// data.eval, which are not random.
absl::StatusOr<std::unique_ptr<Loader>> OpenPicturesBy(
    const QuantOptions& options, const InferenceModel& model,
    const std::string& own_job) {
  PredictionSources sources;
  sources.form = "pictures";
  sources.paths = options.pictures;
  if (sources.paths.empty()) sources.paths = {options.calib};
  if (!IsFile(own_job))
    return CommandLineError(absl::StrFormat(
        "'%s' is calibrated on pictures, and no job says how they become what "
        "it is fed: '%s' is not there; say it with -c, as -c RUN/job.pbtxt",
        options.model, own_job));
  PD_ASSIGN_OR_RETURN(LoadedJob job,
                      ReadJobFor(own_job, {}, options.common.seed));
  const char* set = job.proto().data().has_eval() ? "eval" : "train";
  const absl::Status needs = job.Require({absl::StrCat("data.", set)}, own_job);
  if (!needs.ok()) return UsageError(needs);
  const int64_t fixed = FixedBatch(model);
  std::vector<std::string> overrides;
  if (fixed > 0 || options.batch.has_value())
    overrides.push_back(absl::StrCat(
        "data.", set, ".batch_size=", fixed > 0 ? fixed : *options.batch));
  if (fixed > 0)
    overrides.push_back(absl::StrCat("data.", set, ".drop_last=true"));
  PD_ASSIGN_OR_RETURN(job, ReadJobFor(own_job, overrides, options.common.seed));
  const job::Data& sets = job.proto().data();
  RunVocabularies vocabularies(RunOfJobFile(own_job));
  PredictionData data(job, sets.has_eval() ? sets.eval() : sets.train(),
                      FeedsOf(model), &vocabularies, std::move(sources));
  auto loader = data.Next();
  if (loader.ok() && data.left_out().count > 0)
    LogWarning("%s", SkippedText(data.left_out(), "calibration"));
  return loader;
}

}  // namespace

int64_t DefaultBatches(const QuantOptions& options) {
  return TakesArrays(options) || TakesPictures(options) ? 0 : kJobBatches;
}

absl::StatusOr<std::unique_ptr<Loader>> OpenCalibration(
    const QuantOptions& options, const InferenceModel& model,
    const std::string& own_job) {
  const int64_t fixed = FixedBatch(model);
  if (fixed > 0 && options.batch.has_value() && *options.batch != fixed)
    return CommandLineError(
        absl::StrFormat("--batch %d: the model takes batches of %d only",
                        *options.batch, fixed));
  if (TakesArrays(options)) {
    return OpenCalibrationArrays(
        model, options.calib,
        fixed > 0 ? fixed : options.batch.value_or(kNpzBatch));
  }
  if (TakesPictures(options)) return OpenPicturesBy(options, model, own_job);
  const std::string set = absl::StrCat("data.", options.calib_set);
  std::vector<std::string> overrides = {absl::StrCat(set, ".shuffle=false")};
  if (fixed > 0 || options.batch.has_value())
    overrides.push_back(
        absl::StrCat(set, ".batch_size=", fixed > 0 ? fixed : *options.batch));
  PD_ASSIGN_OR_RETURN(const LoadedJob job,
                      ReadJobFor(options.calib, {}, options.common.seed));
  const absl::Status needs = job.Require({set}, "--calib");
  if (!needs.ok()) return UsageError(needs);
  PD_ASSIGN_OR_RETURN(const LoadedJob read, ReadJobFor(options.calib, overrides,
                                                       options.common.seed));
  RunVocabularies vocabularies(RunOfJobFile(options.calib));
  const job::Data& data = read.proto().data();
  return OpenLoader(read,
                    options.calib_set == "train" ? data.train() : data.eval(),
                    read.proto().train().seed(), &vocabularies);
}

}  // namespace pd
