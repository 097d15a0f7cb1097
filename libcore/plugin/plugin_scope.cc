// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/plugin_scope.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
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

void Say(const char* text) {
  if (::write(STDERR_FILENO, text, ::strlen(text)) < 0) return;
}

// " inside plug-in 'x.so', op 'y'". Here and in OnCrash are only calls that a
// handler may make: no memory is allocated.
void SayWhere() {
  Say(" inside plug-in '");
  Say(running->file.c_str());
  Say("', ");
  Say(running->kind);
  Say(" '");
  Say(running->type.c_str());
  Say("'\n");
}

void OnCrash(int number) {
  if (running != nullptr) {
    const char* name = ::sigabbrev_np(number);
    Say("crash (SIG");
    Say(name != nullptr ? name : "?");
    Say(")");
    SayWhere();
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// A kernel that ends the process must not look like work that is done.
void OnExit() {
  if (running == nullptr) return;
  Say("exit");
  SayWhere();
  ::_exit(3);
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
  static const int at_exit = std::atexit(OnExit);
  (void)at_exit;
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
