// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx_import/caffe_layer.h"

#include <cmath>
#include <limits>

#include "libcore/base/error.h"

namespace pd {

std::vector<double> CaffeNumbers(OnnxNode* node, const char* name) {
  const Array* array = node->HasAttr(name) ? node->Tensor(name) : nullptr;
  return array == nullptr ? std::vector<double>{} : OnnxNumbers(*array);
}

double CaffeNumber(OnnxNode* node, const char* name, double otherwise) {
  const auto numbers = CaffeNumbers(node, name);
  return numbers.empty() ? otherwise : numbers[0];
}

// Fields are integers of 32 bits, but any number may stand in an ONNX file.
int64_t CaffeInteger(OnnxNode* node, const char* name, int64_t otherwise) {
  const double number = CaffeNumber(node, name, static_cast<double>(otherwise));
  if (std::abs(number) <= std::numeric_limits<uint32_t>::max())
    return static_cast<int64_t>(number);
  node->Fail(InvalidArgument("%s is %g", name, number));
  return otherwise;
}

OnnxNode::Ints CaffeIntegers(OnnxNode* node, const char* name) {
  OnnxNode::Ints integers;
  for (const double number : CaffeNumbers(node, name)) {
    if (!(std::abs(number) <= std::numeric_limits<uint32_t>::max())) {
      node->Fail(InvalidArgument("%s is %g", name, number));
      return {};
    }
    integers.push_back(static_cast<int64_t>(number));
  }
  return integers;
}

OnnxNode::Ints CaffePerAxis(OnnxNode* node, const std::string& name,
                            const char* plain, size_t rank, int64_t otherwise) {
  const std::string h = name + "_h", w = name + "_w";
  if (rank == 2 && (node->HasAttr(h.c_str()) || node->HasAttr(w.c_str())))
    return {CaffeInteger(node, h.c_str(), otherwise),
            CaffeInteger(node, w.c_str(), otherwise)};
  OnnxNode::Ints given = CaffeIntegers(node, plain);
  if (given.empty()) given = {otherwise};
  if (given.size() == 1) given.resize(rank, given[0]);
  if (given.size() != rank) {
    node->Fail(
        InvalidArgument("%s is %s over %d axes", plain, ToString(given), rank));
    given.resize(rank, otherwise);
  }
  for (const int64_t value : given)
    if (value < 0 || value > std::numeric_limits<int32_t>::max())
      node->Fail(InvalidArgument("%s is %d", plain, value));
  return given;
}

void NeedCaffeWeights(OnnxNode* node, size_t bottoms) {
  if (node->InputCount() <= bottoms)
    node->Fail(FailedPrecondition(
        "it has no weights; expected those of a .caffemodel"));
}

}  // namespace pd
