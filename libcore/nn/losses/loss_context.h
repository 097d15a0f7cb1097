// SPDX-License-Identifier: Apache-2.0
// The context of a loss being built: its message, the predictions, the fields
// that hold the answers, and the means to append ops. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LOSSES_LOSS_CONTEXT_H_
#define PD_LIBCORE_NN_LOSSES_LOSS_CONTEXT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/nn/job_loss.pb.h"
#include "libcore/nn/losses/loss.h"
#include "libcore/nn/op_chain.h"

namespace pd {

class LossContext : public OpChain {
 public:
  /// `prediction` is the variable that the loss looks at.
  LossContext(const job::Loss& loss, const std::string& prediction,
              FindField find, LayerContext* parameters, BlockBuilder* main);

  const job::Loss& loss() const { return loss_; }
  /// A copy: declaring variables moves the descriptions.
  const VarDesc& prediction() const { return prediction_; }
  const std::string& x() const { return prediction_.name; }
  LayerContext& parameters() { return *parameters_; }
  bool used_label() const { return used_label_; }
  bool used_mask() const { return used_mask_; }
  bool used_sample_weight() const { return used_sample_weight_; }

  /// The variable of the loss's `label`; declared so where it is a field of the
  /// data set.
  std::string Label(Shape shape, DType dtype = DType::kFloat32);
  /// Label of the prediction's shape and dtype; an error when it has another.
  std::string SameLabel();
  /// Class numbers: the prediction's shape with 1 at `axis` (counted from the
  /// front); where the label lacks the axis it is put in.
  std::string ClassNumbers(int axis);
  /// Another variable that the loss's message names.
  std::string Field(const std::string& name, Shape shape,
                    DType dtype = DType::kFloat32);
  /// The same, of the prediction's shape.
  std::string SameField(const std::string& name);

  /// The cross entropy of the softmax of each row of `logits`; labels are class
  /// numbers [rows, 1], or with `soft_label` probabilities of all classes.
  std::string SoftmaxCrossEntropy(const std::string& logits,
                                  const std::string& labels, bool soft_label);
  /// Mean or sum of one loss a place; with the loss's `mask` or `length` over
  /// the places that count.
  std::string Reduced(job::Reduction::Kind kind, std::string each);
  /// The loss's mask for one value a place, as float32; "" without one.
  /// Gives 1 or more leading axes.
  std::string Mask(const std::string& each);
  /// One loss a place times the loss's `sample_weight`, whose axes are the
  /// leading ones; the loss itself without one.
  std::string Weighted(const std::string& each);
  /// sum / divisor, and 0 where the divisor is.
  std::string Quotient(const std::string& sum, const std::string& divisor);

  /// "the predictions are [-1, 3] and the labels 'x' [-1, 6]; expected ...".
  void ShapesDiffer(const std::string& label, absl::string_view expected);
  /// An error unless the prediction's rank is in [least, most].
  bool ExpectRank(size_t least, size_t most, const char* expected);
  /// An error unless `count` weights are one a class of `axis`.
  bool ExpectWeights(int count, int axis);

  /// Values with the leading axes of a tensor of this rank, made to have all of
  /// its axes.
  std::string Spread(std::string values, size_t rank);

 private:
  /// The field `name`, which holds one value for each place of the leading axes
  /// of `shape`, as float32. A field of the data set is declared with `axes` of
  /// them. `what` is the loss's field, for messages.
  std::string LeadingField(const char* what, const std::string& name,
                           const Shape& shape, size_t axes);

  const job::Loss& loss_;
  const VarDesc prediction_;
  const FindField find_;
  LayerContext* parameters_;
  bool used_label_ = false, used_mask_ = false, used_sample_weight_ = false;
};

/// Extents are equal or not known.
bool SameExtents(const Shape& a, const Shape& b);

/// Appends one loss, reduced; gives its variable, a scalar.
using LossFn = absl::StatusOr<std::string> (*)(LossContext*);

/// By field number of job::Loss's oneof `kind`.
using LossTable = std::map<int, LossFn>;

void AddBinaryLosses(LossTable* table);
void AddCRFLosses(LossTable* table);
void AddClassLosses(LossTable* table);
void AddDetectionLosses(LossTable* table);
void AddDifferenceLosses(LossTable* table);
void AddProposalLosses(LossTable* table);
void AddRankingLosses(LossTable* table);
void AddSampledLosses(LossTable* table);
void AddSequenceLosses(LossTable* table);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LOSSES_LOSS_CONTEXT_H_
