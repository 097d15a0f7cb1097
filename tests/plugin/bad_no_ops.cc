// SPDX-License-Identifier: Apache-2.0
// A shared library that declares nothing.
int NothingToSee() { return 0; }
