// SPDX-License-Identifier: Apache-2.0
// The prediction API beside libpd's own Session: time that the API adds to a
// call, throughput of threads with a predictor each, memory of clones.
//
//   bench_predictor MODEL.pdmodel MODEL.pdiparams SHAPE [CLONES]
//
// SHAPE is that of the only input, float32: 1,3,224,224. Numbers mean something
// on a machine that does nothing else meanwhile.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "libcore/base/thread_count.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/model/load_model.h"
#include "paddle_inference_api.h"

namespace pd {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsOf(const Clock::duration& time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_predictor: %s\n",
               std::string(status.message()).c_str());
  std::exit(1);
}

std::vector<int> ShapeOf(const std::string& text) {
  std::vector<int> shape;
  std::stringstream numbers(text);
  for (std::string number; std::getline(numbers, number, ',');)
    shape.push_back(std::atoi(number.c_str()));
  return shape;
}

// The same network by libpd alone.
struct Direct {
  std::unique_ptr<OpRegistry> registry;
  std::unique_ptr<Session> session;
  std::unique_ptr<Plan> plan;

  Direct(const std::string& program, const std::string& params,
         const std::vector<int>& shape) {
    const ThreadCount one(1);
    auto model = LoadModelFiles(program, params, Alignment::kAny);
    Must(model.status());
    auto made = MakeRegistry();
    Must(made.status());
    registry = *std::move(made);
    session = std::make_unique<Session>(registry.get());
    session->set_plan_options(InferencePlans());
    Must(FillScope(*model, &session->scope()));
    auto compiled = session->Compile(
        model->program,
        {{model->feeds[0], DType::kFloat32, Shape(shape.begin(), shape.end())}},
        model->fetches);
    Must(compiled.status());
    plan = *std::move(compiled);
  }
};

double Median(std::vector<double>* values) {
  std::sort(values->begin(), values->end());
  return (*values)[values->size() / 2];
}

// Blocks of calls of each kind in turn: medians of the time of a call.
void MeasureCalls(Direct* direct, paddle_infer::Predictor* predictor,
                  const std::vector<int>& shape, std::vector<float>* input) {
  const ThreadCount one(1);
  auto handle = predictor->GetInputHandle(predictor->GetInputNames()[0]);
  auto output = predictor->GetOutputHandle(predictor->GetOutputNames()[0]);
  handle->Reshape(shape);
  handle->CopyFromCpu(input->data());
  predictor->Run();
  int size = 0;
  paddle_infer::PlaceType place;
  output->data<float>(&place, &size);
  std::vector<float> result(size);
  const auto time = [](int calls, const auto& call) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    return MicrosecondsOf(Clock::now() - begin) / calls;
  };
  const auto run_direct = [&] {
    direct->plan->SetFeed(0, input->data());
    Must(direct->plan->Run({}));
  };
  const double first = time(20, run_direct);
  const int calls = std::max(1, static_cast<int>(2000 / first));
  std::vector<double> plan, run, whole;
  const auto begin = Clock::now();
  while (plan.size() < 5 || Clock::now() - begin < std::chrono::seconds(5)) {
    plan.push_back(time(calls, run_direct));
    run.push_back(time(calls, [&] { predictor->Run(); }));
    whole.push_back(time(calls, [&] {
      handle->Reshape(shape);
      handle->CopyFromCpu(input->data());
      predictor->Run();
      output->CopyToCpu(result.data());
    }));
  }
  const double base = Median(&plan);
  std::printf(
      "Plan::Run %.2f us; Predictor::Run adds %.2f us; with Reshape, "
      "CopyFromCpu and CopyToCpu %.2f us\n",
      base, Median(&run) - base, Median(&whole) - base);
}

void MeasureThreads(paddle_infer::Predictor* predictor,
                    const std::vector<int>& shape,
                    const std::vector<float>& input) {
  for (const int count : {1, 2, 4}) {
    std::vector<std::unique_ptr<paddle_infer::Predictor>> clones;
    for (int i = 0; i < count; ++i) {
      clones.push_back(predictor->Clone());
      auto handle = clones[i]->GetInputHandle(clones[i]->GetInputNames()[0]);
      handle->Reshape(shape);
      handle->CopyFromCpu(input.data());
      clones[i]->Run();
    }
    std::vector<int64_t> runs(count);
    std::vector<std::thread> threads;
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        while (Clock::now() - begin < std::chrono::seconds(2)) {
          clones[i]->Run();
          ++runs[i];
        }
      });
    for (std::thread& thread : threads) thread.join();
    const double seconds = MicrosecondsOf(Clock::now() - begin) / 1e6;
    int64_t all = 0;
    for (const int64_t n : runs) all += n;
    std::printf("%d thread%s: %.1f runs/s\n", count, count == 1 ? "" : "s",
                static_cast<double>(all) / seconds);
  }
}

void MeasureMemory(const paddle_infer::Config& config,
                   const std::vector<int>& shape,
                   const std::vector<float>& input, int clones) {
  const double before = ResidentMegabytes();
  std::vector<std::unique_ptr<paddle_infer::Predictor>> predictors;
  predictors.push_back(std::make_unique<paddle_infer::Predictor>(config));
  for (int i = 0; i <= clones; ++i) {
    if (i > 0) predictors.push_back(predictors[0]->Clone());
    auto& one = *predictors.back();
    auto handle = one.GetInputHandle(one.GetInputNames()[0]);
    handle->ShareExternalData(input.data(), shape,
                              paddle_infer::PlaceType::kCPU);
    one.Run();
    std::printf("%d predictor%s: %.1f MB\n", i + 1, i == 0 ? "" : "s",
                ResidentMegabytes() - before);
  }
}

}  // namespace
}  // namespace pd

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: bench_predictor MODEL.pdmodel MODEL.pdiparams SHAPE "
                 "[CLONES]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::vector<int> shape = pd::ShapeOf(argv[3]);
  size_t size = 1;
  for (const int extent : shape) size *= extent;
  std::vector<float> input(size);
  for (size_t i = 0; i < size; ++i) input[i] = i % 255 * 0.01f;
  const paddle_infer::Config config(argv[1], argv[2]);
  pd::MeasureMemory(paddle_infer::Config(config), shape, input,
                    argc > 4 ? std::atoi(argv[4]) : 3);
  paddle_infer::Predictor predictor(config);
  pd::Direct direct(argv[1], argv[2], shape);
  pd::MeasureCalls(&direct, &predictor, shape, &input);
  pd::MeasureThreads(&predictor, shape, input);
  return 0;
}
