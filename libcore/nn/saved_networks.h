// SPDX-License-Identifier: Apache-2.0
// Saved networks that layers `model` of a job go on from, and the saved
// programs that stand in place of its network. This room puts the networks' ops
// into the job's program; whoever reads a job opens the files (OpenNetworks of
// libcore/train/open_networks.h).
#ifndef PD_LIBCORE_NN_SAVED_NETWORKS_H_
#define PD_LIBCORE_NN_SAVED_NETWORKS_H_

#include <string>
#include <vector>

#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/nn/job.h"

namespace pd {

namespace job {
class SavedModel;  // libcore/nn/job_saved_model.pb.h
}

/// A network up to where a layer cuts it, in its form for evaluation.
struct SavedNetwork {
  /// Without feed and fetch ops, with blocks of while and conditional_block.
  /// Parameters (`is_parameter`) are what training may change, all in block 0.
  ProgramDesc program;
  std::vector<std::string> feeds;    ///< inputs that it needs, in file order
  std::vector<std::string> outputs;  ///< the variables of the cuts
  NamedArrays params;                ///< of every persistable variable
  std::string path;                  ///< of the file that was read
};

/// The programs of a job's `program`, as their files have them.
struct SavedPrograms {
  ProgramDesc main, startup;
};

/// Layers of one key go on from one network.
std::string NetworkKey(const job::SavedModel& model);

/// All layers `model` of the job, those of its blocks too.
std::vector<const job::SavedModel*> SavedModelsOf(const job::Job& job);

}  // namespace pd

#endif  // PD_LIBCORE_NN_SAVED_NETWORKS_H_
