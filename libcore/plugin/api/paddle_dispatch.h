// SPDX-License-Identifier: Apache-2.0
// PD_DISPATCH_...(dtype, "name", lambda): calls the lambda with `data_t` as the
// type of the elements, one of a set of types; another one is an error.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_DISPATCH_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_DISPATCH_H_

#include "paddle_check.h"
#include "paddle_dtype.h"

#define PD_DISPATCH_CASE(type, T, ...) \
  case type: {                         \
    using data_t = T;                  \
    return __VA_ARGS__();              \
  }
#define PD_CASE(NAME, T, ...) \
  PD_DISPATCH_CASE(::phi::DataType::NAME, T, __VA_ARGS__)
#define PD_CASES_FLOATING(...)         \
  PD_CASE(FLOAT32, float, __VA_ARGS__) \
  PD_CASE(FLOAT64, double, __VA_ARGS__)
#define PD_CASES_HALF(...) PD_CASE(FLOAT16, ::phi::dtype::float16, __VA_ARGS__)
#define PD_CASES_INTEGRAL(...)         \
  PD_CASE(INT8, int8_t, __VA_ARGS__)   \
  PD_CASE(UINT8, uint8_t, __VA_ARGS__) \
  PD_CASE(INT16, int16_t, __VA_ARGS__) \
  PD_CASE(INT32, int, __VA_ARGS__)     \
  PD_CASE(INT64, int64_t, __VA_ARGS__)
#define PD_CASES_COMPLEX(...)                                   \
  PD_CASE(COMPLEX64, ::phi::dtype::complex<float>, __VA_ARGS__) \
  PD_CASE(COMPLEX128, ::phi::dtype::complex<double>, __VA_ARGS__)

#define PD_DISPATCH_SWITCH(TYPE, function, ...)                              \
  [&] {                                                                      \
    const ::phi::DataType pd_dtype = TYPE;                                   \
    switch (pd_dtype) {                                                      \
      __VA_ARGS__                                                            \
      default:                                                               \
        PD_THROW("function " function " is not implemented for data type `", \
                 ::phi::DataTypeToString(pd_dtype), "`");                    \
    }                                                                        \
  }()

#define PD_DISPATCH_FLOATING_TYPES(TYPE, name, ...) \
  PD_DISPATCH_SWITCH(TYPE, name, PD_CASES_FLOATING(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_HALF_TYPES(TYPE, name, ...) \
  PD_DISPATCH_SWITCH(                                        \
      TYPE, name, PD_CASES_FLOATING(__VA_ARGS__) PD_CASES_HALF(__VA_ARGS__))
#define PD_DISPATCH_INTEGRAL_TYPES(TYPE, name, ...) \
  PD_DISPATCH_SWITCH(TYPE, name, PD_CASES_INTEGRAL(__VA_ARGS__))
#define PD_DISPATCH_COMPLEX_TYPES(TYPE, name, ...) \
  PD_DISPATCH_SWITCH(TYPE, name, PD_CASES_COMPLEX(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_INTEGRAL_TYPES(TYPE, name, ...) \
  PD_DISPATCH_SWITCH(TYPE, name,                                 \
                     PD_CASES_FLOATING(__VA_ARGS__)              \
                         PD_CASES_INTEGRAL(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, name, ...) \
  PD_DISPATCH_SWITCH(TYPE, name,                                \
                     PD_CASES_FLOATING(__VA_ARGS__)             \
                         PD_CASES_COMPLEX(__VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_INTEGRAL_AND_COMPLEX_TYPES(TYPE, name, ...) \
  PD_DISPATCH_SWITCH(TYPE, name,                                             \
                     PD_CASES_FLOATING(__VA_ARGS__)                          \
                         PD_CASES_INTEGRAL(__VA_ARGS__)                      \
                             PD_CASES_COMPLEX(__VA_ARGS__))
// Further types, given by their enumerators.
#define PD_CASE_OF(enumerator, ...)                                        \
  PD_DISPATCH_CASE(enumerator, ::phi::DataTypeToCppType<enumerator>::type, \
                   __VA_ARGS__)
#define PD_DISPATCH_FLOATING_AND_COMPLEX_AND_1_TYPE(TYPE1, TYPE, name, ...) \
  PD_DISPATCH_SWITCH(TYPE, name,                                            \
                     PD_CASES_FLOATING(__VA_ARGS__)                         \
                         PD_CASES_COMPLEX(__VA_ARGS__)                      \
                             PD_CASE_OF(TYPE1, __VA_ARGS__))
#define PD_DISPATCH_FLOATING_AND_COMPLEX_AND_2_TYPES(TYPE1, TYPE2, TYPE, name, \
                                                     ...)                      \
  PD_DISPATCH_SWITCH(                                                          \
      TYPE, name,                                                              \
      PD_CASES_FLOATING(__VA_ARGS__) PD_CASES_COMPLEX(__VA_ARGS__)             \
          PD_CASE_OF(TYPE1, __VA_ARGS__) PD_CASE_OF(TYPE2, __VA_ARGS__))

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_DISPATCH_H_
