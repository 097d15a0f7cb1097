// SPDX-License-Identifier: Apache-2.0
// Its initialiser throws.
#include <stdexcept>

struct Thrower {
  Thrower() { throw std::runtime_error("no licence was found"); }
};
static Thrower thrower;
