// SPDX-License-Identifier: Apache-2.0
// Inference models as bundles, the files that libpd_run runs (runtime/).
#ifndef PD_LIBCORE_BUNDLE_BUNDLE_WRITER_H_
#define PD_LIBCORE_BUNDLE_BUNDLE_WRITER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/bundle/bundle_graph.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

class OpRegistry;

/// The nodes of a model. Batch norms behind convolutions are folded into these,
/// biases and activations belong to their products; attributes that ops leave
/// out have the defaults of their schemas in `registry`. Unimplemented names
/// every op that no kernel computes, with its place.
absl::StatusOr<BundleGraph> LowerModel(const OpRegistry& registry,
                                       InferenceModel model);

/// The bytes of a bundle (runtime/bundle_format.h). OutOfRange for a model with
/// more of something than the format counts.
absl::StatusOr<std::string> BundleBytes(const BundleGraph& graph);

/// LowerModel, BundleBytes, and a file; folders on the way are made, and the
/// old file survives a failure.
absl::Status WriteBundle(const OpRegistry& registry,
                         const InferenceModel& model, const std::string& path);

}  // namespace pd

#endif  // PD_LIBCORE_BUNDLE_BUNDLE_WRITER_H_
