// SPDX-License-Identifier: Apache-2.0
// Results that have several rows for one record: what detectors say.
#ifndef PD_LIBCORE_NN_ROW_COUNTS_H_
#define PD_LIBCORE_NN_ROW_COUNTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "libcore/ir/program_desc.h"

namespace pd {

/// The variable that says how many rows of `variable`, [rows, 6] of class,
/// score and box, each record has: int32 [records]. "" where `variable` is no
/// result of a non-maximum suppression, or its op does not count.
std::string RowCountsOf(const ProgramDesc& program,
                        const std::string& variable);

/// Puts the counts of those outputs that have some behind all, for without them
/// rows say nothing; gives how many outputs there were.
size_t AppendRowCounts(const ProgramDesc& program,
                       std::vector<std::string>* outputs);

/// The variable whose value `variable` is, past ops that copy it.
std::string PastCopies(const ProgramDesc& program, const std::string& variable);

}  // namespace pd

#endif  // PD_LIBCORE_NN_ROW_COUNTS_H_
