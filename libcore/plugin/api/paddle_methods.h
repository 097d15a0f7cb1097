// SPDX-License-Identifier: Apache-2.0
// The functions of one tensor and of two that paddle::Tensor has as methods
// too: ONE(name) declares or defines one of the first kind, TWO(name) one of
// the second.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_METHODS_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_METHODS_H_

#define PD_TENSOR_METHODS(ONE, TWO) \
  ONE(abs)                          \
  ONE(bitwise_not)                  \
  ONE(exp)                          \
  ONE(floor)                        \
  ONE(log)                          \
  TWO(add)                          \
  TWO(subtract)                     \
  TWO(multiply)                     \
  TWO(divide)                       \
  TWO(less_than)                    \
  TWO(less_equal)                   \
  TWO(equal)                        \
  TWO(not_equal)                    \
  TWO(greater_than)                 \
  TWO(greater_equal)                \
  TWO(bitwise_and)                  \
  TWO(bitwise_or)                   \
  TWO(bitwise_xor)                  \
  TWO(maximum)                      \
  TWO(minimum)                      \
  TWO(elementwise_pow)              \
  TWO(gather_nd)

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_METHODS_H_
