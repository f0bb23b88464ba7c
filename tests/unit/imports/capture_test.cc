// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/capture/capture.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::imports {
namespace {

using model::JobModel;
using tests::kAll;

constexpr const char* kHead = "{\"schema\":\"ddpdoctor.capture/1\"";

JobModel read(const std::string& rest) {
  auto job = read_capture(kHead + rest + "}", "hand.json");
  EXPECT_TRUE(job) << job.error().what;
  return job.value_or(JobModel{});
}

std::string refusal(const std::string& text) {
  const auto job = read_capture(text, "hand.json");
  return job ? "accepted" : job.error().what;
}

JobModel a_rich_job() {
  return tests::job()
      .ranks(3)
      .group("1", {0, 2}, "tp")
      .command({"torchrun", "train.py"})
      .source("/srv/train.py", "\nimport os\nif rank == 0:\n    dist.barrier()\n")
      .stack(kAll, "native:gloo::allreduce@libtorch_cpu.so | py:step{group=0; x=1}@/srv/train.py:2")
      .stack_before(1, "py:load@/srv/train.py:1")
      .waits(0, {.kind = "socket", .target = "rank:1", .detail = "127.0.0.1:3", .limit = 2.5})
      .holds_gil(2)
      .environment(0, "NCCL_DEBUG", "INFO")
      .killed(2, 9)
      .worker(1, "py:__getitem__@/srv/train.py:3", 'D')
      .all_reduce(kAll, 1, 10, "step@/srv/train.py:2 | main@/srv/train.py:3")
      .broadcast({0, 2}, 2, 0)
      .send(0, 1, 1)
      .fact("shm-usage",
            {{"used", std::int64_t{5}},
             {"share", 0.5},
             {"full", true},
             {"path", std::string("/dev/shm")},
             {"names", std::vector<std::string>{"a", "b"}}},
            1, 77)
      .log(2, "Traceback\n")
      .unobserved(1, "permission denied")
      .build();
}

TEST(WriteCapture, IsReadBackAsItWas) {
  const std::string first = write_capture(a_rich_job());
  auto again = read_capture(first, "x.json");
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(write_capture(*again), first);
  const JobModel& job = *again;
  EXPECT_EQ(job.progress, a_rich_job().progress);
  ASSERT_EQ(job.collectives.size(), 6U);
  EXPECT_EQ(job.collectives[0].callers.size(), 2U);
  EXPECT_EQ(job.collectives[5].peer, 1);
  EXPECT_EQ(model::rank_process(job, 2)->exit->signal, 9);
  EXPECT_EQ(model::main_thread(*model::rank_process(job, 0))->waits_on->detail, "127.0.0.1:3");
  EXPECT_EQ(model::main_thread(*model::rank_process(job, 0))->waits_on->limit, 2.5);
  EXPECT_EQ(model::main_thread(*model::rank_process(job, 0))->frames[1].locals.size(), 2U);
  EXPECT_EQ(job.facts[0].number("share"), 0.5);
  EXPECT_EQ(job.facts[0].list("names").size(), 2U);
  EXPECT_EQ(job.facts[0].pid, 77);
  EXPECT_EQ(model::source_line(job, "/srv/train.py", 2), "if rank == 0:");
  EXPECT_EQ(job.coverage.unobserved_ranks, model::RankSet{1});
}

TEST(WriteCapture, GivesTheSameBytesForTheSameJob) {
  EXPECT_EQ(write_capture(a_rich_job()), write_capture(a_rich_job()));
  EXPECT_EQ(write_capture(JobModel{}).substr(0, 36), "{\n \"schema\": \"ddpdoctor.capture/1\",\n");
}

TEST(WriteCapture, LeavesSecretsOut) {
  JobModel job = tests::job().ranks(1).environment(0, "WANDB_API_KEY", "hunter2").build();
  job.command = {"python", "train.py", "--hf-token", "hunter2"};
  job.logs.push_back({.rank = 0, .text = "start\nexport WANDB_API_KEY=hunter2\n"});
  job.facts.push_back({.rank = 0,
                       .pid = std::nullopt,
                       .kind = "exception",
                       .fields = {{"exception", "OSError: https://me:hunter2@host/x"}}});
  EXPECT_EQ(write_capture(job).find("hunter2"), std::string::npos);
}

TEST(WriteCapture, SurvivesWhatAForeignMemoryMayHold) {
  JobModel job = tests::job().ranks(1).stack(0, "py:f@/t.py:1").build();
  model::Frame& frame = job.observations[1].processes[1].threads[0].frames[0];
  frame.function = "\xff\xfe";
  frame.line = -5;
  frame.column = INT32_MAX;
  frame.address = UINT64_MAX;
  job.observations[1].processes[1].threads[0].state = '\xf0';
  job.observations[1].processes[1].cpu_seconds = std::numeric_limits<double>::quiet_NaN();
  auto again = read_capture(write_capture(job), "x.json");
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(again->observations[1].processes[1].threads[0].frames[0].line, 0);
  EXPECT_FALSE(again->observations[1].processes[1].cpu_seconds);
}

TEST(ReadCapture, TakesAbsentFieldsAsUnknown) {
  const JobModel job = read("");
  EXPECT_FALSE(job.world_size);
  EXPECT_TRUE(job.observations.empty());
  EXPECT_EQ(job.progress, model::Progress::kUnknown);
  const JobModel sparse =
      read(R"(,"observations":[{"processes":[{"rank":1,"threads":[{"frames":[{}]}]},null]}])");
  const model::Process* rank = model::rank_process(sparse, 1);
  ASSERT_NE(rank, nullptr);
  EXPECT_EQ(rank->state, '?');
  EXPECT_FALSE(rank->threads[0].gil);
  EXPECT_FALSE(rank->exit);
}

TEST(ReadCapture, IsForgivingToHands) {
  const JobModel job = read(R"(,"job":{"world_size":2.0,"command":"train.py"},
      "groups":[{"id":0,"ranks":[0,1]}],
      "collectives":[{"rank":0,"sequence":1,"operation":"nccl:all_reduce","dtype":"Float","state":"scheduled"},
                     {"rank":1,"sequence":1,"operation":"send","peer":0}, {"rank":1}],
      "sources":{"/t.py":"a\nb"}, "unknown_field":{"x":[1]})");
  EXPECT_EQ(job.world_size, 2);
  EXPECT_EQ(job.command, std::vector<std::string>{"train.py"});
  EXPECT_EQ(job.groups[0].name, "default_pg");
  ASSERT_EQ(job.collectives.size(), 2U);
  EXPECT_EQ(job.collectives[0].operation, "all_reduce");
  EXPECT_EQ(job.collectives[0].dtype, "float32");
  EXPECT_EQ(job.collectives[0].group, "0");
  EXPECT_TRUE(job.collectives[1].point_to_point);
  EXPECT_EQ(job.coverage.warnings.size(), 1U);
  EXPECT_EQ(model::source_line(job, "/t.py", 2), "b");
}

TEST(ReadCapture, KeepsTheLoopsOfAFrame) {
  const std::string written =
      R"(,"observations":[{"processes":[{"rank":0,"threads":[{"frames":[{"loops":[)"
      R"({"over":"range"},{"over":"generator f","done":3,"left":4,"loose":true,"index":12}]}]}]}]}])";
  const JobModel first = read(written);
  const auto again = read_capture(write_capture(first), "x.json");
  ASSERT_TRUE(again);
  for (const JobModel* job : {&first, &*again}) {
    const auto& loops = model::main_thread(*model::rank_process(*job, 0))->frames[0].loops;
    ASSERT_EQ(loops.size(), 2U);
    EXPECT_EQ(loops[0].total(), std::nullopt);
    EXPECT_EQ(loops[1].over, "generator f");
    EXPECT_EQ(loops[1].total(), 7);
    EXPECT_TRUE(loops[1].loose);
    EXPECT_EQ(loops[0].index, std::nullopt);
    EXPECT_EQ(loops[1].index, 12);
  }
}

TEST(ReadCapture, TakesLocalsAsPairsAndAsAnObject) {
  const auto locals = [](const std::string& written) {
    return read(R"(,"observations":[{"processes":[{"rank":0,"threads":[{"frames":[{"locals":)" +
                written + "}]}]}]}]")
        .observations[0]
        .processes[0]
        .threads[0]
        .frames[0]
        .locals;
  };
  const std::vector<std::pair<std::string, std::string>> expected = {{"b", "1"}, {"a", "2"}};
  EXPECT_EQ(locals(R"([["b","1"],["a","2"]])"), expected);
  EXPECT_EQ(locals(R"({"a":2})"), (std::vector<std::pair<std::string, std::string>>{{"a", "2"}}));
}

TEST(ReadCapture, GivesAProcessOfSeveralRanksToEachOfThem) {
  const JobModel job = read(
      R"(,"observations":[{"processes":[{"pid":7,"ranks":[2,3],"threads":[{"tid":8},{"tid":7}]}]}])");
  ASSERT_NE(model::rank_process(job, 2), nullptr);
  EXPECT_EQ(model::rank_process(job, 3)->pid, 7);
  EXPECT_EQ(model::rank_process(job, 3)->threads[0].tid, 7);
}

TEST(ReadCapture, ComparesTheObservationsWhenProgressIsNotSaid) {
  const auto two = [](int line) {
    const std::string thread =
        R"("threads":[{"tid":1,"frames":[{"language":"python","file":"/t.py","line":)";
    return R"(,"observations":[{"time":0,"processes":[{"pid":1,"rank":0,)" + thread +
           R"(5}]}]}]},{"time":30.5,"processes":[{"pid":1,"rank":0,)" + thread +
           std::to_string(line) + "}]}]}]}]";
  };
  EXPECT_EQ(read(two(5)).progress, model::Progress::kStill);
  EXPECT_EQ(read(two(5)).seconds_without_progress, 30.5);
  EXPECT_EQ(read(two(6)).progress, model::Progress::kMoving);
  EXPECT_EQ(read(two(6) + R"(,"job":{"progress":"still"})").progress, model::Progress::kStill);
}

TEST(ReadCapture, KnowsAJobThatIsOver) {
  EXPECT_TRUE(read(R"(,"observations":[{"processes":[{"rank":0,"exit":{"signal":9}}]}])").ended);
  EXPECT_FALSE(
      read(R"(,"observations":[{"processes":[{"rank":0,"exit":{"signal":9}},{"rank":1}]}])").ended);
}

TEST(ReadCapture, NamesTheFileAndTheFieldThatIsWrong) {
  const std::string head = kHead;
  EXPECT_EQ(refusal(head + R"(,"job":[]})"), "hand.json: job must be an object, not a list");
  EXPECT_EQ(refusal(head + R"(,"observations":{"a":1}})"),
            "hand.json: observations must be a list, not an object");
  EXPECT_EQ(refusal(head + R"(,"facts":7})"), "hand.json: facts must be a list, not 7");
  EXPECT_EQ(refusal(head + R"(,"collectives":[{"rank":0},{"rank":"x"}]})"),
            "hand.json: collectives[1].rank must be a whole number from 0 to 131071, not \"x\"");
  EXPECT_EQ(refusal(head + R"(,"collectives":[{"rank":-1}]})"),
            "hand.json: collectives[0].rank must be a whole number from 0 to 131071, not -1");
  EXPECT_EQ(
      refusal(head +
              R"(,"observations":[{"processes":[{"threads":[{"frames":[{"line":1e99}]}]}]}]})"),
      "hand.json: observations[0].processes[0].threads[0].frames[0].line must be a whole number "
      "from 0 to "
      "100000000, not 1e+99");
  EXPECT_EQ(refusal(head + R"(,"job":{"world_size":1.5}})"),
            "hand.json: job.world_size must be a whole number from 0 to 131072, not 1.5");
  EXPECT_EQ(refusal(head + R"(,"sources":{"/t.py":{"one":"x"}}})"),
            "hand.json: sources./t.py.one must be named by its line number, not \"x\"");
  EXPECT_EQ(refusal(head + R"(,"collectives":[{"rank":0,"state":"done"}]})"),
            "hand.json: collectives[0].state must be \"enqueued\", \"started\", \"completed\" or "
            "\"failed\", not \"done\"");
}

TEST(ReadCapture, RefusesWhatIsNoCapture) {
  EXPECT_EQ(refusal(""), "hand.json is empty");
  EXPECT_EQ(refusal(" \n"), "hand.json is empty");
  EXPECT_EQ(refusal("[1]"), "hand.json is not a capture: the document must be an object");
  EXPECT_EQ(refusal("{\"job\":{}}"), "hand.json is not a capture: it names no schema");
  EXPECT_EQ(
      refusal(R"({"schema":"somebody/9","job":{"world_size":4}})"),
      "hand.json is written in the schema \"somebody/9\", which this ddpdoctor does not read");
}

TEST(ReadCapture, RefusesBrokenTextWithAPlace) {
  EXPECT_EQ(refusal(R"({"schema":"ddpdoctor.capture/1","observations":[{"time":0.0,"proc)"),
            "hand.json cannot be read: it ends in the middle of the JSON document");
  EXPECT_EQ(refusal("{\"schema\":\"ddpdoctor.capture/1\",\n x}"),
            "hand.json cannot be read: it is not valid JSON near byte 34 (line 2)");
  EXPECT_EQ(refusal(R"({"schema":"ddpdoctor.capture/1","collectives":[{"sequence":-1e400}]})"),
            "hand.json cannot be read: the number -1e400 near byte 59 is too large");
  EXPECT_NE(refusal(std::string("\x7f\x45\x4c\x46\x00\xff\xfe", 7)).find("not valid JSON"),
            std::string::npos);
}

TEST(ReadCapture, RefusesAMillionNestedLists) {
  EXPECT_EQ(refusal(std::string(kHead) + ",\"job\":" + std::string(1'000'000, '[')),
            "hand.json nests deeper than 64 levels at byte 101");
  const std::string closed = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_NE(refusal(std::string(kHead) + ",\"job\":" + closed + "}").find("deeper"),
            std::string::npos);
  EXPECT_EQ(refusal(std::string(kHead) + ",\"x\":\"" + std::string(1000, '[') + "\"}"), "accepted");
}

TEST(ReadCapture, RefusesMoreThanAJobCanHave) {
  const auto many = [](std::string_view head, std::string_view unit, std::size_t count,
                       std::string_view tail) {
    std::string text = R"({"schema":"ddpdoctor.capture/1",)";
    text += head;
    for (std::size_t i = 0; i < count; ++i) {
      text += unit;
    }
    return read_capture(text.append(tail), "x.json");
  };
  const auto values = many(R"("x":[)", "1,", 20'000'000, "1]}");
  ASSERT_FALSE(values);
  EXPECT_NE(values.error().what.find("values"), std::string::npos) << values.error().what;
  const auto processes =
      many(R"("observations":[{"time":1,"processes":[)", "{},", 3'100'000, "{}]}]}");
  ASSERT_FALSE(processes);
  EXPECT_NE(processes.error().what.find("entries"), std::string::npos) << processes.error().what;
  std::string ranks = R"({"ranks":[0)";
  for (int rank = 1; rank < 64; ++rank) {
    ranks += "," + std::to_string(rank);
  }
  ranks += R"(],"threads":[)";
  for (int thread = 0; thread < 1000; ++thread) {
    ranks += "{},";
  }
  EXPECT_FALSE(many(R"("observations":[{"time":1,"processes":[)", ranks + "{}]},", 60, "{}]}]}"))
      << "each of 64 ranks gets a thousand threads";
}

TEST(ReadCapture, LimitsTheRanksOfOneProcess) {
  std::string many = "0";
  for (int i = 1; i < 100; ++i) {
    many += "," + std::to_string(i);
  }
  EXPECT_EQ(refusal(std::string(kHead) + R"(,"observations":[{"processes":[{"ranks":[)" + many +
                    "]}]}]}"),
            "hand.json: observations[0].processes[0].ranks must be a list of at most 64 ranks, not "
            "a list");
}

TEST(ReadCapture, SurvivesEveryCutAndEveryFlippedByte) {
  const std::string whole = write_capture(a_rich_job());
  for (std::size_t i = 0; i < whole.size(); i += 7) {
    EXPECT_NE(refusal(whole.substr(0, i)), "accepted") << i;
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 7)));
    EXPECT_EQ(refusal(flipped).find("nlohmann"), std::string::npos);
  }
}

TEST(ReadCapture, LetsTheMainThreadShareWhatIsSaidOfTheProcess) {
  const JobModel job = read(
      R"(,"observations":[{"processes":[{"rank":0,"state":"D","wchan":"nfs_x","threads":[{},{}]}]}])");
  const model::Process* rank = model::rank_process(job, 0);
  ASSERT_NE(rank, nullptr);
  EXPECT_EQ(rank->threads[0].state, 'D');
  EXPECT_EQ(rank->threads[0].wchan, "nfs_x");
  EXPECT_EQ(rank->threads[1].state, '?');
}

TEST(ReadCapture, TakesTheRankOfTheEnvironment) {
  const JobModel job = read(R"(,"observations":[{"processes":[
      {"pid":1,"env":{"RANK":"0"}},{"pid":2,"env":{"RANK":"1"}},
      {"pid":3,"ppid":1,"env":{"RANK":"0"}},{"pid":4,"role":"launcher","env":{"RANK":"7"}},
      {"pid":5,"env":{"RANK":"x"}},{"pid":6,"env":{"RANK":"-1"}}]}])");
  EXPECT_EQ(model::ranks_seen(job), model::RankSet({0, 1}));
  EXPECT_EQ(model::process(job, 3)->role, model::Role::kOther);
  EXPECT_FALSE(model::process(job, 4)->rank);
}

TEST(ReadCapture, KnowsADataLoaderWorkerByItsStack) {
  const JobModel job = read(R"(,"observations":[{"processes":[{"rank":0,"threads":[{"frames":[
      {"function":"_worker_loop","file":"/x/torch/utils/data/_utils/worker.py","line":1}]}]}]}])");
  EXPECT_EQ(job.observations[0].processes[0].role, model::Role::kDataLoaderWorker);
}

TEST(ReadCapture, LeavesOutCallsThatMayBelongToSeveralGroups) {
  const JobModel job = read(R"(,"groups":[{"id":"0","ranks":[0,1]},{"id":"1","ranks":[0,1]}],
      "collectives":[{"rank":0,"sequence":1,"operation":"barrier"},{"rank":0,"group":"1","sequence":1}])");
  ASSERT_EQ(job.collectives.size(), 1U);
  EXPECT_EQ(job.collectives[0].group, "1");
  EXPECT_EQ(job.coverage.events_lost, 1U);
}

TEST(ReadCapture, TakesHalfAPlaceForNone) {
  const JobModel job = read(R"(,"collectives":[
      {"rank":0,"sequence":1,"call_site":{"file":"/t.py"}},{"rank":1,"sequence":1,"call_site":{"line":3}}])");
  EXPECT_FALSE(job.collectives.at(0).call_site.known());
  EXPECT_FALSE(job.collectives.at(1).call_site.known());
}

}  // namespace
}  // namespace ddpdoctor::imports
