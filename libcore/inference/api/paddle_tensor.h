// SPDX-License-Identifier: Apache-2.0
// A handle of an input or output of a predictor. Errors are thrown as
// phi::enforce::EnforceNotMet (paddle_error.h).
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_TENSOR_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "paddle_half.h"
#include "paddle_infer_declare.h"

namespace pd {
namespace inference {
class Variable;
struct Access;
}  // namespace inference
}  // namespace pd

namespace paddle_infer {

/// Called with the user's pointer when an asynchronous copy has ended.
typedef void (*CallbackFunc)(void*);

/// Text elements, one std::string each.
using Strings = std::vector<std::string>;

namespace contrib {
class TensorUtils;
}  // namespace contrib

/// Element types. `DataType::FLOAT32` and `paddle_infer::FLOAT32` both compile.
enum DataType {
  FLOAT32,
  INT64,
  INT32,
  UINT8,
  INT8,
  FLOAT16,
  BOOL,
  FLOAT64,
  BFLOAT16
};

enum class PlaceType { kUNK = -1, kCPU, kGPU, kXPU, kIPU, kCUSTOM, kNPU };

enum class DataLayout { kUNK = -1, kAny, kNHWC, kNCHW };

/// Several handles of one variable see the same value. A handle may outlive its
/// predictor; then it has no value, and reading it is PreconditionNotMet.
/// T is float, double, int64_t, int32_t, uint8_t, int8_t, bool, float16 or
/// bfloat16; the library holds the instances.
class PD_INFER_DECL Tensor {
 public:
  virtual ~Tensor();
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(Tensor&&) noexcept;

  /// The shape of the next value. PermissionDenied for outputs,
  /// InvalidArgument for a negative extent.
  void Reshape(const std::vector<int>& shape);
  /// The number of strings of the next value; Unimplemented, since no operator
  /// here reads strings.
  void ReshapeStrings(const std::size_t& shape);

  /// The memory of the value, of the shape given to Reshape; the element type
  /// becomes T. PreconditionNotMet before Reshape, Unavailable for a place that
  /// is not the CPU. Of an output, the value of the last run.
  template <typename T>
  T* mutable_data(PlaceType place);
  /// The value; InvalidArgument when its type is not T, PreconditionNotMet when
  /// there is none.
  template <typename T>
  T* data(PlaceType* place, int* size) const;

  /// Copies as many elements as the shape has; the element type becomes T.
  /// PreconditionNotMet before Reshape.
  template <typename T>
  void CopyFromCpu(const T* data);
  /// Uses the caller's memory, which has to outlive the runs, without a copy.
  /// An output is written there after a run whose shape and type fit.
  template <typename T>
  void ShareExternalData(const T* data, const std::vector<int>& shape,
                         PlaceType place,
                         DataLayout layout = DataLayout::kNCHW);
  /// As ReshapeStrings.
  void CopyStringsFromCpu(const Strings* data);

  /// Copies all elements; T has to be the element type.
  template <typename T>
  void CopyToCpu(T* data) const;
  /// The same; the stream is not used, since the value is in the host's memory.
  template <typename T>
  void CopyToCpuAsync(T* data, void* exec_stream) const;
  /// The same, then calls `cb(cb_params)`.
  template <typename T>
  void CopyToCpuAsync(T* data, CallbackFunc cb, void* cb_params) const;

  /// {0} before there is a value.
  std::vector<int> shape() const;
  /// Offsets at which sequences begin, a list for each level.
  void SetLoD(const std::vector<std::vector<size_t>>& x);
  std::vector<std::vector<size_t>> lod() const;
  const std::string& name() const;
  /// The element type; before there is a value, the one that the model
  /// declares.
  DataType type() const;
  PlaceType place() const { return PlaceType::kCPU; }

 protected:
  explicit Tensor(std::shared_ptr<pd::inference::Variable> variable);

 private:
  friend struct pd::inference::Access;
  friend class contrib::TensorUtils;
  template <typename T>
  void CopyToCpuImpl(T* data, void* stream, CallbackFunc cb,
                     void* params) const;

  std::shared_ptr<pd::inference::Variable> variable_;
};

}  // namespace paddle_infer

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_TENSOR_H_
