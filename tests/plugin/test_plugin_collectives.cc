// SPDX-License-Identifier: Apache-2.0
// Devices of a plug-in that work together, each with a thread for a process.
#include "libcore/plugin/plugin_collectives.h"

#include <dlfcn.h>

#include <algorithm>

#include "libcore/kernels/make_registry.h"
#include "libcore/plugin/plugins.h"
#include "tests/dist/thread_transport.h"
#include "tests/plugin/plugin_network.h"

namespace pd {
namespace test_plugin_collectives {

constexpr char kFile[] = PD_PLUGIN_FOLDER "/libpair_device.so";

// Calls of the driver's functions that move data, and members of its groups.
std::pair<size_t, size_t> Counts() {
  void* library = ::dlopen(kFile, RTLD_LAZY);
  std::pair<size_t, size_t> counts;
  if (library == nullptr) return counts;
  const auto read = reinterpret_cast<void (*)(size_t*, size_t*)>(
      ::dlsym(library, "PairCounts"));
  if (read != nullptr) read(&counts.first, &counts.second);
  return counts;
}

// The result of one operation over {1, 2} times rank + 1, in each process.
std::vector<std::vector<float>> Results(CollectiveCall call, size_t ins,
                                        size_t outs) {
  std::vector<std::vector<float>> results(2);
  RunTogether(2, [&](const Communicator& ring) {
    auto device = PluginDevice::Open("pair", ring.rank());
    ASSERT_TRUE(device.ok()) << device.status();
    std::vector<float> in(ins), out(outs, -1);
    for (size_t i = 0; i < ins; ++i)
      in[i] = static_cast<float>((i + 1) * (ring.rank() + 1));
    CollectiveCall mine = call;
    mine.in = in.data();  // its memory is the host's
    mine.out = out.data();
    for (int times = 0; times < 2; ++times) {
      const absl::Status status = (*device)->collectives().Run(mine, ring);
      EXPECT_TRUE(status.ok()) << status;
    }
    results[static_cast<size_t>(ring.rank())] = out;
  });
  return results;
}

TEST(PluginCollectives, AreTheDriversWhereTheyGiveTheHostsNumbers) {
  ASSERT_TRUE(LoadPlugin(kFile).ok());
  const std::vector<std::vector<float>> sums = {{3, 6}, {3, 6}},
                                        all = {{1, 2, 2, 4}, {1, 2, 2, 4}},
                                        largest = {{2, 4}, {2, 4}};
  CollectiveCall call;
  call.count = 2;
  const size_t before = Counts().first;
  EXPECT_EQ(Results(call, 2, 2), sums);
  // Two processes, the trial and two operations.
  EXPECT_EQ(Counts().first - before, 6u);
  EXPECT_EQ(Counts().second, 0u) << "a group was not left";
  call.op = Reduction::kMax;
  EXPECT_EQ(Results(call, 2, 2), largest);
  call.kind = Collective::kAllGather;
  EXPECT_EQ(Results(call, 2, 4), all);
}

TEST(PluginCollectives, AreTheHostsWhereTheDriverMovesNothing) {
  ASSERT_TRUE(LoadPlugin(kFile).ok());
  CollectiveCall call;
  call.kind = Collective::kBroadcast;
  call.count = 2;
  call.root = 1;
  const std::vector<std::vector<float>> of_root = {{2, 4}, {2, 4}};
  EXPECT_EQ(Results(call, 2, 2), of_root);
  // So is a type that the driver's function refuses.
  RunTogether(2, [&](const Communicator& ring) {
    auto device = PluginDevice::Open("pair", ring.rank());
    ASSERT_TRUE(device.ok()) << device.status();
    double number = ring.rank() + 1;
    CollectiveCall refused;
    refused.dtype = DType::kFloat64;
    refused.count = 1;
    refused.in = refused.out = &number;
    const absl::Status status = (*device)->collectives().Run(refused, ring);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(number, 3);
  });
}

TEST(PluginCollectives, AreImplementationsOfTheOperatorsThatTheDriverHas) {
  ASSERT_TRUE(LoadPlugin(kFile).ok());
  auto place = OpenPluginDevice("pair", 1);
  ASSERT_TRUE(place.ok()) << place.status();
  auto registry = MakeRegistry(*place);
  ASSERT_TRUE(registry.ok()) << registry.status();
  ASSERT_TRUE(AddPluginOps(registry->get()).ok());
  const std::pair<const char*, const char*> ops[] = {
      {"c_allreduce_sum", "xccl"},
      {"c_broadcast", "xccl"},
      {"c_allgather", "xccl"},
      {"c_reducescatter", "reference"}};
  for (const auto& [type, implementation] : ops) {
    PluginNetwork network(registry->get());
    network.Feed<float>("x", DType::kFloat32, {2}, {1, 2});
    std::map<std::string, Attribute> attrs;
    if (std::string(type) == "c_allgather" ||
        std::string(type) == "c_reducescatter")
      attrs["nranks"] = int32_t{2};
    ASSERT_TRUE(
        network.Add(type, {{"X", {"x"}}}, {{"Out", {"out"}}}, attrs).ok())
        << type;
    const auto info = network.StepOf("out");
    ASSERT_TRUE(info.ok()) << type << ": " << info.status();
    EXPECT_EQ(info->implementation, implementation) << type;
  }
}

}  // namespace test_plugin_collectives
}  // namespace pd
