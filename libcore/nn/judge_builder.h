// SPDX-License-Identifier: Apache-2.0
// Losses and metrics of a model under construction, after its layers. Internal
// to libcore/nn.
#ifndef PD_LIBCORE_NN_JUDGE_BUILDER_H_
#define PD_LIBCORE_NN_JUDGE_BUILDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/layer_names.h"
#include "libcore/nn/layers/layer_context.h"
#include "libcore/nn/losses/loss.h"

namespace pd {

/// Whether a layer or loss belongs to the form of the network that is built:
/// `when` says that one is in one form only.
template <typename Part>
bool InThisForm(const Part& part, const ModelParts& parts) {
  if (!part.has_when()) return true;
  *parts.has_forms = true;
  return part.when() == parts.form;
}

class JudgeBuilder {
 public:
  /// All outlive this. `names` are those of the model's inputs and layers;
  /// `outputs` is the number of outputs that the job names.
  JudgeBuilder(const LoadedJob& job, const ModelParts& parts,
               const LayerNames& names, size_t outputs)
      : job_(job), parts_(parts), names_(names), outputs_(outputs) {}

  /// Appends all losses of the form that is built, and their sum.
  absl::Status BuildLosses();
  absl::Status BuildMetric(const job::Metric& metric);

 private:
  // The variable that a loss or metric looks at.
  template <typename Part>
  absl::StatusOr<std::string> Judged(const Part& part, const char* what) const;
  // The variable of the layer that holds a metric's answers; "" where a field
  // of the data set does.
  absl::StatusOr<std::string> LabelOf(const job::Metric& metric) const;
  absl::Status DeclareLabel(const std::string& name, const AnswerSpec& spec);
  // A layer's result, an input or a field of the data set.
  absl::StatusOr<std::string> FindField(const std::string& name,
                                        const AnswerSpec& spec);

  const LoadedJob& job_;
  const ModelParts& parts_;
  const LayerNames& names_;
  const size_t outputs_;
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_JUDGE_BUILDER_H_
