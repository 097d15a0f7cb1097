// SPDX-License-Identifier: Apache-2.0
// A graph of ONNX's operators in the making, for frameworks that keep channels
// in the last axis. A tensor has two forms: as the framework has it, and with
// channels in axis 1, as ONNX's windows want them. The form that is missing is
// made by a Transpose when it is first asked for, so that a chain of
// convolutions is transposed once at each end.
#ifndef PD_LIBCORE_DEPLOY_LAYOUT_GRAPH_H_
#define PD_LIBCORE_DEPLOY_LAYOUT_GRAPH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "formats/onnx_file.h"
#include "libcore/deploy/onnx_attrs.h"

namespace pd {

struct LayoutTensor {
  std::string plain;  ///< as the framework has it; "" until asked for
  std::string front;  ///< with channels in axis 1; "" until asked for
  Shape shape;        ///< of the plain form; -1: not known
  DType dtype = DType::kFloat32;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
};

/// A window that slides over some axes.
struct LayoutWindow {
  std::vector<int64_t> kernel, strides, dilations;
  bool same = false;    ///< as many outputs as strides fit; else no padding
  bool causal = false;  ///< all of the padding is in front
};

/// The first error sticks: after it names are "" and nothing is appended.
class LayoutGraph {
 public:
  using Names = std::vector<std::string>;
  using Ints = std::vector<int64_t>;
  using Attrs = std::map<std::string, OnnxFileAttr>;

  OnnxFileGraph graph;

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  void Fail(const absl::Status& status) {
    if (ok()) status_ = status;
  }
  /// Nodes that follow have this name.
  void Begin(const std::string& name);
  const std::string& name() const { return name_; }
  /// For a graph in a node of `outer`, which reads values of that one: its own
  /// constants have other names than those.
  void NumberAfter(const LayoutGraph& outer) { next_ = outer.next_; }

  /// Appends a node with one output and gives its name.
  std::string Emit(const char* op_type, const Names& inputs, Attrs attrs = {});
  Names EmitMany(const char* op_type, const Names& inputs, size_t outputs,
                 Attrs attrs = {});
  std::string Constant(const Array& array);
  /// A weight under a name of its own; the one that is there already where a
  /// layer is called several times.
  std::string Weight(const std::string& name, const Array& array);
  std::string ConstInts(const Ints& values);
  std::string Scalar(double value, DType dtype = DType::kFloat32);
  std::string Cast(const std::string& x, DType dtype);
  std::string Transpose(const std::string& x, const Ints& perm);
  /// 0 in front takes the extent of `x`; one extent may be -1.
  std::string Reshape(const std::string& x, const Ints& shape);
  /// x[start:] of an axis and so on; INT64_MAX stands for the end.
  std::string Slice(const std::string& x, const Ints& axes, const Ints& starts,
                    const Ints& ends, const Ints& steps = {});
  /// In the opposite order along an axis.
  std::string Flip(const std::string& x, int64_t axis);
  std::string Reduce(const char* op_type, const std::string& x,
                     const Ints& axes, bool keep);

  const std::string& Plain(LayoutTensor* x);
  const std::string& Front(LayoutTensor* x);
  /// The form that is there, channels in axis 1 where both are.
  const std::string& Any(LayoutTensor* x);
  /// A tensor in the form that `front` says. An error for extents that no
  /// tensor has.
  LayoutTensor Made(const std::string& name, const Shape& shape, bool front,
                    DType dtype = DType::kFloat32);
  /// Takes a name for a value; false where another value has it.
  bool TakeName(const std::string& name) { return taken_.insert(name).second; }
  /// A value that was made since Begin gets another name, unless that is taken.
  void Rename(LayoutTensor* x, const std::string& name);

  /// x in whatever form it has, through a node that looks at no axis.
  LayoutTensor Elementwise(const char* op_type, LayoutTensor* x,
                           const Names& others = {}, Attrs attrs = {});
  /// The same for several that broadcast; their ranks are equal.
  LayoutTensor Broadcast(const char* op_type,
                         const std::vector<LayoutTensor*>& xs);

  /// Attributes of a node, given the shape of its input's plain form.
  Attrs WindowAttrs(const LayoutWindow& window, const Shape& spatial);
  Shape WindowExtents(const LayoutWindow& window, const Shape& spatial);

 private:
  absl::Status status_;
  std::string name_;
  size_t first_node_ = 0;
  int64_t next_ = 0;
  std::set<std::string> taken_;
};

/// The extents between the first and the last.
Shape SpatialOf(const Shape& shape);
/// The axis of the form with channels in axis 1.
int64_t FrontAxis(int64_t axis, int64_t rank);
/// [batch, spatial..., channels]
Shape WithSpatial(int64_t batch, const Shape& spatial, int64_t channels);
/// The shape of what broadcasts; -1 where it is not known.
Shape BroadcastShape(const Shape& a, const Shape& b);

/// An array with its axes in another order: axis i was perm[i].
absl::StatusOr<Array> PermutedArray(const Array& array,
                                    const std::vector<int64_t>& perm);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_LAYOUT_GRAPH_H_
