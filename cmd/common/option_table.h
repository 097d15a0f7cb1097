// SPDX-License-Identifier: Apache-2.0
// The options of one tool: names, values, help, and where the values go. CLI11
// splits the command line; conversion is ours, because CLI11 takes 010 for 8
// and accepts nan and 1e999. Every number therefore is a strict decimal in a
// range, and every value option is given once unless it is a list.
#ifndef PD_CMD_COMMON_OPTION_TABLE_H_
#define PD_CMD_COMMON_OPTION_TABLE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cmd/common/manual.h"

namespace pd {

/// A decimal integer without leading zeros, plus sign, or blanks, in [min,
/// max].
absl::StatusOr<int64_t> ParseInteger(
    absl::string_view text, int64_t min = std::numeric_limits<int64_t>::min(),
    int64_t max = std::numeric_limits<int64_t>::max());

/// A finite decimal number in [min, max]: "0.01", "1e-3"; no hexadecimal.
absl::StatusOr<double> ParseReal(
    absl::string_view text, double min = std::numeric_limits<double>::lowest(),
    double max = std::numeric_limits<double>::max());

/// How an option is written: {"-c,--config", "FILE", "the job file"}. The help
/// is a phrase in lower case without a full stop. Further long names are other
/// ways to write the first, under which the option is known here.
struct OptionText {
  std::string names, value, help;
};

struct IntegerRange {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
};

struct RealRange {
  double min = 0;
  double max = std::numeric_limits<double>::max();
};

/// The standard stream that an option's value `-` stands for.
enum class StandardStream { kNone, kInput, kOutput };

class OptionTable {
 public:
  OptionTable();
  ~OptionTable();
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  /// The options that follow stand under this title; a title may come again.
  void Group(std::string name);

  // Each binds an option to a variable whose value now is the default that
  // help and manual show. An empty string or optional has no default to show.
  void Switch(OptionText text, bool* on);
  void Count(OptionText text, int* times);
  void Text(OptionText text, std::string* value);
  void Texts(OptionText text, std::vector<std::string>* values);
  void Choice(OptionText text, std::vector<std::string> choices,
              std::string* value);
  void Choices(OptionText text, std::vector<std::string> choices,
               std::vector<std::string>* values);
  void Integer(OptionText text, IntegerRange range, int64_t* value);
  void Integer(OptionText text, IntegerRange range,
               std::optional<int64_t>* value);
  void Real(OptionText text, RealRange range, double* value);
  void Real(OptionText text, RealRange range, std::optional<double>* value);
  /// Arguments without a name, at most `most`; `text.names` is empty.
  void Positional(OptionText text, size_t most,
                  std::vector<std::string>* values);

  /// This option ("--config", "-o", or the value name of arguments) must be
  /// given.
  void Require(absl::string_view name);
  /// Lets `-` stand for standard input or output as this option's value, and
  /// says so in its help. Every other option refuses `-`, and so does Parse
  /// where two options want the same stream.
  void TakesStream(absl::string_view name, StandardStream stream);
  /// The default that help and manual state where the option is not given.
  void DescribeDefault(absl::string_view name, std::string fallback);
  /// Values that shells offer for an option that takes others too.
  void Suggest(absl::string_view name, std::vector<std::string> words);

  /// Reads the command line. CommandLineError says what is wrong in one line.
  /// `on_first` is called before requirements and values are looked at, with
  /// the options that end early (--help): when it returns true, Parse stops.
  absl::Status Parse(int argc, const char* const* argv,
                     const std::function<bool()>& on_first = nullptr);

  /// True when the command line held this option ("--config").
  bool Given(absl::string_view name) const;
  /// The words that the command line gave to this option, as they stand there.
  std::vector<std::string> WordsOf(absl::string_view name) const;
  /// True when an option writes a file to standard output, where nothing else
  /// may go then.
  bool WritesStandardOutput() const;
  /// CommandLineError when more than one of these options was given.
  absl::Status AtMostOne(const std::vector<std::string>& names) const;
  /// CommandLineError when `name` was given without `needed`.
  absl::Status Needs(absl::string_view name, absl::string_view needed) const;

  /// The options of the table, in order.
  std::vector<OptionGroup> Describe() const;

 private:
  using Assign = std::function<absl::Status(absl::string_view)>;
  struct Entry;
  class Cli;
  Entry& Add(OptionText text, std::string fallback, Assign assign);
  Entry* Find(absl::string_view name) const;
  absl::Status Split(int argc, const char* const* argv);
  absl::Status CheckPaths() const;
  absl::Status TakePositionals();
  absl::Status UnknownOption(absl::string_view argument) const;
  absl::Status AssignValues(const Entry& entry) const;
  absl::Status CheckStreams() const;

  std::unique_ptr<Cli> cli_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::string group_;
};

}  // namespace pd

#endif  // PD_CMD_COMMON_OPTION_TABLE_H_
