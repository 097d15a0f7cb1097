// SPDX-License-Identifier: Apache-2.0
// A program as text for people: one variable or op a line, so that two
// programs can be compared with diff. It is not read back.
#ifndef PD_LIBCORE_PROGRAM_TEXT_DUMP_H_
#define PD_LIBCORE_PROGRAM_TEXT_DUMP_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// The program as text, the same for equal programs:
///
///   program version 2003000
///   block 0
///     params
///       %linear_0.w_0:float32[784,10]
///     feeds
///       %x:float32[-1,784]
///     forward
///       %y:float32[-1,10] = matmul_v2(X=%x, Y=%linear_0.w_0) {trans_y=false}
///
/// Ops stand in their order under the name of their role (forward, loss,
/// backward, optimize, lr_sched). Left out are non-persistable variables that
/// no op uses and attributes that do not change results (op_callstack,
/// use_mkldnn and the like).
std::string DumpProgram(const ProgramDesc& program);

/// One op of block `block` as DumpProgram prints it.
std::string DumpOp(const ProgramDesc& program, int32_t block, const OpDesc& op);

/// Names and values of the attributes of an op that DumpProgram prints.
std::vector<std::pair<std::string, std::string>> ShownAttributes(
    const OpDesc& op);

/// A value as DumpProgram prints it: `2`, `0.1`, `"NCHW"`, `[1,1]`, `block 1`.
std::string DumpAttribute(const Attribute& value);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_TEXT_DUMP_H_
