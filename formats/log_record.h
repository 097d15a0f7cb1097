// SPDX-License-Identifier: Apache-2.0
// Records of a training run for VisualDL and TensorBoard, apart from how either
// stores it: visualdl.h and tfevents.h turn these records into bytes.
#ifndef PD_FORMATS_LOG_RECORD_H_
#define PD_FORMATS_LOG_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pd {

/// A histogram as np.histogram makes it: bins of equal width, the last one
/// closed.
struct LogHistogram {
  std::vector<double> counts;  ///< one a bin
  std::vector<double> edges;   ///< one more than bins, rising
  double sum = 0, sum_squares = 0;
};

/// The histogram of the finite ones among `n` values. Values that are all the
/// same lie in bins around them, as with np.histogram; without any value the
/// bins are those of [0, 1].
LogHistogram MakeHistogram(const float* values, size_t n, int bins);

/// A picture as the bytes of a PNG file.
struct LogPicture {
  int64_t height = 0, width = 0, channels = 0;
  std::string png;
};

/// Sound as the bytes of a WAV file.
struct LogAudio {
  int32_t rate = 0, channels = 0;  ///< frames a second
  int64_t frames = 0;
  std::string wav;

  /// VisualDL's and TensorBoard's messages have the same fields.
  template <typename Message>
  void Fill(Message* to) const {
    to->set_rate(static_cast<float>(rate));
    to->set_channels(channels);
    to->set_frames(frames);
    to->set_encoded(wav);
    to->set_content_type("audio/wav");
  }
};

/// How a two-way decision fares at thresholds i / (n - 1), i = 0 .. n-1: counts
/// of what lies at or above each.
struct LogCurve {
  std::vector<int64_t> tp, fp, tn, fn;

  double Precision(size_t i) const;  ///< 0 where nothing is called positive
  double Recall(size_t i) const;     ///< the true positive rate too
  double FalsePositiveRate(size_t i) const;
  /// The area under the ROC curve, by trapezoids; 0.5 for a class without
  /// positives or negatives.
  double Area() const;
};

/// The same counts for both curves.
struct LogPrCurve {
  LogCurve counts;
};
struct LogRocCurve {
  LogCurve counts;
};

/// Rows of a table, one vector and one label each.
struct LogEmbedding {
  std::vector<std::string> labels;
  size_t width = 0;
  std::vector<float> values;  ///< labels.size() * width
};

struct LogParameter {
  std::string name;
  std::variant<bool, int64_t, double, std::string> value;
};

/// Markdown.
struct LogText {
  std::string text;
};

/// The job's numbers, and the tags of the scalars that say how good it is.
struct LogHyperParameters {
  std::string name;
  std::vector<LogParameter> parameters;
  std::vector<std::string> metrics;
};

/// Training ended.
struct LogEnd {
  bool success = true;
};

struct LogNode {
  std::string name, type;
  std::vector<std::string> inputs;           ///< names of nodes
  std::vector<std::vector<int64_t>> shapes;  ///< of its outputs; -1: not known
  std::vector<std::pair<std::string, std::string>> attributes;
};
struct LogGraph {
  std::vector<LogNode> nodes;
};

using LogContent = std::variant<float, LogHistogram, LogPicture, LogAudio,
                                LogPrCurve, LogRocCurve, LogEmbedding, LogText,
                                LogHyperParameters, LogEnd, LogGraph>;

struct LogRecord {
  std::string tag;
  int64_t step = 0;
  double seconds = 0;  ///< since 1970
  LogContent content;
};

/// A record that a file holds already.
struct LogMark {
  size_t end = 0;  ///< behind its last byte
  int64_t step = 0;
  std::string tag;  ///< "" where it has none
};

}  // namespace pd

#endif  // PD_FORMATS_LOG_RECORD_H_
