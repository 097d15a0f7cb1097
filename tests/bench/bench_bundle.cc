// SPDX-License-Identifier: Apache-2.0
// A bundle beside libpd's own Session: time of one image on one thread, and of
// opening.
//
//   bench_bundle MODEL.pdmodel MODEL.pdiparams SHAPE MODEL.pdb
//
// SHAPE is that of the only input, float32: 1,3,224,224. Times are those that
// the thread computes, the least of many, so neighbours matter little.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "libcore/base/thread_count.h"
#include "libcore/bundle/runtime/pd_run.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/model/load_model.h"

namespace pd {
namespace {

void Stop(const std::string& why) {
  std::fprintf(stderr, "bench_bundle: %s\n", why.c_str());
  std::exit(1);
}

void Must(const absl::Status& status) {
  if (!status.ok()) Stop(std::string(status.message()));
}

void Must(pd_run_status status) {
  if (status != PD_RUN_OK) Stop(pd_run_error());
}

Shape ShapeOf(const std::string& text) {
  Shape shape;
  std::stringstream numbers(text);
  for (std::string number; std::getline(numbers, number, ',');)
    shape.push_back(std::atoll(number.c_str()));
  return shape;
}

double Milliseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) * 1e-6;
}

double TimeOf(const std::function<void()>& body) {
  const double begin = Milliseconds();
  body();
  return Milliseconds() - begin;
}

pd_run_model* Open(const char* path, const Shape& shape) {
  pd_run_model* model = nullptr;
  Must(pd_run_open(path, nullptr, &model));
  Must(pd_run_set_shape(model, 0, static_cast<int32_t>(shape.size()),
                        shape.data()));
  pd_run_tensor y;  // makes the plan
  Must(pd_run_get(model, PD_RUN_OUTPUT, 0, &y));
  return model;
}

void Measure(Plan* plan, const Shape& shape, const char* path) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double open = kNever, bundle = kNever, session = kNever;
  for (int i = 0; i < 5; ++i)
    open = std::min(open, TimeOf([&] { pd_run_close(Open(path, shape)); }));
  pd_run_model* model = Open(path, shape);
  pd_run_tensor x;
  Must(pd_run_get(model, PD_RUN_INPUT, 0, &x));
  std::vector<float> image(x.bytes / sizeof(float));
  for (size_t i = 0; i < image.size(); ++i)
    image[i] = 0.01f * static_cast<float>(i % 100);
  std::memcpy(x.data, image.data(), x.bytes);
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::seconds(10)) {
    session = std::min(session, TimeOf([&] {
                         plan->SetFeed(0, image.data());
                         Must(plan->Run({}));
                       }));
    bundle = std::min(bundle, TimeOf([&] { Must(pd_run_run(model)); }));
  }
  pd_run_close(model);
  std::printf("opens in %.2f ms; an image takes %.3f ms, Session %.3f: %.2f\n",
              open, bundle, session, bundle / session);
}

void Main(char** argv) {
  const ThreadCount one(1);
  const Shape shape = ShapeOf(argv[3]);
  auto model = LoadModelFiles(argv[1], argv[2], Alignment::kAny);
  Must(model.status());
  auto registry = MakeRegistry();
  Must(registry.status());
  Session session(registry->get());
  session.set_plan_options(InferencePlans());
  Must(FillScope(*model, &session.scope()));
  auto plan = session.Compile(model->program,
                              {{model->feeds[0], DType::kFloat32, shape}},
                              model->fetches);
  Must(plan.status());
  Measure(plan->get(), shape, argv[4]);
}

}  // namespace
}  // namespace pd

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr,
                 "usage: bench_bundle MODEL.pdmodel MODEL.pdiparams SHAPE "
                 "MODEL.pdb\n");
    return 2;
  }
  pd::Main(argv);
  return 0;
}
