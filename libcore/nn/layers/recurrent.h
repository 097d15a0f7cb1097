// SPDX-License-Identifier: Apache-2.0
// Shared parts of recurrent layers: first states, lengths, and the cell that a
// field of the layer holds, step by step. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_RECURRENT_H_
#define PD_LIBCORE_NN_LAYERS_RECURRENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/nn/job_recurrent.pb.h"
#include "libcore/nn/layers/layer_context.h"

namespace pd {

/// A state of zeros, whose axis `batch_at` is as long as axis `batch` of the
/// input.
absl::StatusOr<std::string> ZeroState(const Shape& shape, DType dtype,
                                      int batch, int batch_at, LayerContext* c);

/// The lengths in 'sequence_length', checked, as [N]; "" where it is not given.
absl::StatusOr<std::string> SequenceLengths(int64_t batch, LayerContext* c);

/// A cell that is a part of a layer.
class StepCell {
 public:
  struct Result {
    std::string output;
    std::vector<std::string> states;
  };

  /// `field` of the layer's message holds the cell.
  StepCell(const char* field, const job::Cell& cell, LayerContext* c)
      : field_(field), cell_(cell), c_(c) {}

  /// The shapes that states have when the job names none, the batch first (-1);
  /// InvalidArgument for a block that does not say.
  absl::StatusOr<std::vector<Shape>> StateShapes() const;
  /// h, and c of LSTM; of a block how many the job names, 0 when it names none.
  size_t states() const;
  /// Further inputs of a block, in every step.
  void set_kwargs(std::vector<LayerInput> kwargs) {
    kwargs_ = std::move(kwargs);
  }

  /// The ops of one step; all steps have the same parameters.
  absl::StatusOr<Result> Step(const std::string& input,
                              const std::vector<std::string>& states);
  /// "h", "c"; those of a block have the names of its outputs. Known after a
  /// step.
  const std::vector<std::string>& state_names() const { return state_names_; }

 private:
  const char* field_;
  const job::Cell& cell_;
  LayerContext* c_;
  std::vector<LayerInput> kwargs_;
  std::vector<std::string> state_names_;
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_RECURRENT_H_
