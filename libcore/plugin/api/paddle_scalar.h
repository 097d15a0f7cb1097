// SPDX-License-Identifier: Apache-2.0
// Arguments of tensor functions: a number of any type, and a list of integers.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_SCALAR_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_SCALAR_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "paddle_dtype.h"
#include "paddle_error.h"

namespace paddle {

class Tensor;

namespace experimental {

/// A number that remembers its type. Integers are kept exactly.
class Scalar {
 public:
  Scalar() : Scalar(0) {}
  template <typename T, typename = typename std::enable_if<
                            std::is_arithmetic<T>::value>::type>
  Scalar(T value)  // NOLINT
      : dtype_(TypeOf<T>(value)),
        integer_(std::is_integral<T>::value ? static_cast<int64_t>(value) : 0),
        number_(static_cast<double>(value)) {}
  Scalar(phi::dtype::float16 value)  // NOLINT
      : dtype_(DataType::FLOAT16), number_(static_cast<float>(value)) {}
  Scalar(phi::dtype::bfloat16 value)  // NOLINT
      : dtype_(DataType::BFLOAT16), number_(static_cast<float>(value)) {}
  Scalar(complex64 value)  // NOLINT
      : dtype_(DataType::COMPLEX64), number_(value.real, value.imag) {}
  Scalar(complex128 value)  // NOLINT
      : dtype_(DataType::COMPLEX128), number_(value.real, value.imag) {}
  /// "inf", "-3.5": InvalidArgument where it is no number.
  Scalar(const std::string& text)  // NOLINT
      : dtype_(DataType::FLOAT64) {
    char* end = nullptr;
    number_ = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0')
      throw phi::enforce::EnforceNotMet("InvalidArgumentError",
                                        "'" + text + "' is no number");
  }
  Scalar(const char* text) : Scalar(std::string(text)) {}  // NOLINT
  /// The element of a tensor that has one.
  Scalar(const Tensor& tensor);  // NOLINT

  DataType dtype() const { return dtype_; }
  bool FromTensor() const { return from_tensor_; }
  template <typename T>
  T to() const {
    return Convert<T>(std::is_integral<T>());
  }
  std::complex<double> number() const { return number_; }
  bool is_integer() const {
    return dtype_ != DataType::FLOAT16 && dtype_ != DataType::BFLOAT16 &&
           dtype_ != DataType::FLOAT32 && dtype_ != DataType::FLOAT64 &&
           !is_complex();
  }
  bool is_complex() const {
    return dtype_ == DataType::COMPLEX64 || dtype_ == DataType::COMPLEX128;
  }

 private:
  // Types without a DataType of their own (long long) count by their size.
  template <typename T>
  static DataType TypeOf(T /*value*/) {
    if (std::is_same<T, bool>::value) return DataType::BOOL;
    if (std::is_floating_point<T>::value)
      return sizeof(T) == sizeof(float) ? DataType::FLOAT32 : DataType::FLOAT64;
    if (sizeof(T) == 8)
      return std::is_signed<T>::value ? DataType::INT64 : DataType::UINT64;
    if (sizeof(T) == 4)
      return std::is_signed<T>::value ? DataType::INT32 : DataType::UINT32;
    if (sizeof(T) == 2)
      return std::is_signed<T>::value ? DataType::INT16 : DataType::UINT16;
    return std::is_signed<T>::value ? DataType::INT8 : DataType::UINT8;
  }
  template <typename T>
  T Convert(std::true_type /*integral*/) const {
    return is_integer() ? static_cast<T>(integer_)
                        : static_cast<T>(number_.real());
  }
  template <typename T>
  T Convert(std::false_type /*integral*/) const {
    return Real<T>(static_cast<T*>(nullptr));
  }
  template <typename T>
  T Real(T*) const {
    return static_cast<T>(number_.real());
  }
  template <typename T>
  phi::dtype::complex<T> Real(phi::dtype::complex<T>*) const {
    return phi::dtype::complex<T>(static_cast<T>(number_.real()),
                                  static_cast<T>(number_.imag()));
  }

  DataType dtype_;
  bool from_tensor_ = false;
  int64_t integer_ = 0;
  std::complex<double> number_;
};

/// Integers: a shape, axes.
class IntArray {
 public:
  IntArray() = default;
  IntArray(const std::vector<int64_t>& values) : values_(values) {}  // NOLINT
  IntArray(const std::vector<int32_t>& values)                       // NOLINT
      : values_(values.begin(), values.end()) {}
  IntArray(std::initializer_list<int64_t> values) : values_(values) {}
  IntArray(const int64_t* values, int64_t count)
      : values_(values, values + count) {}
  IntArray(const int32_t* values, int64_t count)
      : values_(values, values + count) {}
  /// The elements of a tensor of one axis, int32 or int64.
  IntArray(const Tensor& tensor);  // NOLINT
  /// The elements of tensors that have one each.
  IntArray(const std::vector<Tensor>& tensors);  // NOLINT

  const std::vector<int64_t>& GetData() const { return values_; }
  size_t size() const { return values_.size(); }
  int64_t operator[](size_t i) const { return values_[i]; }
  bool FromTensor() const { return from_tensor_; }

 private:
  std::vector<int64_t> values_;
  bool from_tensor_ = false;
};

}  // namespace experimental

using experimental::IntArray;
using experimental::Scalar;

}  // namespace paddle

namespace phi {
using paddle::experimental::IntArray;
using paddle::experimental::Scalar;
using ScalarArray = IntArray;  // 2.2
}  // namespace phi

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_SCALAR_H_
