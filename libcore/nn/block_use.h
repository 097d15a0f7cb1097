// SPDX-License-Identifier: Apache-2.0
// How a job uses a block: which one a name means, what arguments set in it, and
// whose parameters it has. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_BLOCK_USE_H_
#define PD_LIBCORE_NN_BLOCK_USE_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job_model.pb.h"
#include "libcore/nn/layers/layer_context.h"
#include "libcore/nn/parameter_groups.h"

namespace pd {

/// The block that `use` names: the job's, else one of the zoo. A block of the
/// zoo sees only the zoo's. InvalidArgument with the nearest name.
absl::StatusOr<const job::Block*> FindBlock(const LoadedJob& job,
                                            const std::string& use,
                                            bool from_zoo);

/// Sets the fields of `block`, a copy of `written`, that the arguments of `use`
/// name ("channels=64"); `left_out` gets the layers that a value of 0 takes
/// away. InvalidArgument names the argument and the field.
absl::Status SetArguments(const job::UseBlock& use, const job::Block& written,
                          job::Block* block, std::set<std::string>* left_out);

/// InvalidArgument unless `inputs`, of the layer of this name, are as many as
/// the block reads; optional ones may be missing.
absl::Status CheckBlockInputs(const job::UseBlock& use, const job::Block& block,
                              const std::string& layer,
                              const std::vector<LayerInput>& inputs);

/// The uses of blocks that lend their parameters to others (`weights_of`).
class BlockWeights {
 public:
  /// One repetition: what stands before the names of its layers ("left.0/"),
  /// and where the generated names stood before it.
  struct Copy {
    std::string prefix;
    GeneratedNames::Mark mark;
  };

  /// Layers of this list, whose names stand behind `prefix`, come next.
  void Enter(const google::protobuf::RepeatedPtrField<job::Layer>& layers,
             const std::string& prefix);
  /// Whether `layer`, a use with its full name, is to lend.
  bool Lends(const std::string& layer) const { return lenders_.count(layer); }
  void Keep(const std::string& layer, const std::string& block,
            std::vector<Copy> copies) {
    uses_[layer] = {block, std::move(copies)};
  }
  /// The copies that `use`, called `layer`, takes parameters from: one for each
  /// repetition, or one for all. InvalidArgument where there is no such use
  /// before it, or one of another block or number.
  absl::StatusOr<const std::vector<Copy>*> Lender(
      const job::UseBlock& use, const std::string& layer) const;

 private:
  struct Use {
    std::string block;
    std::vector<Copy> copies;
  };
  std::set<std::string> lenders_;
  std::map<std::string, Use> uses_;
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_BLOCK_USE_H_
