// SPDX-License-Identifier: Apache-2.0
// A message is one fact. Tests every known message in three cases: in a log alone, from another
// program, and confirmed by how its rank ended.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/logs/text_file.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::diagnosis {
namespace {

using namespace ddpdoctor::tests;
using detectors::Confidence;
using detectors::Finding;
using detectors::KnownException;

/// The message as a line of a log.
std::string words(const KnownException& known) {
  const std::string also =
      known.also.starts_with("\"") ? fmt::format("{}w\"", known.also) : std::string(known.also);
  const std::string name = known.pattern.starts_with("TypeError") ? "" : "RuntimeError: ";
  const std::string because = known.because.empty() ? "" : fmt::format(" ({})", known.because);
  return fmt::format("{}{} {}{}", name, known.pattern, also, because);
}

/// A traceback of rank 1 that ends in `file` of some library.
std::string raised_in(std::string_view file, std::string_view message) {
  return fmt::format(
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"/srv/train.py\", line 40, in <module>\n"
      "[rank1]:     main()\n"
      "[rank1]:   File \"/srv/train.py\", line 12, in main\n"
      "[rank1]:     go()\n"
      "[rank1]:   File \"{}\", line 9, in call\n"
      "[rank1]:     raise\n"
      "[rank1]: {}\n",
      file, message);
}

std::string by_itself(const KnownException& known) {
  const std::string library = known.said_by.empty() ? "torch" : std::string(known.said_by);
  return raised_in(library == "multiprocess" ? "/usr/lib/python3.11/multiprocessing/reduction.py"
                                             : "/opt/site-packages/" + library + "/core.py",
                   words(known));
}

std::vector<Finding> told(const model::JobModel& job) {
  return diagnose(job).findings;
}

const Finding* of_kind(const std::vector<Finding>& all, std::string_view kind) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [kind](const Finding& finding) { return finding.kind == kind; });
  return found == all.end() ? nullptr : &*found;
}

bool any_certain(const std::vector<Finding>& all) {
  return std::any_of(all.begin(), all.end(), [](const Finding& finding) {
    return finding.confidence == Confidence::kCertain;
  });
}

bool accuses_of(const std::vector<Finding>& all, std::string_view kind) {
  const Finding* finding = of_kind(all, kind);
  return finding != nullptr && finding->confidence != Confidence::kPossible;
}

/// As `ddpdoctor report job.log` reads it.
model::JobModel log_file(const std::string& text) {
  return imports::read_text(text, "job.log").value();
}

class EveryMessage : public testing::TestWithParam<KnownException> {};

TEST_P(EveryMessage, InALogAloneIsNeverCertain) {
  for (const std::string& text :
       {words(GetParam()) + "\n", by_itself(GetParam()), "[rank1]: " + words(GetParam()) + "\n"}) {
    EXPECT_FALSE(any_certain(told(log_file(text)))) << text;
    EXPECT_FALSE(any_certain(told(log_file(text + text)))) << "twice: " << text;
  }
}

TEST_P(EveryMessage, OfAJobThatIsSeenIsNotCertainWithoutAnEnd) {
  JobBuilder builder = job();
  builder.ranks(2).stack(0, "native:poll | py:main@/srv/train.py:40").absent(1);
  EXPECT_FALSE(any_certain(told(builder.log({}, by_itself(GetParam())).build())));
}

TEST_P(EveryMessage, OfAnotherProgramAccusesNobodyOfThis) {
  const KnownException& known = GetParam();
  if (known.said_by.empty()) {
    return;  // no other evidence
  }
  const std::string log = raised_in("/opt/site-packages/webserver/serve.py", words(known));
  JobBuilder builder = job();
  builder.ranks(2).exited(0, 1).exited(1, 1).log({}, log).ended();
  EXPECT_FALSE(accuses_of(told(builder.build()), known.kind)) << log;
  EXPECT_FALSE(accuses_of(told(log_file(log)), known.kind)) << log;
}

TEST_P(EveryMessage, CommonWordsWithoutAnAuthorAccuseNobody) {
  const KnownException& known = GetParam();
  if (known.common) {
    EXPECT_FALSE(accuses_of(told(log_file("worker 3: " + words(known) + "\n")), known.kind));
  }
}

TEST_P(EveryMessage, IsBornOutByTheEndOfItsRank) {
  const KnownException& known = GetParam();
  if (known.place_below || known.passes || known.kind == "gpu-fault" ||
      known.kind == "rendezvous-incomplete" || known.says == detectors::Message::kNoPeer ||
      known.kind == "fabric-fault" || known.kind == "environment-differs" ||
      known.kind == "mismatched-shape" || known.kind == "io-stall") {
    return;  // printed by another program, retried, or not a failure of this rank
  }
  JobBuilder builder = job();
  builder.ranks(2).exited(0, 1).exited(1, 1).ended();
  builder.source("/srv/train.py", "model = DistributedDataParallel(net)\n");
  const auto all = told(builder.log({}, by_itself(known)).build());
  const Finding* finding = of_kind(all, known.kind);
  ASSERT_NE(finding, nullptr) << by_itself(known);
  // An in-place change by the user's code has the same message as one of DDP's buffers; a warning
  // is not what ended the rank.
  EXPECT_EQ(finding->confidence, known.warns                       ? Confidence::kPossible
                                 : known.kind == "buffers-inplace" ? Confidence::kLikely
                                                                   : Confidence::kCertain);
  EXPECT_EQ(finding->culprits, model::RankSet({1}));
}

std::vector<KnownException> of_a_kind() {
  std::vector<KnownException> out;
  for (const KnownException& known : detectors::known_exceptions()) {
    if (!known.kind.empty()) {
      out.push_back(known);
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(KnownMessages, EveryMessage, testing::ValuesIn(of_a_kind()),
                         [](const auto& instance) {
                           std::string name;
                           for (const char c : instance.param.kind) {
                             name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           }
                           return fmt::format("{}_{}", name, instance.index);
                         });

/// The cause of rank 1's end (of two ranks, each with status 1), from a log with this traceback.
std::vector<Finding> ended_by(const std::string& log) {
  JobBuilder builder = job();
  builder.ranks(2).exited(0, 1).exited(1, 1).ended();
  return told(builder.log({}, log).build());
}

void expect_rank_raised(const std::vector<Finding>& all, std::string_view instead_of) {
  EXPECT_FALSE(accuses_of(all, instead_of));
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().kind, "rank-raised");
  EXPECT_EQ(all.front().culprits, model::RankSet({1}));
}

TEST(WrongAuthor, AnInPlaceBugWithoutDdpIsAnException) {
  const std::string log = raised_in(
      "/opt/site-packages/torch/autograd/graph.py",
      "RuntimeError: one of the variables needed for gradient computation has been modified by an "
      "inplace operation: [torch.FloatTensor [4]] is at version 1; expected version 0 instead.");
  expect_rank_raised(ended_by(log), "buffers-inplace");
  expect_rank_raised(told(log_file(log)), "buffers-inplace");
}

TEST(WrongAuthor, ThePortOfAWebServerIsNotTheRendezvous) {
  const std::string log = raised_in("/usr/lib/python3.11/socketserver.py",
                                    "OSError: [Errno 98] Address already in use");
  expect_rank_raised(ended_by(log), "master-unreachable");
  expect_rank_raised(told(log_file(log)), "master-unreachable");
}

TEST(WrongAuthor, ACheckpointWithoutItsClassIsNoSpawn) {
  const std::string log =
      raised_in("/opt/site-packages/torch/serialization.py",
                "AttributeError: Can't get attribute 'Config' on <module '__main__'>");
  expect_rank_raised(ended_by(log), "spawn-unpicklable");
  expect_rank_raised(told(log_file(log)), "spawn-unpicklable");
}

TEST(WrongAuthor, AFullDiskIsNotAFullSharedMemory) {
  for (const char* path :
       {"/data/shared memory/step9.pt", "/mnt/dev/shm/step9.pt", "/data/dev/shm-old/x"}) {
    const std::string log =
        raised_in("/opt/site-packages/torch/serialization.py",
                  fmt::format("OSError: [Errno 28] No space left on device: '{}'", path));
    expect_rank_raised(ended_by(log), "shm-exhausted");
    expect_rank_raised(told(log_file(log)), "shm-exhausted");
  }
}

TEST(WrongAuthor, WhoGaveUpWaitingForItsPeersRaisedNothingOfItsOwn) {
  const std::string log = raised_in("/opt/site-packages/deep_ep/buffer.py",
                                    "RuntimeError: DeepEP error: timeout (dispatch CPU)");
  JobBuilder builder = job();
  builder.ranks(2).killed(0, 15).exited(1, 1).ended();
  for (const auto& all : {told(builder.log({}, log).build()), told(log_file(log))}) {
    EXPECT_FALSE(accuses_of(all, "rank-raised"));
    EXPECT_FALSE(any_certain(all));
  }
}

TEST(WrongAuthor, AnExceptionThatTheRankGotOverIsNotWhatEndedIt) {
  const std::string first = raised_in("/opt/site-packages/torch/distributed/rendezvous.py",
                                      "RuntimeError: Address already in use");
  std::string later = "[rank1]: step 1\n";
  for (int line = 0; line < 50; ++line) {
    later += fmt::format("[rank1]: loss 0.{}\n", line);
  }
  const auto all =
      ended_by(first + later + raised_in("/opt/site-packages/x/y.py", "ValueError: no such shard"));
  EXPECT_FALSE(accuses_of(all, "master-unreachable"));
}

TEST(OwnEnd, OfARankThatItsLauncherEndedSaysNothing) {
  JobBuilder builder = job();
  builder.ranks(2).exited(0, 1).killed(1, 15).ended();
  const auto all = told(
      builder.log({}, raised_in("/opt/site-packages/x/y.py", "ValueError: no such shard")).build());
  EXPECT_FALSE(any_certain(all));
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
