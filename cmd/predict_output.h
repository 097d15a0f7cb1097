// SPDX-License-Identifier: Apache-2.0
// Where predictions go: CSV, JSON, or the arrays of an npz file. Each
// is written as it comes; what an npz collects lies in unlinked files beside
// it until the end.
#ifndef PD_CMD_PREDICT_OUTPUT_H_
#define PD_CMD_PREDICT_OUTPUT_H_

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"
#include "libcore/ir/array.h"
#include "libcore/train/answer.h"

namespace pd {

/// The settings that all predictions of a run share.
struct PredictionLayout {
  std::vector<std::string> classes;  ///< names by number; may be fewer
  int64_t top = 1;                   ///< classes that a record shows
  bool files = false;  ///< records say their file, also where they have places
  std::string answer = "answer";  ///< the name of numeric answers
};

/// One record. What its answer is not stays empty.
struct Prediction {
  RecordPlace place;
  /// Classes and probabilities, likeliest first: of one class.
  std::vector<std::pair<int64_t, float>> top;
  std::vector<double> numbers;
  bool scalar = false;  ///< `numbers` is one number, no array of one
  bool has_text = false;
  std::string text;
  bool has_positions = false;
  std::vector<int64_t> positions;  ///< the class of each position
  std::string mask;                ///< the picture's path
  bool has_boxes = false;
  std::vector<DetectedBox> boxes;  ///< best first
  /// Values of the layers that --fetch names, in place of an answer.
  std::vector<std::pair<std::string, std::vector<double>>> fetched;
  /// The record's arrays in an npz, with their names.
  std::vector<std::pair<std::string, Array>> arrays;
};

class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;
  /// True where Prediction::arrays is what is written, and the rest is not.
  virtual bool wants_arrays() const { return false; }
  virtual absl::Status Write(const Prediction& prediction) = 0;
  /// Hands on what is buffered, after each batch.
  virtual absl::Status Flush() { return absl::OkStatus(); }
  /// After the last record: the file takes its place.
  virtual absl::Status Finish() = 0;
};

/// A writer for `path`, by its ending: .csv, .jsonl (a line of JSON a record),
/// .json (one list of all) or .npz; to `out` for "" and "-", and to devices and
/// pipes, CSV, or with `json` lines of JSON. A usage error for other endings.
absl::StatusOr<std::unique_ptr<PredictionWriter>> OpenPredictions(
    const std::string& path, bool json, PredictionLayout layout,
    std::ostream& out);

}  // namespace pd

#endif  // PD_CMD_PREDICT_OUTPUT_H_
