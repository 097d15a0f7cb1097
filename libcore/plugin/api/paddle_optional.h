// SPDX-License-Identifier: Apache-2.0
// A value that may be absent, and a value of any type: C++14 has neither.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_OPTIONAL_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_OPTIONAL_H_

#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace paddle {

struct none_t {};
static const none_t none = none_t();

/// A T, or none. get, * and -> need a value.
template <typename T>
class optional {
 public:
  optional() = default;
  optional(none_t) {}                                       // NOLINT
  optional(const T& value) : value_(new T(value)) {}        // NOLINT
  optional(T&& value) : value_(new T(std::move(value))) {}  // NOLINT
  optional(const optional& other)
      : value_(other.value_ ? new T(*other.value_) : nullptr) {}
  optional(optional&& other) noexcept = default;
  optional& operator=(optional other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }

  explicit operator bool() const { return value_ != nullptr; }
  bool operator!() const { return value_ == nullptr; }
  bool is_initialized() const { return value_ != nullptr; }
  T& get() { return *value_; }
  const T& get() const { return *value_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  T* get_ptr() { return value_.get(); }
  const T* get_ptr() const { return value_.get(); }
  void reset() { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};

class bad_any_cast : public std::bad_cast {
 public:
  const char* what() const noexcept override {
    return "any_cast: the value has another type";
  }
};

/// A value of any type that can be copied, or none.
class any {
 public:
  any() = default;
  template <typename T, typename = typename std::enable_if<!std::is_same<
                            typename std::decay<T>::type, any>::value>::type>
  any(T&& value)  // NOLINT
      : value_(
            new Holder<typename std::decay<T>::type>(std::forward<T>(value))) {}
  any(const any& other)
      : value_(other.value_ ? other.value_->Copy() : nullptr) {}
  any(any&& other) noexcept = default;
  any& operator=(any other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  bool empty() const { return value_ == nullptr; }
  const std::type_info& type() const {
    return value_ ? value_->Type() : typeid(void);
  }
  /// Null where the value has another type.
  template <typename T>
  const T* get() const {
    return type() == typeid(T) ? &static_cast<Holder<T>*>(value_.get())->value
                               : nullptr;
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual Base* Copy() const = 0;
    virtual const std::type_info& Type() const = 0;
  };
  template <typename T>
  struct Holder : Base {
    explicit Holder(const T& v) : value(v) {}
    explicit Holder(T&& v) : value(std::move(v)) {}
    Base* Copy() const override { return new Holder(value); }
    const std::type_info& Type() const override { return typeid(T); }
    T value;
  };
  std::unique_ptr<Base> value_;
};

/// bad_any_cast where the value has another type.
template <typename T>
const typename std::decay<T>::type& any_cast(const any& value) {
  const auto* found = value.get<typename std::decay<T>::type>();
  if (found == nullptr) throw bad_any_cast();
  return *found;
}

}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_OPTIONAL_H_
