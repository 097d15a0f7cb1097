// SPDX-License-Identifier: Apache-2.0
// Quasi-Newton methods: a step evaluates the loss of one batch at several
// points. LBFGS is PaddlePaddle's class of this name, whose history goes on
// from step to step; BFGS is its minimize_bfgs, called anew for each step.
#ifndef PD_LIBCORE_OPTIM_QUASI_NEWTON_H_
#define PD_LIBCORE_OPTIM_QUASI_NEWTON_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/program/block_builder.h"

namespace pd {

/// PaddlePaddle's arguments, names and defaults.
struct QuasiNewtonSpec {
  enum class Kind { kLbfgs, kBfgs };
  Kind kind = Kind::kLbfgs;
  int64_t max_iter = 20;  ///< bfgs: max_iters, 50
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  // lbfgs
  int64_t max_eval = 25;
  int64_t history_size = 100;
  bool strong_wolfe = false;
  // bfgs
  int64_t max_line_search_iters = 50;
  double initial_step_length = 1;
};

/// Gives the loss at `x`, and its gradient.
using Objective = std::function<absl::StatusOr<double>(
    const std::vector<float>& x, std::vector<float>* gradient)>;

/// The history of LBFGS, kept between steps; zeros before the first one.
struct LbfgsState {
  float* s = nullptr;  ///< [history_size, n]: changes of x, the oldest first
  float* y = nullptr;  ///< the same of the gradient
  float* direction = nullptr;  ///< [n]: the last one
  float* gradient = nullptr;   ///< [n]: before it was followed
  /// [kLbfgsNumbers + history_size]: iterations and evaluations so far, pairs,
  /// length, scale of the first Hessian; then 1 / (s . y) of each pair.
  double* numbers = nullptr;
};

inline constexpr int64_t kLbfgsNumbers = 5;

/// Names of the variables that hold an LbfgsState, in its order.
using LbfgsNames = std::vector<std::string>;

/// Declares them for `n` parameters. InvalidArgument where they are too many.
absl::StatusOr<LbfgsNames> AddLbfgsState(const QuasiNewtonSpec& spec, int64_t n,
                                         BlockBuilder* main,
                                         BlockBuilder* startup);

/// One step from `*x`; gives the loss before it, which may be no finite number:
/// then `*x` stays.
absl::StatusOr<double> LbfgsStep(const QuasiNewtonSpec& spec,
                                 double learning_rate,
                                 const Objective& objective,
                                 const LbfgsState& state,
                                 std::vector<float>* x);

/// The most parameters of BFGS, which keeps the square of their number.
inline constexpr int64_t kMostBfgsParameters = 8192;

/// The same for BFGS.
absl::StatusOr<double> BfgsStep(const QuasiNewtonSpec& spec,
                                const Objective& objective,
                                std::vector<float>* x);

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_QUASI_NEWTON_H_
