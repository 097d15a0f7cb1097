// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/plugin_scope.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/error.h"
#include "libcore/plugin/convert.h"

namespace pd {
namespace {

// The part whose function this thread runs.
thread_local const PluginPart* running = nullptr;

void Write(const std::string& text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

// Only calls that a handler may make: no memory is allocated.
void OnCrash(int number) {
  if (running != nullptr) {
    const char* name = ::sigabbrev_np(number);
    const auto say = [](const char* text) {
      if (::write(STDERR_FILENO, text, ::strlen(text)) < 0) return;
    };
    say("crash (SIG");
    say(name != nullptr ? name : "?");
    say(") inside plug-in '");
    Write(running->file);
    say("', ");
    say(running->kind);
    say(" '");
    Write(running->type);
    say("'\n");
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

class Running {
 public:
  explicit Running(const PluginPart* part) : before_(running) {
    running = part;
  }
  ~Running() { running = before_; }

 private:
  const PluginPart* before_;
};

}  // namespace

std::string OneLine(const std::exception& error) {
  return absl::StrReplaceAll(error.what(), {{"\n  [", " ["}, {"\n", " "}});
}

std::string PluginPart::Describe() const {
  return file.empty()
             ? absl::StrCat("custom ", kind, " '", type, "'")
             : absl::StrCat("plug-in '", file, "', ", kind, " '", type, "'");
}

absl::Status CallPlugin(const PluginPart& part,
                        const std::function<void()>& call) {
  const Running scope(&part);
  const auto annotated = [&](const absl::Status& status) {
    return Annotate(status, part.Describe());
  };
  try {
    call();
    return absl::OkStatus();
  } catch (const phi::enforce::EnforceNotMet& error) {
    return annotated(StatusOf(error));
  } catch (const std::bad_alloc&) {
    return annotated(ResourceExhausted("no memory is left"));
  } catch (const std::exception& error) {
    return annotated(Unknown("%s", OneLine(error)));
  } catch (...) {
    return annotated(Internal("it threw something that is no std::exception"));
  }
}

void TellCrashes() {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction now;
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL)
      continue;
    struct sigaction told = {};
    told.sa_handler = OnCrash;
    ::sigemptyset(&told.sa_mask);
    told.sa_flags = SA_NODEFER | SA_RESETHAND;
    ::sigaction(number, &told, nullptr);
  }
}

}  // namespace pd
