// SPDX-License-Identifier: Apache-2.0
// Plans on the device of a plug-in whose addresses the host cannot follow.
#include <dlfcn.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/plugin/driver_tracer.h"
#include "libcore/plugin/plugin_device.h"
#include "libcore/plugin/plugins.h"
#include "tests/plugin/expect_refused.h"
#include "tests/plugin/plugin_network.h"

namespace pd {
namespace test_plugin_device {

absl::StatusOr<std::unique_ptr<OpRegistry>> OnDevice(int id) {
  PD_RETURN_IF_ERROR(LoadPlugin(PD_PLUGIN_FOLDER "/libsmall_device.so"));
  PD_ASSIGN_OR_RETURN(auto place, OpenPluginDevice("small", id));
  PD_ASSIGN_OR_RETURN(auto registry, MakeRegistry(place));
  PD_RETURN_IF_ERROR(AddPluginOps(registry.get()));
  return registry;
}

TEST(PluginDevice, ComputesWhatItHasKernelsForAndTheHostTheRest) {
  auto registry = OnDevice(3);
  ASSERT_TRUE(registry.ok()) << registry.status();
  PluginNetwork network(registry->get());
  network.Feed<float>("x", DType::kFloat32, {1, 2}, {1, -2});
  network.Feed<float>("y", DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(network
                  .Add("matmul_v2", {{"X", {"x"}}, {"Y", {"y"}}},
                       {{"Out", {"product"}}})
                  .ok());
  ASSERT_TRUE(network
                  .Add("scale", {{"X", {"product"}}}, {{"Out", {"half"}}},
                       {{"scale", -0.5f}})
                  .ok());
  ASSERT_TRUE(network.Add("relu", {{"X", {"half"}}}, {{"Out", {"out"}}}).ok());
  const auto product = network.StepOf("product"), half = network.StepOf("half");
  ASSERT_TRUE(product.ok() && half.ok()) << product.status() << half.status();
  EXPECT_EQ(product->implementation, "plugin:matmul");
  EXPECT_TRUE(product->on_device);
  EXPECT_FALSE(half->on_device);
  ExpectValues<float>(network.Run("product"), {1, 2}, {-5, -6});
  ExpectValues<float>(network.Run("half"), {1, 2}, {2.5, 3});
  ExpectValues<float>(network.Run("out"), {1, 2}, {2.5, 3});
}

TEST(PluginDevice, TellsWhatItsKernelsRefuse) {
  auto registry = OnDevice(0);
  ASSERT_TRUE(registry.ok()) << registry.status();
  PluginNetwork network(registry->get());
  network.Feed<float>("x", DType::kFloat32, {1, 2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(
      network.Add("matmul_v2", {{"X", {"x"}}, {"Y", {"x"}}}, {{"Out", {"out"}}})
          .ok());
  const absl::Status status = network.Run("out").status();
  EXPECT_TRUE(
      absl::StrContains(status.message(), "this device knows matrices only"))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "libsmall_device.so', kernel 'matmul'"))
      << status;
}

// relu(x) + x x, on a device with blas_axpby.
void ExpectSumBy(const OpRegistry* registry, const char* implementation) {
  PluginNetwork network(registry);
  network.Feed<float>("x", DType::kFloat32, {2, 2}, {1, -2, 3, -4});
  ASSERT_TRUE(network.Add("relu", {{"X", {"x"}}}, {{"Out", {"a"}}}).ok());
  ASSERT_TRUE(
      network.Add("matmul_v2", {{"X", {"x"}}, {"Y", {"x"}}}, {{"Out", {"b"}}})
          .ok());
  ASSERT_TRUE(network.Add("sum", {{"X", {"a", "b"}}}, {{"Out", {"out"}}}).ok());
  ASSERT_TRUE(
      network.Add("sum", {{"X", {"a", "out", "a"}}}, {{"Out", {"more"}}}).ok());
  const auto info = network.StepOf("out");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->implementation, implementation);
  ExpectValues<float>(network.Run("out"), {2, 2}, {-4, 6, -6, 10});
  ExpectValues<float>(network.Run("more"), {2, 2}, {-2, 6, 0, 10});
}

TEST(PluginDevice, AddsGradientsByTheDriversFunctionWhereThatWorks) {
  auto registry = OnDevice(0);
  ASSERT_TRUE(registry.ok()) << registry.status();
  ExpectSumBy(registry->get(), "blas_axpby");
  // A driver whose function does nothing.
  void* library = ::dlopen(PD_PLUGIN_FOLDER "/libsmall_device.so", RTLD_LAZY);
  ASSERT_NE(library, nullptr);
  const auto set_idle =
      reinterpret_cast<void (*)(bool)>(::dlsym(library, "SmallSumsAreIdle"));
  ASSERT_NE(set_idle, nullptr);
  set_idle(true);
  ExpectSumBy(registry->get(), "reference");
  set_idle(false);
}

TEST(PluginDevice, SaysHowMuchMemoryIsFree) {
  ASSERT_TRUE(LoadPlugin(PD_PLUGIN_FOLDER "/libsmall_device.so").ok());
  auto place = OpenPluginDevice("small", 0);
  ASSERT_TRUE(place.ok()) << place.status();
  auto half = (*place)->device->Allocate(size_t{20} << 20);
  ASSERT_TRUE(half.ok()) << half.status();
  auto other = (*place)->device->Allocate(size_t{20} << 20);
  ASSERT_TRUE(other.ok()) << other.status();
  auto memory = (*place)->device->Allocate(size_t{30} << 20);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(
      absl::StrContains(memory.status().message(), "24 of 64 MiB are free"))
      << memory.status();
  memory = (*place)->device->Allocate(size_t{40} << 20);
  EXPECT_TRUE(absl::StrContains(memory.status().message(),
                                "gives at most 32 MiB of memory in one piece"))
      << memory.status();
  const std::string text = "bytes that travel";
  auto there = (*place)->device->Allocate(text.size());
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_TRUE((*place)->device->Holds(there->get()));
  EXPECT_FALSE((*place)->device->Holds(text.data()));
  std::string back(text.size(), ' ');
  Device& device = *(*place)->device;
  ASSERT_TRUE(device.ToDevice(there->get(), text.data(), text.size()).ok());
  ASSERT_TRUE(device.ToHost(back.data(), there->get(), text.size()).ok());
  EXPECT_EQ(back, text);
  ASSERT_TRUE(device.Clear(there->get(), text.size()).ok());
  ASSERT_TRUE(device.ToHost(back.data(), there->get(), text.size()).ok());
  EXPECT_EQ(back, std::string(text.size(), '\0'));
}

TEST(PluginDevice, LooksForNanOnTheHost) {
  ASSERT_TRUE(LoadPlugin(PD_PLUGIN_FOLDER "/libsmall_device.so").ok());
  auto place = OpenPluginDevice("small", 0);
  ASSERT_TRUE(place.ok()) << place.status();
  Device& device = *(*place)->device;
  const double infinity = std::numeric_limits<double>::infinity();
  const auto find = [&](const std::vector<double>& numbers) {
    const size_t bytes = numbers.size() * sizeof(double);
    auto there = device.Allocate(bytes), found = device.Allocate(64);
    EXPECT_TRUE(there.ok() && found.ok());
    EXPECT_TRUE(device.ToDevice(there->get(), numbers.data(), bytes).ok());
    EXPECT_TRUE(device.Clear(found->get(), sizeof(NonFinite)).ok());
    NonFiniteRequest request;
    request.count = 1;
    request.values[0] = {there->get(), static_cast<int64_t>(numbers.size()),
                         static_cast<NonFinite*>(found->get()),
                         DType::kFloat64};
    EXPECT_TRUE((*place)->find_non_finite(&device, request).ok());
    NonFinite got;
    EXPECT_TRUE(device.ToHost(&got, found->get(), sizeof(got)).ok());
    return got;
  };
  const NonFinite bad = find({1, NAN, infinity, -infinity, infinity});
  EXPECT_EQ(bad.nan, 1u);
  EXPECT_EQ(bad.inf, 3u);
  EXPECT_EQ(bad.plus, 2u);
  EXPECT_GT(bad.largest, 0x7f800000u);
  const NonFinite good = find({1, -1e300});
  EXPECT_EQ(good.nan + good.inf, 0u);
  EXPECT_LT(good.largest, 0x7f800000u);
}

// A trace of two rows: the thread's, and the device's own.
ProfileTrace TraceFromNow() {
  ProfileTrace trace;
  trace.start_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  trace.threads = {{1, "main", 0}, {2, "small:3 v7", 0}};
  trace.sites.resize(1);
  trace.sites[0].name = "step";
  trace.events = {{0, 0, 1, 5, 0}, {0, 1, 2, 4, 0}};
  return trace;
}

TEST(PluginDevice, TellsTheTraceOfItsDriver) {
  auto registry = OnDevice(3);
  ASSERT_TRUE(registry.ok()) << registry.status();
  auto place = OpenPluginDevice("small", 3);
  ASSERT_TRUE(place.ok()) << place.status();
  ProfileTrace trace = TraceFromNow();
  auto tracer = DriverTracer::Open(
      std::static_pointer_cast<PluginDevice>((*place)->device));
  ASSERT_TRUE(tracer.ok()) << tracer.status();
  ASSERT_NE(*tracer, nullptr);
  ASSERT_TRUE((*tracer)->Start().ok());
  PluginNetwork network(registry->get());
  network.Feed<float>("x", DType::kFloat32, {1, 2}, {1, -2});
  network.Feed<float>("y", DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(network
                  .Add("matmul_v2", {{"X", {"x"}}, {"Y", {"y"}}},
                       {{"Out", {"product"}}})
                  .ok());
  ExpectValues<float>(network.Run("product"), {1, 2}, {-5, -6});
  ASSERT_TRUE((*tracer)->Stop().ok());
  (*tracer)->AddTo(&trace);
  ASSERT_TRUE(CheckTrace(trace).ok()) << CheckTrace(trace);
  // The step of 'main', the call and the product; the device's own row is
  // empty, and the copy was before the window.
  ASSERT_EQ(trace.events.size(), 3u);
  std::map<std::string, TraceEvent> by_row;
  for (const TraceEvent& event : trace.events)
    by_row[trace.threads[event.thread].name] = event;
  ASSERT_EQ(by_row.count("main"), 1u);
  ASSERT_EQ(by_row.count("small calls of thread 99"), 1u);
  ASSERT_EQ(by_row.count("small:3 stream 7"), 1u);
  const TraceEvent &call = by_row["small calls of thread 99"],
                   &product = by_row["small:3 stream 7"];
  EXPECT_EQ(trace.SiteOf(call).type, EventType::kCudaRuntime);
  EXPECT_EQ(trace.SiteOf(product).type, EventType::kKernel);
  EXPECT_EQ(trace.SiteOf(product).name, "small_product");
  ASSERT_TRUE(trace.SiteOf(product).launch.has_value());
  EXPECT_EQ(trace.SiteOf(product).launch->grid[0], 1);
  EXPECT_NE(call.id, 0);
  EXPECT_EQ(call.id, product.id);
  EXPECT_EQ(call.begin_ns, product.begin_ns);
  EXPECT_GE(product.begin_ns, 0);
}

TEST(PluginDevice, LeavesOutEventsOfNoProfiler) {
  ASSERT_TRUE(LoadPlugin(PD_PLUGIN_FOLDER "/libsmall_device.so").ok());
  auto place = OpenPluginDevice("small", 0);
  ASSERT_TRUE(place.ok()) << place.status();
  int other = 0, event = 0;
  profiler_add_device_trace_event(reinterpret_cast<C_Profiler>(&other), &event);
  auto tracer = DriverTracer::Open(
      std::static_pointer_cast<PluginDevice>((*place)->device));
  ASSERT_TRUE(tracer.ok() && *tracer != nullptr) << tracer.status();
  ASSERT_TRUE((*tracer)->Start().ok());
  profiler_add_runtime_trace_event(reinterpret_cast<C_Profiler>(tracer->get()),
                                   nullptr);
  ASSERT_TRUE((*tracer)->Stop().ok());
  ProfileTrace trace = TraceFromNow();
  (*tracer)->AddTo(&trace);
  EXPECT_EQ(trace.events.size(), 2u);
}

TEST(PluginDevice, IsFoundByTypeAndNumber) {
  ASSERT_TRUE(LoadPlugin(PD_PLUGIN_FOLDER "/libsmall_device.so").ok());
  EXPECT_TRUE(absl::StrContains(OpenPluginDevice("small", 1).status().message(),
                                "has no device 1; it has 0, 3"));
  const absl::Status large = OpenPluginDevice("large", 0).status();
  EXPECT_TRUE(absl::StrContains(
      large.message(), "no plug-in drives devices of type 'large', but of '"))
      << large;
  EXPECT_TRUE(absl::StrContains(large.message(), "'small'")) << large;
}

// GoogleTest runs a suite of death tests first: no other library has declared
// kernels by then.
TEST(PluginDeviceDeathTest, NeedsATypeAndItsFunctions) {
  ExpectRefused("bad_device_copy",
                "device 'small': its table lacks memory_copy_d2h, which every "
                "device needs");
  ExpectRefused("bad_device_type", "its InitPlugin names no device_type");
}

}  // namespace test_plugin_device
}  // namespace pd
