// SPDX-License-Identifier: Apache-2.0
// Settings of a model's parameters beyond their layers: groups by regular
// expression, and generated names. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_PARAMETER_GROUPS_H_
#define PD_LIBCORE_NN_PARAMETER_GROUPS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job_param.pb.h"
#include "libcore/program/block_builder.h"

namespace pd {

class ParameterGroups {
 public:
  ParameterGroups();
  ~ParameterGroups();

  /// InvalidArgument with the place of an expression that is none.
  absl::Status Read(const LoadedJob& job);
  /// The groups' settings of parameter `name`, a later group before an earlier
  /// one, and `written`, the parameter's own attribute, before them all.
  job::ParamAttr Apply(const std::string& name, const job::ParamAttr& written);
  /// The model's first values of weights or of biases; null where it says
  /// nothing.
  const job::Initializer* ForAll(bool bias) const;
  /// InvalidArgument with the place of a group that matched none of Apply's
  /// names so far.
  absl::Status CheckUsed(const LoadedJob& job) const;

 private:
  struct Group;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::string> seen_;
  job::GlobalInitializer for_all_;
};

/// Prefixes of the names of parameters in layers without a name. The two
/// forms of a network (`when`) call the same layer's the same.
class GeneratedNames {
 public:
  /// "linear_0" for the layer or loss "stage1/linear_3" of kind "linear".
  std::string Prefix(const std::string& layer, const std::string& kind,
                     BlockBuilder* main);
  /// The same as it is in a process of PaddlePaddle's that makes the layers in
  /// the job's order, whether the job names them or not.
  std::string PaddlePrefix(const std::string& layer, const std::string& kind);
  /// From now on layers come again.
  void Restart() { asked_.clear(); }
  /// Where the names stand, and back to there: layers that are built again are
  /// called the same.
  using Mark = std::map<std::string, int>;
  Mark mark() const { return asked_; }
  void Return(Mark mark) { asked_ = std::move(mark); }

 private:
  std::map<std::string, std::string> prefixes_;
  Mark asked_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> paddle_prefixes_;
  std::map<std::string, int> paddle_numbers_;  // by kind
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_PARAMETER_GROUPS_H_
