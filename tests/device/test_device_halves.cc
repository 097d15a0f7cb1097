// SPDX-License-Identifier: Apache-2.0
// Halves on a device: PaddlePaddle's cases of ops in mixed precision (O2), with
// their gradients. The answers are those of the CPU to a rounding, and
// PaddlePaddle's of float32 as far as halves can tell; the device computes
// without casts that the program does not have.
#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/pdmodel.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/attach.h"
#include "libcore/passes/amp.h"
#include "tests/device/device_plan.h"
#include "tests/ops/compare.h"
#include "tests/ops/golden_case.h"

namespace pd {
namespace test_device_halves {

bool IsHalf(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat16 ||
         tensor.dtype() == DType::kBFloat16;
}
bool HasHalves(const StepVariables& step) {
  for (const auto* tensors : {&step.inputs, &step.outputs})
    for (const auto& [name, tensor] : *tensors)
      if (IsHalf(*tensor)) return true;
  return false;
}

double Largest(const Array& floats) {
  double largest = 0;
  for (int64_t i = 0; i < floats.size(); ++i)
    largest = std::max<double>(largest, std::abs(floats.data<float>()[i]));
  return largest;
}

// Kernels know no float64, and float16 no numbers above 65504.
bool FitsHalves(const GoldenCase& golden) {
  for (const auto& [name, array] : golden.feed)
    if (array.dtype == DType::kFloat64 ||
        (array.dtype == DType::kFloat32 && Largest(array) > 65504))
      return false;
  return true;
}

class HalvesPlan : public DevicePlan {
 protected:
  void SetUp() override {
    DevicePlan::SetUp();
    ASSERT_TRUE(AttachHostKernels(&registry_).ok());
  }

  absl::StatusOr<NamedArrays> RunPlan(Session* session,
                                      const NamedArrays& feeds,
                                      const std::vector<std::string>& fetches) {
    std::vector<FeedSpec> specs;
    for (const auto& [name, array] : feeds)
      specs.push_back({name, array.dtype, array.shape, array.lod});
    PD_ASSIGN_OR_RETURN(const auto plan,
                        session->Compile(program_, specs, fetches));
    size_t i = 0;
    for (const auto& [name, array] : feeds)
      plan->SetFeed(i++, array.bytes.get());
    PD_RETURN_IF_ERROR(plan->Run({7, 0}));
    if (plan->place() != nullptr) Look(*plan);
    NamedArrays answers;
    for (i = 0; i < fetches.size(); ++i)
      answers[fetches[i]] = ToArray(plan->fetch(i));
    return answers;
  }

  // The device's casts are the program's.
  void Look(const Plan& plan) {
    for (size_t i = 0; i < plan.steps().size(); ++i) {
      const StepInfo& step = plan.steps()[i];
      const StepVariables& variables = plan.variables(i);
      if (!step.on_device) continue;
      if (step.op_type == "cast")
        EXPECT_EQ(variables.op.type, "cast")
            << "step " << i << " makes '" << step.output << "'";
      else
        steps_ += HasHalves(variables) ? 1 : 0;
    }
  }

  int steps_ = 0;  // of halves
};

class DeviceHalves
    : public HalvesPlan,
      public ::testing::WithParamInterface<std::tuple<std::string, DType>> {
 protected:
  // In mixed precision, with gradients whose cotangents are halves too.
  absl::Status Build(const GoldenCase& golden, DType half) {
    program_ = golden.forward;
    feeds_ = golden.feed;
    names_.clear();
    AmpSpec spec;
    spec.level = AmpSpec::Level::kO2;
    spec.dtype = half;
    PD_RETURN_IF_ERROR(MixPrecision(registry_, spec, &program_));
    for (const auto& [name, array] : golden.expect)
      if (program_.FindVar(0, name) != nullptr) names_[name] = name;
    if (golden.targets.empty()) return absl::OkStatus();
    for (const auto& [out, cotangent] : golden.targets) {
      const VarDesc* var = golden.program.FindVar(0, cotangent);
      const DType dtype = program_.FindVar(0, out)->dtype;
      if (var == nullptr) continue;
      program_.global().vars.push_back(*var);
      program_.global().vars.back().dtype = dtype;
      Array& fed = feeds_.at(cotangent);
      if (dtype == half) fed = RoundedTo(half, fed);
    }
    BackwardOptions options;
    options.targets = golden.targets;
    options.wrt = golden.inputs;
    PD_ASSIGN_OR_RETURN(const auto grads,
                        AppendBackward(registry_, options, &program_));
    for (const auto& [input, gradient] : golden.grads) {
      const auto it = grads.find(input);
      if (it != grads.end() && golden.expect.count(gradient) > 0)
        names_[gradient] = it->second;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<NamedArrays> Run(const GoldenCase& golden, Session session) {
    if (!golden.startup.blocks.empty())
      PD_RETURN_IF_ERROR(session.RunOnce(golden.startup));
    std::vector<std::string> fetches;
    for (const auto& [want, got] : names_) fetches.push_back(got);
    return RunPlan(&session, feeds_, fetches);
  }

  NamedArrays feeds_;
  std::map<std::string, std::string> names_;  // PaddlePaddle's -> ours
};

TEST_P(DeviceHalves, AreTheCpus) {
  const auto& [name, half] = GetParam();
  const auto cases =
      ReadGoldenCases(absl::StrCat(PD_TESTDATA, "/ops/", name, ".zip"));
  ASSERT_TRUE(cases.ok()) << cases.status();
  // Distance of two neighbours, relatively.
  const double step = half == DType::kFloat16 ? 0x1p-10 : 0x1p-7;
  for (const GoldenCase& golden : *cases) {
    if (!FitsHalves(golden)) continue;
    // Late, where the CPU knows no halves; a sum whose terms nearly cancel.
    static const std::set<std::string> kLeft = {
        "k_tensor", "shape_list", "shape_tensor", "axis_tensor", "zero_target"};
    if (kLeft.count(golden.name) > 0) continue;
    SCOPED_TRACE(golden.name);
    const absl::Status built = Build(golden, half);
    ASSERT_TRUE(built.ok()) << built;
    const auto want = Run(golden, OnCpu()), got = Run(golden, OnGpu());
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    for (const auto& [theirs, ours] : names_) {
      EXPECT_EQ(Difference(got->at(ours), want->at(ours), 2 * step, 1e-6), "")
          << ours;
      const Array& answer = golden.expect.at(theirs);
      if (got->at(ours).dtype != half || answer.dtype != DType::kFloat32)
        continue;
      EXPECT_EQ(Difference(got->at(ours), RoundedTo(half, answer), 4 * step,
                           4 * step * Largest(answer) + 1e-6),
                "")
          << theirs;
    }
  }
  EXPECT_GT(steps_, 0);
}

std::vector<std::string> Zips() {
  const char* const names =
      "relu gelu tanh sigmoid silu swish leaky_relu relu6 hard_swish "
      "hard_sigmoid elu softplus exp log sqrt square abs scale clip pow "
      "elementwise_add elementwise_sub elementwise_mul elementwise_div "
      "elementwise_max elementwise_min elementwise_pow sum reduce_sum "
      "reduce_mean reduce_max reduce_min mean softmax log_softmax "
      "softmax_with_cross_entropy layer_norm batch_norm pool2d dropout "
      "transpose2 reshape2 flatten_contiguous_range concat split slice "
      "stack rsqrt reciprocal softsign log1p thresholded_relu "
      "hard_shrink softshrink logsigmoid tanh_shrink sin cos erf mish "
      "celu selu brelu sign floor ceil round equal not_equal less_than "
      "less_equal greater_than greater_equal label_smooth group_norm "
      "instance_norm prelu maxout huber_loss "
      "sigmoid_cross_entropy_with_logits bce_loss log_loss hinge_loss "
      "kldiv_loss squared_l2_norm clip_by_norm expand_v2 expand_as_v2 "
      "tile bilinear_interp nearest_interp linear_interp "
      "trilinear_interp bicubic_interp top_k_v2 where";
  return absl::StrSplit(names, ' ');
}

INSTANTIATE_TEST_SUITE_P(
    Ops, DeviceHalves,
    ::testing::Combine(::testing::ValuesIn(Zips()),
                       ::testing::Values(DType::kFloat16, DType::kBFloat16)),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_",
                          Name(std::get<1>(info.param)));
    });

// The networks of testdata/amp, and the gradients of their parameters.
class DeviceNetworks : public HalvesPlan,
                       public ::testing::WithParamInterface<
                           std::tuple<const char*, AmpSpec::Level, DType>> {
 protected:
  // Values the network reads: small numbers, labels 1 and 2, variances above 0.
  static Array Numbers(const VarDesc& var) {
    Shape shape = var.shape;
    for (int64_t& extent : shape) extent = extent < 0 ? 3 : extent;
    std::byte* bytes = nullptr;
    Array array = *NewArray(var.dtype, shape, &bytes);
    const Philox numbers(1, static_cast<uint64_t>(array.size()));
    const float least = shape.size() == 1 ? 0.25f : -0.5f;
    for (int64_t i = 0; i < array.size(); ++i) {
      const float number = numbers.Uniform(static_cast<uint64_t>(i));
      if (var.dtype == DType::kInt64)
        reinterpret_cast<int64_t*>(bytes)[i] = number < 0.5f ? 1 : 2;
      else
        reinterpret_cast<float*>(bytes)[i] = number + least;
    }
    return array;
  }

  void Load(const char* network) {
    auto program =
        ReadProgram(absl::StrCat(PD_TESTDATA, "/amp/", network, ".pdmodel"));
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    std::set<std::string> read, written;
    for (const OpDesc& op : program_.global().ops) {
      for (const auto& [slot, names] : op.inputs)
        for (const std::string& name : names)
          if (written.count(name) == 0) read.insert(name);
      for (const auto& [slot, names] : op.outputs)
        written.insert(names.begin(), names.end());
    }
    for (const VarDesc& var : program_.global().vars) {
      if (read.count(var.name) == 0) continue;
      (var.persistable ? parameters_ : feeds_)[var.name] = Numbers(var);
    }
  }

  NamedArrays Run(Session session, const std::vector<std::string>& fetches) {
    for (const auto& [name, array] : parameters_)
      EXPECT_TRUE(session.scope().Set(name, array).ok());
    const auto got = RunPlan(&session, feeds_, fetches);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? *got : NamedArrays();
  }

  NamedArrays feeds_, parameters_;
};

TEST_P(DeviceNetworks, HaveTheCpusGradients) {
  const auto& [network, level, half] = GetParam();
  Load(network);
  AmpSpec spec;
  spec.level = level;
  spec.dtype = half;
  const std::string loss = program_.global().ops.back().Out("Out");
  ASSERT_TRUE(MixPrecision(registry_, spec, &program_).ok());
  BackwardOptions options;
  options.targets[loss] = "";
  const auto grads = AppendBackward(registry_, options, &program_);
  ASSERT_TRUE(grads.ok()) << grads.status();
  std::vector<std::string> fetches = {loss};
  for (const auto& [name, gradient] : *grads) fetches.push_back(gradient);
  const NamedArrays want = Run(OnCpu(), fetches), got = Run(OnGpu(), fetches);
  // Sums of halves in other orders, rounded on the way.
  const double step = half == DType::kFloat16 ? 0x1p-10 : 0x1p-7;
  for (const auto& [name, array] : want) {
    // A norm or a softmax takes these biases off again: their gradients are
    // nothing but roundings.
    if (name == "conv2d_0.b_0@GRAD" || name == "linear_1.b_0@GRAD") continue;
    // In O2 the loss is a half.
    const double largest = array.dtype == half ? 0 : Largest(array);
    EXPECT_EQ(Difference(got.at(name), array, 8 * step, 8 * step * largest), "")
        << name;
  }
  EXPECT_GT(steps_, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Amp, DeviceNetworks,
    ::testing::Combine(
        ::testing::Values("mlp", "lenet", "transformer", "residual"),
        ::testing::Values(AmpSpec::Level::kO1, AmpSpec::Level::kO2),
        ::testing::Values(DType::kFloat16, DType::kBFloat16)),
    [](const auto& info) {
      return absl::StrCat(
          std::get<0>(info.param),
          std::get<1>(info.param) == AmpSpec::Level::kO1 ? "_O1_" : "_O2_",
          Name(std::get<2>(info.param)));
    });

}  // namespace test_device_halves
}  // namespace pd
