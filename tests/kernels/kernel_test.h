// SPDX-License-Identifier: Apache-2.0
// Runs a program with the reference kernels and with the fast ones, and
// compares what comes out: the reference is the oracle. With PD_TEST_DEVICE the
// fast ones are those of a GPU ("gpu"), or of the fake driver
// ("fake").
#ifndef PD_TESTS_KERNELS_KERNEL_TEST_H_
#define PD_TESTS_KERNELS_KERNEL_TEST_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "libcore/exec/plan.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// An array of small random numbers around 0; the same for the same number.
Array RandomArray(const Shape& shape, uint64_t number);
Array LabelArray(const Shape& shape, int64_t classes, uint64_t number);

/// A program under test.
struct KernelCase {
  ProgramDesc program;
  NamedArrays feeds;
  NamedArrays persistables;
  /// Differentiate the first fetch by these, with a random cotangent.
  std::vector<std::string> wrt;
  std::vector<std::string>
      fetches;          ///< names of gradients follow by themselves
  bool frozen = false;  ///< PlanOptions::frozen
};

/// Declares a variable of the case and gives it a value.
void Feed(KernelCase* c, const std::string& name, Array value);
void Parameter(KernelCase* c, const std::string& name, Array value);
/// Appends an op, whose outputs are declared by inference.
void Append(KernelCase* c, OpDesc op);

/// A fused_conv2d with windows of `kernel` by `kernel`.
struct ConvShape {
  int64_t batch, in, height, width, out;
  int32_t pad;
  int32_t kernel = 3, stride = 1, dilation = 1;
};

/// Activations to fuse with a convolution. Sanitizers look at memory, which
/// they do not change: relu6 alone there.
std::vector<std::string> FusedActivations();

/// Feeds "x", parameters "w" and "b", result "y"; its input is "made", which
/// another op makes, so that its buffer is the plan's to share. Frozen.
KernelCase FusedConv(const ConvShape& shape, const std::string& activation);
/// The same with a residual: the feed "r", or "made" where `itself`.
KernelCase ResidualConv(const ConvShape& shape, bool itself);

/// Whether the fast kernels are a GPU's.
bool OnDevice();

struct KernelResult {
  NamedArrays values;  ///< fetches, gradients, persistables after the run
  std::map<std::string, std::string> labels;  ///< op type -> implementation
  std::set<std::string> on_host;              ///< op types, where GPUs are used
};

KernelResult RunCase(const KernelCase& c, bool fast);

/// Expects that every op type in `labels` ran by an implementation with this
/// label, or, where GPUs are used, that int8_... ops are theirs; that all
/// values agree with the reference's: differences of at most tolerance * (1 +
/// largest magnitude of the array), and that a second run gives the same bits.
void ExpectLikeReference(const KernelCase& c,
                         const std::map<std::string, std::string>& labels,
                         double tolerance = 2e-5);

}  // namespace pd

#endif  // PD_TESTS_KERNELS_KERNEL_TEST_H_
