// SPDX-License-Identifier: Apache-2.0
// The report on the first NaN or Inf of a run.
#ifndef PD_LIBCORE_CHECK_NAN_FINDING_H_
#define PD_LIBCORE_CHECK_NAN_FINDING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/tensor/tensor_stats.h"

namespace pd {

/// Where a value of a run comes from.
enum class ValueOrigin {
  kMade,      ///< by an op before
  kFed,       ///< the data
  kLabel,     ///< the data, what the loss compares with
  kVariable,  ///< a persistable variable, as it was before the step
};

/// A value as a report shows it.
struct InspectedValue {
  std::string name;
  std::string slot;  ///< of the op: "X"
  DType dtype = DType::kFloat32;
  Shape shape;
  TensorStats stats;
  int64_t first_bad = -1;  ///< row-major; -1: every number is finite
  ValueOrigin origin = ValueOrigin::kMade;
};
InspectedValue InspectValue(const std::string& name, const Array& array);

/// The row-major index of the first element that is NaN or infinite; -1.
int64_t FirstBad(const Array& array);

/// An element as PaddlePaddle's manual prints it: "nan", "-inf", "0.013274".
struct ValueSample {
  int64_t index = 0;  ///< row-major
  std::string value;
};
/// The first `most` NaN, infinite and finite elements each, in index order.
std::vector<ValueSample> SamplesOf(const Array& array, int most = 3);

/// The report of a block of PaddlePaddle's check on a GPU on its elements:
/// blocks of 1024 threads take 1024 elements each, at most 128 blocks in turn.
struct BlockSample {
  std::vector<ValueSample> samples;  ///< the first three of each kind
  int64_t nan = 0, inf = 0, finite = 0;
};
/// Of the blocks that hold a bad number.
std::map<int64_t, BlockSample> DeviceBlocksOf(const Array& array);

/// The point that a training or evaluation had reached.
struct NanPlace {
  std::string phase;   ///< "train", "eval"; "" where there is no job
  std::string part;    ///< the phase of the job; "" where it has none
  int64_t step = -1;   ///< counted from 1; -1: not a training
  int64_t epoch = -1;  ///< counted from 1
  int64_t batch = -1;  ///< of the epoch or the evaluation, counted from 1
  std::vector<int64_t> records;  ///< of the data set, in the batch's order
};

struct NanFinding {
  NanPlace place;
  int32_t block = 0;
  int64_t index = -1;  ///< of the op in its block, from 0
  OpDesc op;
  std::string layer, kind;  ///< of the job; "" where nobody knows
  std::string source;       ///< the line of a script that made the op, or ""
  InspectedValue output;    ///< the bad one
  std::vector<ValueSample> samples;
  /// Where a GPU made it: its blocks that hold bad numbers.
  std::map<int64_t, BlockSample> device_blocks;
  std::vector<InspectedValue> inputs;
  std::vector<InspectedValue> fed;  ///< everything that the run was fed
  /// The op exists only in the program that the passes made; those of the
  /// original one that it stands for.
  std::vector<std::string> stands_for;
  std::vector<int64_t> bad_records;  ///< of those whose rows of it are bad
  /// Largest magnitude among the parameters' gradients by step, the last last.
  std::vector<std::pair<int64_t, double>> gradients;
  std::vector<std::string> causes;  ///< the likeliest first; may be empty
  NamedArrays input_values;         ///< row-major copies, before the op ran
  NamedArrays output_values;        ///< the same of what it wrote
  std::vector<VarDesc> variables;   ///< of the op, as the program declares them
  int64_t version = 0;              ///< of the program
  std::vector<std::string> not_kept;  ///< inputs that are no plain tensors
  bool clean_inputs() const;
};

/// Fills `causes` from the rest.
void ExplainCauses(NanFinding* finding);

/// "[2, 5]": where element `index` (row-major) lies.
std::string IndexText(int64_t index, const Shape& shape);

}  // namespace pd

#endif  // PD_LIBCORE_CHECK_NAN_FINDING_H_
