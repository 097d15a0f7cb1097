// SPDX-License-Identifier: Apache-2.0
// Runs on paddle::Tensor.
#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/inference/settings.h"

namespace pd {
namespace inference {
namespace {

constexpr std::pair<phi::DataType, DType> kTypes[] = {
    {phi::DataType::BOOL, DType::kBool},
    {phi::DataType::UINT8, DType::kUInt8},
    {phi::DataType::INT8, DType::kInt8},
    {phi::DataType::INT16, DType::kInt16},
    {phi::DataType::INT32, DType::kInt32},
    {phi::DataType::INT64, DType::kInt64},
    {phi::DataType::FLOAT16, DType::kFloat16},
    {phi::DataType::BFLOAT16, DType::kBFloat16},
    {phi::DataType::FLOAT32, DType::kFloat32},
    {phi::DataType::FLOAT64, DType::kFloat64},
    {phi::DataType::COMPLEX64, DType::kComplex64},
    {phi::DataType::COMPLEX128, DType::kComplex128},
};

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

absl::StatusOr<DType> DTypeOfPhi(phi::DataType type) {
  for (const auto& [phi, dtype] : kTypes)
    if (phi == type) return dtype;
  return InvalidArgument("%s is no type of inputs",
                         phi::DataTypeToString(type));
}

absl::StatusOr<phi::DataType> PhiTypeOf(DType type) {
  for (const auto& [phi, dtype] : kTypes)
    if (dtype == type) return phi;
  return InvalidArgument("paddle::Tensor has no type %s", Name(type));
}

absl::StatusOr<paddle::Tensor> PaddleTensorOf(const std::string& name,
                                              DType dtype, const Shape& shape,
                                              const void* elements) {
  PD_ASSIGN_OR_RETURN(const phi::DataType type, PhiTypeOf(dtype));
  paddle::Tensor tensor(type, shape);
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
