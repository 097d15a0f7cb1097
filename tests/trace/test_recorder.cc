// SPDX-License-Identifier: Apache-2.0
// Rings under one and several threads: nothing is made up, what is lost is
// counted, and an event costs no memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "formats/profile_trace.h"
#include "libcore/trace/recorder.h"

namespace {
std::atomic<long> g_allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  ++g_allocations;
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++g_allocations;
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pd {
namespace {

std::vector<std::string> Names(const ProfileTrace& trace) {
  std::vector<std::string> names;
  for (const TraceEvent& event : trace.events)
    names.push_back(trace.SiteOf(event).name);
  return names;
}

TEST(Recorder, KeepsWhatHappensBetweenStartAndStop) {
  Recorder& recorder = Recorder::Get();
  recorder.Prepare(1000);
  { RecordEvent before("before"); }
  recorder.Start();
  {
    RecordEvent outer("outer");
    RecordEvent inner("inner", EventType::kDataloader);
    inner.set_id(7);
    inner.End();
    RecordEvent second("second");
  }
  recorder.Stop();
  { RecordEvent after("after"); }
  const ProfileTrace trace = recorder.Collect();
  EXPECT_TRUE(CheckTrace(trace).ok()) << CheckTrace(trace);
  EXPECT_EQ(Names(trace),
            (std::vector<std::string>{"outer", "inner", "second"}));
  EXPECT_EQ(trace.events[1].id, 7);
  EXPECT_EQ(trace.SiteOf(trace.events[1]).type, EventType::kDataloader);
  EXPECT_EQ(trace.lost(), 0u);
  EXPECT_EQ(trace.sites.size(), 3u);  // those that were used
  recorder.Start();
  recorder.Stop();
  EXPECT_TRUE(recorder.Collect().events.empty());
}

TEST(Recorder, CountsWhatTheRingForgets) {
  Recorder& recorder = Recorder::Get();
  std::thread([&] {
    Recorder::NameThisThread("small ring");
    recorder.Prepare(64);
    recorder.Start();
    for (int i = 0; i < 200; ++i) {
      RecordEvent event("one of many");
      event.set_id(i + 1);
    }
    recorder.Stop();
  }).join();
  const ProfileTrace trace = recorder.Collect();
  ASSERT_EQ(trace.threads.size(), 1u);
  EXPECT_EQ(trace.threads[0].name, "small ring");
  // The slot that may be written next counts as lost, too.
  EXPECT_EQ(trace.events.size(), 63u);
  EXPECT_EQ(trace.lost(), 200u - 63);
  EXPECT_EQ(trace.events.front().id, 138);
  EXPECT_EQ(trace.events.back().id, 200);
  recorder.Prepare();
}

TEST(Recorder, AnEventAllocatesNothing) {
  Recorder& recorder = Recorder::Get();
  recorder.Prepare();
  const SiteId site = recorder.SiteOf(EventType::kUserDefined, "cheap");
  recorder.Start();
  const long before = g_allocations;
  for (int i = 0; i < 1000; ++i) RecordEvent event(site);
  EXPECT_EQ(g_allocations, before);
  recorder.Stop();
}

// For thread sanitizers: threads come, record and go while others collect.
TEST(Recorder, ThreadsMayRecordWhileATraceIsCollected) {
  Recorder& recorder = Recorder::Get();
  recorder.Prepare(256);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        RecordEvent outer("outer");
        RecordEvent inner("inner");
      }
    });
  std::set<std::string> names;
  for (int round = 0; round < 50; ++round) {
    recorder.Start();
    { RecordEvent mine("mine"); }
    std::this_thread::yield();
    recorder.Stop();
    const ProfileTrace trace = recorder.Collect();
    ASSERT_TRUE(CheckTrace(trace).ok()) << CheckTrace(trace);
    for (const std::string& name : Names(trace)) names.insert(name);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(names.count("mine"), 1u);
  for (const std::string& name : names)
    EXPECT_TRUE(name == "outer" || name == "inner" || name == "mine") << name;
  recorder.Prepare();
}

}  // namespace
}  // namespace pd
