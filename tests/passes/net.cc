// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/net.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_join.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/verifier.h"

namespace pd {
namespace {

Array Numbers(const Shape& shape, float scale) {
  std::vector<float> values(static_cast<size_t>(NumElements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = scale * std::sin(0.7f * static_cast<float>(i) + scale);
  return MakeArray<float>(shape, values);
}

}  // namespace

void Net::Var(const std::string& name, const Shape& shape, bool param) {
  VarDesc var;
  var.name = name;
  var.shape = shape;
  var.persistable = var.is_parameter = param;
  var.stop_gradient = !param;
  program.global().vars.push_back(var);
  (param ? params : feeds)[name] = Numbers(shape, param ? 0.3f : 1.0f);
}

void Net::Op(const std::string& type, SlotList inputs, SlotList outputs,
             std::map<std::string, Attribute> attrs) {
  OpDesc op;
  op.type = type;
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.attrs = std::move(attrs);
  BlockBuilder builder(&Registry(), &program);
  const absl::Status status = builder.Append(std::move(op));
  ASSERT_TRUE(status.ok()) << status;
}

void Net::Backward(const std::string& loss) {
  BackwardOptions options;
  options.targets[loss] = "";
  const auto made = AppendBackward(Registry(), options, &program);
  ASSERT_TRUE(made.ok()) << made.status();
  for (const auto& [name, gradient] : *made)
    if (params.count(name) > 0) fetches.push_back(gradient);
  fetches.push_back(loss);
}

std::string Net::Types() const {
  std::vector<std::string> types;
  for (const OpDesc& op : program.global().ops) types.push_back(op.type);
  return absl::StrJoin(types, " ");
}

void Net::Run(const PassOptions& options) {
  PassContext context;
  context.registry = &Registry();
  context.on_gpu = on_gpu;
  context.keep.insert(fetches.begin(), fetches.end());
  // As Session::Compile does.
  absl::Status status = NormalizeOps(Registry(), &program);
  ASSERT_TRUE(status.ok()) << status;
  status = RunPasses(context, options, &program);
  ASSERT_TRUE(status.ok()) << status;
}

NamedArrays AnswersOf(const Net& net, const PassOptions& options) {
  Session session(&Registry());
  session.set_pass_options(options);
  for (const auto& [name, value] : net.params) {
    EXPECT_TRUE(
        session.scope().GetOrCreate(name, value.dtype, value.shape).ok());
    EXPECT_TRUE(session.scope().Set(name, value).ok());
  }
  auto values = session.Run(net.program, net.feeds, net.fetches);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : NamedArrays();
}

void ExpectNear(const NamedArrays& want, const NamedArrays& got,
                double tolerance) {
  for (const auto& [name, value] : want)
    for (int64_t i = 0; i < value.size(); ++i)
      EXPECT_NEAR(value.data<float>()[i], got.at(name).data<float>()[i],
                  tolerance)
          << name << "[" << i << "]";
}

}  // namespace pd
