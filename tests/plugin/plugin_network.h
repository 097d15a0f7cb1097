// SPDX-License-Identifier: Apache-2.0
// Programs of a few ops for tests of plug-ins, with values of any type.
#ifndef PD_TESTS_PLUGIN_PLUGIN_NETWORK_H_
#define PD_TESTS_PLUGIN_PLUGIN_NETWORK_H_

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/program/block_builder.h"

namespace pd {

template <typename T>
Tensor Filled(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(shape));
  EXPECT_TRUE(tensor.Allocate().ok());
  EXPECT_EQ(tensor.bytes(), values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = values[i];
  return tensor;
}

/// Feeds with their values, and ops.
class PluginNetwork {
 public:
  explicit PluginNetwork(const OpRegistry* registry) : registry_(registry) {
    program_.blocks.emplace_back();
  }
  template <typename T>
  void Feed(const std::string& name, DType dtype, Shape shape,
            const std::vector<T>& values) {
    VarDesc var;
    var.name = name;
    var.dtype = dtype;
    var.shape = shape;
    program_.global().vars.push_back(var);
    feeds_[name] = ToArray(Filled(dtype, std::move(shape), values));
  }
  using Names = std::vector<std::pair<std::string, std::vector<std::string>>>;
  absl::Status Add(const std::string& type, const Names& inputs,
                   const Names& outputs,
                   std::map<std::string, Attribute> attrs = {}) {
    OpDesc op;
    op.type = type;
    for (const auto& [slot, names] : inputs) op.SetInput(slot, names);
    for (const auto& [slot, names] : outputs) op.SetOutput(slot, names);
    op.attrs = std::move(attrs);
    return BlockBuilder(registry_, &program_).Append(std::move(op));
  }
  /// The value of one fetch.
  absl::StatusOr<Tensor> Run(const std::string& fetch) const {
    Session session(registry_);
    PD_ASSIGN_OR_RETURN(NamedArrays results,
                        session.Run(program_, feeds_, {fetch}));
    return ToTensor(results.at(fetch));
  }
  /// The report on the step that makes a variable.
  absl::StatusOr<StepInfo> StepOf(const std::string& fetch) const {
    Session session(registry_);
    std::vector<FeedSpec> feeds;
    for (const auto& [name, value] : feeds_) {
      FeedSpec spec;
      spec.name = name;
      spec.dtype = value.dtype;
      spec.shape = value.shape;
      feeds.push_back(spec);
    }
    PD_ASSIGN_OR_RETURN(auto plan, session.Compile(program_, feeds, {fetch}));
    for (const StepInfo& info : plan->steps())
      if (info.output == fetch && info.op_type != "copy") return info;
    return NotFound("no step makes '%s'", fetch);
  }

 private:
  const OpRegistry* registry_;
  ProgramDesc program_;
  NamedArrays feeds_;
};

template <typename T>
void ExpectValues(const absl::StatusOr<Tensor>& result, const Shape& shape,
                  const std::vector<T>& values) {
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->shape(), shape);
  ASSERT_EQ(static_cast<size_t>(result->size()), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(static_cast<double>(result->data<T>()[i]),
                static_cast<double>(values[i]), 1e-6)
        << i;
}

}  // namespace pd

#endif  // PD_TESTS_PLUGIN_PLUGIN_NETWORK_H_
