// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/kernel_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "hwy/targets.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/parallel.h"
#include "libcore/base/rng.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/kernels/cuda/place.h"
#include "libcore/passes/pipeline.h"
#include "libcore/program/block_builder.h"
#include "tests/device/fake_driver.h"

namespace pd {
namespace {

// PD_TEST_ISA=avx2 holds our kernels to AVX2; ONEDNN_MAX_CPU_ISA does it for
// oneDNN.
class IsaEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    SetThreads(2);
    const char* isa = std::getenv("PD_TEST_ISA");
    if (isa == nullptr || std::strcmp(isa, "avx2") != 0) return;
    hwy::SetSupportedTargetsForTest(HWY_AVX2);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};
const ::testing::Environment* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new IsaEnvironment);

const char* WantedDevice() { return std::getenv("PD_TEST_DEVICE"); }

// The GPU of fast kernels; null for the CPU.
std::shared_ptr<const DevicePlace> FastPlace() {
  static const auto* const kPlace = [] {
    const char* which = WantedDevice();
    if (which == nullptr) return new std::shared_ptr<const DevicePlace>;
    const bool real = std::strcmp(which, "gpu") == 0;
    if (!real) {
      EXPECT_TRUE(UseFakeDriver().ok());
    }
    const auto place = real ? OpenGpu(0) : MakePlace(0, FakeDriverImages());
    EXPECT_TRUE(place.ok()) << place.status();
    return new std::shared_ptr<const DevicePlace>(place.ok() ? *place
                                                             : nullptr);
  }();
  return *kPlace;
}

const OpRegistry& Registry(bool fast) {
  static const OpRegistry* const kRegistries[2] = {
      [] {
        auto* r = new OpRegistry;
        EXPECT_TRUE(RegisterAllOps(r).ok());
        return r;
      }(),
      [] {
        auto* r = new OpRegistry;
        EXPECT_TRUE(RegisterAllOps(r).ok());
        EXPECT_TRUE(AttachAllKernels(r).ok());
        r->SetDevice(FastPlace());
        return r;
      }()};
  return *kRegistries[fast ? 1 : 0];
}

VarDesc Declare(const std::string& name, const Array& value) {
  VarDesc var;
  var.name = name;
  var.dtype = value.dtype;
  var.shape = value.shape;
  return var;
}

void AddVar(KernelCase* c, VarDesc var) {
  if (c->program.blocks.empty()) c->program.blocks.resize(1);
  c->program.global().vars.push_back(std::move(var));
}

void ExpectClose(const std::string& name, const Array& got, const Array& want,
                 double tolerance) {
  ASSERT_EQ(got.shape, want.shape) << name;
  ASSERT_EQ(got.dtype, want.dtype) << name;
  if (got.dtype != DType::kFloat32) {
    EXPECT_EQ(std::memcmp(got.bytes.get(), want.bytes.get(), want.size_bytes()),
              0)
        << "'" << name << "' is other than the reference's";
    return;
  }
  const auto* a = reinterpret_cast<const float*>(got.bytes.get());
  const auto* b = reinterpret_cast<const float*>(want.bytes.get());
  double largest = 0;
  for (int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(b[i]))
      largest = std::max(largest, std::fabs(double{b[i]}));
  for (int64_t i = 0; i < want.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const double difference = std::fabs(double{a[i]} - double{b[i]});
    if (a[i] == b[i] || difference <= tolerance * (1 + largest)) continue;
    ADD_FAILURE() << "'" << name << "' element " << i << ": " << a[i]
                  << "; the reference gives " << b[i];
    return;
  }
}

}  // namespace

bool OnDevice() { return WantedDevice() != nullptr; }

Array RandomArray(const Shape& shape, uint64_t number) {
  std::byte* bytes = nullptr;
  Array array = *NewArray(DType::kFloat32, shape, &bytes);
  const Philox random(7, number);
  for (int64_t i = 0; i < array.size(); ++i)
    reinterpret_cast<float*>(bytes)[i] =
        static_cast<float>(random.Normal(static_cast<uint64_t>(i)));
  return array;
}

Array LabelArray(const Shape& shape, int64_t classes, uint64_t number) {
  std::byte* bytes = nullptr;
  Array array = *NewArray(DType::kInt64, shape, &bytes);
  const Philox random(7, number);
  for (int64_t i = 0; i < array.size(); ++i)
    reinterpret_cast<int64_t*>(bytes)[i] =
        random.U32(static_cast<uint64_t>(i)) % static_cast<uint64_t>(classes);
  return array;
}

void Feed(KernelCase* c, const std::string& name, Array value) {
  AddVar(c, Declare(name, value));
  c->feeds[name] = std::move(value);
}

void Parameter(KernelCase* c, const std::string& name, Array value) {
  VarDesc var = Declare(name, value);
  var.persistable = var.is_parameter = true;
  AddVar(c, std::move(var));
  c->persistables[name] = std::move(value);
}

void Append(KernelCase* c, OpDesc op) {
  BlockBuilder builder(&Registry(false), &c->program);
  const absl::Status status = builder.Append(std::move(op));
  ASSERT_TRUE(status.ok()) << status;
}

std::vector<std::string> FusedActivations() {
#ifdef PD_WITH_SANITIZER
  return {"relu6"};
#else
  return {"", "relu", "relu6"};
#endif
}

KernelCase FusedConv(const ConvShape& s, const std::string& activation) {
  KernelCase c;
  c.frozen = true;
  Feed(&c, "x", RandomArray({s.batch, s.in, s.height, s.width}, 1));
  Parameter(&c, "w", RandomArray({s.out, s.in, s.kernel, s.kernel}, 2));
  Parameter(&c, "b", RandomArray({s.out}, 3));
  OpDesc relu;
  relu.type = "relu";
  relu.SetInput("X", {"x"});
  relu.SetOutput("Out", {"made"});
  Append(&c, relu);
  OpDesc op;
  op.type = "fused_conv2d";
  op.SetInput("Input", {"made"});
  op.SetInput("Filter", {"w"});
  op.SetInput("Bias", {"b"});
  op.SetOutput("Output", {"y"});
  op.attrs["strides"] = std::vector<int32_t>{s.stride, s.stride};
  op.attrs["paddings"] = std::vector<int32_t>{s.pad, s.pad};
  op.attrs["dilations"] = std::vector<int32_t>{s.dilation, s.dilation};
  op.attrs["fuse_activation"] = activation;
  op.attrs["fuse_alpha"] = 12.0f;  // among the numbers
  Append(&c, op);
  c.fetches = {"y"};
  return c;
}

KernelCase ResidualConv(const ConvShape& s, bool itself) {
  KernelCase c = FusedConv(s, "relu");
  const auto extent = [&s](int64_t in) {
    return (in + 2 * s.pad - s.dilation * (s.kernel - 1) - 1) / s.stride + 1;
  };
  Feed(&c, "r",
       RandomArray({s.batch, s.out, extent(s.height), extent(s.width)}, 4));
  c.program.global().ops.back().SetInput("ResidualData",
                                         {itself ? "made" : "r"});
  return c;
}

KernelResult RunCase(const KernelCase& original, bool fast) {
  KernelCase c = original;
  KernelResult result;
  std::vector<std::string> fetches = c.fetches;
  if (!c.wrt.empty()) {
    const std::string& target = c.fetches.front();
    const VarDesc* var = c.program.FindVar(0, target);
    Feed(&c, "cotangent", RandomArray(var->shape, 99));
    BackwardOptions options;
    options.targets[target] = "cotangent";
    options.wrt = c.wrt;
    const auto gradients = AppendBackward(Registry(fast), options, &c.program);
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    if (!gradients.ok()) return result;
    for (const std::string& name : c.wrt)
      fetches.push_back(gradients->at(name));
  }
  Session session(&Registry(fast));
  PlanOptions plan_options;
  plan_options.poison = true;
  plan_options.frozen = c.frozen;
  session.set_plan_options(plan_options);
  PassOptions passes;  // the ops of the case, as they are
  for (const Pass& pass : AllPasses()) passes.disabled.insert(pass.name);
  session.set_pass_options(passes);
  for (const auto& [name, value] : c.persistables) {
    EXPECT_TRUE(
        session.scope().GetOrCreate(name, value.dtype, value.shape).ok());
    EXPECT_TRUE(session.scope().Set(name, value).ok());
  }
  std::vector<FeedSpec> feeds;
  for (const auto& [name, value] : c.feeds)
    feeds.push_back({name, value.dtype, value.shape});
  auto plan = session.Compile(c.program, feeds, fetches);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return result;
  size_t i = 0;
  for (const auto& [name, value] : c.feeds)
    (*plan)->SetFeed(i++, value.bytes.get());
  const absl::Status status = (*plan)->Run({});
  EXPECT_TRUE(status.ok()) << status;
  for (size_t f = 0; f < fetches.size(); ++f)
    result.values[fetches[f]] = ToArray((*plan)->fetch(f));
  for (const auto& [name, value] : c.persistables) {
    auto array = session.scope().Get(name);
    EXPECT_TRUE(array.ok());
    if (array.ok()) result.values[name] = *std::move(array);
  }
  for (const StepInfo& step : (*plan)->steps()) {
    result.labels[step.op_type] = step.implementation;
    if (!step.on_device) result.on_host.insert(step.op_type);
  }
  return result;
}

void ExpectLikeReference(const KernelCase& c,
                         const std::map<std::string, std::string>& labels,
                         double tolerance) {
  const KernelResult want = RunCase(c, false);
  const KernelResult got = RunCase(c, true);
  for (const auto& [type, label] : labels) {
    const auto it = got.labels.find(type);
    ASSERT_TRUE(it != got.labels.end()) << "no step '" << type << "'";
    if (!OnDevice()) {
      EXPECT_EQ(it->second, label) << type;
    }
  }
  for (const std::string& type : got.on_host)
    EXPECT_TRUE(!OnDevice() || !absl::StartsWith(type, "int8_"))
        << type << " is the CPU's";
  ASSERT_EQ(got.values.size(), want.values.size());
  for (const auto& [name, value] : want.values)
    ExpectClose(name, got.values.at(name), value, tolerance);
  // The same bits every time.
  const KernelResult again = RunCase(c, true);
  for (const auto& [name, value] : got.values)
    EXPECT_EQ(std::memcmp(value.bytes.get(), again.values.at(name).bytes.get(),
                          value.size_bytes()),
              0)
        << name << " differs from run to run";
}

}  // namespace pd
