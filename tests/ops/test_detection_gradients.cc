// SPDX-License-Identifier: Apache-2.0
// Gradients of detection ops against finite differences, in forms where
// PaddlePaddle's own are wrong, too.
#include <gtest/gtest.h>

#include "libcore/ops/registry.h"
#include "tests/ops/op_test.h"

namespace pd {
namespace test_detection_gradients {

using Ints = std::vector<int32_t>;

class DetectionGradients : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  void Check(const GradientCase& check, double tolerance = 1e-6) {
    const absl::Status status = CheckGradients(registry_, check, tolerance);
    EXPECT_TRUE(status.ok()) << check.type << ": " << status;
  }

  OpRegistry registry_;
};

// Of rois whose sides are less than 1 when they are aligned.
TEST_F(DetectionGradients, RoiAlign) {
  GradientCase align{"roi_align",
                     {{"X", {{2, 2, 5, 6}}}},
                     {{"pooled_height", int32_t{2}},
                      {"pooled_width", int32_t{3}},
                      {"spatial_scale", 0.5f},
                      {"aligned", true}}};
  align.constants = {
      {"ROIs", MakeArray({3, 4}, std::vector<double>{1, 2, 2.5, 3.4, 0.3, 1, 9,
                                                     8, 5, 4, 5.7, 8.9})},
      {"RoisNum", MakeArray({2}, Ints{1, 2})}};
  Check(align);
}

// Of ground truths in cells of their own.
TEST_F(DetectionGradients, Yolov3Loss) {
  GradientCase loss{"yolov3_loss",
                    {{"X", {{1, 14, 3, 3}}}},
                    {{"anchors", Ints{10, 13, 16, 30}},
                     {"anchor_mask", Ints{0, 1}},
                     {"class_num", int32_t{2}},
                     {"downsample_ratio", int32_t{16}}}};
  loss.constants = {
      {"GTBox", MakeArray({1, 3, 4},
                          std::vector<double>{0.4, 0.5, 0.2, 0.3, 0.75, 0.82,
                                              0.22, 0.27, 0.9, 0.1, 0.3, 0.6})},
      {"GTLabel", MakeArray({1, 3}, Ints{0, 1, 1})}};
  loss.output = "Loss";
  Check(loss);
}

// Of parts that are wider than high: PaddlePaddle's gradient mixes them up.
TEST_F(DetectionGradients, DeformablePsroiPooling) {
  GradientCase pool{"deformable_psroi_pooling",
                    {{"Input", {{1, 2, 6, 7}}}, {"Trans", {{2, 2, 1, 3}}}},
                    {{"no_trans", false},
                     {"spatial_scale", 0.5f},
                     {"output_dim", int32_t{2}},
                     {"group_size", Ints{1, 1}},
                     {"pooled_height", int32_t{2}},
                     {"pooled_width", int32_t{3}},
                     {"part_size", Ints{1, 3}},
                     {"sample_per_part", int32_t{2}},
                     {"trans_std", 0.1f}}};
  pool.constants = {
      {"ROIs", MakeArray({2, 4}, std::vector<double>{2, 3, 8, 9, 1, 2, 7, 6})}};
  pool.lods = {{"ROIs", {{0, 2}}}};
  pool.output = "Output";
  Check(pool);
}

}  // namespace test_detection_gradients
}  // namespace pd
