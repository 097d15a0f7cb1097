# SPDX-License-Identifier: Apache-2.0
"""Layers on images and on pairs of inputs: rows of testdata/make/layer_goldens.py."""
from op_cases import f, A

line, image, volume = dict(x=f(2, 2, 5)), dict(x=f(2, 2, 4, 5)), dict(x=f(1, 2, 3, 4, 3))
last = dict(x=f(2, 4, 5, 2))
pair = dict(x=f(3, 4), y=f(3, 4))
BOXES = [[0.5, 1, 5, 6], [1, 0.3, 7.2, 4], [2, 2, 6, 7.5]]


def regions(channels):
    return dict(x=f(2, channels, 8, 8), boxes=A(BOXES, "float32"), number=A([2, 1], "int32"))


CASES = {
    "upsample": ("upsample { size: [7, 6] }", "nn.Upsample([7, 6])", image),
    "upsample_factor": ("upsample { scale_factor: 2 }", "nn.Upsample(scale_factor=2)", image),
    "upsample_bilinear": ("upsample { size: [7, 3] mode: bilinear }", "nn.Upsample([7, 3], mode='bilinear')", image),
    "upsample_bilinear_corners": ("upsample { scale_factor: [2, 1.5] mode: bilinear align_corners: true }",
                                  "nn.Upsample(scale_factor=[2, 1.5], mode='bilinear', align_corners=True)", image),
    "upsample_bilinear_mode_1": ("upsample { size: [7, 3] mode: bilinear align_mode: 1 data_format: NHWC }",
                                 "nn.Upsample([7, 3], mode='bilinear', align_mode=1, data_format='NHWC')", last),
    "upsample_bicubic": ("upsample { size: [7, 3] mode: bicubic }", "nn.Upsample([7, 3], mode='bicubic')", image),
    "upsample_linear": ("upsample { scale_factor: 2 mode: linear }", "nn.Upsample(scale_factor=2, mode='linear', data_format='NCW')", line),
    "upsample_linear_last": ("upsample { size: 4 mode: linear data_format: NHWC }",
                             "nn.Upsample([4], mode='linear', data_format='NWC')", line),
    "upsample_trilinear": ("upsample { size: [2, 6, 4] mode: trilinear align_mode: 1 }",
                           "nn.Upsample([2, 6, 4], mode='trilinear', align_mode=1, data_format='NCDHW')", volume),
    "upsample_nearest_volume": ("upsample { size: 5 }", "nn.Upsample([5, 5, 5], data_format='NCDHW')", volume),
    "upsample_area": ("upsample { size: [2, 3] mode: area }", "nn.Upsample([2, 3], mode='area')", image),
    "upsampling_nearest2d": ("upsampling_nearest2d { scale_factor: 2 }", "nn.UpsamplingNearest2D(scale_factor=2)", image),
    "upsampling_bilinear2d": ("upsampling_bilinear2d { size: [3, 7] data_format: NHWC }",
                              "nn.UpsamplingBilinear2D([3, 7], data_format='NHWC')", last),
    "pixel_shuffle": ("pixel_shuffle { upscale_factor: 2 }", "nn.PixelShuffle(2)", dict(x=f(2, 8, 2, 3))),
    "pixel_shuffle_last": ("pixel_shuffle { upscale_factor: 2 data_format: NHWC }", "nn.PixelShuffle(2, 'NHWC')", dict(x=f(2, 2, 3, 8))),
    "pixel_unshuffle": ("pixel_unshuffle { downscale_factor: 2 }", "nn.PixelUnshuffle(2)", dict(x=f(2, 2, 4, 6))),
    "channel_shuffle": ("channel_shuffle { groups: 2 }", "nn.ChannelShuffle(2)", dict(x=f(2, 6, 2, 3))),
    "unfold": ("unfold { kernel_sizes: 2 }", "nn.Unfold(2)", image),
    "unfold_options": ("unfold { kernel_sizes: [2, 3] strides: [2, 1] paddings: [1, 0, 1, 2] dilations: [1, 2] }",
                       "nn.Unfold([2, 3], [1, 2], [1, 0, 1, 2], [2, 1])", image),
    "fold": ("fold { output_sizes: [4, 5] kernel_sizes: 2 }", "nn.Fold([4, 5], 2)", dict(x=f(2, 8, 12))),
    "fold_options": ("fold { output_sizes: [4, 5] kernel_sizes: [2, 3] strides: [2, 1] paddings: [0, 1] }",
                     "nn.Fold([4, 5], [2, 3], 1, [0, 1], [2, 1])", dict(x=f(2, 12, 10))),
    "cosine_similarity": ("cosine_similarity {}", "nn.CosineSimilarity()", pair),
    "cosine_similarity_axis": ("cosine_similarity { axis: -1 eps: 1e-3 }", "nn.CosineSimilarity(-1, 1e-3)",
                               dict(x=f(2, 3, 4), y=f(2, 3, 4))),
    "pairwise_distance": ("pairwise_distance {}", "nn.PairwiseDistance()", pair),
    "pairwise_distance_1": ("pairwise_distance { p: 1 epsilon: 0.01 keepdim: true }", "nn.PairwiseDistance(1, 0.01, True)", pair),
    "pairwise_distance_3": ("pairwise_distance { p: 3 }", "nn.PairwiseDistance(3)", pair),
    "pairwise_distance_0": ("pairwise_distance { p: 0 epsilon: 0 }", "nn.PairwiseDistance(0, 0.0)",
                            dict(x=A([[1, 2, 3], [0, 5, 1]], "float32"), y=A([[1, 0, 4], [0, 5, 1]], "float32"))),
    "pairwise_distance_inf": ("pairwise_distance { p: inf }", "nn.PairwiseDistance(float('inf'))", pair),
    "pairwise_distance_minus_inf": ("pairwise_distance { p: -inf keepdim: true }", "nn.PairwiseDistance(-float('inf'), keepdim=True)", pair),
    "affine_grid": ("affine_grid { out_shape: [-1, 3, 4, 5] }", "lambda x: F.affine_grid(x, [2, 3, 4, 5])", dict(x=f(2, 2, 3))),
    "affine_grid_edges": ("affine_grid { out_shape: [2, 1, 3, 1] align_corners: false }",
                          "lambda x: F.affine_grid(x, [2, 1, 3, 1], False)", dict(x=f(2, 2, 3))),
    "affine_grid_volume": ("affine_grid { out_shape: [2, 1, 2, 3, 4] align_corners: false }",
                           "lambda x: F.affine_grid(x, [2, 1, 2, 3, 4], False)", dict(x=f(2, 3, 4))),
    **{f"grid_sample_{mode}_{padding}_{'corners' if corners else 'edges'}": (
        f"grid_sample {{ mode: {mode} padding_mode: {padding} align_corners: {str(corners).lower()} }}",
        f"lambda x, y: F.grid_sample(x, y, '{mode}', '{padding}', {corners})", dict(x=f(2, 2, 4, 5), y=f(2, 3, 4, 2, lo=-1.6, hi=1.6)))
       for mode in ("bilinear", "nearest") for padding in ("zeros", "border", "reflection") for corners in (True, False)},
    "grid_sample": ("grid_sample {}", "F.grid_sample", dict(x=f(2, 2, 4, 5), y=f(2, 3, 4, 2))),
    "grid_sample_volume": ("grid_sample {}", "F.grid_sample", dict(x=f(2, 2, 3, 4, 5), y=f(2, 2, 3, 2, 3, lo=-1.2, hi=1.2))),
    "grid_sample_of_affine_grid": ("""layer { name: "theta" input: "y" identity {} }
                                      layer { name: "grid" affine_grid { out_shape: [-1, 2, 3, 3] } }
                                      layer { name: "l" input: ["x", "grid"] grid_sample {} }""",
                                   "lambda x, y: F.grid_sample(x, F.affine_grid(y, [2, 2, 3, 3]))", dict(x=f(2, 2, 4, 5), y=f(2, 2, 3))),
    "temporal_shift": ("temporal_shift { seg_num: 3 }", "lambda x: F.temporal_shift(x, 3)", dict(x=f(6, 4, 2, 3))),
    "temporal_shift_last": ("temporal_shift { seg_num: 2 shift_ratio: 0.4 data_format: NHWC }",
                            "lambda x: F.temporal_shift(x, 2, 0.4, data_format='NHWC')", dict(x=f(4, 2, 3, 5))),
    "bilinear": ("bilinear { out_features: 2 }", "nn.Bilinear(4, 3, 2)", dict(x=f(5, 4), y=f(5, 3))),
    "bilinear_no_bias": ("bilinear { in1_features: 4 in2_features: 3 out_features: 2 bias: false }",
                         "nn.Bilinear(4, 3, 2, bias_attr=False)", dict(x=f(5, 4), y=f(5, 3))),
    "deform_conv2d": ("deform_conv2d { out_channels: 4 kernel_size: 3 }", "ops.DeformConv2D(2, 4, 3)",
                      dict(x=f(2, 2, 5, 5), offset=f(2, 18, 3, 3))),
    "deform_conv2d_mask": ("deform_conv2d { out_channels: 4 kernel_size: 3 padding: 1 deformable_groups: 2 groups: 2 }",
                           "ops.DeformConv2D(2, 4, 3, padding=1, deformable_groups=2, groups=2)",
                           dict(x=f(2, 2, 4, 4), offset=f(2, 36, 4, 4), mask=f(2, 18, 4, 4))),
    "roi_align": ("roi_align { output_size: 3 }", "ops.RoIAlign(3)", regions(3), dict(by="x")),
    "roi_align_scale": ("roi_align { output_size: [2, 3] spatial_scale: 0.5 }", "ops.RoIAlign([2, 3], 0.5)", regions(3), dict(by="x")),
    "roi_pool": ("roi_pool { output_size: [2, 3] }", "ops.RoIPool([2, 3])", regions(3), dict(by="x")),
    "psroi_pool": ("psroi_pool { output_size: 2 }", "ops.PSRoIPool(2)", regions(8), dict(by="x")),
    "yolo_box": ("yolo_box { anchors: [10, 13, 16, 30] class_num: 2 conf_thresh: 0.4 downsample_ratio: 8 }",
                 "lambda x, size: ops.yolo_box(x, size, [10, 13, 16, 30], 2, 0.4, 8)",
                 dict(x=f(2, 14, 3, 3), size=A([[24, 30], [22, 24]], "int32")), dict(outputs=["l", "l:scores"], by="")),
}
