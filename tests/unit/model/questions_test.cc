// SPDX-License-Identifier: Apache-2.0
#include "collector/model/questions.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

Frame python(const std::string& function, const std::string& file, int line = 1) {
  Frame frame;
  frame.language = Language::kPython;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  return frame;
}

Process rank_of(Rank rank, pid_t pid, Role role = Role::kRank) {
  Process out;
  out.rank = rank;
  out.pid = pid;
  out.role = role;
  return out;
}

TEST(IsUserFile, AcceptsTheUsersOwnWhereverTheyLie) {
  for (const char* path : {"/srv/train.py", "train.py", "/home/me/torch/train.py",
                           "/home/me/torch_experiments/nn/model.py", "/opt/project/bin/train",
                           "/root/ddpdoctor/tests/zoo/store_wait/train.py",
                           "/tmp/ipykernel_4711/1234.py", "<ipython-input-3-abc>",
                           "/usr/local/lib/mycode/train.py", "/data/python3.11-project/run.py",
                           "/mnt/lib/pythonic/train.py", "/srv/accelerate_demo/main.py"}) {
    EXPECT_TRUE(is_user_file(path)) << path;
  }
}

TEST(IsUserFile, RefusesLibrariesRunnersAndFrozenModules) {
  for (const char* path :
       {"", "<string>", "<frozen runpy>", "<frozen importlib._bootstrap>", "<eval_with_key>.3",
        "/usr/lib/python3.11/threading.py",
        "/opt/python/3.8.20/lib/python3.8/multiprocessing/spawn.py",
        "/opt/conda/lib64/python3.9/runpy.py", "/usr/lib/python311.zip/os.py",
        "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
        "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
        "/srv/pytorch/torch/nn/modules/module.py", "/venv/bin/torchrun",
        "/usr/local/bin/accelerate", "/tmp/torchinductor_root/ab/cabc.py",
        "torch/distributed/run.py", "threading.py", "multiprocessing/popen_fork.py"}) {
    EXPECT_FALSE(is_user_file(path)) << path;
  }
}

TEST(IsTorchFile, KnowsWheelsCheckoutsAndShortenedPaths) {
  EXPECT_TRUE(is_torch_file("/v/lib/python3.11/site-packages/torch/_C/x.py"));
  EXPECT_TRUE(is_torch_file("/srv/pytorch/torch/distributed/c10d.py"));
  EXPECT_TRUE(is_torch_file("torch/nn/parallel/distributed.py"));
  EXPECT_FALSE(is_torch_file("/home/me/torch/train.py"));
  EXPECT_FALSE(is_torch_file("/v/lib/python3.11/site-packages/torchvision/models.py"));
}

TEST(UserFrame, IsTheInnermostOfTheUsersOwn) {
  Thread thread;
  thread.frames = {python("all_reduce", "/v/site-packages/torch/distributed/distributed_c10d.py"),
                   python("step", "/srv/train.py", 88), python("main", "/srv/train.py", 104),
                   python("run", "/usr/lib/python3.11/runpy.py")};
  ASSERT_NE(user_frame(thread), nullptr);
  EXPECT_EQ(user_frame(thread)->line, 88);
  EXPECT_EQ(user_frames(thread).size(), 2U);
  EXPECT_EQ(call_site(*user_frame(thread)), (CallSite{"/srv/train.py", 88, "step"}));
}

TEST(UserFrame, FallsBackToCodeFromTheCommandLine) {
  Thread thread;
  thread.frames = {python("sleep", "/usr/lib/python3.11/x.py"), python("<module>", "<string>", 3)};
  ASSERT_NE(user_frame(thread), nullptr);
  EXPECT_EQ(user_frame(thread)->line, 3);
}

TEST(UserFrame, IsNotTheLineThatStartsASpawnedChild) {
  Thread thread;
  thread.frames = {python("spawn_main", "/usr/lib/python3.11/multiprocessing/spawn.py"),
                   python("<module>", "<string>", 1)};
  EXPECT_EQ(user_frame(thread), nullptr);
}

TEST(RankProcess, IsNeverAWorkerOfTheRank) {
  JobModel job;
  job.observations.resize(1);
  job.observations[0].processes = {rank_of(1, 50, Role::kDataLoaderWorker), rank_of(1, 40)};
  ASSERT_NE(rank_process(job, 1), nullptr);
  EXPECT_EQ(rank_process(job, 1)->pid, 40);
  EXPECT_EQ(rank_process(job, 0), nullptr);
  EXPECT_EQ(process(job, 50)->role, Role::kDataLoaderWorker);
  EXPECT_EQ(ranks_seen(job), RankSet{1});
}

TEST(RankProcess, LooksAtTheNewestObservationOnly) {
  JobModel job;
  EXPECT_EQ(latest(job), nullptr);
  job.observations.resize(2);
  job.observations[0].processes = {rank_of(0, 10)};
  EXPECT_EQ(rank_process(job, 0), nullptr);
  EXPECT_EQ(previous(job), &job.observations[0]);
  EXPECT_EQ(latest(job), &job.observations[1]);
}

TEST(AllRanks, AreTheWorldOrElseThoseThatLeftATrace) {
  JobModel job;
  job.observations.resize(1);
  job.observations[0].processes = {rank_of(2, 10)};
  job.collectives.resize(1);
  job.collectives[0].rank = 5;
  EXPECT_EQ(all_ranks(job), (RankSet{2, 5}));
  job.world_size = 3;
  EXPECT_EQ(all_ranks(job), (RankSet{0, 1, 2}));
}

TEST(MainThread, HasTheProcessesOwnNumber) {
  Process rank = rank_of(0, 10);
  EXPECT_EQ(main_thread(rank), nullptr);
  rank.threads.resize(2);
  rank.threads[0].tid = 11;
  rank.threads[1].tid = 10;
  EXPECT_EQ(main_thread(rank)->tid, 10);
  rank.threads[1].tid = 12;
  EXPECT_EQ(main_thread(rank)->tid, 11);
}

TEST(FindPythonFrame, ComparesTheLastPartOfTheNameAndWholeFolders) {
  Thread thread;
  thread.frames = {
      python("DistributedDataParallel.forward", "/v/torch/nn/parallel/distributed.py")};
  EXPECT_TRUE(has_python_frame(thread, "forward", "nn/parallel/distributed.py"));
  EXPECT_TRUE(has_python_frame(thread, "DistributedDataParallel.forward"));
  EXPECT_FALSE(has_python_frame(thread, "ward"));
  EXPECT_FALSE(has_python_frame(thread, "forward", "arallel/distributed.py"));
}

TEST(FindNativeFrame, LooksForAPartOfTheName) {
  Thread thread;
  thread.frames = {python("gloo::barrier", "x.py")};
  EXPECT_FALSE(has_native_frame(thread, "gloo::barrier"));
  thread.frames[0].language = Language::kNative;
  EXPECT_TRUE(has_native_frame(thread, "gloo::barr"));
}

TEST(SourceLine, IsAbsentWhenTheModelDoesNotCarryIt) {
  JobModel job;
  job.sources["/srv/t.py"][7] = "x = 1";
  EXPECT_EQ(source_line(job, "/srv/t.py", 7), "x = 1");
  EXPECT_FALSE(source_line(job, "/srv/t.py", 8));
  EXPECT_FALSE(source_line(job, "/srv/u.py", 7));
}

TEST(RoleName, IsReadBackAsWritten) {
  for (const Role role : {Role::kRank, Role::kLauncher, Role::kDataLoaderWorker,
                          Role::kResourceTracker, Role::kShmManager, Role::kOther}) {
    EXPECT_EQ(role_of(role_name(role)), role);
  }
  EXPECT_FALSE(role_of("chief"));
}

TEST(Fact, AnswersOnlyInTheFieldsOwnType) {
  Fact fact;
  fact.fields = {{"path", std::string("/x")},
                 {"used", std::int64_t{7}},
                 {"share", 0.5},
                 {"held", true},
                 {"names", std::vector<std::string>{"a", "b"}}};
  EXPECT_EQ(fact.text("path"), "/x");
  EXPECT_EQ(fact.number("used"), 7.0);
  EXPECT_EQ(fact.number("share"), 0.5);
  EXPECT_EQ(fact.flag("held"), true);
  EXPECT_EQ(fact.list("names").size(), 2U);
  EXPECT_FALSE(fact.text("used"));
  EXPECT_FALSE(fact.number("path"));
  EXPECT_FALSE(fact.flag("absent"));
}

TEST(Facts, AreAskedByKindAndGroupsById) {
  JobModel job;
  job.facts.resize(3);
  job.facts[0].kind = job.facts[2].kind = "fork";
  EXPECT_EQ(facts(job, "fork").size(), 2U);
  job.groups.push_back({.id = "0", .name = "default_pg", .backend = "gloo", .ranks = {0, 1}});
  EXPECT_EQ(group(job, "0")->name, "default_pg");
  EXPECT_EQ(group(job, "1"), nullptr);
}

TEST(UserFrames, AreThoseOfAnInstalledPackageWhereNothingBetterIs) {
  Thread thread;
  thread.frames = {python("all_reduce", "/v/lib/python3.11/site-packages/torch/distributed/c.py"),
                   python("fit", "/v/lib/python3.11/site-packages/mytrain/loop.py", 7),
                   python("main", "/v/lib/python3.11/site-packages/mytrain/cli.py", 3),
                   python("<module>", "/v/bin/mytrain", 8)};
  ASSERT_NE(user_frame(thread), nullptr);
  EXPECT_EQ(user_frame(thread)->line, 7);
  thread.frames.insert(thread.frames.begin() + 1, python("step", "/srv/train.py", 11));
  EXPECT_EQ(user_frame(thread)->line, 11);
}

TEST(UserFrames, AreNoneInALibrarysOwnThread) {
  Thread thread;
  thread.frames = {python("wait", "/usr/lib/python3.11/threading.py"),
                   python("run", "/v/lib/python3.11/site-packages/somelib/monitor.py"),
                   python("_bootstrap", "/usr/lib/python3.11/threading.py")};
  EXPECT_EQ(user_frame(thread), nullptr);
}

TEST(UserSites, FallBackToCodeThatWasTyped) {
  const std::vector<CallSite> all = {{"/v/site-packages/torch/distributed/c.py", 1, "all_reduce"},
                                     {"<stdin>", 4, "log"},
                                     {"<stdin>", 9, "<module>"}};
  ASSERT_EQ(user_sites(all).size(), 2u);
  EXPECT_EQ(user_sites(all).front().line, 4);
}

}  // namespace
}  // namespace ddpdoctor::model
