// SPDX-License-Identifier: Apache-2.0
// One op of the program on its way to ONNX nodes: what a converter reads from
// and writes with. The first error sticks, so converters read as formulas; an
// input that a converter did not ask for is an error, never dropped silently.
#ifndef PD_LIBCORE_DEPLOY_ONNX_OP_H_
#define PD_LIBCORE_DEPLOY_ONNX_OP_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/deploy/onnx/graph.h"

namespace pd {

class OnnxOp {
 public:
  /// `onnx_type` is the table's word for converters that serve several ops.
  OnnxOp(const OpDesc& desc, const char* onnx_type, OnnxGraph* graph);

  const std::string& type() const { return desc_.type; }
  const OpDesc& desc() const { return desc_; }
  const char* onnx_type() const { return onnx_type_; }
  int opset() const { return graph_->opset(); }
  /// The graph in the making, for ops that run blocks.
  OnnxGraph* graph() { return graph_; }

  // Inputs, by slot.

  bool Has(absl::string_view slot) const;
  /// The value of a slot's only variable. An error and "" when there is none.
  std::string In(absl::string_view slot);
  /// The same, "" when the slot is empty.
  std::string OptionalIn(absl::string_view slot);
  OnnxValues Ins(absl::string_view slot);
  /// The value of any variable that there is by now.
  std::string ValueOf(const std::string& variable);
  /// Says that the input changes nothing here.
  void Ignore(absl::string_view slot);
  /// The shape that the program declares, -1 where it is not known.
  const Shape& ShapeOf(absl::string_view slot);
  int64_t Rank(absl::string_view slot);
  DType TypeOf(absl::string_view slot);
  const VarDesc& OutVar(absl::string_view slot);
  bool HasOut(absl::string_view slot) const;
  /// The value of a parameter; null for other variables.
  const Array* Param(absl::string_view slot) const;
  /// The op that makes the variable of an input slot; null when none does.
  const OpDesc* MakerOf(absl::string_view slot) const;
  const InferenceModel& model() const { return graph_->model(); }

  // Attributes, whatever integer or float type they were saved with. The op is
  // normalized: an attribute of its schema is there, another one may not be.

  bool HasAttr(const char* name) const;
  int64_t Int(const char* name);
  double Float(const char* name);
  bool Bool(const char* name);
  std::string Str(const char* name);
  std::vector<int64_t> Ints(const char* name);
  std::vector<float> Floats(const char* name);

  // Nodes.

  /// A node with one output, whose value is given.
  std::string Emit(absl::string_view op_type, const OnnxValues& inputs,
                   const OnnxAttrs& attrs = {});
  /// A node with `count` outputs, whose values are given.
  OnnxValues EmitSeveral(size_t count, absl::string_view op_type,
                         const OnnxValues& inputs, const OnnxAttrs& attrs = {});
  /// A node whose output is the variable in `slot`.
  void Give(absl::string_view slot, absl::string_view op_type,
            const OnnxValues& inputs, const OnnxAttrs& attrs = {});
  /// A node with several outputs.
  void EmitTo(const OnnxValues& outputs, absl::string_view op_type,
              const OnnxValues& inputs, const OnnxAttrs& attrs = {});
  /// The variables of an output slot as values to be made by EmitTo.
  OnnxValues NewOuts(absl::string_view slot);
  /// The variable in `slot` is `value`, without a node.
  void Alias(absl::string_view slot, const std::string& value);
  /// The converter has seen to this output variable by the graph itself.
  void SetMade(const std::string& variable) { made_.insert(variable); }

  // Constants.

  std::string ConstInts(const std::vector<int64_t>& values);  ///< [n] int64
  std::string ConstInt(int64_t value);                        ///< [] int64
  std::string ConstFloats(const std::vector<float>& values);  ///< [n] float
  /// A scalar of a numeric dtype.
  std::string Const(double value, DType dtype);
  std::string ConstArray(const Array& array);

  /// The int64 vector that a slot says: one tensor, or one of each element.
  std::string IntVector(absl::string_view slot);
  /// The shape that an op asks for, as an int64 vector: ShapeTensor's elements,
  /// else those of `slot`, else attr "shape".
  std::string RequestedShape(absl::string_view slot);

  /// The shape of an op of the kind batch_size_like, as an int64 vector: attr
  /// "shape" with one extent of Input's.
  std::string BatchLikeShape();

  // Nodes that differ between opsets; `dtype` is the element type of `x`.

  std::string Reshape(const std::string& x, const std::vector<int64_t>& shape);
  std::string Transpose(const std::string& x, const std::vector<int64_t>& perm);
  std::string Unsqueeze(const std::string& x, const std::vector<int64_t>& axes);
  std::string Squeeze(const std::string& x, const std::vector<int64_t>& axes);
  std::string Cast(const std::string& x, DType to);
  /// Clips to [low, high]; infinite bounds are left out.
  std::string Clip(const std::string& x, double low, double high, DType dtype);
  /// ReduceMean, ReduceSum, ...; no axes: all.
  std::string Reduce(const char* op_type, const std::string& x,
                     const std::vector<int64_t>& axes, bool keep_dims);
  /// Pads with `value`: all beginnings, then all ends, of every dimension.
  std::string Pad(const std::string& x, const std::vector<int64_t>& pads,
                  const std::string& mode, double value, DType dtype);
  /// A tensor of one element as a scalar.
  std::string Scalar(const std::string& x);
  /// The extent of an axis of x when the graph runs, an int64 scalar.
  std::string Extent(const std::string& x, int64_t axis);
  /// The int64 numbers 0, 1, ... below a scalar.
  std::string Counting(const std::string& count);
  std::string Slice(const std::string& x, const std::vector<int64_t>& axes,
                    const std::vector<int64_t>& starts,
                    const std::vector<int64_t>& ends);

  absl::Status status() const { return status_; }
  void Fail(const absl::Status& status);
  /// Checks that every input was asked for and marks outputs that were not
  /// made; gives the first error, with the op's name.
  absl::Status Finish();

 private:
  const Attribute& At(const char* name);
  std::string NodeName(const std::string& output) const;
  const VarDesc& Var(const std::string& name);

  const OpDesc& desc_;
  const char* onnx_type_;
  OnnxGraph* graph_;
  absl::Status status_;
  std::set<std::string> asked_;  // input slots
  std::set<std::string> made_;   // output variables
};

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_OP_H_
