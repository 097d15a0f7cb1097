// SPDX-License-Identifier: Apache-2.0
// The flags that programs define with PD_DEFINE_*.
#include <cstring>
#include <map>
#include <mutex>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/inference/api/paddle_flags.h"
#include "libcore/inference/border.h"

namespace paddle {
namespace flags {
namespace {

using Place = std::variant<bool*, int32_t*, uint32_t*, int64_t*, uint64_t*,
                           double*, std::string*>;

// Programs define flags in static constructors, in any order.
struct Table {
  std::mutex mutex;
  std::map<std::string, Place> places;
};

Table& Flags() {
  static auto* const table = new Table;
  return *table;
}

void Add(const char* name, Place place) {
  Table& table = Flags();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.places[name] = place;
}

bool ReadValue(const std::string& text, bool* value) {
  return absl::SimpleAtob(text, value);
}
bool ReadValue(const std::string& text, double* value) {
  return absl::SimpleAtod(text, value);
}
bool ReadValue(const std::string& text, std::string* value) {
  *value = text;
  return true;
}
template <typename T>
bool ReadValue(const std::string& text, T* value) {
  T number = 0;
  if (!absl::SimpleAtoi(text, &number)) return false;
  *value = number;
  return true;
}

bool SetPlace(const Place& place, const std::string& text) {
  return std::visit([&](auto* value) { return ReadValue(text, value); }, place);
}

const Place* FindPlace(const std::string& name) {
  const auto found = Flags().places.find(name);
  return found == Flags().places.end() ? nullptr : &found->second;
}

// Sets the flag of argument i; how many arguments it took, 0 for no flag.
int Take(int argc, char** argv, int i) {
  const char* word = argv[i];
  if (word[0] != '-' || word[1] == '\0') return 0;
  word += word[1] == '-' ? 2 : 1;
  const char* equals = std::strchr(word, '=');
  const std::string name =
      equals == nullptr ? word : std::string(word, equals - word);
  const Place* place = FindPlace(name);
  std::string value;
  int taken = 1;
  if (place == nullptr && equals == nullptr && name.rfind("no", 0) == 0) {
    place = FindPlace(name.substr(2));
    if (place == nullptr || !std::holds_alternative<bool*>(*place)) return 0;
    value = "false";
  } else if (place == nullptr) {
    return 0;
  } else if (equals != nullptr) {
    value = equals + 1;
  } else if (std::holds_alternative<bool*>(*place)) {
    value = "true";
  } else if (i + 1 < argc) {
    value = argv[i + 1];
    taken = 2;
  }
  if (!SetPlace(*place, value))
    pd::inference::Check(pd::InvalidArgument(
        "flag '--%s': '%s' is no value of its type", name, value));
  return taken;
}

}  // namespace

void ParseCommandLineFlags(int* pargc, char*** pargv) {
  if (pargc == nullptr || pargv == nullptr || *pargv == nullptr) return;
  Table& table = Flags();
  const std::lock_guard<std::mutex> lock(table.mutex);
  char** argv = *pargv;
  int kept = *pargc > 0 ? 1 : 0;
  int i = kept;
  while (i < *pargc && std::strcmp(argv[i], "--") != 0) {
    const int taken = Take(*pargc, argv, i);
    if (taken == 0) argv[kept++] = argv[i++];
    i += taken;
  }
  while (i < *pargc) argv[kept++] = argv[i++];
  *pargc = kept;
  argv[kept] = nullptr;
}

bool SetFlagValue(const std::string& name, const std::string& value) {
  {
    Table& table = Flags();
    const std::lock_guard<std::mutex> lock(table.mutex);
    const Place* place = FindPlace(name);
    if (place != nullptr) return SetPlace(*place, value);
  }
  return pd::inference::SetPaddleFlag(name, value).ok();
}

bool FindFlag(const std::string& name) {
  {
    Table& table = Flags();
    const std::lock_guard<std::mutex> lock(table.mutex);
    if (FindPlace(name) != nullptr) return true;
  }
  for (const pd::FlagInfo& flag : pd::AllFlags())
    if (flag.name == name || flag.name == "FLAGS_" + name) return true;
  return false;
}

FlagRegisterer::FlagRegisterer(const char* name, const char*, bool* value) {
  Add(name, value);
}
FlagRegisterer::FlagRegisterer(const char* name, const char*, int32_t* value) {
  Add(name, value);
}
FlagRegisterer::FlagRegisterer(const char* name, const char*, uint32_t* value) {
  Add(name, value);
}
FlagRegisterer::FlagRegisterer(const char* name, const char*, int64_t* value) {
  Add(name, value);
}
FlagRegisterer::FlagRegisterer(const char* name, const char*, uint64_t* value) {
  Add(name, value);
}
FlagRegisterer::FlagRegisterer(const char* name, const char*, double* value) {
  Add(name, value);
}
FlagRegisterer::FlagRegisterer(const char* name, const char*,
                               std::string* value) {
  Add(name, value);
}

}  // namespace flags
}  // namespace paddle
