// SPDX-License-Identifier: Apache-2.0
// Runs on paddle::Tensor.
#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/inference/settings.h"
#include "libcore/plugin/convert.h"

namespace pd {
namespace inference {
namespace {

// Gives the input back its emptiness: the memory was the caller's for a call.
class Borrowed {
 public:
  ~Borrowed() {
    for (Variable* input : inputs_) input->TakeAway();
  }
  absl::Status Lend(const paddle::Tensor& tensor, Variable* input) {
    if (!tensor.initialized())
      return FailedPrecondition("the tensor for input '%s' has no value",
                                input->name());
    PD_ASSIGN_OR_RETURN(const DType dtype, DTypeOfPhi(tensor.dtype()));
    const std::vector<int64_t> extents = tensor.shape();
    PD_RETURN_IF_ERROR(
        input->Share(tensor.data() == nullptr ? &kNothing : tensor.data(),
                     dtype, {extents.begin(), extents.end()}));
    inputs_.push_back(input);
    return absl::OkStatus();
  }

 private:
  static constexpr double kNothing = 0;
  std::vector<Variable*> inputs_;
};

}  // namespace

absl::StatusOr<paddle::Tensor> PaddleTensorOf(const std::string& name,
                                              DType dtype, const Shape& shape,
                                              const void* elements) {
  paddle::Tensor tensor(PhiTypeOf(dtype), shape);
  const size_t bytes = static_cast<size_t>(NumElements(shape)) * SizeOf(dtype);
  if (bytes > 0) std::memcpy(tensor.data(), elements, bytes);
  tensor.set_name(name);
  return tensor;
}

absl::Status RunOnTensors(const std::vector<paddle::Tensor>& inputs,
                          std::vector<paddle::Tensor>* outputs,
                          Engine* engine) {
  if (outputs == nullptr)
    return InvalidArgument("Run: the vector of outputs is a null pointer");
  if (inputs.size() != engine->inputs().size())
    return InvalidArgument("Run: %d inputs are given; the model has %d",
                           inputs.size(), engine->inputs().size());
  Borrowed borrowed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::shared_ptr<Variable> input = engine->inputs()[i];
    if (!inputs[i].name().empty()) {
      PD_ASSIGN_OR_RETURN(input, engine->Input(inputs[i].name()));
    }
    PD_RETURN_IF_ERROR(borrowed.Lend(inputs[i], input.get()));
  }
  PD_RETURN_IF_ERROR(engine->Run());
  outputs->clear();
  for (const auto& output : engine->outputs()) {
    PD_ASSIGN_OR_RETURN(const void* value, output->Value(output->dtype()));
    PD_ASSIGN_OR_RETURN(paddle::Tensor tensor,
                        PaddleTensorOf(output->name(), output->dtype(),
                                       output->shape(), value));
    outputs->push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace inference
}  // namespace pd
