// SPDX-License-Identifier: Apache-2.0
// Rewrites of a program before it is compiled. Each pass is a function in a
// file of its own; the list and its order are in pipeline.cc.
#ifndef PD_LIBCORE_PASSES_PIPELINE_H_
#define PD_LIBCORE_PASSES_PIPELINE_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// Behind the name of a variable that a pass has made anew.
constexpr char kFolded[] = "@folded";

/// The context that every pass is given.
struct PassContext {
  const OpRegistry* registry = nullptr;
  /// Variables that must still be computed: fetches. Persistable variables are
  /// kept without being named.
  std::set<std::string> keep;
  /// The program's purpose, told to PassOptions::observer: "train", "eval";
  /// "" where there is only one.
  std::string label;
  /// Whether the program will run on a GPU.
  bool on_gpu = false;
  /// The value that a persistable variable has before the program runs, or null
  /// where nobody knows it. What the program writes is no constant all the
  /// same.
  std::function<const Tensor*(const std::string& name)> value;
  /// Makes a variable of the float32 shape of persistable variable `of`, or
  /// finds the one that was made of it for another plan, and gives its name,
  /// `of` with kFolded behind it or the same one. `of` may have no value from
  /// then on. Null where `value` may be another one when the program runs.
  std::function<absl::StatusOr<std::string>(
      const std::string& of, const std::function<void(float* out)>& make)>
      define;
};

using PassFn = absl::Status (*)(const PassContext& context,
                                ProgramDesc* program);

/// Which programs for a GPU a pass runs on. The passes that never do make ops
/// that have no kernels there, or lose by it; some make ops without gradients
/// there.
enum class OnGpu { kNever, kWithoutGradients, kAlways };

/// Which blocks of a program a pass changes. In sub-blocks what it makes must
/// compute as an op whose shapes are known only when it runs.
enum class InBlocks {
  kOnly,   ///< the only block: a program with sub-blocks stays as it is
  kFirst,  ///< the first
  kAll,    ///< all but those with gradients (see ForEachGraph)
};

struct Pass {
  const char* name;  ///< as in --disable-pass
  PassFn run;
  OnGpu on_gpu;
  InBlocks blocks;
  bool trains;        ///< whether it changes training programs too
  const char* place;  ///< why it stands where it does in the order
  /// The type of op that it takes out of a model's files too (OptimizeModel of
  /// libcore/deploy); null: it is for plans alone.
  const char* folds_in_files = nullptr;
};

/// In the order in which they run.
const std::vector<Pass>& AllPasses();

struct PassOptions {
  std::set<std::string> disabled;  ///< names
  /// Sees the program before the first pass (`pass` is "") and after each that
  /// runs, under its label; an error ends the run of passes.
  std::function<absl::Status(const std::string& label, const std::string& pass,
                             const ProgramDesc& program)>
      observer;
};

/// Runs the passes on `program`, on a GPU those that are for one, on a program
/// with sub-blocks those that are for such. NotFound for a disabled name that
/// no pass has; other errors name the pass.
absl::Status RunPasses(const PassContext& context, const PassOptions& options,
                       ProgramDesc* program);

// The passes.
absl::Status AdvanceUpdates(const PassContext& context, ProgramDesc* program);
absl::Status FuseAttention(const PassContext& context, ProgramDesc* program);
absl::Status FuseBatchNormAct(const PassContext& context, ProgramDesc* program);
absl::Status FlattenBiases(const PassContext& context, ProgramDesc* program);
absl::Status FoldBatchNorms(const PassContext& context, ProgramDesc* program);
absl::Status FuseConvBiasAct(const PassContext& context, ProgramDesc* program);
absl::Status FuseConvResidual(const PassContext& context, ProgramDesc* program);
absl::Status FuseGemmEpilogue(const PassContext& context, ProgramDesc* program);
absl::Status FuseLookupConcat(const PassContext& context, ProgramDesc* program);
absl::Status Int8Chains(const PassContext& context, ProgramDesc* program);
absl::Status MergeUpdates(const PassContext& context, ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_PIPELINE_H_
