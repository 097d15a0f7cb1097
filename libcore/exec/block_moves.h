// SPDX-License-Identifier: Apache-2.0
// The copies that a run of a block can do without: a loop assigns what it made
// to the variable that it made it of, which nothing reads any more. Internal to
// libcore/exec.
#ifndef PD_LIBCORE_EXEC_BLOCK_MOVES_H_
#define PD_LIBCORE_EXEC_BLOCK_MOVES_H_

#include <string>
#include <vector>

#include "libcore/exec/late_op.h"
#include "libcore/ir/program_desc.h"

namespace pd {

enum class OpMove {
  kNone,
  kMove,     ///< an assign: its output takes the bytes of its input
  kInPlace,  ///< its output takes the bytes of an input, which it changes
};

/// The moves that each op of `block` may do. Moved are values of the block's
/// own variables that an op with dense tensors makes, that such ops read, and
/// that an assign reads last. In place is changed what comes from outside and
/// is given a moved value later, if the op alone reads it. Not for blocks with
/// a gradient block, which keep their variables.
std::vector<OpMove> FindMoves(const ProgramDesc& program,
                              const BlockDesc& block,
                              const std::vector<LateOp>& ops);

/// The slots of an op that may be kInPlace: the input that it changes, and the
/// output. Null for other ops.
struct InPlaceSlots {
  const char *input, *output;
};
const InPlaceSlots* InPlaceSlotsOf(const std::string& op_type);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_BLOCK_MOVES_H_
