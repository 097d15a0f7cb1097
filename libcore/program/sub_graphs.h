// SPDX-License-Identifier: Apache-2.0
// The parts of a program that have nothing to do with each other.
#ifndef PD_LIBCORE_PROGRAM_SUB_GRAPHS_H_
#define PD_LIBCORE_PROGRAM_SUB_GRAPHS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// The indices of block 0's ops by sub-graph, each ascending, in the order of
/// their first ops. Ops that read or write one variable, a parameter too, are
/// in one sub-graph.
std::vector<std::vector<size_t>> SubGraphsOf(const ProgramDesc& program);

/// Adds the sub-graphs of a program to a text file, which is begun anew by the
/// first call of a process.
absl::Status AddSubGraphs(const std::string& label, const ProgramDesc& program,
                          const std::string& path);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_SUB_GRAPHS_H_
