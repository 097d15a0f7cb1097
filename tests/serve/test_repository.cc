// SPDX-License-Identifier: Apache-2.0
// Models and versions in folders: which are served, and that none is lost while
// they are replaced.
#include "libcore/serve/repository.h"

#include <atomic>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/serve/serve_fixture.h"

namespace pd {
namespace serve {
namespace test_repository {

namespace fs = std::filesystem;

std::unique_ptr<Repository> Opened(const std::vector<std::string>& arguments,
                                   Metrics* metrics,
                                   const RepositoryOptions& options = {}) {
  auto places = PlacesOf(arguments);
  EXPECT_TRUE(places.ok()) << places.status();
  auto repository =
      std::make_unique<Repository>(*std::move(places), options, metrics);
  const absl::Status opened = repository->Open();
  EXPECT_TRUE(opened.ok()) << opened;
  return repository;
}

int64_t Newest(const Repository& repository, const std::string& name) {
  const auto found = repository.Find(name, "");
  return found.ok() ? (*found)->version : -1;
}

TEST(ModelFoldersTest, WhatArgumentsMean) {
  const TemporaryFolder folder;
  folder.AddModel("lenet", "zoo/digits/1");
  folder.AddModel("lenet", "zoo/digits/20");
  folder.AddModel("lenet", "zoo/digits/notes");
  folder.AddModel("lenet", "zoo/plain");
  const auto places =
      PlacesOf({folder.path() + "/zoo", "a.b=" + Deployed("lenet"),
                Deployed("cifar_resnet.pdmodel")});
  ASSERT_TRUE(places.ok()) << places.status();
  ASSERT_EQ(places->models.size(), 4u);
  EXPECT_EQ(places->models[0].name, "digits");
  EXPECT_TRUE(places->models[0].versioned);
  const auto versions = VersionsOf(places->models[0]);
  EXPECT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions.rbegin()->first, 20);
  EXPECT_EQ(places->models[1].name, "plain");
  EXPECT_FALSE(places->models[1].versioned);
  EXPECT_EQ(places->models[2].name, "a.b");
  EXPECT_EQ(places->models[3].name, "cifar_resnet");
  EXPECT_EQ(places->folders.size(), 1u);
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"a/b=" + Deployed("lenet")},
        {"=" + Deployed("lenet")},
        {"x=" + Deployed("lenet"), "x=" + Deployed("lenet")}})
    EXPECT_FALSE(PlacesOf(bad).ok()) << bad[0];
}

TEST(RepositoryTest, TheNewestVersionIsServed) {
  const TemporaryFolder folder;
  folder.AddModel("lenet", "m/2");
  folder.AddModel("lenet", "m/10");
  Metrics metrics;
  const auto repository = Opened({folder.path() + "/m"}, &metrics);
  EXPECT_EQ(Newest(*repository, "m"), 10);
  EXPECT_EQ((*repository->Find("m", "2"))->version, 2);
  for (const char* bad : {"3", "02", "-2", "x", "99999999999999999999"})
    EXPECT_TRUE(absl::IsNotFound(repository->Find("m", bad).status())) << bad;
  EXPECT_TRUE(absl::IsNotFound(repository->Find("n", "").status()));
  RepositoryOptions one;
  one.keep_versions = 1;
  const auto kept = Opened({folder.path() + "/m"}, &metrics, one);
  EXPECT_EQ(kept->Versions("m"), std::vector<int64_t>({10}));
}

TEST(RepositoryTest, AFolderThatAppearsIsLoadedWhenItIsWhole) {
  const TemporaryFolder folder;
  folder.AddModel("lenet", "zoo/m/1");
  Metrics metrics;
  const auto repository = Opened({folder.path() + "/zoo"}, &metrics);
  // The copy has not ended at the first look.
  fs::create_directories(folder.path() + "/zoo/m/2");
  fs::copy(Deployed("cifar_resnet.pdmodel"),
           folder.path() + "/zoo/m/2/model.pdmodel");
  repository->Poll();
  EXPECT_EQ(Newest(*repository, "m"), 1);
  fs::copy(Deployed("cifar_resnet.pdiparams"),
           folder.path() + "/zoo/m/2/model.pdiparams");
  repository->Poll();
  EXPECT_EQ(Newest(*repository, "m"), 1);
  repository->Poll();
  EXPECT_EQ(Newest(*repository, "m"), 2);
  // A model that cannot be read changes nothing but the index.
  fs::create_directories(folder.path() + "/zoo/m/3");
  std::ofstream(folder.path() + "/zoo/m/3/model.pdmodel") << "no program";
  for (int i = 0; i < 4; ++i) repository->Poll();
  EXPECT_EQ(Newest(*repository, "m"), 2);
  EXPECT_EQ(metrics.failed_loads, 1u);
  bool told = false;
  for (const auto& entry : repository->Index())
    told |= entry.version == 3 && !entry.ready && !entry.reason.empty();
  EXPECT_TRUE(told);
  // A new model, and a version that is taken away.
  folder.AddModel("lenet", "zoo/other/7");
  fs::remove_all(folder.path() + "/zoo/m/1");
  for (int i = 0; i < 2; ++i) repository->Poll();
  EXPECT_EQ(Newest(*repository, "other"), 7);
  EXPECT_EQ(repository->Versions("m"), std::vector<int64_t>({2}));
  // The last one stays, whatever becomes of its files.
  fs::remove_all(folder.path() + "/zoo/m");
  for (int i = 0; i < 2; ++i) repository->Poll();
  EXPECT_EQ(Newest(*repository, "m"), 2);
}

TEST(RepositoryTest, UnloadAndLoad) {
  const TemporaryFolder folder;
  folder.AddModel("lenet", "m");
  Metrics metrics;
  const auto repository = Opened({folder.path() + "/m"}, &metrics);
  EXPECT_TRUE(absl::IsNotFound(repository->Load("n")));
  EXPECT_TRUE(absl::IsNotFound(repository->Unload("n")));
  ASSERT_TRUE(repository->Unload("m").ok());
  EXPECT_TRUE(absl::IsUnavailable(repository->Find("m", "").status()));
  repository->Poll();
  repository->Reload();
  EXPECT_TRUE(absl::IsUnavailable(repository->Find("m", "").status()));
  ASSERT_TRUE(repository->Load("m").ok());
  EXPECT_EQ(Newest(*repository, "m"), 1);
  // Files that no longer are a model: the loaded one goes on.
  std::ofstream(folder.path() + "/m/model.pdmodel") << "no program";
  EXPECT_FALSE(repository->Load("m").ok());
  EXPECT_EQ(Newest(*repository, "m"), 1);
}

TEST(RepositoryTest, NoRequestIsLostWhileModelsAreReplaced) {
  const TemporaryFolder folder;
  folder.AddModel("lenet", "m/1");
  Metrics metrics;
  RepositoryOptions options;
  options.batch.max_wait_seconds = 600;
  const auto repository = Opened({folder.path() + "/m"}, &metrics, options);
  const NamedArrays feed = ArraysOf(Deployed("lenet-feed.npz"));
  const Array want = ArraysOf(Deployed("lenet-expect.npz")).begin()->second;
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0}, failed{0};
  std::vector<std::thread> clients;
  for (int64_t i = 0; i < 3; ++i)
    clients.emplace_back([&, i] {
      const NamedArrays row = {{"x", RowOf(feed.begin()->second, i)}};
      while (!stop) {
        const auto model = repository->Find("m", "");
        auto answer = (*model)->batcher->Answer(row);
        // The service asks for the model again then.
        if (absl::IsAborted(answer.status())) continue;
        failed += !answer.ok();
        ++answered;
        if (answer.ok()) ExpectClose((*answer)[0], RowOf(want, i));
      }
    });
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(repository->Load("m").ok());
    folder.AddModel("lenet", absl::StrCat("m/", round + 2));
    repository->Reload();
    const int before = answered;
    while (answered < before + 10) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Newest(*repository, "m"), 6);
}

}  // namespace test_repository
}  // namespace serve
}  // namespace pd
