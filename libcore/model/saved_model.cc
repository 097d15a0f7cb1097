// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/saved_model.h"

#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/tensor_bundle.h"
#include "formats/tensorflow_file.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/tensorflow_graph.h"
#include "libcore/model/model_files.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

// The files of an index, each opened when a tensor of it is asked for.
class BundleFiles {
 public:
  BundleFiles(std::string name, TensorBundle bundle)
      : name_(std::move(name)), bundle_(std::move(bundle)) {}

  const TensorBundle& bundle() const { return bundle_; }

  absl::StatusOr<Array> Tensor(const std::string& key) {
    const auto entry = bundle_.entries.find(key);
    if (entry == bundle_.entries.end())
      return NotFound("'%s.index' has no variable '%s'", name_, key);
    const std::string path =
        BundleShardName(name_, entry->second.shard, bundle_.shards);
    auto file = files_.find(path);
    if (file == files_.end()) {
      PD_ASSIGN_OR_RETURN(FileBytes bytes, ReadFile(path));
      file = files_.emplace(path, std::move(bytes)).first;
    }
    auto tensor = BundleTensor(entry->second, file->second);
    if (tensor.ok()) return tensor;
    return Annotate(tensor.status(),
                    absl::StrCat("'", path, "': variable '", key, "'"));
  }

 private:
  std::string name_;
  TensorBundle bundle_;
  std::map<std::string, FileBytes> files_;
};

}  // namespace

std::string SavedModelIn(const std::string& folder) {
  const std::string path = (fs::path(folder) / "saved_model.pb").string();
  return Exists(path) ? path : "";
}

absl::StatusOr<OnnxFile> ReadSavedModel(const std::string& path,
                                        const FileBytes& bytes) {
  PD_ASSIGN_OR_RETURN(const TfSavedModel model,
                      ParseTensorflowSavedModel(bytes.view()));
  PD_ASSIGN_OR_RETURN(const auto keys, TensorflowVariables(model));
  NamedArrays variables;
  if (!keys.empty()) {
    const std::string name =
        (fs::path(path).parent_path() / "variables" / "variables").string();
    const std::string index = absl::StrCat(name, ".index");
    PD_ASSIGN_OR_RETURN(const FileBytes table, ReadFile(index));
    PD_ASSIGN_OR_RETURN(TensorBundle bundle,
                        OfFile(index, ParseTensorBundle(table.view())));
    BundleFiles files(name, std::move(bundle));
    for (const auto& [node, key] : keys) {
      const auto entry = files.bundle().entries.find(key);
      // A table of texts, which a network that answers may not read.
      if (entry != files.bundle().entries.end() &&
          !DTypeFromTensorflow(entry->second.dtype).has_value())
        continue;
      PD_ASSIGN_OR_RETURN(variables[node], files.Tensor(key));
    }
  }
  return TensorflowAsOnnx(model, variables);
}

absl::StatusOr<NamedArrays> ReadTensorBundle(const std::string& path,
                                             const FileBytes& index) {
  PD_ASSIGN_OR_RETURN(TensorBundle bundle, ParseTensorBundle(index.view()));
  BundleFiles files(std::string(absl::StripSuffix(path, ".index")),
                    std::move(bundle));
  NamedArrays tensors;
  for (const auto& [key, entry] : files.bundle().entries) {
    if (!DTypeFromTensorflow(entry.dtype).has_value()) continue;
    PD_ASSIGN_OR_RETURN(tensors[key], files.Tensor(key));
  }
  return tensors;
}

}  // namespace pd
