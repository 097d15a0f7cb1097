// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/repository.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/path.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace serve {

Repository::Repository(ModelPlaces places, const RepositoryOptions& options,
                       Metrics* metrics)
    : folders_(std::move(places.folders)),
      options_(options),
      metrics_(metrics) {
  for (ModelPlace& place : places.models) {
    const std::string name = place.name;
    models_[name].place = std::move(place);
  }
}

std::vector<std::string> Repository::Names() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, model] : models_) names.push_back(name);
  return names;
}

absl::Status Repository::Open() {
  const std::lock_guard<std::mutex> loading(loading_);
  for (const std::string& name : Names()) {
    const absl::Status status = Update(name, Look::kAll);
    if (Versions(name).empty())
      return status.ok() ? NotFound("model '%s' has no version", name) : status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ServedModel>> Repository::Find(
    const std::string& name, const std::string& version) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, model] : models_) names.push_back(known);
    return NotFound("there is no model '%s'; served are: %s", Printable(name),
                    absl::StrJoin(names, ", "));
  }
  const auto& versions = found->second.versions;
  if (version.empty()) {
    for (auto i = versions.rbegin(); i != versions.rend(); ++i)
      if (i->second.served != nullptr) return i->second.served;
    return Unavailable("model '%s' is not loaded", name);
  }
  int64_t number = 0;
  if (absl::SimpleAtoi(version, &number) && absl::StrCat(number) == version) {
    const auto one = versions.find(number);
    if (one != versions.end() && one->second.served != nullptr)
      return one->second.served;
  }
  std::vector<int64_t> loaded;
  for (const auto& [known, one] : versions)
    if (one.served != nullptr) loaded.push_back(known);
  return NotFound("model '%s' has no version '%s' loaded; there are: %s", name,
                  Printable(version), absl::StrJoin(loaded, ", "));
}

std::vector<int64_t> Repository::Versions(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<int64_t> numbers;
  const auto found = models_.find(name);
  if (found != models_.end())
    for (const auto& [number, version] : found->second.versions)
      if (version.served != nullptr) numbers.push_back(number);
  return numbers;
}

void Repository::AddNewModels() {
  for (const std::string& folder : folders_)
    for (ModelPlace& place : ModelsIn(folder)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      const std::string name = place.name;
      if (models_.count(name) == 0) models_[name].place = std::move(place);
    }
}

bool Repository::MustLoad(Version* version, const std::string& fingerprint,
                          Look look) {
  const bool settled = version->seen == fingerprint;
  version->seen = fingerprint;
  switch (look) {
    case Look::kAll:
      return true;
    case Look::kAgain:
      return version->served == nullptr || version->fingerprint != fingerprint;
    case Look::kSettled:
      // Files of a loaded version that change are for a Reload: only the user
      // knows when he has written them all.
      return version->served == nullptr && settled &&
             version->fingerprint != fingerprint;
  }
  return false;
}

absl::Status Repository::LoadVersion(const ModelPlace& place, int64_t number,
                                     const std::string& path) {
  auto served = ServedModel::Load(place.name, number, path, options_.model,
                                  options_.batch, metrics_);
  std::shared_ptr<ServedModel> old;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Version& version = models_[place.name].versions[number];
    version.reason = served.ok() ? "" : std::string(served.status().message());
    if (served.ok()) {
      old = std::move(version.served);
      version.served = *std::move(served);
    }
  }
  if (old != nullptr) old->batcher->Close();
  if (served.ok()) {
    ++metrics_->reloads;
    return absl::OkStatus();
  }
  ++metrics_->failed_loads;
  LogWarning("model '%s' version %d: %s", place.name, number,
             Printable(served.status().message()));
  return served.status();
}

void Repository::Drop(const std::string& name,
                      const std::vector<int64_t>& numbers) {
  for (const int64_t number : numbers) {
    std::shared_ptr<ServedModel> old;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      auto& versions = models_[name].versions;
      old = std::move(versions[number].served);
      versions.erase(number);
    }
    if (old == nullptr) continue;
    old->batcher->Close();
    LogInfo("model '%s' version %d is no longer served", name, number);
  }
}

absl::Status Repository::Update(const std::string& name, Look look) {
  ModelPlace place;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Model& model = models_[name];
    if (model.unloaded && look != Look::kAll) return absl::OkStatus();
    model.unloaded = false;
    place = model.place;
  }
  auto paths = VersionsOf(place);
  while (options_.keep_versions > 0 &&
         static_cast<int64_t>(paths.size()) > options_.keep_versions)
    paths.erase(paths.begin());
  absl::Status newest;
  for (const auto& [number, path] : paths) {
    const std::string fingerprint = Fingerprint(path);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      Version& version = models_[name].versions[number];
      if (!MustLoad(&version, fingerprint, look)) continue;
      version.fingerprint = fingerprint;
    }
    newest = LoadVersion(place, number, path);
  }
  // A version without files, or older than those to keep, goes when another
  // one is there.
  std::vector<int64_t> gone;
  bool others = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [number, version] : models_[name].versions) {
      if (paths.count(number) == 0)
        gone.push_back(number);
      else
        others |= version.served != nullptr;
    }
  }
  if (others) Drop(name, gone);
  return newest;
}

void Repository::Reload() {
  const std::lock_guard<std::mutex> loading(loading_);
  AddNewModels();
  for (const std::string& name : Names())
    (void)Update(name, Look::kAgain);  // it has logged what is wrong
}

void Repository::Poll() {
  const std::lock_guard<std::mutex> loading(loading_);
  AddNewModels();
  for (const std::string& name : Names())
    (void)Update(name, Look::kSettled);  // it has logged what is wrong
}

absl::Status Repository::Load(const std::string& name) {
  const std::lock_guard<std::mutex> loading(loading_);
  AddNewModels();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (models_.count(name) == 0)
      return NotFound("there is no model '%s'", Printable(name));
  }
  return Update(name, Look::kAll);
}

absl::Status Repository::Unload(const std::string& name) {
  const std::lock_guard<std::mutex> loading(loading_);
  std::vector<int64_t> numbers;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = models_.find(name);
    if (found == models_.end())
      return NotFound("there is no model '%s'", Printable(name));
    found->second.unloaded = true;
    for (const auto& [number, version] : found->second.versions)
      numbers.push_back(number);
  }
  Drop(name, numbers);
  return absl::OkStatus();
}

std::vector<Repository::Entry> Repository::Index() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Entry> entries;
  for (const auto& [name, model] : models_) {
    for (const auto& [number, version] : model.versions)
      entries.push_back(
          {name, number, version.served != nullptr, version.reason});
    if (model.unloaded) entries.push_back({name, 0, false, "unloaded"});
  }
  return entries;
}

void Repository::Close() {
  const std::lock_guard<std::mutex> loading(loading_);
  std::vector<std::shared_ptr<ServedModel>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [name, model] : models_)
      for (auto& [number, version] : model.versions)
        if (version.served != nullptr) all.push_back(version.served);
  }
  for (const auto& served : all) served->batcher->Close();
}

}  // namespace serve
}  // namespace pd
