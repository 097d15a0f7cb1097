// SPDX-License-Identifier: Apache-2.0
// The ops after an observed convolution: the sum with its bias, with a
// shortcut, and ReLU. As one op that shows each of them stretch by stretch they
// cost one pass over memory, as fused ops do, instead of two for each.
#ifndef PD_LIBCORE_QUANT_OBSERVED_CHAIN_H_
#define PD_LIBCORE_QUANT_OBSERVED_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/op_def.h"

namespace pd {

/// Looks at variables, by their sights' numbers, while they are made.
class StretchObserver {
 public:
  virtual ~StretchObserver() = default;
  /// Sight `i` of the batch at hand, of n values, begins.
  virtual void Begin(size_t i, int64_t n) = 0;
  /// A stretch of it, as thread `part` makes it (ForStretches).
  virtual void See(size_t i, int part, const float* x, int64_t n) = 0;
  /// It has been shown. An error ends the run.
  virtual absl::Status End(size_t i) = 0;
  /// Said once: sight `relu` will not be shown, since it is max(x, 0) of `of`.
  virtual void IsReluOf(size_t relu, size_t of) = 0;
};

/// Rewrites block 0 of a model of one block. Gives the numbers of those sights
/// (`of`: by variable) that the new ops show; these find who looks by
/// `observer`.
std::set<size_t> ChainSights(const InferenceModel& model, int64_t observer,
                             StretchObserver* observes,
                             std::map<std::string, size_t> of,
                             ProgramDesc* program);

inline constexpr char kObserveChain[] = "observe_chain";
inline constexpr char kObserveChainEnd[] = "observe_chain_end";

/// The op: Out = relu(X + Bias + Residual), the latter two and relu where they
/// are there. Bias is of the second axis. Without a definition of how it runs.
OpDef ObserveChainDef();
/// X as it lies, which may be row by row, in blocks of channels or channels
/// last; Unimplemented otherwise.
absl::StatusOr<Step> BindObserveChain(BindContext* context,
                                      StretchObserver* observer);

/// An op that reads X, the end of a chain, and does nothing: nobody else may
/// need it, but what is on the way is to be seen.
OpDef ObserveChainEndDef();

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_OBSERVED_CHAIN_H_
