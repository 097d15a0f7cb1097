// SPDX-License-Identifier: Apache-2.0
// The job file: protobuf text format, schema in job.proto. A loaded job knows
// where each of its fields came from, so whatever is found wrong later (a layer
// whose input does not fit) is said with file, line and column.
#ifndef PD_LIBCORE_NN_JOB_H_
#define PD_LIBCORE_NN_JOB_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}

namespace pd {
namespace job {
class Job;  // libcore/nn/job.pb.h
}
struct SavedNetwork;   // libcore/nn/saved_networks.h
struct SavedPrograms;  // libcore/nn/saved_networks.h
/// By NetworkKey.
using SavedNetworks = std::map<std::string, SavedNetwork>;

/// A job that has been read and checked. Copies share it.
class LoadedJob {
 public:
  const job::Job& proto() const;
  /// The file as it was named.
  const std::string& path() const;

  /// Where a part of proto(), or a field of that part, was written:
  /// "job.pbtxt:31:3", or "-o model.layer[fc1].linear.out_features". A field
  /// that was not written is placed at what holds it.
  std::string Where(const google::protobuf::Message& part,
                    absl::string_view field = "") const;
  /// Where() as the context of an error; OK stays OK.
  absl::Status At(const absl::Status& status,
                  const google::protobuf::Message& part,
                  absl::string_view field = "") const;

  /// OK when the job has these fields ("optimizer", "data.train"), else
  /// InvalidArgument that says that `who` needs them.
  absl::Status Require(const std::vector<std::string>& fields,
                       absl::string_view who) const;

  /// The saved networks that the job's layers go on from; empty before they
  /// have been opened.
  const SavedNetworks& networks() const;
  /// The programs of the job's `program`; null without one, and before they
  /// have been opened.
  const SavedPrograms* programs() const;

  /// The job with its overrides, as a job file that means the same wherever it
  /// is stored (paths are absolute).
  std::string EffectiveText() const;

 private:
  friend class JobLoader;
  struct State;
  std::shared_ptr<const State> state_;
};

/// Reads a job file and applies overrides "path=value" in their order, where a
/// path is "optimizer.adam.learning_rate", "model.layer[conv1].conv2d.groups"
/// (a name or a number from 0 in brackets). An empty value takes the field
/// away. Paths of files in the job are relative to its folder, those in
/// overrides to the current one; proto() holds them joined. The first thing
/// wrong is InvalidArgument "FILE:LINE:COLUMN: ..." or "-o PATH: ..."; a file
/// that cannot be read has its own kind.
absl::StatusOr<LoadedJob> ReadJob(
    const std::string& path, const std::vector<std::string>& overrides = {});

/// The job after a change that the program makes; parts that were written keep
/// their places. InvalidArgument where it is no job any more.
absl::StatusOr<LoadedJob> EditJob(const LoadedJob& job,
                                  const std::function<void(job::Job*)>& edit);

/// The job with the saved networks that its layers `model` name.
LoadedJob WithNetworks(const LoadedJob& job, SavedNetworks networks);
/// The job with the programs that its `program` names.
LoadedJob WithPrograms(const LoadedJob& job, SavedPrograms programs);

/// ReadJob of a text that would stand in the file `path`.
absl::StatusOr<LoadedJob> ParseJob(
    absl::string_view text, const std::string& path,
    const std::vector<std::string>& overrides = {});

}  // namespace pd

#endif  // PD_LIBCORE_NN_JOB_H_
