// SPDX-License-Identifier: Apache-2.0
// Block 0 of a model while ops are put between its ops.
#ifndef PD_LIBCORE_QUANT_REWRITER_H_
#define PD_LIBCORE_QUANT_REWRITER_H_

#include <map>
#include <string>
#include <vector>

#include "libcore/deploy/inference_model.h"
#include "libcore/quant/weights.h"

namespace pd {

class Rewriter {
 public:
  explicit Rewriter(const InferenceModel& model);

  /// The ops of the model as it was.
  const std::vector<OpDesc>& ops() const { return ops_; }
  const VarDesc* FindVar(const std::string& name) const;
  bool IsParam(const std::string& name) const {
    return model_.params.count(name) > 0;
  }

  /// Appends an op to the new block.
  void Append(OpDesc op) { block().ops.push_back(std::move(op)); }
  /// A variable like `like`, under another name; one that is there stays.
  void AddLike(const std::string& like, const std::string& name);
  /// A persistable variable with its value, which replaces one that is there.
  void AddParam(const std::string& name, const Array& value);
  /// Makes the parameter `name` integers and appends what gives it back in
  /// float32; gives the name of that.
  std::string AddWeight(const std::string& name, const QuantizedWeight& weight);

  /// From now on whoever reads `name` is to read `instead`.
  void Replace(const std::string& name, const std::string& instead) {
    instead_[name] = instead;
  }
  /// The variable to read for `name` now.
  const std::string& Now(const std::string& name) const;
  /// Makes reads of these slots, or of all where there are none, follow
  /// Replace.
  void Rename(const std::vector<std::string>& slots, OpDesc* op) const;

  /// The model, without what nothing names any more.
  InferenceModel Finish();
  const InferenceModel& model() const { return model_; }

 private:
  BlockDesc& block() { return model_.program.global(); }

  InferenceModel model_;
  std::vector<OpDesc> ops_;
  std::map<std::string, size_t> vars_;
  std::map<std::string, std::string> instead_;
};

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_REWRITER_H_
