// SPDX-License-Identifier: Apache-2.0
// The models of a server by name and version, and how they are replaced while
// requests come: the new one is loaded first, then requests go to it, and the
// old one goes when all that it accepted is answered.
#ifndef PD_LIBCORE_SERVE_REPOSITORY_H_
#define PD_LIBCORE_SERVE_REPOSITORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/serve/model_folders.h"
#include "libcore/serve/served_model.h"

namespace pd {
namespace serve {

struct RepositoryOptions {
  BatchOptions batch;
  inference::ModelOptions model;  ///< of every model, without files
  int64_t keep_versions = 0;      ///< the newest that are loaded; 0: all
};

class Repository {
 public:
  struct Entry {
    std::string name;
    int64_t version = 0;
    bool ready = false;
    std::string reason;  ///< why it is not ready, or why the newest files of a
                         ///< ready one are not used
  };

  Repository(ModelPlaces places, const RepositoryOptions& options,
             Metrics* metrics);
  ~Repository() { Close(); }

  /// Loads all. The error of the first model that has no version which loads.
  absl::Status Open();
  /// NotFound names what there is; Unavailable for one that has no version
  /// loaded. `version` is "" for the newest.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(
      const std::string& name, const std::string& version) const;
  /// The versions of a model that are loaded, oldest first.
  std::vector<int64_t> Versions(const std::string& name) const;

  /// Looks for new models and versions, and for loaded ones whose files have
  /// changed. Errors of models go to the log and to Index.
  void Reload();
  /// The same of one model, all of whose versions are loaded again. NotFound;
  /// the error of its newest version.
  absl::Status Load(const std::string& name);
  /// Takes it away until Load; what it accepted is answered.
  absl::Status Unload(const std::string& name);
  /// Looks for new and missing folders. A new one is loaded when its files are
  /// the same in two calls, so that copying may take its time.
  void Poll();
  std::vector<Entry> Index() const;
  void Close();

 private:
  struct Version {
    std::shared_ptr<ServedModel> served;  // null: not loaded
    std::string fingerprint;              // of what was tried last
    std::string seen;                     // in the last Poll
    std::string reason;
  };
  struct Model {
    ModelPlace place;
    std::map<int64_t, Version> versions;
    bool unloaded = false;
  };
  enum class Look { kAgain, kAll, kSettled };

  void AddNewModels();
  absl::Status Update(const std::string& name, Look look);
  bool MustLoad(Version* version, const std::string& fingerprint, Look look);
  absl::Status LoadVersion(const ModelPlace& place, int64_t number,
                           const std::string& path);
  void Drop(const std::string& name, const std::vector<int64_t>& numbers);
  std::vector<std::string> Names() const;

  const std::vector<std::string> folders_;
  const RepositoryOptions options_;
  Metrics* const metrics_;
  std::mutex loading_;        // one at a time changes models
  mutable std::mutex mutex_;  // of `models_`; never held while one loads
  std::map<std::string, Model> models_;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_REPOSITORY_H_
