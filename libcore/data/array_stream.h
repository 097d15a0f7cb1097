// SPDX-License-Identifier: Apache-2.0
// The arrays that a program writes to its standard output as .npy files, one
// after the other.
#ifndef PD_LIBCORE_DATA_ARRAY_STREAM_H_
#define PD_LIBCORE_DATA_ARRAY_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/npy.h"
#include "libcore/base/child_process.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/ir/array.h"

namespace pd {

/// How messages call a program: "program './cartpole'".
std::string ProgramName(const std::string& command);

/// The most that one array may take.
constexpr int64_t kMostArrayBytes = int64_t{1} << 30;

/// An array of a stream; its buffers are used again.
struct StreamedArray {
  Shape shape;
  const std::byte* data = nullptr;  ///< row-major, little endian
  size_t bytes = 0;
  std::vector<std::byte> raw;
  Array converted;  ///< where the bytes came in another order
};

/// The next array, as it must be.
struct ExpectedArray {
  std::string name;  ///< for messages
  DType dtype = DType::kFloat32;
  const char* by = "the job says";  ///< who wants this dtype
};

class ArrayStream {
 public:
  /// `child` outlives the stream, which reads up to `buffer` bytes ahead.
  explicit ArrayStream(ChildProcess* child, size_t buffer = size_t{1} << 18)
      : child_(child), buffer_(buffer) {}

  /// Reads the next array. `check` sees its shape before its elements are read,
  /// and its error is given. Where the stream ends in its place: false with
  /// `may_end`, else an error. DataLoss where the program failed, the stream
  /// ends inside or holds something else; InvalidArgument for another dtype;
  /// ResourceExhausted above kMostArrayBytes; errors of ChildProcess.
  absl::StatusOr<bool> Read(
      const ExpectedArray& expected, bool may_end,
      const std::function<absl::Status(const Shape&)>& check,
      StreamedArray* array);

 private:
  absl::StatusOr<size_t> ReadBytes(std::byte* to, size_t size);
  absl::StatusOr<bool> ReadHeader(const std::string& name, bool may_end,
                                  NpyHeader* header);
  absl::Status ReadElements(const std::string& name, const NpyHeader& header,
                            StreamedArray* array);
  absl::Status Cut(const std::string& name);

  ChildProcess* const child_;
  std::vector<char> buffer_;  // bytes that were read too early
  size_t begin_ = 0, end_ = 0;
  std::vector<char> header_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_ARRAY_STREAM_H_
