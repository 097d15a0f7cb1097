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

/// The suffix of a variable that a pass made from another one.
constexpr char kFolded[] = "@folded";

/// The facts about a program that every pass is given.
struct PassContext {
  const OpRegistry* registry = nullptr;
  /// Fetches: a pass may not remove them. Nor may it remove persistable
  /// variables, which are not listed here.
  std::set<std::string> keep;
  /// The program's purpose, for PassOptions::observer: "train", "eval"; "" when
  /// there is only one program.
  std::string label;
  /// Whether the program will run on a GPU.
  bool on_gpu = false;
  /// The value of a persistable variable before the program runs, or null when
  /// it is not known. A variable that the program writes is no constant even
  /// so.
  std::function<const Tensor*(const std::string& name)> value;
  /// Creates a float32 variable of the shape of the persistable variable `of`,
  /// filled by `make`, or finds the one that was created for another plan, and
  /// returns its name: `of` with the suffix kFolded, or `of` itself. `of` may
  /// lose its value. Null when values may change before the program runs.
  std::function<absl::StatusOr<std::string>(
      const std::string& of, const std::function<void(float* out)>& make)>
      define;
};

using PassFn = absl::Status (*)(const PassContext& context,
                                ProgramDesc* program);

/// The programs for a GPU that a pass runs on: none, where its ops have no
/// kernels there or are slower; those without gradients, where its ops have no
/// gradient kernels; or all.
enum class OnGpu { kNever, kWithoutGradients, kAlways };

/// The blocks of a program that a pass changes. Ops of sub-blocks are late ops,
/// so a pass for them may only make ops that can be bound late.
enum class InBlocks {
  kOnly,   ///< the only one: programs with sub-blocks are left alone
  kFirst,  ///< the first
  kAll,    ///< all but those with gradients (see ForEachGraph)
};

struct Pass {
  const char* name;  ///< as in --disable-pass
  PassFn run;
  OnGpu on_gpu;
  InBlocks blocks;
  bool trains;        ///< whether it changes training programs too
  const char* place;  ///< the reason of its position in the order
  /// The op type that the pass removes from saved models too (OptimizeModel of
  /// libcore/deploy); null: it runs for plans only.
  const char* folds_in_files = nullptr;
};

/// In the order in which they run.
const std::vector<Pass>& AllPasses();

struct PassOptions {
  std::set<std::string> disabled;  ///< names
  /// Called with the program before the first pass (`pass` is "") and after
  /// each pass that ran; an error ends the pipeline.
  std::function<absl::Status(const std::string& label, const std::string& pass,
                             const ProgramDesc& program)>
      observer;
};

/// Runs the passes that suit the program and its device (Pass::on_gpu,
/// Pass::blocks). NotFound: a disabled name is no pass. Other errors name the
/// pass.
absl::Status RunPasses(const PassContext& context, const PassOptions& options,
                       ProgramDesc* program);

// The passes.
absl::Status AdvanceUpdates(const PassContext& context, ProgramDesc* program);
absl::Status ExpandFused(const PassContext& context, ProgramDesc* program);
absl::Status FuseAddAct(const PassContext& context, ProgramDesc* program);
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
