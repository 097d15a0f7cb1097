// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/calibration_data.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/datasets.h"
#include "libcore/program/match_feeds.h"

namespace pd {
namespace {

// Gives the arrays the dtypes that the model declares. An array that is called
// like no input may stand for one that no array is called after.
absl::Status FitCalibration(const InferenceModel& model,
                            const std::string& path, NamedArrays* arrays) {
  for (auto& [name, array] : *arrays) {
    const VarDesc* var = nullptr;
    for (const std::string& input : model.names.feeds) {
      const VarDesc* declared = model.program.global().FindVar(input);
      if (declared == nullptr || (input != name && arrays->count(input) > 0))
        continue;
      Shape batch = declared->shape;
      if (!batch.empty()) batch[0] = -1;
      const bool fits = TakesShape(batch, array.shape);
      if (input == name && !fits)
        return InvalidArgument(
            "'%s': array '%s' is %s%s; the model declares %s%s", path, name,
            Name(array.dtype), ToString(array.shape), Name(declared->dtype),
            ToString(batch));
      if (input == name || (fits && var == nullptr)) var = declared;
      if (input == name) break;
    }
    if (var == nullptr) continue;
    if (var->name != name && IsFloating(array.dtype) != IsFloating(var->dtype))
      continue;  // no stand-in for it: a label, perhaps
    VarDesc wanted = *var;
    wanted.name = name;
    PD_RETURN_IF_ERROR(FitDType(wanted, path, &array));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t FixedBatch(const InferenceModel& model) {
  int64_t batch = -1;
  for (const FeedSpec& feed : FeedsOf(model))
    if (!feed.shape.empty()) batch = std::max(batch, feed.shape[0]);
  return batch;
}

absl::StatusOr<std::unique_ptr<Loader>> OpenCalibrationArrays(
    const InferenceModel& model, const std::string& path, int64_t batch) {
  ArrayDatasetOptions array;
  array.path = path;
  PD_ASSIGN_OR_RETURN(NamedArrays arrays, ReadNpzOrNpy(path));
  PD_RETURN_IF_ERROR(FitCalibration(model, path, &arrays));
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, MakeArrayDataset(arrays, array));
  if (dataset->size() == 0)
    return FailedPrecondition(
        "'%s' holds no records to calibrate on; expected some", path);
  LoaderOptions loader;
  loader.batch_size = batch;
  loader.drop_last = FixedBatch(model) > 0;
  return Loader::Create(std::move(dataset), loader);
}

std::vector<FeedSpec> FeedsOfRecords(const InferenceModel& model,
                                     const Loader& loader) {
  std::vector<FeedSpec> feeds = FeedsOf(model);
  for (FeedSpec& feed : feeds)
    for (const BatchField& field : loader.fields()) {
      if (field.shape.size() != feed.shape.size() ||
          (field.name != feed.name && feeds.size() > 1))
        continue;
      for (size_t i = 1; i < feed.shape.size(); ++i)
        if (feed.shape[i] < 0) feed.shape[i] = field.shape[i];
      break;
    }
  return feeds;
}

}  // namespace pd
