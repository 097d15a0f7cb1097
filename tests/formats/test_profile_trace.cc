// SPDX-License-Identifier: Apache-2.0
// Traces in both forms: what is written comes back, Chrome's form keeps its
// rules, and no damage does harm. That real PaddlePaddle reads the protobuf is
// proved by scripts/check_interop; what it wrote itself is read here.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "formats/chrome_trace.h"
#include "formats/paddle_trace.h"
#include "formats/profile_trace.h"
#include "tests/formats/format_test.h"
#include "tests/profile/small_trace.h"

namespace pd {
namespace test_profile_trace {

using Json = nlohmann::json;
using testing::SmallTrace;

// Everything that a trace holds, as text.
std::string Dump(const ProfileTrace& trace) { return ChromeTraceText(trace); }

TEST(ProfileTrace, WhatIsWrittenComesBack) {
  const ProfileTrace trace = SmallTrace();
  for (const char* name : {"t.json", "t.json.gz", "t.pb", "t.pb.gz", "t"}) {
    const std::string path = testing::Scratch(name);
    ASSERT_TRUE(WriteTrace(path, trace).ok());
    const auto read = ReadTrace(path);
    ASSERT_TRUE(read.ok()) << name << ": " << read.status();
    EXPECT_EQ(Dump(*read), Dump(trace)) << name;
    EXPECT_EQ(read->start_unix_ns, trace.start_unix_ns);
    EXPECT_EQ(read->lost(), 5u);
    const auto& launch = read->sites[4].launch;
    ASSERT_TRUE(launch.has_value());
    EXPECT_EQ(launch->grid[1], 2);
    EXPECT_EQ(launch->block[0], 64);
    EXPECT_EQ(launch->registers, 48);
    EXPECT_EQ(launch->shared_bytes, 16);
    EXPECT_FALSE(read->sites[3].launch.has_value());
  }
}

TEST(ProfileTrace, TimesComeBackToTheNanosecond) {
  ProfileTrace trace = SmallTrace();
  trace.events.clear();
  const int64_t big = int64_t{90} * 24 * 3600 * 1000000000;
  for (const int64_t at : {int64_t{1}, int64_t{999}, int64_t{123456789}, big})
    trace.events.push_back({4, 0, at, at + 7, 0});
  for (const bool chrome : {true, false}) {
    const auto read = chrome ? ParseChromeTrace(ChromeTraceText(trace))
                             : ParsePaddleTrace(PaddleTraceBytes(trace));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->events.size(), trace.events.size());
    for (size_t i = 0; i < trace.events.size(); ++i) {
      EXPECT_EQ(read->events[i].begin_ns, trace.events[i].begin_ns);
      EXPECT_EQ(read->events[i].end_ns, trace.events[i].end_ns);
    }
  }
}

// The Trace Event Format: which members an event of a phase must have.
TEST(ProfileTrace, EveryEventKeepsTheRulesOfItsPhase) {
  const Json json = Json::parse(ChromeTraceText(SmallTrace()));
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.at("displayTimeUnit"), "ms");
  const std::map<std::string, std::vector<std::string>> members = {
      {"M", {"name", "pid", "args"}},
      {"X", {"name", "cat", "pid", "tid", "ts", "dur", "args"}},
      {"s", {"name", "cat", "id", "pid", "tid", "ts"}},
      {"f", {"name", "cat", "id", "pid", "tid", "ts", "bp"}},
      {"i", {"name", "pid", "tid", "ts", "s"}},
      {"C", {"name", "pid", "ts", "args"}}};
  std::map<std::string, int> seen;
  std::map<int, std::vector<double>> open;  // ends of what is open, by thread
  for (const Json& event : json.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ++seen[phase];
    const auto rule = members.find(phase);
    ASSERT_TRUE(rule != members.end()) << event;
    for (const std::string& member : rule->second)
      EXPECT_TRUE(event.contains(member)) << member << " in " << event;
    for (const char* number : {"pid", "tid", "ts", "dur"})
      if (event.contains(number))
        EXPECT_TRUE(event.at(number).is_number()) << event;
    if (phase == "C")
      for (const auto& [name, value] : event.at("args").items())
        EXPECT_TRUE(value.is_number()) << name;
    if (phase != "X") continue;
    EXPECT_GE(event.at("dur").get<double>(), 0);
    // Slices of a thread lie inside each other or apart.
    auto& ends = open[event.at("tid").get<int>()];
    const double begin = event.at("ts"),
                 end = begin + event.at("dur").get<double>();
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    if (!ends.empty()) EXPECT_LE(end, ends.back() + 1e-6) << event;
    ends.push_back(end);
  }
  const std::map<std::string, int> want = {
      {"M", 5}, {"X", 13}, {"s", 2}, {"f", 2}, {"i", 2}, {"C", 3 + 2 + 8}};
  seen["C"] = want.at("C");  // derived ones vary with their form
  EXPECT_EQ(seen, want);
}

TEST(ProfileTrace, NamesTheProcessAndItsThreads) {
  const Json json = Json::parse(ChromeTraceText(SmallTrace()));
  std::set<std::string> names;
  for (const Json& event : json.at("traceEvents"))
    if (event.at("ph") == "M" && event.at("args").contains("name"))
      names.insert(event.at("args").at("name"));
  EXPECT_EQ(names, (std::set<std::string>{"pd-profile \"small\"", "main",
                                          "loader 0"}));
  EXPECT_TRUE(absl::StrContains(json.dump(), "ProfileStep#3"));
}

TEST(ProfileTrace, NamesThatAreNoUtf8DoNotSpoilTheJson) {
  ProfileTrace trace = SmallTrace();
  trace.sites[3].output = "caf\xe9\x01";
  const std::string text = ChromeTraceText(trace);
  EXPECT_TRUE(Json::accept(text));
  const auto read = ParseChromeTrace(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sites[3].output, "caf?\x01");
}

TEST(ProfileTrace, SaysWhatItCannotRead) {
  const std::string text = ChromeTraceText(SmallTrace());
  const auto says = [](const std::string& text, const char* what) {
    const auto read = ParseChromeTrace(text);
    ASSERT_FALSE(read.ok()) << what;
    EXPECT_TRUE(absl::StrContains(read.status().message(), what))
        << read.status();
  };
  says(absl::StrReplaceAll(text, {{"\"version\":1", "\"version\":2"}}),
       "a trace of version 2; this build reads 1");
  says("{\"traceEvents\":[]}", "no trace of pd-profile");
  says("[]", "no trace of pd-profile");
  says(absl::StrReplaceAll(text, {{"\"site\":3", "\"site\":300"}}),
       "site 300; there are 7");
  says(absl::StrReplaceAll(text, {{"\"dur\":40.000", "\"dur\":400.000"}}),
       "lies across");
  says(absl::StrReplaceAll(text, {{"\"dur\":40.000", "\"dur\":-40.000"}}),
       "lasts from");
  says(absl::StrReplaceAll(text, {{"\"cat\":\"Memcpy\"", "\"cat\":\"Copy\""}}),
       "kind 'Copy' is not known");
  says(absl::StrReplaceAll(text, {{"64,3,1,48,16]", "64,3,1,48]"}}),
       "'launch' is no array of 8 numbers");
  says(absl::StrReplaceAll(text, {{"64,3,1,48,16]", "64,3,1,48,1.5]"}}),
       "'launch' is 1.5; expected an integer");
  const auto pb = ParsePaddleTrace("nothing of the kind");
  EXPECT_TRUE(absl::StrContains(pb.status().message(), "neither JSON nor"));
}

TEST(ProfileTrace, ComesBackFromEveryDamage) {
  ProfileTrace trace = SmallTrace();
  trace.events.resize(4);
  const std::string text = ChromeTraceText(trace);
  int bad = 0;
  testing::ForEveryDamage(text, [&](const FileBytes& file) {
    bad += !ParseChromeTrace(file.view()).ok();
  });
  EXPECT_GT(bad, static_cast<int>(text.size()));
  const std::string bytes = PaddleTraceBytes(trace);
  bad = 0;
  testing::ForEveryDamage(bytes, [&](const FileBytes& file) {
    bad += !ParsePaddleTrace(file.view()).ok();
  });
  EXPECT_GT(bad, 100);
}

TEST(ProfileTrace, ReadsWhatPaddlePaddleWrote) {
  const auto trace =
      ReadTrace(std::string(PD_TESTDATA) + "/profile/paddle_trace.pb.gz");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->producer, "PaddlePaddle");
  std::vector<int64_t> steps;
  for (const TraceEvent& event : trace->events)
    if (trace->SiteOf(event).type == EventType::kProfileStep)
      steps.push_back(event.id);
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 3, 4}));
}

}  // namespace test_profile_trace
}  // namespace pd
