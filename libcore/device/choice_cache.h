// SPDX-License-Identifier: Apache-2.0
// Choices that took time to make, kept for later processes in a small text file
// of the user's cache. A file that is damaged, or of another version, counts as
// empty: a choice can always be made anew, so what goes wrong is a warning.
#ifndef PD_LIBCORE_DEVICE_CHOICE_CACHE_H_
#define PD_LIBCORE_DEVICE_CHOICE_CACHE_H_

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// An engine of a library: where it stands among those that the library
/// recommends, and its number there.
struct KeptChoice {
  int position = 0, engine = 0;
};

class ChoiceCache {
 public:
  using Choices = std::map<std::string, KeptChoice>;

  /// Of the file `name` in $XDG_CACHE_HOME/pdkit or ~/.cache/pdkit, once for
  /// the process; without either folder's name, of no file.
  static ChoiceCache& OfUser(absl::string_view name);

  /// An empty path keeps choices for the process alone.
  explicit ChoiceCache(std::string path) : path_(std::move(path)) {}

  /// The file is read when somebody asks first. A key is one line of text.
  std::optional<KeptChoice> Find(const std::string& key);
  /// Adds a choice to what the file holds now.
  void Keep(const std::string& key, KeptChoice choice);

  const std::string& path() const { return path_; }

  /// The file's bytes, and back; DataLoss says which line is wrong.
  static std::string Text(const Choices& choices);
  static absl::StatusOr<Choices> Parse(absl::string_view text);

 private:
  void Read();

  const std::string path_;
  std::mutex mutex_;
  bool read_ = false;
  Choices choices_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CHOICE_CACHE_H_
