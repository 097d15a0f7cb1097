// SPDX-License-Identifier: Apache-2.0
// A program as a graph in Graphviz's language: operators are boxes with their
// main attributes, edges are labelled with the shapes of what flows along them,
// parameters are small and grey, layers are frames around their operators.
#ifndef PD_LIBCORE_PROGRAM_DOT_H_
#define PD_LIBCORE_PROGRAM_DOT_H_

#include <map>
#include <string>
#include <vector>

#include "libcore/ir/program_desc.h"

namespace pd {

struct DotOptions {
  std::string title;
  std::vector<std::string> fetches;  ///< drawn as the graph's ends
  /// The layer whose operators make a variable: "stage1/conv1". Where it is not
  /// here, the operator's `op_namescope` counts.
  std::map<std::string, std::string> layer_of;
};

/// The graph of `program`, the same text for equal programs. Sub-blocks are
/// frames; a dashed edge leads to each from the operator that runs it.
std::string DotGraph(const ProgramDesc& program, const DotOptions& options);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_DOT_H_
