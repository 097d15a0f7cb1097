// SPDX-License-Identifier: Apache-2.0
// Work of a fake library among that of the fake driver beside it.
#ifndef PD_TESTS_DEVICE_FAKE_QUEUE_H_
#define PD_TESTS_DEVICE_FAKE_QUEUE_H_

#include <dlfcn.h>

#include <functional>
#include <list>
#include <string>
#include <utility>

namespace pd {

// The queue of the driver in the same folder.
using AddFn = void (*)(void (*)(void*), void*);
inline AddFn FindAdd() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&FindAdd), &info);
  const std::string path = info.dli_fname;
  const std::string driver = path.substr(0, path.rfind('/')) + "/libcuda.so.1";
  void* handle = dlopen(driver.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return handle == nullptr
             ? nullptr
             : reinterpret_cast<AddFn>(dlsym(handle, "fake_cuda_add"));
}

inline void Enqueue(std::function<void()> work) {
  static const AddFn kAdd = FindAdd();
  // Captured work may be run again and again: it stays.
  static auto* const kWork = new std::list<std::function<void()>>;
  kWork->push_back(std::move(work));
  kAdd([](void* w) { (*static_cast<std::function<void()>*>(w))(); },
       &kWork->back());
}

}  // namespace pd

#endif  // PD_TESTS_DEVICE_FAKE_QUEUE_H_
