// SPDX-License-Identifier: Apache-2.0
// PD_CHECK and PD_THROW: errors of a plug-in's functions, whose text is all
// arguments one after the other.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_CHECK_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_CHECK_H_

#include <exception>
#include <initializer_list>
#include <sstream>
#include <string>

namespace common {

/// The text, and behind it the place in the source where it was thrown.
class __attribute__((visibility("default"))) PD_Exception
    : public std::exception {
 public:
  PD_Exception(const std::string& text, const char* file, int line,
               const char* otherwise)
      : text_((text.empty() ? otherwise : text) + "\n  [" + file + ":" +
              std::to_string(line) + "]") {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

namespace detail {

template <typename... Args>
std::string Joined(const Args&... args) {
  std::ostringstream text;
  text << std::boolalpha;
  (void)std::initializer_list<int>{0, ((void)(text << args), 0)...};
  return text.str();
}

template <typename... Args>
[[noreturn]] void Throw(const char* file, int line, const char* otherwise,
                        const Args&... args) {
  throw PD_Exception(Joined(args...), file, line, otherwise);
}

}  // namespace detail
}  // namespace common

namespace paddle {
using common::PD_Exception;
}  // namespace paddle

#define PD_CHECK(condition, ...)                                      \
  do {                                                                \
    if (__builtin_expect(!(condition), 0))                            \
      PD_THROW_AS("Expected " #condition ", but it's not satisfied.", \
                  ##__VA_ARGS__);                                     \
  } while (0)
#define PD_THROW(...) PD_THROW_AS("An error occurred.", ##__VA_ARGS__)
#define PD_THROW_AS(otherwise, ...) \
  ::common::detail::Throw(__FILE__, __LINE__, otherwise, ##__VA_ARGS__)

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_CHECK_H_
