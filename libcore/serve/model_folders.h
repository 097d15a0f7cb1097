// SPDX-License-Identifier: Apache-2.0
// Which models and versions a command line or a folder means.
#ifndef PD_LIBCORE_SERVE_MODEL_FOLDERS_H_
#define PD_LIBCORE_SERVE_MODEL_FOLDERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace pd {
namespace serve {

struct ModelPlace {
  std::string name;
  std::string path;
  /// `path` is a folder of the folders of versions: 1, 2, ...
  bool versioned = false;
};

struct ModelPlaces {
  std::vector<ModelPlace> models;
  std::vector<std::string> folders;  ///< in which models may appear later
};

/// The meaning of arguments: NAME=MODEL, MODEL, a folder of versions, or a
/// folder of models. InvalidArgument for a name that no address can hold and
/// for one that comes twice; NotFound for what is not there.
absl::StatusOr<ModelPlaces> PlacesOf(const std::vector<std::string>& arguments);

/// The models in a folder of models.
std::vector<ModelPlace> ModelsIn(const std::string& folder);

/// The versions of a model, with the paths of their MODELs.
std::map<int64_t, std::string> VersionsOf(const ModelPlace& place);

/// A text that changes when a file of the MODEL does.
std::string Fingerprint(const std::string& path);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_MODEL_FOLDERS_H_
