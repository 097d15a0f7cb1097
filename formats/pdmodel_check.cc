// SPDX-License-Identifier: Apache-2.0
// The structure of a program, of whatever origin: CheckProgramStructure.
#include <set>

#include "absl/strings/str_cat.h"
#include "formats/pdmodel.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Readers of feed and fetch columns may keep a slot for each below.
constexpr int32_t kMaxColumns = 1 << 16;

absl::Status CheckName(absl::string_view name, const char* what) {
  if (name.find('\0') != absl::string_view::npos)
    return InvalidArgument("%s '%s' has a NUL byte in its name", what,
                           absl::string_view(name.data()));
  return absl::OkStatus();
}

absl::Status CheckVar(const VarDesc& var) {
  if (var.name.empty()) return InvalidArgument("a variable has no name");
  PD_RETURN_IF_ERROR(CheckName(var.name, "variable"));
  PD_RETURN_IF_ERROR(
      Annotate(BytesOfExtents(var.shape, SizeOf(var.dtype)).status(),
               absl::StrCat("variable '", var.name, "'")));
  if (var.lod_level < 0)
    return InvalidArgument("variable '%s' has lod_level %d; expected 0 or more",
                           var.name, var.lod_level);
  return absl::OkStatus();
}

// Sub-blocks are made after the block of their op, so later indices alone
// rule out every recursion.
absl::Status CheckSubBlock(int32_t index, const BlockDesc& block,
                           absl::string_view attr, size_t blocks) {
  if (index > block.idx && static_cast<size_t>(index) < blocks)
    return absl::OkStatus();
  return InvalidArgument(
      "attr '%s' is block %d; the program has %d blocks, so it must be in "
      "[%d, %d)",
      attr, index, blocks, block.idx + 1, blocks);
}

absl::Status CheckAttrs(const OpDesc& op, const BlockDesc& block,
                        size_t blocks) {
  for (const auto& [name, value] : op.attrs) {
    PD_RETURN_IF_ERROR(CheckName(name, "attr"));
    if (const auto* ref = std::get_if<BlockRef>(&value))
      PD_RETURN_IF_ERROR(CheckSubBlock(ref->index, block, name, blocks));
    if (const auto* refs = std::get_if<BlockRefs>(&value))
      for (const int32_t index : refs->indices)
        PD_RETURN_IF_ERROR(CheckSubBlock(index, block, name, blocks));
  }
  if (op.type == "while" || op.type == "conditional_block") {
    const Attribute* sub_block = op.FindAttr("sub_block");
    if (sub_block == nullptr || !std::holds_alternative<BlockRef>(*sub_block))
      return InvalidArgument("attr 'sub_block' is missing; expected a block");
  }
  if (op.type == "feed" || op.type == "fetch") {
    const auto col = op.AttrOr<int32_t>("col", 0);
    if (col < 0 || col >= kMaxColumns)
      return InvalidArgument("attr 'col' is %d; expected it in [0, %d)", col,
                             kMaxColumns);
  }
  return absl::OkStatus();
}

absl::Status CheckOp(const OpDesc& op, const BlockDesc& block, size_t blocks) {
  if (op.type.empty()) return InvalidArgument("it has no type");
  PD_RETURN_IF_ERROR(CheckName(op.type, "op"));
  for (const SlotList* slots : {&op.inputs, &op.outputs}) {
    for (const auto& [slot, names] : *slots) {
      PD_RETURN_IF_ERROR(CheckName(slot, "slot"));
      for (const std::string& name : names)
        PD_RETURN_IF_ERROR(CheckName(name, "variable"));
    }
  }
  return CheckAttrs(op, block, blocks);
}

absl::Status CheckBlock(const BlockDesc& block, size_t index, size_t blocks) {
  if (static_cast<size_t>(block.idx) != index || block.idx < 0)
    return InvalidArgument("it says idx %d; expected %d", block.idx, index);
  if (index == 0 ? block.parent_idx != -1
                 : block.parent_idx < 0 || block.parent_idx >= block.idx)
    return InvalidArgument("its parent is block %d; expected %s",
                           block.parent_idx,
                           index == 0 ? "-1" : "an earlier block");
  if (block.forward_block_idx < -1 ||
      block.forward_block_idx >= static_cast<int64_t>(blocks))
    return InvalidArgument(
        "its forward block is %d; the program has %d blocks, so it must be in "
        "[-1, %d)",
        block.forward_block_idx, blocks, blocks);
  std::set<absl::string_view> names;
  for (const VarDesc& var : block.vars) {
    PD_RETURN_IF_ERROR(CheckVar(var));
    if (!names.insert(var.name).second)
      return InvalidArgument("variable '%s' is declared twice", var.name);
  }
  for (size_t i = 0; i < block.ops.size(); ++i)
    PD_RETURN_IF_ERROR(Annotate(
        CheckOp(block.ops[i], block, blocks),
        absl::StrCat("op '", block.ops[i].type, "' (number ", i, ")")));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProgramStructure(const ProgramDesc& program) {
  if (program.blocks.empty())
    return InvalidArgument("the program has no block; expected at least one");
  for (size_t i = 0; i < program.blocks.size(); ++i)
    PD_RETURN_IF_ERROR(
        Annotate(CheckBlock(program.blocks[i], i, program.blocks.size()),
                 absl::StrCat("block ", i)));
  return absl::OkStatus();
}

}  // namespace pd
