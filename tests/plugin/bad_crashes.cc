// SPDX-License-Identifier: Apache-2.0
// Its initialiser follows a null pointer.
struct Crasher {
  Crasher() {
    volatile int* volatile nothing = nullptr;
    *nothing = 1;
  }
};
static Crasher crasher;
