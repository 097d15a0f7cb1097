// SPDX-License-Identifier: Apache-2.0
// Data sets of a job that a program writes.
#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/pipe_dataset.h"
#include "libcore/train/open_internal.h"

namespace pd {

absl::StatusOr<DatasetPtr> OpenPipeOf(OpenContext* context,
                                      const job::Pipe& pipe) {
  PipeDatasetOptions options;
  options.command = pipe.command();
  options.folder = pipe.folder();
  options.set = context->is_training() ? "train" : "eval";
  options.records = pipe.records();
  options.timeout = pipe.timeout();
  for (const job::PipeField& wanted : pipe.field()) {
    PipeField field;
    field.name = wanted.name();
    field.dtype = DTypeOf(wanted.dtype());
    if (wanted.shape_size() > 0) field.shape = ListOf<int64_t>(wanted.shape());
    field.classes = wanted.num_classes();
    options.fields.push_back(std::move(field));
  }
  auto dataset = OpenPipe(options);
  if (!dataset.ok()) return context->job().At(dataset.status(), pipe);
  return dataset;
}

namespace {

bool IsStream(const job::DataSet& set) {
  return set.has_pipe() || set.has_environment();
}

}  // namespace

absl::Status CheckStreamUse(const LoadedJob& job, const job::DataSet& set) {
  const auto wrong = [&](const job::DataSet& part, const char* field,
                         const char* what) {
    return job.At(
        InvalidArgument("the records of a program come one after the other, "
                        "in its order and as many as it writes: %s",
                        what),
        part, field);
  };
  const auto kind = [](const job::DataSet& part) {
    return part.has_pipe() ? "pipe" : "environment";
  };
  if (IsStream(set) && set.has_subset())
    return wrong(set, "subset", "'subset' chooses records by number");
  for (const job::DataSet& part : set.concat().dataset())
    if (IsStream(part))
      return wrong(part, kind(part), "it cannot be a part of 'concat'");
  for (const job::DataSet& part : set.compose().dataset())
    if (IsStream(part))
      return wrong(part, kind(part), "it cannot be a part of 'compose'");
  return absl::OkStatus();
}

}  // namespace pd
