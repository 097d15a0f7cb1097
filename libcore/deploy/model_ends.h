// SPDX-License-Identifier: Apache-2.0
// The two ends of a model for inference: names of its outputs, probabilities
// behind its scores, and in front of its inputs the arithmetic that the
// training's data sets do.
#ifndef PD_LIBCORE_DEPLOY_MODEL_ENDS_H_
#define PD_LIBCORE_DEPLOY_MODEL_ENDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/deploy/picture_fit.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Gives the outputs these names, in their order. InvalidArgument where there
/// are not as many, one is given twice, another variable has it, or an output
/// is an input or a parameter as well.
absl::Status RenameOutputs(const std::vector<std::string>& names,
                           InferenceModel* model);

/// The same for the inputs. An input that is an output as well keeps its name.
absl::Status RenameInputs(const std::vector<std::string>& names,
                          InferenceModel* model);

/// Puts `op`, "softmax" or "sigmoid", behind output `fetch`, which `name` takes
/// the place of. `axis` is a softmax's. InvalidArgument where a variable has
/// that name.
absl::Status AppendProbabilities(const OpRegistry& registry,
                                 const std::string& fetch,
                                 const std::string& op, int axis,
                                 const std::string& name,
                                 InferenceModel* model);

/// One operation on an input of float32, with broadcasting from the last axis.
struct InputStep {
  enum class Kind {
    kScale,      ///< times numbers[0]
    kSubtract,   ///< minus `numbers` of shape `shape`
    kDivide,     ///< by `numbers` of shape `shape`
    kLog1p,      ///< log(1 + max(x, 0))
    kReverse,    ///< axes[0] backwards
    kTranspose,  ///< the axes, records first, in the order `axes`
    kFit,        ///< pictures of any size, channels last, made to `fit`
  };
  Kind kind = Kind::kScale;
  std::vector<float> numbers = {};
  Shape shape = {};
  std::vector<int32_t> axes = {};
  PictureFit fit = {};
};

/// How a model is fed once the steps are part of it.
struct InputStage {
  std::string input;
  DType dtype = DType::kFloat32;
  Shape shape;  ///< with the records; -1: known when it runs
  std::vector<InputStep> steps;
};

/// Puts the steps in front of an input: before them a cast to float32, behind
/// them a cast and a reshape to what the network declares; without steps a cast
/// from the stage's dtype alone. NotFound where the
/// model has no such input; errors of inference where the steps do not fit.
absl::Status PrependSteps(const OpRegistry& registry, const InputStage& stage,
                          InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_MODEL_ENDS_H_
