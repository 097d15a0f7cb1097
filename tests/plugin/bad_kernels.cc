// SPDX-License-Identifier: Apache-2.0
// Kernels that fail when they run: one for each attribute value of 'how'.
#include <cstdlib>
#include <stdexcept>

#include "paddle/extension.h"

std::vector<paddle::Tensor> Fail(const paddle::Tensor& x,
                                 const std::string& how) {
  if (how == "check") PD_CHECK(x.is_gpu(), "x must be a GPU Tensor.");
  if (how == "throw") throw std::runtime_error("out of ideas");
  if (how == "number") throw 7;
  if (how == "type") return {paddle::Tensor(x).cast(paddle::DataType::FLOAT64)};
  if (how == "read") return {paddle::full({1}, *x.data<double>())};
  if (how == "count") return {x, x};
  if (how == "nothing") return {paddle::Tensor()};
  if (how == "function") return {paddle::matmul(x, paddle::ones({5}))};
  if (how == "exit") std::exit(0);
  if (how == "crash") {
    volatile int* volatile nothing = nullptr;
    *nothing = 1;
  }
  return {x};
}
PD_BUILD_OP(custom_fail)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"how: std::string"})
    .SetKernelFn(PD_KERNEL(Fail));
