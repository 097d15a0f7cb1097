// SPDX-License-Identifier: Apache-2.0
// The description of a tool beyond its options. `--help` and the man page
// are printed from this and from the option table that the parser uses, and so
// are the shells' completions, so none can drift; tests run the examples.
#ifndef PD_CMD_COMMON_MANUAL_H_
#define PD_CMD_COMMON_MANUAL_H_

#include <string>
#include <vector>

namespace pd {

/// In texts, `back quotes` set what is typed or printed literally.
struct Manual {
  struct Entry {
    std::string name, text;
  };
  struct Example {
    std::string title;    ///< "train LeNet for 20 steps"
    std::string command;  ///< one shell line, run in a folder with testdata/
    int exit_status = 0;
  };
  std::string name;     ///< "pd-train"
  std::string summary;  ///< "train a model from a job file"
  /// One form of use a line, without the name:
  /// "-c JOB --out RUN [-o PATH=VALUE]... [--resume]". Capitals are values.
  std::vector<std::string> synopsis;
  std::vector<std::string> description;  ///< paragraphs of whole sentences
  std::vector<Entry> files;              ///< sentences
  std::vector<Entry> environment;  ///< beyond what every tool reads; sentences
  /// The meaning of exit status 1 for this tool; empty when it never ends so.
  std::string answer_no;
  bool stops_by_signal = false;       ///< it saves and exits 130 or 143
  std::vector<Example> examples;      ///< run in this order in one folder
  std::vector<std::string> see_also;  ///< "pd-eval 1"
};

/// An option as help and manual show it.
struct OptionEntry {
  std::string short_name;  ///< "c", or ""
  std::string long_name;   ///< "config"; a positional argument's value name
  std::string value;       ///< "FILE"; empty for a switch
  std::string help;        ///< lower case, no full stop
  std::string fallback;    ///< the default, or ""
  std::vector<std::string> words;  ///< values that it takes, all or some
  bool positional = false, required = false, repeatable = false;
};

struct OptionGroup {
  std::string name;  ///< "Common"
  std::vector<OptionEntry> options;
};

}  // namespace pd

#endif  // PD_CMD_COMMON_MANUAL_H_
