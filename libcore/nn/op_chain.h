// SPDX-License-Identifier: Apache-2.0
// Formulas as ops: each call appends an op with new output variables and gives
// a result's name, so that calls nest. After the first error the others do
// nothing. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_OP_CHAIN_H_
#define PD_LIBCORE_NN_OP_CHAIN_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/program/block_builder.h"

namespace pd {

class OpChain {
 public:
  using Attrs = std::map<std::string, Attribute>;

  explicit OpChain(BlockBuilder* main) : main_(main) {}

  /// One op; gives output number `result`. An input named "" is left out.
  std::string Op(const char* type,
                 const std::vector<std::pair<const char*, std::string>>& inputs,
                 const std::vector<const char*>& outputs, Attrs attrs = {},
                 size_t result = 0);
  /// "X" -> "Out".
  std::string Unary(const char* type, const std::string& x, Attrs attrs = {}) {
    return Op(type, {{"X", x}}, {"Out"}, std::move(attrs));
  }
  /// "X", "Y" -> "Out": "elementwise_sub", "equal", ...
  std::string Binary(const char* type, const std::string& x,
                     const std::string& y) {
    return Op(type, {{"X", x}, {"Y", y}}, {"Out"}, {{"axis", int32_t{-1}}});
  }
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
  /// factor * x + bias
  std::string Scale(const std::string& x, double factor, double bias = 0);
  /// "reduce_sum", "reduce_mean", ... over `axes`, none meaning all.
  std::string Reduce(const char* type, const std::string& x,
                     std::vector<int32_t> axes = {}, bool keepdim = false);
  std::string Squeeze(const std::string& x, int axis);
  std::string Unsqueeze(const std::string& x, int axis);
  std::string Reshape(const std::string& x, std::vector<int32_t> shape);
  /// x itself where it has this element type.
  std::string Cast(const std::string& x, DType dtype);
  /// Extent of an axis of x as an int32 tensor [1].
  std::string Extent(const std::string& x, int axis);
  /// float32 [N, extent of `axis` of x], 1 where the column is below length[n].
  std::string SequenceMask(const std::string& length, const std::string& x,
                           int axis);
  /// The k largest numbers along the last axis in falling order, and their
  /// int64 places on it.
  struct Largest {
    std::string values, indices;
  };
  Largest TopK(const std::string& x, int k);
  /// The `beams` likeliest of all continuations of an example's sequences:
  /// scores [N, beams * words], one for each sequence and next word. The
  /// results are [N, beams]: their scores, the sequences they continue, the
  /// words.
  struct Continuations {
    std::string scores, parents, words;
  };
  Continuations BestContinuations(const std::string& scores, int beams,
                                  int words);
  std::string Full(const Shape& shape, DType dtype, double value);
  /// Numbers written into the program.
  std::string Values(const Shape& shape, DType dtype,
                     const std::vector<double>& values);

  /// A variable; after an error one without a shape.
  const VarDesc& Var(const std::string& name) const;
  const Shape& ShapeOf(const std::string& name) const {
    return Var(name).shape;
  }
  BlockBuilder* main() { return main_; }

  /// Counts as an op that failed, when it is one.
  void Update(absl::Status status);
  bool ok() const { return status_.ok(); }
  /// The first error, else `result`.
  absl::StatusOr<std::string> Give(std::string result) const;

 private:
  BlockBuilder* main_;
  absl::Status status_;
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_OP_CHAIN_H_
