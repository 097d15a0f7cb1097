// SPDX-License-Identifier: Apache-2.0
// Small programs on a device and the same on the CPU.
#ifndef PD_TESTS_DEVICE_DEVICE_PLAN_H_
#define PD_TESTS_DEVICE_DEVICE_PLAN_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "tests/device/test_place.h"

namespace pd {

class DevicePlan : public ::testing::Test {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kWarning);
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachCudaKernels(&registry_).ok());
    program_.blocks.resize(1);
    if (OnRealGpu() && !TestPlace().ok())
      GTEST_SKIP() << TestPlace().status().message();
    ASSERT_TRUE(TestPlace().ok()) << TestPlace().status();
    place_ = *TestPlace();
  }

  void Var(const std::string& name, DType dtype, Shape shape,
           bool persistable = false) {
    VarDesc var;
    var.name = name;
    var.dtype = dtype;
    var.shape = std::move(shape);
    var.persistable = persistable;
    program_.global().vars.push_back(var);
  }
  OpDesc* Op(const std::string& type) {
    OpDesc op;
    op.type = type;
    program_.global().ops.push_back(op);
    return &program_.global().ops.back();
  }
  OpDesc* Op(const std::string& type, const std::string& x,
             const std::string& out) {
    OpDesc* op = Op(type);
    op->SetInput("X", {x});
    op->SetOutput("Out", {out});
    return op;
  }

  Session OnGpu() {
    registry_.SetDevice(place_);
    return Session(&registry_, 7);
  }
  Session OnCpu() {
    registry_.SetDevice(nullptr);
    return Session(&registry_, 7);
  }

  std::shared_ptr<const DevicePlace> place_;
  OpRegistry registry_;
  ProgramDesc program_;
};

inline Array Floats(const std::vector<float>& values, Shape shape) {
  std::byte* bytes = nullptr;
  Array array = *NewArray(DType::kFloat32, std::move(shape), &bytes);
  std::memcpy(bytes, values.data(), values.size() * sizeof(float));
  return array;
}
inline std::vector<float> FloatsOf(const Array& array) {
  std::vector<float> values(array.size_bytes() / sizeof(float));
  std::memcpy(values.data(), array.bytes.get(), array.size_bytes());
  return values;
}

}  // namespace pd

#endif  // PD_TESTS_DEVICE_DEVICE_PLAN_H_
