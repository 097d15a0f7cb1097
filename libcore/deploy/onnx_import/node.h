// SPDX-License-Identifier: Apache-2.0
// One ONNX node on its way to ops of the program: what an importer reads from
// and writes with. The first error sticks: after it inputs are "", shapes are
// empty and nothing is appended, so importers read as formulas; those that
// index a shape ask ok() before.
#ifndef PD_LIBCORE_DEPLOY_ONNX_IMPORT_NODE_H_
#define PD_LIBCORE_DEPLOY_ONNX_IMPORT_NODE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/deploy/onnx_import/importer.h"

namespace pd {

class OnnxNode {
 public:
  using Names = std::vector<std::string>;
  using Slots = std::vector<std::pair<const char*, Names>>;
  using Attrs = std::map<std::string, Attribute>;
  using Ints = std::vector<int64_t>;

  OnnxNode(const OnnxFileNode& file, const char* op_type, int64_t opset,
           OnnxImporter* importer);

  const std::string& type() const { return file_.op_type; }
  const char* op_type() const { return op_type_; }  ///< the table's word
  int64_t opset() const { return opset_; }
  OnnxImporter& importer() { return *importer_; }
  bool ok() const { return status_.ok(); }
  void Fail(const absl::Status& status);
  const absl::Status& status() const { return status_; }

  // Inputs.

  size_t InputCount() const { return file_.inputs.size(); }
  bool Has(size_t i) const;
  /// The variable of an input. An error and "" when it is absent.
  std::string In(size_t i);
  std::string OptionalIn(size_t i) { return Has(i) ? In(i) : ""; }
  Names Ins(size_t first = 0);  ///< all inputs from `first` on
  /// The variable or constant of the input; null when it is absent.
  OnnxValue* Value(size_t i);
  /// The input's value where it is known now; null otherwise.
  const Array* Known(size_t i);
  std::optional<Ints> KnownInts(size_t i);
  /// Width of unsigned integers that are held as signed ones; 0 for others.
  int32_t UnsignedBits(size_t i);
  /// The same, an error where it is not known: PaddlePaddle has an attribute
  /// in this place.
  Ints NeedInts(size_t i);
  double NeedNumber(size_t i);
  /// An integer list that is an attribute in some opsets and an input in
  /// others; nothing when it is neither given nor (input `i`) known.
  std::optional<Ints> IntsOr(const char* attr, size_t i);
  /// IntsOr that fails where the input is there and not known.
  std::optional<Ints> NeedIntsOr(const char* attr, size_t i);

  // Facts about variables. -1: an extent that is not known yet.

  Shape ShapeOf(const std::string& variable);
  int64_t Rank(const std::string& variable);
  int64_t Extent(const std::string& variable, int64_t axis);
  DType TypeOf(const std::string& variable);
  /// `axis` in [-rank, rank) made non-negative; Fail and 0 otherwise.
  int64_t Axis(int64_t axis, int64_t rank);
  Ints Axes(Ints axes, int64_t rank);

  // Attributes.

  bool HasAttr(const char* name) const;
  int64_t Int(const char* name, int64_t otherwise);
  float Float(const char* name, float otherwise);
  std::string Str(const char* name, const char* otherwise);
  Ints AttrInts(const char* name, Ints otherwise = {});
  std::vector<float> Floats(const char* name, std::vector<float> otherwise);
  std::vector<std::string> Strings(const char* name);
  const Array* Tensor(const char* name);
  const OnnxFileGraph* Graph(const char* name);
  /// The dtype of ONNX's number; an error for those that we lack.
  DType ElementType(int64_t number);

  // Outputs.

  size_t OutputCount() const { return file_.outputs.size(); }
  bool Wants(size_t i) const;  ///< output i is there and named
  /// Output i is this variable. Does nothing when nobody wants it.
  void Give(size_t i, const std::string& variable);
  void GiveConstant(size_t i, const Array& array);
  void GiveValue(size_t i, OnnxValue value);

  // Ops.

  /// Appends an op with one output and gives its name.
  std::string Emit(absl::string_view op_type, const Slots& inputs,
                   Attrs attrs = {}, const char* out = "Out");
  /// Appends an op with several outputs: as many as `outs` says for each slot.
  Names EmitMany(absl::string_view op_type, const Slots& inputs,
                 const std::vector<std::pair<const char*, size_t>>& outs,
                 Attrs attrs = {});
  std::string Unary(const char* op_type, const std::string& x,
                    Attrs attrs = {}) {
    return Emit(op_type, {{"X", {x}}}, std::move(attrs));
  }
  /// Elementwise with numpy's broadcasting: add, logical_and, less_than, ...
  std::string Binary(const char* op_type, const std::string& x,
                     const std::string& y);
  std::string Add(const std::string& x, const std::string& y) {
    return Binary("elementwise_add", x, y);
  }
  std::string Sub(const std::string& x, const std::string& y) {
    return Binary("elementwise_sub", x, y);
  }
  std::string Mul(const std::string& x, const std::string& y) {
    return Binary("elementwise_mul", x, y);
  }
  std::string Div(const std::string& x, const std::string& y) {
    return Binary("elementwise_div", x, y);
  }
  /// scale * x + bias.
  std::string Affine(const std::string& x, double scale, double bias);
  std::string Cast(const std::string& x, DType to);
  std::string Reshape(const std::string& x, const Ints& shape);
  /// A shape that is an int64 variable.
  std::string ReshapeBy(const std::string& x, const std::string& shape);
  /// An extent of a new shape: a number, or that of an axis of a variable.
  struct Dim {
    int64_t extent = -1;
    std::string of = {};
    int64_t axis = 0;
  };
  std::string ReshapeTo(const std::string& x, const std::vector<Dim>& dims);
  std::string Transpose(const std::string& x, const Ints& perm);
  std::string Unsqueeze(const std::string& x, const Ints& axes);
  std::string Squeeze(const std::string& x, const Ints& axes);
  std::string Concat(const Names& xs, int64_t axis);
  /// Elements [start, end) of one axis, each `step`.
  std::string Slice(const std::string& x, const Ints& axes, const Ints& starts,
                    const Ints& ends, Ints steps = {});
  Names Split(const std::string& x, int64_t axis, size_t parts);
  std::string Flip(const std::string& x, const Ints& axes);
  /// Where with numpy's broadcasting.
  std::string Where(const std::string& condition, const std::string& x,
                    const std::string& y);
  /// All of them in the shape that they broadcast to.
  Names Broadcast(const Names& xs);
  std::string Expand(const std::string& x, const Ints& shape);
  std::string MatMul(const std::string& x, const std::string& y,
                     bool trans_x = false, bool trans_y = false);
  /// reduce_sum and the like; no axes: all.
  std::string Reduce(const char* op_type, const std::string& x,
                     const Ints& axes, bool keep);
  /// Rows of one axis; `index` has one dimension.
  std::string Gather(const std::string& x, const std::string& index,
                     int64_t axis);
  /// Indices into `count` axes of x from `axis` on, a number for each or rows
  /// of them, without negative ones: those count from the end.
  std::string FromStart(const std::string& index, const std::string& x,
                        int64_t axis, int64_t count = 1);
  /// x's shape as an int64 variable of one dimension.
  std::string ShapeVar(const std::string& x);
  /// 0, 1, ... along an axis of x, int64.
  std::string Positions(const std::string& x, int64_t axis);
  std::string Full(const Shape& shape, double value, DType dtype);
  std::string FullLike(const std::string& x, double value, DType dtype);

  // Constants, as parameters.

  std::string Constant(const Array& array);
  std::string ConstInts(const Ints& values);      ///< [n] int64
  std::string Scalar(double value, DType dtype);  ///< []

  /// Checks that every wanted output was given; the first error.
  absl::Status Finish();

 private:
  const OnnxFileAttr* FindAttr(const char* name, OnnxFileAttr::Kind kind);

  const OnnxFileNode& file_;
  const char* op_type_;
  int64_t opset_;
  OnnxImporter* importer_;
  absl::Status status_;
  std::vector<bool> given_;
};

/// Elements of an integer, bool or float array as int64; nothing for others.
std::optional<std::vector<int64_t>> OnnxInts(const Array& array);
/// Elements of a numeric array.
std::vector<double> OnnxNumbers(const Array& array);
/// An array of a numeric dtype with these elements.
Array OnnxArray(DType dtype, Shape shape, const std::vector<double>& values);
/// ints of an attribute: int64 cut to int32's range, as PaddlePaddle stores
/// "to the end".
std::vector<int32_t> OnnxAttrInts(const std::vector<int64_t>& values);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_IMPORT_NODE_H_
