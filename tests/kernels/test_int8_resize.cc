// SPDX-License-Identifier: Apache-2.0
// Nearest resizing of bytes, and of the floats that bytes became, between 8-bit
// products: the reference's, to the bit.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/rng.h"
#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_int8_resize {

Array Bytes(const Shape& shape) {
  const Philox random(11, 1);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < NumElements(shape); ++i)
    bytes.push_back(static_cast<uint8_t>(random.U32(static_cast<uint64_t>(i))));
  return MakeArray<uint8_t>(shape, bytes);
}

// Enlarged and reduced by whole and odd factors, of one image or several, with
// scales, sizes and aligned corners.
TEST(Int8Resize, ToTheNearest) {
  struct Case {
    const char* type;
    Shape x;
    int32_t height, width;
    std::vector<float> scale;
    bool align_corners;
  };
  const Case cases[] = {
      {"nearest_interp_v2", {2, 24, 5, 7}, -1, -1, {2, 2}, false},
      {"nearest_interp_v2", {1, 3, 5, 7}, -1, -1, {8, 3}, false},
      {"nearest_interp_v2", {2, 64, 9, 8}, -1, -1, {0.5f, 0.4f}, false},
      {"nearest_interp_v2", {2, 17, 5, 7}, 11, 3, {}, true},
      {"nearest_interp_v2", {1, 32, 4, 4}, 4, 4, {}, false},
      {"nearest_interp", {2, 33, 6, 5}, 13, 10, {}, false},
      {"nearest_interp", {2, 33, 6, 5}, 13, 10, {}, true},
  };
  for (const Case& t : cases) {
    SCOPED_TRACE(absl::StrCat(t.type, " ", t.x[1], " ", t.height));
    for (const bool bytes : {true, false}) {
      KernelCase c;
      Feed(&c, "x", Bytes(t.x));
      OpDesc back;
      back.type = "int8_dequantize";
      back.SetInput("X", {"x"});
      back.SetOutput("Out", {"floats"});
      back.attrs["x_scale"] = 0.5f;
      Append(&c, std::move(back));
      OpDesc op;
      op.type = t.type;
      op.SetInput("X", {bytes ? "x" : "floats"});
      op.SetOutput("Out", {"out"});
      op.attrs = {{"interp_method", std::string("nearest")},
                  {"align_corners", t.align_corners},
                  {"out_h", t.height},
                  {"out_w", t.width}};
      if (!t.scale.empty()) op.attrs["scale"] = t.scale;
      Append(&c, std::move(op));
      c.fetches = {"out"};
      ExpectLikeReference(c, {{t.type, "int8:channels_last"}}, 0);
    }
  }
}

}  // namespace test_int8_resize
}  // namespace pd
