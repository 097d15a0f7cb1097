// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/file_remains.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kMark = ".tmp";
constexpr absl::string_view kPattern = "XXXXXX";
constexpr int kMostTries = 16;

// "latest.tmpa1B2c3" -> "latest"; "" for any other name.
std::string TargetNameOf(const std::string& name) {
  const size_t tail = kMark.size() + kPattern.size();
  if (name.size() <= tail) return "";
  const size_t at = name.size() - tail;
  const absl::string_view rest = absl::string_view(name).substr(at);
  const bool ours =
      absl::StartsWith(rest, kMark) &&
      std::all_of(rest.begin() + kMark.size(), rest.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c));
      });
  return ours ? name.substr(0, at) : "";
}

// Removes the file unless its writer still holds it.
void RemoveUnheld(const std::string& path) {
  const int fd =
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      ::flock(fd, LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
  ::close(fd);
}

// Names of temporary files in the folder.
std::vector<std::string> TemporariesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (std::string name = it->path().filename().string();
        !TargetNameOf(name).empty())
      names.push_back(std::move(name));
  return names;
}

// Temporary files found in each folder when this process first wrote there.
class Folders {
 public:
  std::vector<std::string> Take(const std::string& folder,
                                const std::string& target) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [place, first] = found_.try_emplace(folder);
    std::vector<std::string>& names = place->second;
    if (first) names = TemporariesIn(folder);
    const auto rest = std::partition(
        names.begin(), names.end(),
        [&](const auto& name) { return TargetNameOf(name) != target; });
    std::vector<std::string> taken(rest, names.end());
    names.erase(rest, names.end());
    return taken;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> found_;
};

}  // namespace

absl::StatusOr<TemporaryFile> MakeTemporary(const std::string& target,
                                            absl::string_view shown) {
  for (int i = 0; i < kMostTries; ++i) {
    TemporaryFile file;
    file.path = absl::StrCat(target, kMark, kPattern);
    file.fd = ::mkostemp(file.path.data(), O_CLOEXEC);
    if (file.fd < 0) break;
    // Where the file system has no locks, nothing is taken for remains. Else
    // somebody may have taken this for remains before it was held.
    struct stat info;
    if ((::flock(file.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
        ::fstat(file.fd, &info) != 0 || info.st_nlink == 0) {
      ::close(file.fd);
      continue;
    }
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(file.fd, 0666 & ~mask);
    return file;
  }
  return ErrnoToStatus(errno, absl::StrCat("cannot write ", shown));
}

void RemoveRemainsOf(const std::string& target) {
  static auto* folders = new Folders;
  const std::string folder = FolderOf(target);
  const std::string name = fs::path(target).filename().string();
  for (const std::string& remains : folders->Take(folder, name))
    RemoveUnheld(absl::StrCat(folder, "/", remains));
}

void RemoveRemainsIn(const std::string& folder) {
  for (const std::string& name : TemporariesIn(folder))
    RemoveUnheld(absl::StrCat(folder, "/", name));
}

}  // namespace pd
