// SPDX-License-Identifier: Apache-2.0
// A training program small enough to read: a linear layer, dropout, a loss,
// their gradients in outline, and one update.
#ifndef PD_TESTS_PROGRAM_SMALL_PROGRAM_H_
#define PD_TESTS_PROGRAM_SMALL_PROGRAM_H_

#include <string>
#include <utility>

#include "libcore/ir/program_desc.h"

namespace pd {

inline VarDesc* AddVar(ProgramDesc* program, const std::string& name,
                       Shape shape, bool persistable = false,
                       int32_t block = 0) {
  VarDesc var;
  var.name = name;
  var.shape = std::move(shape);
  var.persistable = var.is_parameter = persistable;
  auto& vars = program->blocks[static_cast<size_t>(block)].vars;
  vars.push_back(std::move(var));
  return &vars.back();
}

inline OpDesc* AddOp(ProgramDesc* program, const std::string& type,
                     SlotList inputs, SlotList outputs,
                     std::map<std::string, Attribute> attrs = {},
                     int32_t role = kRoleForward, int32_t block = 0) {
  OpDesc op;
  op.type = type;
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.attrs = std::move(attrs);
  op.attrs["op_role"] = role;
  auto& ops = program->blocks[static_cast<size_t>(block)].ops;
  ops.push_back(std::move(op));
  return &ops.back();
}

inline ProgramDesc SmallProgram() {
  ProgramDesc p;
  p.version = 2003000;
  p.blocks.emplace_back();
  AddVar(&p, "x", {-1, 4})->need_check_feed = true;
  AddVar(&p, "label", {-1, 3})->need_check_feed = true;
  AddVar(&p, "w", {4, 3}, true);
  AddVar(&p, "lr", {1}, true)->is_parameter = false;
  for (const char* name : {"y", "dropped", "diff", "prob", "diff@GRAD"})
    AddVar(&p, name, {-1, 3});
  AddVar(&p, "mask", {-1, 3})->dtype = DType::kUInt8;
  AddVar(&p, "loss", {1});
  AddVar(&p, "w@GRAD", {4, 3});
  AddOp(&p, "matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"y"}}},
        {{"trans_x", false}, {"trans_y", false}});
  AddOp(&p, "dropout", {{"X", {"y"}}, {"Seed", {}}},
        {{"Out", {"dropped"}}, {"Mask", {"mask"}}},
        {{"dropout_prob", 0.1f},
         {"dropout_implementation", std::string("upscale_in_train")}});
  AddOp(&p, "softmax", {{"X", {"dropped"}}}, {{"Out", {"prob"}}},
        {{"axis", int32_t{-1}},
         {"op_callstack", std::vector<std::string>{"File \"job.py\""}},
         {"use_mkldnn", false}});
  AddOp(&p, "elementwise_sub", {{"X", {"prob"}}, {"Y", {"label"}}},
        {{"Out", {"diff"}}}, {{"axis", int32_t{-1}}});
  AddOp(&p, "mean", {{"X", {"diff"}}}, {{"Out", {"loss"}}}, {}, kRoleLoss);
  AddOp(&p, "mean_grad", {{"X", {"diff"}}}, {{"X@GRAD", {"diff@GRAD"}}}, {},
        kRoleBackward);
  AddOp(&p, "matmul_v2_grad", {{"X", {"x"}}, {"Out@GRAD", {"diff@GRAD"}}},
        {{"X@GRAD", {"@EMPTY@"}}, {"Y@GRAD", {"w@GRAD"}}},
        {{"op_role_var", std::vector<std::string>{"w", "w@GRAD"}}},
        kRoleBackward);
  AddOp(&p, "sgd",
        {{"Param", {"w"}}, {"Grad", {"w@GRAD"}}, {"LearningRate", {"lr"}}},
        {{"ParamOut", {"w"}}}, {}, kRoleOptimize);
  return p;
}

}  // namespace pd

#endif  // PD_TESTS_PROGRAM_SMALL_PROGRAM_H_
