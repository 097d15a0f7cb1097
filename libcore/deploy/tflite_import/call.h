// SPDX-License-Identifier: Apache-2.0
// One operator of TFLite on its way to nodes of ONNX: what an importer reads
// from and writes with. The first error sticks (LayoutGraph), so importers read
// as formulas.
#ifndef PD_LIBCORE_DEPLOY_TFLITE_IMPORT_CALL_H_
#define PD_LIBCORE_DEPLOY_TFLITE_IMPORT_CALL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/tflite.h"
#include "libcore/deploy/layout_graph.h"

namespace pd {

/// The graph in the making.
struct TfliteBuild {
  const TfliteGraph* file = nullptr;
  LayoutGraph graph;
  std::string prefix;  ///< of names of its tensors; ends in "/" or is ""
  /// For operators that run other graphs of the file.
  const TfliteFile* whole = nullptr;
  int depth = 0;                           ///< of this one in others
  int64_t* ran = nullptr;                  ///< operators of all that were run
  std::map<int32_t, LayoutTensor> values;  ///< by tensor
  std::map<int32_t, Array> made;           ///< constants that operators give
};

/// The graphs that an operator runs: WHILE its condition and its round, IF both
/// branches. Those that the file has not are left out.
std::vector<const TfliteGraph*> TfliteGraphsOf(const TfliteFile& file,
                                               const TfliteOperator& op);

/// Imports the operators that the outputs hang on, between inputs and outputs
/// that are values of the build.
absl::Status ImportTfliteOperators(TfliteBuild* build);

class TfliteCall {
 public:
  using Ints = LayoutGraph::Ints;
  using Names = LayoutGraph::Names;
  using Attrs = LayoutGraph::Attrs;

  TfliteCall(const TfliteOperator& op, const char* onnx_type,
             TfliteBuild* build)
      : op_(op), onnx_type_(onnx_type), build_(build) {}

  const char* onnx_type() const { return onnx_type_; }  ///< the table's word
  LayoutGraph& graph() { return build_->graph; }
  TfliteBuild& build() { return *build_; }
  const TfliteOperator& op() const { return op_; }
  bool ok() const { return build_->graph.ok(); }
  void Fail(const absl::Status& status) { build_->graph.Fail(status); }

  // Options, by the numbers of their fields in TFLite's schema.

  int64_t Byte(size_t field) const;  ///< of enums and flags; 0: not set
  int64_t Word(size_t field, int64_t otherwise = 0) const;
  double Float(size_t field) const;

  // Inputs.

  size_t inputs() const { return op_.inputs.size(); }
  bool Has(size_t i) const;  ///< it is given
  /// An error where it is not given or not made.
  LayoutTensor& In(size_t i = 0);
  std::string X(size_t i = 0) { return graph().Plain(&In(i)); }
  int64_t Rank(size_t i = 0);
  /// An error unless input `i` has so many axes.
  void WantRank(size_t i, int64_t rank);
  /// Facts of the file on a tensor; an error where there is none.
  const TfliteTensor& InFact(size_t i);
  const TfliteTensor& OutFact(size_t i = 0);
  /// A constant as numbers of 32 bits; null: it is computed.
  const Array* Known(size_t i);
  /// A constant of integers; an error where it is none.
  Ints KnownInts(size_t i);
  /// One of them.
  int64_t KnownInt(size_t i);
  /// `axis` in [-rank, rank) made non-negative.
  int64_t Axis(int64_t axis, int64_t rank);
  /// A constant under its name with `suffix`, in another form.
  std::string Param(size_t i, const char* suffix,
                    const absl::StatusOr<Array>& array);
  /// As ONNX has numbers of axes and extents.
  std::string Int64(size_t i);

  // Outputs.

  size_t outputs() const { return op_.outputs.size(); }
  /// Says what output `i` is, in TFLite's form or with channels in axis 1.
  void Give(const std::string& name, bool front = false, size_t i = 0);
  /// The same after a fused activation, TFLite's number of it.
  void GiveActivated(const std::string& name, int64_t activation,
                     bool front = false);
  void GiveConstant(const Array& array);
  /// The form of output `i` is that of a tensor.
  void GiveAs(const LayoutTensor& x, size_t i = 0) {
    Give(x.front.empty() ? x.plain : x.front, !x.front.empty(), i);
  }

 private:
  const TfliteTensor& FactOf(const std::vector<int32_t>& tensors, size_t i);

  const TfliteOperator& op_;
  const char* onnx_type_;
  TfliteBuild* build_;
};

/// A constant's numbers: float32 of those of 16 and 8 bits.
absl::StatusOr<Array> TfliteNumbers(const TfliteTensor& tensor);
/// Whether a tensor's integers stand for numbers.
bool IsQuantized(const TfliteTensor& tensor);
/// x by way of a tensor's integers; `to` and `back` say which of both ways.
std::string Quantize(LayoutGraph* graph, const TfliteTensor& tensor,
                     const std::string& x, bool to, bool back);

struct TfliteImportEntry {
  int code;          ///< TFLite's BuiltinOperator
  const char* name;  ///< "CONV_2D"
  /// Errors go to TfliteCall::Fail.
  void (*import)(TfliteCall* call);
  /// For functions that serve several operators: ONNX's.
  const char* onnx_type = "";
};

using TfliteImportEntries = std::vector<TfliteImportEntry>;

// The parts, by family.
TfliteImportEntries TfliteControlFlowImports();
TfliteImportEntries TfliteElementwiseImports();
TfliteImportEntries TfliteNetworkImports();
TfliteImportEntries TfliteRecurrentImports();
TfliteImportEntries TfliteShapeImports();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TFLITE_IMPORT_CALL_H_
