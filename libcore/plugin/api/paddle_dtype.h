// SPDX-License-Identifier: Apache-2.0
// Element types and layouts of paddle::Tensor.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_DTYPE_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <ostream>

#include "paddle_complex.h"
#include "paddle_half.h"

namespace phi {

enum class DataType {
  UNDEFINED = 0,
  BOOL,
  UINT8,
  INT8,
  UINT16,
  INT16,
  UINT32,
  INT32,
  UINT64,
  INT64,
  FLOAT32,
  FLOAT64,
  COMPLEX64,
  COMPLEX128,
  PSTRING,
  FLOAT16,
  BFLOAT16,
  NUM_DATA_TYPES,
  ALL_DTYPE = UNDEFINED,
};

/// Bytes of an element; 0 for UNDEFINED and PSTRING.
inline size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::BOOL:
    case DataType::UINT8:
    case DataType::INT8:
      return 1;
    case DataType::UINT16:
    case DataType::INT16:
    case DataType::FLOAT16:
    case DataType::BFLOAT16:
      return 2;
    case DataType::UINT32:
    case DataType::INT32:
    case DataType::FLOAT32:
      return 4;
    case DataType::UINT64:
    case DataType::INT64:
    case DataType::FLOAT64:
    case DataType::COMPLEX64:
      return 8;
    case DataType::COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

/// "float32", "bool", "Undefined".
inline const char* DataTypeToString(DataType type) {
  static const char* const kNames[] = {
      "Undefined", "bool",       "uint8",   "int8",    "uint16",  "int16",
      "uint32",    "int32",      "uint64",  "int64",   "float32", "float64",
      "complex64", "complex128", "pstring", "float16", "bfloat16"};
  const size_t index = static_cast<size_t>(type);
  return index < sizeof(kNames) / sizeof(kNames[0]) ? kNames[index] : "unknown";
}

inline std::ostream& operator<<(std::ostream& out, DataType type) {
  return out << DataTypeToString(type);
}

/// The DataType of a type of C++.
template <typename T>
struct CppTypeToDataType;
/// The type of C++ of a DataType.
template <DataType dtype>
struct DataTypeToCppType;
#define PD_CPP_TYPE(T, name)                                    \
  template <>                                                   \
  struct CppTypeToDataType<T> {                                 \
    static constexpr DataType Type() { return DataType::name; } \
  };                                                            \
  template <>                                                   \
  struct DataTypeToCppType<DataType::name> {                    \
    using type = T;                                             \
  }
PD_CPP_TYPE(bool, BOOL);
PD_CPP_TYPE(uint8_t, UINT8);
PD_CPP_TYPE(int8_t, INT8);
PD_CPP_TYPE(uint16_t, UINT16);
PD_CPP_TYPE(int16_t, INT16);
PD_CPP_TYPE(uint32_t, UINT32);
PD_CPP_TYPE(int32_t, INT32);
PD_CPP_TYPE(uint64_t, UINT64);
PD_CPP_TYPE(int64_t, INT64);
PD_CPP_TYPE(float, FLOAT32);
PD_CPP_TYPE(double, FLOAT64);
PD_CPP_TYPE(phi::dtype::float16, FLOAT16);
PD_CPP_TYPE(phi::dtype::bfloat16, BFLOAT16);
PD_CPP_TYPE(phi::dtype::complex<float>, COMPLEX64);
PD_CPP_TYPE(phi::dtype::complex<double>, COMPLEX128);
#undef PD_CPP_TYPE

enum class DataLayout {
  ANY = 0,
  UNDEFINED = 0,
  ALL_LAYOUT = 0,
  kAnyLayout = 0,
  NHWC,
  kNHWC = NHWC,
  NCHW,
  kNCHW = NCHW,
  ONEDNN,
  kMKLDNN = ONEDNN,
  SPARSE_COO,
  SPARSE_CSR,
  PSTRING_UNION,
  NDHWC,
  kNDHWC = NDHWC,
  NCDHW,
  kNCDHW = NCDHW,
};

}  // namespace phi

namespace paddle {

using phi::DataLayout;
using phi::DataType;

namespace experimental {
using phi::DataLayout;
using phi::DataType;
}  // namespace experimental

}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_DTYPE_H_
