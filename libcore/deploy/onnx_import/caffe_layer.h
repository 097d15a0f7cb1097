// SPDX-License-Identifier: Apache-2.0
// Caffe's layers, nodes of the domain "caffe" (caffe_graph.h): inputs are the
// layer's bottoms, then its weights; attributes are its parameters as tensors
// of float64, absent where the file leaves them to Caffe's defaults. The
// functions here read the parameters; errors go to OnnxNode::Fail.
#ifndef PD_LIBCORE_DEPLOY_ONNX_IMPORT_CAFFE_LAYER_H_
#define PD_LIBCORE_DEPLOY_ONNX_IMPORT_CAFFE_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/deploy/onnx_import/node.h"

namespace pd {

/// The numbers of a field; empty where the file does not give it.
std::vector<double> CaffeNumbers(OnnxNode* node, const char* name);
/// The first of them.
double CaffeNumber(OnnxNode* node, const char* name, double otherwise);
/// The same as integers, of at most 32 bits and a sign.
OnnxNode::Ints CaffeIntegers(OnnxNode* node, const char* name);
int64_t CaffeInteger(OnnxNode* node, const char* name, int64_t otherwise);

/// A field that is one number for all `rank` spatial axes, one for each or, for
/// two axes, the fields NAME_h and NAME_w; `plain` is the name of the first two
/// forms. Numbers are in [0, 2^31).
OnnxNode::Ints CaffePerAxis(OnnxNode* node, const std::string& name,
                            const char* plain, size_t rank, int64_t otherwise);

/// An error where the inputs are no more than `bottoms`.
void NeedCaffeWeights(OnnxNode* node, size_t bottoms);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_IMPORT_CAFFE_LAYER_H_
