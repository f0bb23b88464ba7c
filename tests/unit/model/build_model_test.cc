// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/build_model.h"

#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "collector/model/call_frames.h"
#include "collector/model/environment.h"
#include "collector/model/questions.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::model {
namespace {

using sources::JobRole;

constexpr double kNow = 1'700'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

stacks::Frame python(const std::string& function, const std::string& file, int line) {
  stacks::Frame frame;
  frame.language = stacks::Language::kPython;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  return frame;
}

stacks::ThreadStack sleeping(pid_t tid, int line) {
  stacks::ThreadStack out;
  out.tid = tid;
  out.inner_tid = tid;
  out.name = "python";
  out.state = 'S';
  out.method = stacks::CaptureMethod::kNoStop;
  out.frames = {python("step", "/srv/train.py", line)};
  out.run_count = 7;
  return out;
}

stacks::FlightRecord record(std::int64_t sequence, const std::string& operation, bool completed) {
  stacks::FlightRecord out;
  out.id = sequence - 1;
  out.group_name = "0";
  out.group_description = "default_pg";
  out.sequence = sequence;
  out.operation = operation;
  out.input_shapes = {{2, 5}};
  out.input_dtypes = {"Float"};
  out.created_ns = static_cast<std::int64_t>(kNow) * kSecond - 60 * kSecond;
  out.completed = completed;
  out.stack = {{"/v/site-packages/torch/distributed/c10d.py", 9, "all_reduce"},
               {"/srv/train.py", 88, "step"},
               {"/srv/train.py", 104, "main"}};
  return out;
}

/// A launcher and `world` ranks on gloo, each asleep on one line, two records each.
Look look_at(int world, double time = kNow) {
  Look look;
  look.time = time;
  look.tree.launcher = 900;
  look.tree.world_size = world;
  look.tree.nodes = 1;
  sources::JobProcess launcher;
  launcher.row.pid = 900;
  launcher.row.command = {"torchrun", "--nproc-per-node", "2", "train.py"};
  launcher.role = JobRole::kLauncher;
  look.tree.processes.push_back(launcher);
  look.stacks.emplace_back().pid = 900;
  for (int rank = 0; rank < world; ++rank) {
    sources::JobProcess process;
    process.row.pid = 1000 + rank;
    process.row.ppid = 900;
    process.row.state = 'S';
    process.row.environment = {
        {"RANK", std::to_string(rank)}, {"AWS_SECRET_ACCESS_KEY", "x"}, {"HOME", "/root"}};
    process.role = JobRole::kRank;
    process.rank = rank;
    look.tree.processes.push_back(process);
    stacks::ProcessStacks stacks;
    stacks.pid = 1000 + rank;
    stacks.threads = {sleeping(1000 + rank, 88)};
    stacks.torch.emplace();
    stacks.torch->recorder_read = true;
    stacks.torch->groups = {
        {.name = "0", .description = "default_pg", .backend = "gloo", .ranks = {0, 1}}};
    stacks.torch->records = {record(1, "gloo:broadcast", true),
                             record(2, "gloo:all_reduce", false)};
    look.stacks.push_back(std::move(stacks));
  }
  return look;
}

TEST(BuildModel, MakesProcessesWithRolesRanksAndTheLaunchersCommand) {
  const JobModel job = build_model({look_at(2)});
  EXPECT_EQ(job.world_size, 2);
  EXPECT_EQ(job.launcher_pid, 900);
  EXPECT_EQ(job.command.front(), "torchrun");
  EXPECT_EQ(ranks_seen(job), (RankSet{0, 1}));
  EXPECT_EQ(process(job, 900)->role, Role::kLauncher);
  EXPECT_EQ(rank_process(job, 1)->environment.at("RANK"), "1");
  EXPECT_FALSE(rank_process(job, 1)->environment.contains("AWS_SECRET_ACCESS_KEY"));
}

TEST(BuildModel, PutsTheMainThreadFirstAndSaysHowItWasRead) {
  Look look = look_at(1);
  stacks::ThreadStack other = sleeping(1005, 3);
  other.method = stacks::CaptureMethod::kStopped;
  other.stopped_ms = 0.26;
  other.python_name = "Dummy-4";
  other.name = "pt_autograd_0";
  look.stacks[1].threads.insert(look.stacks[1].threads.begin(), other);
  const JobModel job = build_model({look});
  const Process& rank = *rank_process(job, 0);
  EXPECT_EQ(rank.threads[0].tid, 1000);
  EXPECT_EQ(rank.threads[0].capture, "no stop");
  EXPECT_EQ(rank.threads[1].capture, "stopped 0.3 ms");
  EXPECT_EQ(rank.threads[1].name, "pt_autograd_0");
}

// A test of the rank in a framework's code is found by the frames of the calls themselves.
TEST(BuildModel, KeepsFrameworksFramesOfTheNewestCalls) {
  Look look = look_at(2);
  stacks::FlightRecord& newest = look.stacks[2].torch->records[1];
  newest.stack.insert(newest.stack.begin() + 1,
                      {"/v/site-packages/lightning/strategies/ddp.py", 7, "DDP.barrier"});
  const JobModel job = build_model({look});
  const auto frames = frames_of_call(job, 1, "0", 2);
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].function, "DDP.barrier");
  EXPECT_EQ(frames[2].line, 104);
  EXPECT_TRUE(frames_of_call(job, 0, "0", 2).empty());  // only the user's frames
}

TEST(BuildModel, SpeaksOfCallsAsTheUserDoes) {
  const JobModel job = build_model({look_at(2)});
  ASSERT_EQ(job.collectives.size(), 4U);
  const CollectiveCall& call = job.collectives[1];
  EXPECT_EQ(call.rank, 0);
  EXPECT_EQ(call.group, "0");
  EXPECT_EQ(call.sequence, 2);
  EXPECT_EQ(call.operation, "all_reduce");
  EXPECT_EQ(call.count, 10);
  EXPECT_EQ(call.shape, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(call.dtype, "float32");
  EXPECT_EQ(call.state, CallState::kEnqueued);
  EXPECT_EQ(call.time, kNow - 60);
  EXPECT_EQ(call.call_site, (CallSite{"/srv/train.py", 88, "step"}));
  EXPECT_EQ(call.callers.size(), 2U);
  EXPECT_EQ(job.collectives[0].state, CallState::kCompleted);
}

TEST(BuildModel, ComparesNoSizesThatMayDiffer) {
  Look look = look_at(1);
  auto scatter = record(1, "gloo:scatter", false);
  scatter.input_shapes = {{2, 4}};
  scatter.output_shapes = {{4}};
  auto huge = record(3, "gloo:all_reduce", false);
  huge.input_shapes = {{1LL << 62, 8}};
  look.stacks[1].torch->records = {scatter, record(2, "gloo:all_to_all", false), huge};
  const JobModel job = build_model({look});
  EXPECT_EQ(job.collectives[0].count, 4);
  EXPECT_FALSE(job.collectives[1].count);
  EXPECT_FALSE(job.collectives[2].count);
}

TEST(BuildModel, MergesGroupsOfAllRanksTheWorldFirst) {
  Look look = look_at(2);
  look.stacks[1].torch->groups = {
      {.name = "1", .description = "", .backend = "gloo", .ranks = {0}},
      {.name = "0", .description = "default_pg", .backend = "", .ranks = {}}};
  look.stacks[2].torch->groups.push_back(
      {.name = "1", .description = "tp", .backend = "gloo", .ranks = {1}});
  const JobModel job = build_model({look});
  ASSERT_EQ(job.groups.size(), 3U);
  EXPECT_EQ(job.groups[0].name, "default_pg");
  EXPECT_EQ(job.groups[0].ranks, (std::vector<Rank>{0, 1}));
  EXPECT_EQ(job.groups[0].backend, "gloo");
  EXPECT_EQ(job.groups[1].name, "group 1");
  EXPECT_EQ(job.groups[2].id, "1:1");  // another group of the same name
  EXPECT_EQ(job.groups[2].name, "tp");
}

TEST(BuildModel, TurnsGroupRanksOfPartnersIntoRanks) {
  Look look = look_at(2);
  auto send = record(1, "nccl:send 0->1", false);
  send.group_name = "pp";
  look.stacks[1].torch->groups.push_back(
      {.name = "pp", .description = "", .backend = "nccl", .ranks = {4, 6}});
  look.stacks[1].torch->records = {send};
  const JobModel job = build_model({look});
  EXPECT_EQ(job.collectives[0].peer, 6);
  EXPECT_TRUE(job.collectives[0].point_to_point);
}

TEST(BuildModel, DeclaresTheWorldEvenWhenOnlyRecordsNameIt) {
  Look look = look_at(2);
  for (auto& stacks : look.stacks) {
    if (stacks.torch) {
      stacks.torch->groups.clear();
    }
  }
  const JobModel job = build_model({look});
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_EQ(job.groups[0].name, "default_pg");
  EXPECT_EQ(job.groups[0].ranks, (std::vector<Rank>{0, 1}));
}

TEST(BuildModel, TellsStillFromMoving) {
  EXPECT_EQ(build_model({look_at(2), look_at(2, kNow + 1)}).progress, Progress::kStill);
  EXPECT_EQ(build_model({look_at(2), look_at(2, kNow + 1)}).seconds_without_progress, 61);
  Look later = look_at(2, kNow + 1);
  later.stacks[1].torch->records.push_back(record(3, "gloo:barrier", false));
  EXPECT_EQ(build_model({look_at(2), later}).progress, Progress::kMoving);
  later = look_at(2, kNow + 1);
  later.stacks[1].threads[0].run_count = 9;
  later.stacks[1].threads[0].frames[0].line = 90;
  EXPECT_EQ(build_model({look_at(2), later}).progress, Progress::kMoving);
}

TEST(BuildModel, SaysWhoIsAbsentAndWhoIsUnobserved) {
  Look look = look_at(4);
  look.tree.processes.pop_back();  // rank 3 has no process
  look.stacks.pop_back();
  EXPECT_TRUE(build_model({look}).coverage.unobserved_ranks.empty());
  look.tree.nodes = 2;
  EXPECT_EQ(build_model({look}).coverage.unobserved_ranks, RankSet{3});
  look.tree.nodes = 1;
  look.whole_tree = false;
  EXPECT_EQ(build_model({look}).coverage.unobserved_ranks, RankSet{3});
  look.stacks[1].threads.clear();
  look.stacks[1].problems = {"permission denied"};
  const JobModel job = build_model({look});
  EXPECT_EQ(job.coverage.unobserved_ranks, (RankSet{0, 3}));
  EXPECT_EQ(job.coverage.unobserved[0], "rank 0 (pid 1000): permission denied");
  EXPECT_EQ(job.coverage.warnings[0], "rank 0: permission denied");
}

TEST(BuildModel, SaysWhatWasSeenAndWhoWasPaused) {
  Look look = look_at(2);
  EXPECT_EQ(build_model({look}).coverage.observed[0],
            "stacks of 2 processes, 2 threads; no thread was paused");
  EXPECT_EQ(build_model({look}).coverage.observed[1], "torch's flight recorder of ranks 0 and 1");
  look.stacks[1].threads[0].method = stacks::CaptureMethod::kStopped;
  look.stacks[1].threads[0].stopped_ms = 0.4;
  EXPECT_EQ(build_model({look}).coverage.observed[0],
            "stacks of 2 processes, 2 threads; 1 thread was stopped, for 0.4 ms at most");
}

TEST(BuildModel, NamesTheMutexOwnerWhereNothingBetterIsKnown) {
  Look look = look_at(1);
  stacks::ThreadStack owner = sleeping(1005, 3);
  owner.inner_tid = 12;
  look.stacks[1].threads.push_back(owner);
  look.stacks[1].threads[0].mutex_owner = 12;
  EXPECT_EQ(build_model({look}).observations[0].processes[1].threads[0].waits_on->target,
            "thread:1005");
  look.waits[{1000, 1000}] = {.kind = "gil", .target = "thread:1005", .detail = ""};
  EXPECT_EQ(build_model({look}).observations[0].processes[1].threads[0].waits_on->kind, "gil");
}

TEST(BuildModel, KnowsTheEndOfAZombie) {
  Look look = look_at(2);
  look.tree.processes[1].row.state = 'Z';
  look.tree.processes[1].row.exit_code = 9;  // killed by SIGKILL
  look.tree.processes[2].row.state = 'Z';
  look.tree.processes[2].row.exit_code = 1 << 8;
  const JobModel job = build_model({look});
  EXPECT_EQ(rank_process(job, 0)->exit->signal, 9);
  EXPECT_EQ(rank_process(job, 1)->exit->status, 1);
  EXPECT_TRUE(job.coverage.unobserved_ranks.empty());
}

TEST(BuildModel, FindsTheRankInTheProgramsOwnEnvironment) {
  Look look = look_at(1);
  look.tree.processes[1].rank.reset();
  look.tree.processes[1].row.environment.clear();
  look.tree.processes[1].guessed_rank = 5;
  EXPECT_TRUE(rank_process(build_model({look}), 5));
  look.stacks[1].torch->rank = 4;
  EXPECT_TRUE(rank_process(build_model({look}), 4));
  look.stacks[1].python.emplace();
  look.stacks[1].python->environment = {{"RANK", "3"}};
  EXPECT_TRUE(rank_process(build_model({look}), 3));
  look.stacks[1].python->environment = {{"RANK", "99999999999999"}};
  EXPECT_TRUE(rank_process(build_model({look}), 4));
}

TEST(BuildModel, ReadsTheWorldSizeFromTheArgumentsOfTheRendezvous) {
  Look look = look_at(2);
  look.tree.world_size.reset();
  for (stacks::ProcessStacks& process : look.stacks) {
    process.torch.reset();
    if (process.python) {
      process.python->environment.erase("WORLD_SIZE");
    }
  }
  EXPECT_EQ(build_model({look}).world_size, std::nullopt);
  stacks::Frame store = python("_create_c10d_store", "/v/torch/distributed/rendezvous.py", 190);
  store.locals = {{"hostname", "'127.0.0.1'"}, {"world_size", "3"}};
  look.stacks.back().threads.front().frames.insert(
      look.stacks.back().threads.front().frames.begin(), store);
  EXPECT_EQ(build_model({look}).world_size, 3);
}

TEST(BuildModel, IsEmptyWithoutALook) {
  EXPECT_TRUE(build_model({}).observations.empty());
}

TEST(LoadSources, ReadsSourceTheFramesNameAndNothingElse) {
  const std::string base = testing::TempDir() + "load_sources_" + std::to_string(::getpid());
  const std::string script = base + ".py";
  const std::string program = base + ".c";
  const std::string secret = base + ".txt";
  std::ofstream(script) << "import os\r\nprint(1)\n";
  std::ofstream(program) << "int main() {}\n";
  std::ofstream(secret) << "root:x\n";
  JobModel job;
  job.collectives.resize(4);
  job.collectives[3].call_site = {program, 1, "main"};
  job.collectives[0].call_site = {script, 2, "f"};
  job.collectives[1].call_site = {secret, 1, "f"};
  job.collectives[2].call_site = {"/dev/zero", 1, "f"};
  load_sources(job);
  EXPECT_EQ(job.sources.size(), 2U);
  EXPECT_EQ(source_line(job, program, 1), "int main() {}");
  EXPECT_EQ(source_line(job, script, 1), "import os");
  EXPECT_EQ(source_line(job, script, 2), "print(1)");
  ::unlink(script.c_str());
  ::unlink(program.c_str());
  ::unlink(secret.c_str());
}

TEST(LoadSources, TakesWhatWasParsedIfTheFileHasTheSameLines) {
  const std::string script = testing::TempDir() + "parsed_" + std::to_string(::getpid()) + ".py";
  std::ofstream(script) << "x = 1\ny = 2\n";
  const program::KnownTexts same = {{script, {{1, "x = 1"}, {2, "y = 2"}, {3, ""}}}};
  const program::KnownTexts older = {{script, {{1, "x = 1"}}}};
  const auto loaded = [&script](const program::KnownTexts& parsed) {
    JobModel job;
    job.collectives.resize(1);
    job.collectives[0].call_site = {script, 2, "f"};
    load_sources(job, parsed);
    EXPECT_EQ(source_line(job, script, 2), "y = 2");
    return job.sources.at(script);
  };
  EXPECT_EQ(&program::index_of(loaded(same)), &program::index_of(same.at(script)));
  EXPECT_NE(&program::index_of(loaded(older)), &program::index_of(older.at(script)));
  ::unlink(script.c_str());
}

TEST(LoadSources, ReadsWhatTheFilesOfADumpImport) {
  const std::string base = testing::TempDir() + "dump_" + std::to_string(::getpid()) + "_";
  const std::string script = base + "main.py";
  const std::string module = base + "parts.py";
  std::ofstream(script) << "import dump_" << ::getpid() << "_parts as parts\nparts.run()\n";
  std::ofstream(module) << "def run():\n    pass\n";
  JobModel job;
  job.collectives.resize(1);
  job.collectives[0].call_site = {script, 2, "<module>"};
  load_local_sources(job);
  EXPECT_EQ(source_line(job, script, 2), "parts.run()");
  EXPECT_EQ(source_line(job, module, 1), "def run():");
  ::unlink(script.c_str());
  ::unlink(module.c_str());
}

TEST(LoadSources, KeepsLargeFilesWhole) {
  const std::string script = testing::TempDir() + "large_" + std::to_string(::getpid()) + ".py";
  std::ofstream out(script);
  for (int i = 0; i < 6000; ++i) {
    out << "x = 1\n";
  }
  out.close();
  JobModel job;
  job.collectives.resize(1);
  job.collectives[0].call_site = {script, 1000, "f"};
  load_sources(job);
  EXPECT_TRUE(source_line(job, script, 1));
  EXPECT_TRUE(source_line(job, script, 6000));
  ::unlink(script.c_str());
}

TEST(PublicEnvironment, KeepsWhatAJobIsDescribedByAndNoSecret) {
  const std::map<std::string, std::string> given = {
      {"TORCH_HUB", "https://me:hunter2@h/x"}, {"SLURM_JWT", "hunter2"}, {"RANK", "1"}};
  EXPECT_EQ(public_environment(given),
            (std::map<std::string, std::string>{{"TORCH_HUB", "https://me:…@h/x"}, {"RANK", "1"}}));
  EXPECT_TRUE(describes_job("NCCL_P2P_DISABLE"));
  EXPECT_TRUE(describes_job("TOKENIZERS_PARALLELISM"));
  EXPECT_FALSE(describes_job("HOME"));
  EXPECT_FALSE(describes_job("SLURM_JOB_TOKEN"));
}

}  // namespace
}  // namespace ddpdoctor::model
