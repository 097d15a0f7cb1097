// SPDX-License-Identifier: Apache-2.0
// The summaries of a trace as text: PaddlePaddle's eight in its layout, and
// what it does not have.
#ifndef PD_LIBCORE_PROFILE_TABLES_H_
#define PD_LIBCORE_PROFILE_TABLES_H_

#include <string>

#include "formats/profile_trace.h"
#include "libcore/profile/summary.h"

namespace pd {

struct TableOptions {
  SortKey sorted_by = SortKey::kCpuTotal;
  bool op_detail = false;        ///< an op's parts stand below it
  bool thread_sep = false;       ///< threads are not merged
  std::string time_unit = "ms";  ///< s, ms, us or ns
};

/// Device, Overview, Model, Distribution, Operator, Kernel, Memory
/// Manipulation and UserDefined Summary; those without a row are left out.
std::string PaddleTables(const ProfileTrace& trace,
                         const ProfileSummary& summary,
                         const TableOptions& options);

/// The parts of the steps' time, and the rest.
std::string CoverageText(const ProfileSummary& summary,
                         const std::string& time_unit);

/// The Distribution Summary's times for each process, and the share of the
/// communication that computation hides; "" for the trace of one process.
std::string RanksText(const ProfileSummary& summary,
                      const std::string& time_unit);

/// Achieved GFLOP/s and GB/s of the op types beside the machine's roofline; ""
/// when the trace has none.
std::string RooflineText(const ProfileTrace& trace,
                         const ProfileSummary& summary,
                         const TableOptions& options);

/// Memory of the plan, and the tensors in it when it is largest.
std::string MemoryText(const ProfileTrace& trace);

/// Counters of the processor and energy, for a step.
std::string CountersText(const ProfileTrace& trace,
                         const ProfileSummary& summary);

/// Which implementation ran each op of the plans, and why those that were asked
/// before refused.
std::string ExplainText(const ProfileTrace& trace);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_TABLES_H_
