// SPDX-License-Identifier: Apache-2.0
// Fake-quantize ops between convolutions, in the layouts that these leave,
// against the reference: numbers, scales, states and gradients.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_fake_quantize {

constexpr char kMoving[] = "fake_quantize_dequantize_moving_average_abs_max";
constexpr char kBatch[] = "fake_quantize_dequantize_abs_max";
constexpr char kObserver[] = "moving_average_abs_max_scale";

OpDesc Conv(const std::string& x, const std::string& w,
            const std::string& out) {
  OpDesc op;
  op.type = "conv2d";
  op.SetInput("Input", {x});
  op.SetInput("Filter", {w});
  op.SetOutput("Output", {out});
  op.attrs["paddings"] = std::vector<int32_t>{1, 1};
  return op;
}

// An op with a moving average; Out where `out` is given.
void AppendAverage(KernelCase* c, const char* type, const std::string& x,
                   const std::string& out, bool is_test) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  if (!out.empty()) op.SetOutput("Out", {out});
  const auto keep = [&](const char* slot, float value) {
    const std::string name = absl::StrCat(x, "_", type, "_", slot);
    Parameter(c, name, MakeArray<float>({1}, {value}));
    if (std::string(slot) != "Scale" || !out.empty())
      op.SetInput(absl::StrCat("In", slot), {name});
    op.SetOutput(absl::StrCat("Out", slot), {name});
  };
  keep("Scale", 1.3f);
  keep("State", 1);
  keep("Accum", 1);
  op.attrs["is_test"] = is_test;
  Append(c, op);
}

KernelCase Network(int64_t channels, bool is_test, bool batch_scale) {
  KernelCase c;
  Feed(&c, "x", RandomArray({3, channels, 6, 7}, 1));
  Parameter(&c, "w", RandomArray({17, channels, 3, 3}, 2));
  Parameter(&c, "v", RandomArray({5, 17, 3, 3}, 3));
  Append(&c, Conv("x", "w", "a"));
  AppendAverage(&c, kObserver, "a", "", is_test);
  if (batch_scale) {
    OpDesc op;
    op.type = kBatch;
    op.SetInput("X", {"a"});
    op.SetOutput("Out", {"q"});
    op.SetOutput("OutScale", {"q_scale"});
    Append(&c, op);
  } else {
    AppendAverage(&c, kMoving, "a", "q", is_test);
  }
  Append(&c, Conv("q", "v", "b"));
  c.fetches = {"b", "q"};
  if (!is_test) c.wrt = {"x", "w", "v"};
  return c;
}

TEST(FakeQuantize, MovingAveragesOfTraining) {
  for (const int64_t channels : {1, 16})
    ExpectLikeReference(
        Network(channels, false, false),
        {{kMoving, "cpu:any_layout"}, {kObserver, "cpu:any_layout"}}, 1e-2);
}

TEST(FakeQuantize, ScalesOfEvaluation) {
  ExpectLikeReference(Network(16, true, false), {{kMoving, "cpu:any_layout"}},
                      1e-2);
}

TEST(FakeQuantize, ScalesOfTheBatch) {
  ExpectLikeReference(Network(16, false, true), {{kBatch, "cpu:any_layout"}},
                      1e-2);
}

// Without a convolution before it, nothing but rounding is compared.
TEST(FakeQuantize, RoundsAsTheReference) {
  for (const Shape& shape : {Shape{1}, Shape{5, 3333}, Shape{70000}}) {
    KernelCase c;
    Feed(&c, "x", RandomArray(shape, 4));
    AppendAverage(&c, kMoving, "x", "q", false);
    c.fetches = {"q"};
    ExpectLikeReference(c, {{kMoving, "cpu:any_layout"}}, 0);
  }
}

}  // namespace test_fake_quantize
}  // namespace pd
