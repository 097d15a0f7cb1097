// SPDX-License-Identifier: Apache-2.0
// Inputs of nce and its gradient (nce.cc), read for every kernel.
#ifndef PD_LIBCORE_OPS_LOSS_NCE_H_
#define PD_LIBCORE_OPS_LOSS_NCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/rng.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/common/labels.h"

namespace pd {

/// The distribution of the negative classes.
struct NceSampler {
  enum Kind { kUniform = 0, kLogUniform = 1, kCustom = 2 };
  int kind = kUniform;
  int64_t classes = 0;
  Tensor *probs = nullptr, *alias = nullptr, *alias_probs = nullptr;

  double Probability(int64_t c) const {
    if (kind == kCustom) return probs->data<float>()[c];
    if (kind == kUniform) return 1.0 / static_cast<double>(classes);
    const auto at = static_cast<double>(c);
    return std::log((at + 2.0) / (at + 1.0)) /
           std::log(static_cast<double>(classes));
  }

  int64_t Draw(RandomStream* random) const {
    if (kind == kLogUniform) {
      const double power =
          random->Uniform() * std::log(static_cast<double>(classes));
      return static_cast<int64_t>(std::exp(power)) - 1;
    }
    const auto c =
        static_cast<int64_t>(random->Below(static_cast<uint64_t>(classes)));
    if (kind == kUniform) return c;
    const float u = random->Uniform();
    if (u <= alias_probs->data<float>()[c]) return c;
    const int64_t other = LabelAt(*alias, c);
    return other == -1 ? c : other;
  }
};

/// The inputs of both directions. Each of `rows` samples has `columns` classes,
/// the first `labels` of which are its own.
struct NceProblem {
  Tensor *input, *weight, *bias, *label, *sample_weight;
  NceSampler sampler;
  int64_t rows = 0, width = 0, labels = 0, columns = 0;
  int32_t negatives = 0;

  absl::Status CheckClass(int64_t c) const {
    const int64_t known = std::min(sampler.classes, weight->dim(0));
    if (c >= 0 && c < known) return absl::OkStatus();
    return InvalidArgument("class %d; expected 0 to %d", c, known - 1);
  }
  template <typename T>
  T WeightOf(int64_t n) const {
    return sample_weight != nullptr ? sample_weight->data<T>()[n] : T(1);
  }
  template <typename T>
  T Expected(int64_t c) const {
    return static_cast<T>(
        static_cast<float>(sampler.Probability(c) * negatives));
  }
};

/// InvalidArgument for inputs that do not fit.
absl::StatusOr<NceProblem> ReadNceProblem(const BindContext& context);

/// Where the draws come from.
struct NceDraws {
  uint64_t seed = 0;  ///< 0: the run's
  uint64_t stream = 0;
  std::vector<int64_t> given;  ///< stand for the draws unless there are none
};
/// InvalidArgument where the attributes do not fit the problem.
absl::StatusOr<NceDraws> ReadNceDraws(const BindContext& context,
                                      const NceProblem& problem);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LOSS_NCE_H_
