// SPDX-License-Identifier: Apache-2.0
// A sum of two tensors together with its ReLU: memory is gone through once. The
// sum is rounded once, behind the ReLU, which changes no bit of it.
#include "libcore/kernels/cuda/fused_elemwise_activation_arguments.h"

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/element_packs.h"

namespace pd::cuda {
namespace {

template <typename T>
struct AddRelu {
  PD_DEVICE static void Run(const Block& block, const AddReluArgsOf<T>& p) {
    ForEach<T>(
        block, p.n, p.out,
        [](T x, T y) {
          const T sum = x + y;
          return sum < 0 ? T(0) : sum;  // NaN stays NaN
        },
        p.x, p.y);
  }
};

template <typename T>
struct SumReluGrad {
  PD_DEVICE static void Run(const Block& block, const AddReluArgsOf<T>& p) {
    ForEach<T>(
        block, p.n, p.out,
        [](T x, T y, T relu) { return relu > 0 ? x + y : T(0); }, p.x, p.y,
        p.relu);
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(add_relu, AddRelu<float>, AddReluArgsOf<float>)
PD_KERNEL(add_relu_64, AddRelu<double>, AddReluArgsOf<double>)
PD_KERNEL(sum_relu_grad, SumReluGrad<float>, AddReluArgsOf<float>)
PD_KERNEL(sum_relu_grad_64, SumReluGrad<double>, AddReluArgsOf<double>)
