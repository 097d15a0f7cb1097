// SPDX-License-Identifier: Apache-2.0
// Python's pickle, the closed subset of it that PaddlePaddle and numpy write:
// plain values, numpy arrays, OrderedDict. A pickle is a program; this reader
// runs none of it. The few calls that arrays are made of are recognised as
// shapes and read as data, every other name is refused where it stands.
#ifndef PD_FORMATS_PICKLE_H_
#define PD_FORMATS_PICKLE_H_

#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/raw_array.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

struct PickleValue;

struct PickleNone {};
/// An integer beyond 64 bits: two's complement, little endian.
struct PickleBigInt {
  std::string bytes;
};
struct PickleBytes {
  std::string bytes;
};
struct PickleList {
  std::vector<PickleValue> items;
};
/// A Tensor inside a saved object is the tuple (name, array).
struct PickleTuple {
  std::vector<PickleValue> items;
};
/// Keys are None, bools, numbers, strings, bytes or tuples, in file order.
struct PickleDict {
  std::vector<std::pair<PickleValue, PickleValue>> items;
  bool ordered = false;  ///< a collections.OrderedDict

  /// The value under a string key; null when there is none.
  const PickleValue* Find(absl::string_view key) const;
  void Add(std::string key, PickleValue value);
};

/// A tree of Python values. numpy scalars are arrays of shape [].
struct PickleValue {
  std::variant<PickleNone, bool, int64_t, PickleBigInt, double,
               std::complex<double>, std::string, PickleBytes, PickleList,
               PickleTuple, PickleDict, Array>
      value;

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&value);
  }
};

/// "None", "bool", "int", ...: Python's name for the type of `value`.
absl::string_view TypeName(const PickleValue& value);

/// Whether bytes begin, and those of protocol 0 and 1 end, as a pickle does.
bool IsPickle(absl::string_view bytes);

/// The value in a file of protocol 0 to 5; arrays are views of its bytes where
/// possible. DataLoss when it is damaged, PermissionDenied for a name other
/// than those of arrays, InvalidArgument for what is no tree of values (loops,
/// over 64 levels), Unimplemented for element types without a DType.
absl::StatusOr<PickleValue> ParsePickle(
    const FileBytes& file, Alignment alignment = Alignment::kNatural);

/// ParsePickle on a file; messages name the path.
absl::StatusOr<PickleValue> ReadPickle(const std::string& path);

/// The bytes that CPython's pickler writes for `value`; `protocol` is 2, 3 or
/// 4. OutOfRange when a value is too long for the protocol.
absl::StatusOr<std::string> SerializePickle(const PickleValue& value,
                                            int protocol = 4);

/// SerializePickle into a file, array by array.
absl::Status WritePickle(const std::string& path, const PickleValue& value,
                         int protocol = 4);

}  // namespace pd

#endif  // PD_FORMATS_PICKLE_H_
