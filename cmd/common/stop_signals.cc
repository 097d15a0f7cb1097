// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/stop_signals.h"

#include <atomic>
#include <csignal>

namespace pd {
namespace {

volatile std::sig_atomic_t g_stop = 0;
std::atomic<bool> g_hangup{false};

void OnStop(int signal) {
  if (g_stop != 0) {
    // Ends with the signal's own status once this handler returns.
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  g_stop = signal;
}

void OnServerStop(int signal) {
  if (g_stop == 0) g_stop = signal;
}

void OnHangup(int) { g_hangup = true; }

void Catch(int signal, void (*handler)(int)) {
  struct sigaction old {};
  if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
    return;
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}

// Signals of the process come to this thread. oneDNN's AVX-512 product keeps
// numbers below the stack pointer, where a handler's frame would overwrite
// them: interrupted runs ended with a corrupted heap.
void UseOwnStack() {
  alignas(16) static char memory[64 * 1024];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof(memory);
  sigaltstack(&stack, nullptr);
}

}  // namespace

void InstallStopSignals() {
  UseOwnStack();
  Catch(SIGINT, OnStop);
  Catch(SIGTERM, OnStop);
}

void InstallServerSignals() {
  UseOwnStack();
  Catch(SIGINT, OnStop);
  Catch(SIGTERM, OnServerStop);
  Catch(SIGHUP, OnHangup);
}

bool TakeHangup() { return g_hangup.exchange(false); }

int StopRequested() { return g_stop; }

absl::string_view SignalName(int signal) {
  if (signal == SIGINT) return "SIGINT";
  if (signal == SIGTERM) return "SIGTERM";
  return "a signal";
}

void IgnoreWriteSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace pd
