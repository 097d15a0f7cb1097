// SPDX-License-Identifier: Apache-2.0
// A library with one function, which tells a version.
#include <cstddef>

extern "C" size_t FAKE_SYMBOL() { return FAKE_VERSION; }
