// SPDX-License-Identifier: Apache-2.0
// Checks that throw phi::enforce::EnforceNotMet, and the kinds of errors:
// PADDLE_ENFORCE_EQ(a, b, paddle::platform::errors::InvalidArgument("%d", a)).
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_ENFORCE_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_ENFORCE_H_

#include <cstdio>
#include <string>
#include <utility>

#include "paddle_error.h"

namespace phi {

/// A kind and a message, to be thrown.
struct ErrorSummary {
  std::string kind, message;
};

namespace errors {
namespace detail {

// Strings may be given as they are.
inline const char* Plain(const std::string& text) { return text.c_str(); }
template <typename T>
const T& Plain(const T& value) {
  return value;
}

inline std::string Format() { return ""; }
inline std::string Format(const char* text) { return text; }
inline std::string Format(const std::string& text) { return text; }
template <typename First, typename... Rest>
std::string Format(const char* format, const First& first,
                   const Rest&... rest) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int size =
      std::snprintf(nullptr, 0, format, Plain(first), Plain(rest)...);
  if (size < 0) return format;
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(&text[0], text.size(), format, Plain(first), Plain(rest)...);
#pragma GCC diagnostic pop
  text.pop_back();
  return text;
}

}  // namespace detail

// A function for each kind, with the arguments of printf.
#define PD_ERROR_KIND(Kind)                                      \
  template <typename... Args>                                    \
  ErrorSummary Kind(const Args&... args) {                       \
    return ErrorSummary{#Kind "Error", detail::Format(args...)}; \
  }
PD_ERROR_KIND(InvalidArgument)
PD_ERROR_KIND(NotFound)
PD_ERROR_KIND(OutOfRange)
PD_ERROR_KIND(AlreadyExists)
PD_ERROR_KIND(ResourceExhausted)
PD_ERROR_KIND(PreconditionNotMet)
PD_ERROR_KIND(PermissionDenied)
PD_ERROR_KIND(ExecutionTimeout)
PD_ERROR_KIND(Unimplemented)
PD_ERROR_KIND(Unavailable)
PD_ERROR_KIND(Fatal)
PD_ERROR_KIND(External)
#undef PD_ERROR_KIND

}  // namespace errors

namespace enforce {

/// The message, where it was thrown, and the condition that was not met.
[[noreturn]] inline void Throw(const ErrorSummary& error,
                               const std::string& condition, const char* file,
                               int line) {
  std::string text = error.message;
  if (!condition.empty())
    text += "\n  [Hint: Expected " + condition + ", but it is not.]";
  throw EnforceNotMet(error.kind,
                      text + " (at " + file + ":" + std::to_string(line) + ")");
}

}  // namespace enforce
}  // namespace phi

namespace common {
namespace errors = phi::errors;
}  // namespace common
namespace paddle {
namespace platform {
namespace errors = phi::errors;
}  // namespace platform
}  // namespace paddle

#define PADDLE_THROW(...) \
  ::phi::enforce::Throw(__VA_ARGS__, "", __FILE__, __LINE__)
#define PD_ENFORCE_CONDITION(condition, text, ...)                  \
  do {                                                              \
    if (!(condition))                                               \
      ::phi::enforce::Throw(__VA_ARGS__, text, __FILE__, __LINE__); \
  } while (0)
#define PADDLE_ENFORCE(condition, ...) \
  PD_ENFORCE_CONDITION(condition, #condition, __VA_ARGS__)
#define PADDLE_ENFORCE_NOT_NULL(pointer, ...)                        \
  PD_ENFORCE_CONDITION((pointer) != nullptr, #pointer " != nullptr", \
                       __VA_ARGS__)
#define PADDLE_ENFORCE_EQ(a, b, ...) \
  PD_ENFORCE_CONDITION((a) == (b), #a " == " #b, __VA_ARGS__)
#define PADDLE_ENFORCE_NE(a, b, ...) \
  PD_ENFORCE_CONDITION((a) != (b), #a " != " #b, __VA_ARGS__)
#define PADDLE_ENFORCE_GT(a, b, ...) \
  PD_ENFORCE_CONDITION((a) > (b), #a " > " #b, __VA_ARGS__)
#define PADDLE_ENFORCE_GE(a, b, ...) \
  PD_ENFORCE_CONDITION((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define PADDLE_ENFORCE_LT(a, b, ...) \
  PD_ENFORCE_CONDITION((a) < (b), #a " < " #b, __VA_ARGS__)
#define PADDLE_ENFORCE_LE(a, b, ...) \
  PD_ENFORCE_CONDITION((a) <= (b), #a " <= " #b, __VA_ARGS__)

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_ENFORCE_H_
