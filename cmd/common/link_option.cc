// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/link_option.h"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cmd/common/exit_status.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// A processor's part in a message over TCP: a call of the system, a wake-up.
constexpr double kTcpOverhead = 10e-6;
constexpr int kMostNodes = 1 << 20;

using Units = std::vector<std::pair<absl::string_view, double>>;

// A number above zero, or zero where that is allowed, with a unit behind it.
absl::StatusOr<double> ParseMeasure(const std::string& option,
                                    const std::string& text, const Units& units,
                                    bool may_be_zero) {
  for (const auto& [unit, factor] : units) {
    absl::string_view number = text;
    double value = 0;
    if (!absl::ConsumeSuffix(&number, unit) || number.empty() ||
        !absl::SimpleAtod(number, &value) || !std::isfinite(value) ||
        value < 0 || (value == 0 && !may_be_zero))
      continue;
    return value * factor;
  }
  std::string known;
  for (const auto& [unit, factor] : units)
    absl::StrAppend(&known, known.empty() ? "" : ", ", unit);
  return CommandLineError(absl::StrCat("option '", option, "': '", text,
                                       "' is no number with one of ", known,
                                       " behind it"));
}

absl::StatusOr<double> ParseRate(const std::string& option,
                                 const std::string& text) {
  return ParseMeasure(option, text,
                      {{"Tb", 1e12}, {"Gb", 1e9}, {"Mb", 1e6}, {"Kb", 1e3}},
                      false);
}

absl::StatusOr<double> ParseTime(const std::string& option,
                                 const std::string& text) {
  return ParseMeasure(
      option, text, {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}, true);
}

}  // namespace

absl::StatusOr<LinkModel> ParseLink(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() > 3)
    return CommandLineError(absl::StrCat("option '--link': '", text,
                                         "' is not RATE,LATENCY,OVERHEAD"));
  LinkModel link;
  PD_ASSIGN_OR_RETURN(const double rate, ParseRate("--link", parts[0]));
  link.per_byte = 8 / rate;
  link.overhead = kTcpOverhead;
  if (parts.size() > 1) {
    PD_ASSIGN_OR_RETURN(link.latency, ParseTime("--link", parts[1]));
  }
  if (parts.size() > 2) {
    PD_ASSIGN_OR_RETURN(link.overhead, ParseTime("--link", parts[2]));
  }
  return link;
}

absl::StatusOr<Simulation> ParseSimulation(const std::string& text) {
  const std::string option = "--simulate";
  Simulation simulation;
  simulation.link.overhead = kTcpOverhead;
  std::set<std::string> given;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto& [key, value] = parts;
    if (!given.insert(key).second)
      return CommandLineError(
          absl::StrCat("option '", option, "': '", key, "' is given twice"));
    if (key == "nodes") {
      if (!absl::SimpleAtoi(value, &simulation.nodes) || simulation.nodes < 1 ||
          simulation.nodes > kMostNodes)
        return CommandLineError(absl::StrCat("option '", option, "': nodes='",
                                             value, "' is no number of 1 to ",
                                             kMostNodes));
    } else if (key == "link") {
      PD_ASSIGN_OR_RETURN(const double rate, ParseRate(option, value));
      simulation.link.per_byte = 8 / rate;
    } else if (key == "latency") {
      PD_ASSIGN_OR_RETURN(simulation.link.latency, ParseTime(option, value));
    } else if (key == "overhead") {
      PD_ASSIGN_OR_RETURN(simulation.link.overhead, ParseTime(option, value));
    } else {
      return CommandLineError(
          absl::StrCat("option '", option, "': '", key,
                       "' is none of nodes, link, latency, overhead"));
    }
  }
  for (const char* key : {"nodes", "link"})
    if (given.count(key) == 0)
      return CommandLineError(
          absl::StrCat("option '", option, "': ", key, "= is missing"));
  return simulation;
}

}  // namespace pd
