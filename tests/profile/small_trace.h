// SPDX-License-Identifier: Apache-2.0
// A trace small enough to be worked out by hand: two steps of 100 us.
#ifndef PD_TESTS_PROFILE_SMALL_TRACE_H_
#define PD_TESTS_PROFILE_SMALL_TRACE_H_

#include <string>
#include <utility>

#include "formats/profile_trace.h"

namespace pd::testing {

inline TraceSite Site(EventType type, std::string name) {
  TraceSite site;
  site.type = type;
  site.name = std::move(name);
  return site;
}

// Step 3: 10 us of data, conv 40, relu 20, a reorder 5 (us). Step 4: 20 of
// data, conv 30, relu 30. The loader works meanwhile.
inline ProfileTrace SmallTrace() {
  ProfileTrace trace;
  trace.producer = "pdkit";
  trace.process = 77;
  trace.process_name = "pd-profile \"small\"";
  trace.start_unix_ns = 1234567890123456789;
  trace.first_step = 3;
  trace.threads = {{77, "main", 0}, {78, "loader 0", 5}};
  trace.sites = {Site(EventType::kProfileStep, "ProfileStep"),
                 Site(EventType::kDataloader, "DataLoader"),
                 Site(EventType::kForward, "Forward"),
                 Site(EventType::kOperator, "conv2d"),
                 Site(EventType::kOperator, "relu"),
                 Site(EventType::kMemcpy, "reorder"),
                 Site(EventType::kUserDefined, "make batch")};
  TraceSite& conv = trace.sites[3];
  conv.output = "conv1.tmp_0";
  conv.implementation = "onednn:blocked";
  conv.layer = "/conv1/";
  conv.plan = 0;
  conv.index = 1;
  conv.flops = 400000;
  conv.bytes_read = 3000;
  conv.bytes_written = 1000;
  conv.alive_bytes = 4096;
  conv.refusals = {"cpu:batch_inner: the batch is 1"};
  trace.sites[4].plan = 0;
  trace.sites[4].index = 2;
  trace.sites[4].output = "relu1.tmp_0";
  trace.sites[4].implementation = "cpu:rows";
  trace.sites[4].launch = TraceLaunch{{7, 2, 1}, {64, 3, 1}, 48, 16};
  const auto add = [&](uint32_t site, uint32_t thread, int64_t from, int64_t to,
                       int64_t id) {
    trace.events.push_back({site, thread, from * 1000, to * 1000, id});
  };
  add(0, 0, 0, 100, 3);
  add(1, 0, 0, 10, 91);
  add(2, 0, 11, 90, 0);
  add(5, 0, 11, 16, 0);
  add(3, 0, 20, 60, 0);
  add(4, 0, 65, 85, 0);
  add(0, 0, 101, 201, 4);
  add(1, 0, 101, 121, 92);
  add(2, 0, 122, 200, 0);
  add(3, 0, 122, 152, 0);
  add(4, 0, 160, 190, 0);
  add(6, 1, 0, 8, 91);
  add(6, 1, 10, 40, 92);
  SortEvents(&trace);
  trace.counters = {{"resident memory", "MB", {{100000, 12.5}, {201000, 13}}},
                    {"cores busy", "cores", {{0, 1.25}}}};
  trace.peak = {
      {"conv1.tmp_0", 1000, "conv2d -> conv1.tmp_0", "relu -> relu1.tmp_0"}};
  trace.peak_bytes = 4096;
  trace.facts = {{"cpu", "a \xc2\xb5 machine"},
                 {"threads", "2"},
                 {"records", "128"},
                 {"Process Cpu Utilization", "0.5"},
                 {"peak GFLOP/s", "100"},
                 {"triad GB/s", "10"},
                 {"triad bytes", "1000"}};
  return trace;
}

}  // namespace pd::testing

#endif  // PD_TESTS_PROFILE_SMALL_TRACE_H_
