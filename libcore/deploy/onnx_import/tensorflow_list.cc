// SPDX-License-Identifier: Apache-2.0
// TensorFlow's lists of tensors as tensor arrays: nodes of the domain
// "tensorflow" (tensorflow_import/list.cc makes them). A write changes the
// array in place, also from inside of a loop.
#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

std::string ListIndex(OnnxNode* node, const std::string& x) {
  return node->Reshape(node->Cast(x, DType::kInt64), {1});
}

void ImportTfListReserve(OnnxNode* node) {
  VarDesc var;
  var.kind = VarKind::kLodTensorArray;
  var.name = node->importer().NewVariable();
  const std::string name = var.name;
  node->importer().builder().AddVar(std::move(var));
  node->Give(0, name);
}

// The array, which a block further out may hold, has such elements; -1 where
// the extents of those before are others.
void DescribeElements(OnnxNode* node, const std::string& array,
                      const std::string& element) {
  OnnxImporter& importer = node->importer();
  const int32_t here = importer.current_block();
  const Shape shape = node->ShapeOf(element);
  for (int32_t block = here; block >= 0; block = importer.parent_block()) {
    importer.EnterBlock(block);
    VarDesc* var = importer.builder().MutableVar(array);
    if (var == nullptr) continue;
    const bool same_rank = var->shape.size() == shape.size();
    for (size_t i = 0; i < shape.size(); ++i)
      if (same_rank && var->shape[i] != shape[i]) var->shape[i] = -1;
    if (!same_rank) var->shape = shape;
    var->dtype = node->TypeOf(element);
    break;
  }
  importer.EnterBlock(here);
}

void ImportTfListWrite(OnnxNode* node) {
  const std::string array = node->In(0);
  OpDesc op;
  op.type = "write_to_array";
  const std::string element = node->In(2);
  op.SetInput("X", {element});
  op.SetInput("I", {ListIndex(node, node->In(1))});
  op.SetOutput("Out", {array});
  if (!node->ok()) return;
  node->Fail(node->importer().builder().Append(std::move(op)));
  DescribeElements(node, array, element);
  node->Give(0, array);
}

void ImportTfListRead(OnnxNode* node) {
  const std::string array = node->In(0);
  const std::string index = ListIndex(node, node->In(1));
  node->Give(0,
             node->Emit("read_from_array", {{"X", {array}}, {"I", {index}}}));
}

void ImportTfListLength(OnnxNode* node) {
  node->Give(0, node->Unary("lod_array_length", node->In(0)));
}

void ImportTfListStack(OnnxNode* node) {
  node->Give(0, node->EmitMany("tensor_array_to_tensor", {{"X", {node->In(0)}}},
                               {{"Out", 1}, {"OutIndex", 1}},
                               {{"axis", int32_t{0}}, {"use_stack", true}})[0]);
}

}  // namespace

OnnxImportEntries TensorflowListImports() {
  return {
      {"tensorflow:ListLength", ImportTfListLength},
      {"tensorflow:ListRead", ImportTfListRead},
      {"tensorflow:ListReserve", ImportTfListReserve},
      {"tensorflow:ListStack", ImportTfListStack},
      {"tensorflow:ListWrite", ImportTfListWrite},
  };
}

}  // namespace pd
