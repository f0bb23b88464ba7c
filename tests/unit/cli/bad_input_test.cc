// SPDX-License-Identifier: Apache-2.0
// For every wrong word and every wrong file there is a message that names it and the right exit
// status; nothing is left behind.
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "cli/exit_codes.h"
#include "cli/unpacked_inputs.h"
#include "tests/support/places.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::cli {
namespace {

using tests::ddpdoctor;
using tests::Ended;
using tests::TempDir;

constexpr const char* kCapture = R"({"schema":"ddpdoctor.capture/1","job":{"world_size":2}})";

/// One or two lines, not empty, that mention `name`.
void expect_refusal(const Ended& ended, int status, const std::string& name) {
  EXPECT_EQ(ended.status, status) << ended.err;
  EXPECT_TRUE(ended.err.starts_with("ddpdoctor: ")) << ended.err;
  EXPECT_NE(ended.err.find(name), std::string::npos) << ended.err;
  EXPECT_LE(std::count(ended.err.begin(), ended.err.end(), '\n'), 2) << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST(Usage, UnknownWordsAreNamed) {
  expect_refusal(ddpdoctor({}), kUsage, "no command");
  expect_refusal(ddpdoctor({"frobnicate"}), kUsage, "unknown command frobnicate");
  expect_refusal(ddpdoctor({"--frobnicate"}), kUsage, "unknown option --frobnicate");
  expect_refusal(ddpdoctor({"attach", "--frobnicate", "1"}), kUsage, "unknown option --frobnicate");
  expect_refusal(ddpdoctor({"attach", "1", "2"}), kUsage, "unknown argument 2");
  expect_refusal(ddpdoctor({"attach", "1", "--samples"}), kUsage, "--samples");
  expect_refusal(ddpdoctor({"attach", "1", "--samples", "many"}), kUsage, "many");
  expect_refusal(ddpdoctor({"attach", "1", "--samples", "0"}), kUsage, "--samples 0");
  expect_refusal(ddpdoctor({"attach", "1", "--interval", "-1"}), kUsage, "--interval -1");
  expect_refusal(ddpdoctor({"attach", "1", "--format", "docx"}), kUsage, "docx");
}

TEST(Usage, PidsThatAreNoPidsAreNamed) {
  expect_refusal(ddpdoctor({"attach"}), kUsage, "PID");
  expect_refusal(ddpdoctor({"attach", "12three"}), kUsage, "invalid PID '12three'");
  expect_refusal(ddpdoctor({"attach", "99999999999999999999"}), kUsage, "99999999999999999999");
  expect_refusal(ddpdoctor({"attach", "0"}), kUsage,
                 "invalid PID '0': expected a number from 1 to");
}

TEST(Usage, HelpAndVersionAreAnswers) {
  const Ended help = ddpdoctor({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("attach"), std::string::npos);
  const Ended version = ddpdoctor({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_TRUE(version.out.starts_with("ddpdoctor ")) << version.out;
}

TEST(Input, DamagedArchivesAreRefusedAndTheRestIsRead) {
  const TempDir folder;
  const std::string packed = folder.write("x.json.gz", "\x1f\x8b\x08 and so on");
  const bool unpacks = cli::can_unpack();
  expect_refusal(ddpdoctor({"report", packed}), kNotObserved,
                 unpacks ? packed + " cannot be unpacked" : "is packed (gzip)");
  folder.write("x.json", kCapture);
  const Ended beside = ddpdoctor({"report", folder.path("")});
  EXPECT_NE(beside.out.find(unpacks ? "cannot be unpacked" : "packed and left out"),
            std::string::npos)
      << beside.out;
}

TEST(Input, WhatIsPipedIsRead) {
  const TempDir folder;
  const std::string capture = folder.write("x.json", kCapture);
  const Ended plain = ddpdoctor({"report", capture});
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = kCapture;
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  const Ended piped = ddpdoctor({"report", fmt::format("/dev/fd/{}", ends[0])});
  ::close(ends[0]);
  EXPECT_EQ(piped.status, plain.status) << piped.err;
  EXPECT_EQ(piped.out, plain.out);
  const Ended nobody = ddpdoctor({"report", "/dev/fd/987"});
  expect_refusal(nobody, kNotObserved, "/dev/fd/987 cannot be read");
}

TEST(Explain, UnknownKindsLeadToNearOnes) {
  expect_refusal(ddpdoctor({"explain", "dead-rnak"}), kUsage, "did you mean dead-rank?");
  expect_refusal(ddpdoctor({"explain", "xyzzyxyzzy"}), kUsage, "all kinds: ddpdoctor explain");
}

TEST(Explain, ListsAllKindsAndShowsOne) {
  const Ended list = ddpdoctor({"explain"});
  EXPECT_EQ(list.status, 0);
  EXPECT_NE(list.out.find("\n  missing-rank "), std::string::npos) << list.out;
  const Ended page = ddpdoctor({"explain", "missing-rank"});
  EXPECT_EQ(page.status, 0);
  EXPECT_TRUE(page.out.starts_with("missing-rank: ")) << page.out;
}

TEST(Explain, TheDocumentOfAllCausesIsCurrent) {
  const Ended made = ddpdoctor({"explain", "--format", "markdown"});
  EXPECT_EQ(made.status, 0);
  EXPECT_EQ(made.out, tests::read_text(tests::source_file("docs/causes.md"))) << "run ./dev docs";
}

TEST(Attach, AProcessThatIsNotThereIsNamed) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  expect_refusal(ddpdoctor({"attach", std::to_string(child)}), kNotObserved, std::to_string(child));
}

TEST(Attach, AZombieIsCalledOne) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  const Ended said = ddpdoctor({"attach", std::to_string(child)});
  expect_refusal(said, kNotObserved, std::to_string(child));
  EXPECT_NE(said.err.find("zombie"), std::string::npos) << said.err;
  ::waitpid(child, nullptr, 0);
}

TEST(Output, IsRefusedBeforeAnythingIsObserved) {
  const TempDir folder;
  const std::string capture = folder.write("good.json", kCapture);
  const std::string nobody = "999999999";  // attach must stop before it reaches this pid
  expect_refusal(ddpdoctor({"attach", nobody, "-o", folder.path("nowhere/x.json")}), kUsage,
                 "nowhere/x.json");
  expect_refusal(ddpdoctor({"report", capture, "-o", capture + "/x.json"}), kUsage,
                 "good.json/x.json");
  expect_refusal(ddpdoctor({"report", capture, "-o", folder.path("x.docx")}), kUsage, "x.docx");
  expect_refusal(ddpdoctor({"report", capture, "-o", folder.path("")}), kUsage,
                 "unknown output format");
  std::filesystem::create_directory(folder.path("d.json"));
  expect_refusal(ddpdoctor({"report", capture, "-o", folder.path("d.json")}), kUsage,
                 "it is a folder");
  EXPECT_EQ(folder.names(), "d.json good.json");
}

TEST(Output, SeveralFilesInOneOptionAreRefused) {
  const TempDir folder;
  const std::string capture = folder.write("good.json", kCapture);
  const Ended ended = ddpdoctor({"report", capture, "-o", folder.path("a.html,b.md")});
  expect_refusal(ended, kUsage, "names several files");
  EXPECT_NE(ended.err.find("a.html -o b.md"), std::string::npos) << ended.err;
  EXPECT_EQ(folder.names(), "good.json");
  EXPECT_LE(ddpdoctor({"report", capture, "-o", folder.path("lr=1,wd=2.md")}).status, kFound);
}

TEST(Output, AFolderThatTakesNoFilesExists) {
  const TempDir folder;
  const std::string capture = folder.write("good.json", kCapture);
  expect_refusal(ddpdoctor({"report", capture, "-o", "/proc/x.html"}), kUsage,
                 "no file can be created in its folder");
}

TEST(Words, AnOptionWithoutItsValueIsNamedInOurWords) {
  expect_refusal(ddpdoctor({"report", "x.json", "-o"}), kUsage, "--output needs FILE");
  expect_refusal(ddpdoctor({"run", "--hang-timeout", "abc", "--", "true"}), kUsage,
                 "invalid --hang-timeout 'abc': expected a number");
  const Ended ended = ddpdoctor({"attach", "--slurm"});
  expect_refusal(ended, kUsage, "--slurm needs JOBID");
  EXPECT_NE(ended.err.find("see ddpdoctor attach --help"), std::string::npos) << ended.err;
}

TEST(Words, HelpOfWhatIsNoCommandIsRefused) {
  expect_refusal(ddpdoctor({"help", "nosuch"}), kUsage, "nosuch");
  EXPECT_EQ(ddpdoctor({"help", "attach"}).status, 0);
}

TEST(Output, WritesEveryFileThatWasAskedFor) {
  const TempDir folder;
  const std::string capture = folder.write("good.json", kCapture);
  const Ended ended =
      ddpdoctor({"report", "-o", folder.path("r.json"), "-o", folder.path("r.md"), "-o",
                 folder.path("r.sarif"), "-o", folder.path("r.xml"), capture});
  EXPECT_LE(ended.status, kFound) << ended.err;
  EXPECT_NE(ended.out, "");
  EXPECT_EQ(folder.names(), "good.json r.json r.md r.sarif r.xml");
  EXPECT_NE(tests::read_text(folder.path("r.json")).find("ddpdoctor.report/1"), std::string::npos);
}

TEST(Output, ASymbolicLinkStaysOne) {
  const TempDir folder;
  const std::string capture = folder.write("good.json", kCapture);
  std::filesystem::create_symlink(folder.path("real.json"), folder.path("link.json"));
  EXPECT_LE(ddpdoctor({"report", capture, "-o", folder.path("link.json")}).status, kFound);
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link.json")));
  EXPECT_NE(tests::read_text(folder.path("real.json")), "");
}

TEST(Output, JsonOnStdoutIsTheReport) {
  const TempDir folder;
  const std::string capture = folder.write("good.json", kCapture);
  EXPECT_TRUE(ddpdoctor({"report", capture, "--format", "json"})
                  .out.starts_with("{\n \"schema\": \"ddpdoctor.report/1\""));
}

TEST(Report, FilesThatHoldNothingAreNamed) {
  const TempDir folder;
  const std::string path = folder.path("x");
  expect_refusal(ddpdoctor({"report"}), kUsage, "no file");
  expect_refusal(ddpdoctor({"report", path}), kNotObserved, path);
  expect_refusal(ddpdoctor({"report", folder.write("empty.json", "")}), kNotObserved, "empty.json");
  expect_refusal(ddpdoctor({"report", folder.write("noise.ddpd", "\x01\x02 noise")}), kNotObserved,
                 "noise.ddpd");
  expect_refusal(
      ddpdoctor({"report", folder.write("cut.json", R"({"schema":"ddpdoctor.capture/1","job":{)")}),
      kNotObserved, "cut.json");
  expect_refusal(ddpdoctor({"report", folder.write("other.json", R"({"schema":"somebody/9"})")}),
                 kNotObserved, "other.json");
  expect_refusal(ddpdoctor({"report", folder.write("d/rank_0", "\x80\x02}q.")}), kNotObserved,
                 "rank_0");
  folder.write("text/readme.txt", "hello");
  expect_refusal(ddpdoctor({"report", folder.path("text")}), kNotObserved,
                 "its only file is not recognized");
  expect_refusal(ddpdoctor({"report", "/dev/null"}), kNotObserved, "/dev/null");
}

TEST(Report, ABadFileAmongGoodOnesIsAWarning) {
  const TempDir folder;
  folder.write("good.json", kCapture);
  folder.write("bad.json", "{");
  const Ended ended =
      ddpdoctor({"report", folder.path("good.json"), folder.path("bad.json"), "--format", "json"});
  EXPECT_LE(ended.status, kFound) << ended.err;
  EXPECT_NE(ended.out.find("bad.json"), std::string::npos) << ended.out;
  EXPECT_NE(ddpdoctor({"report", folder.path("")}).out.find("bad.json"), std::string::npos);
}

TEST(Report, AFolderIsReadByContentAndItsFoldersToo) {
  const TempDir folder;
  folder.write("a/b/capture.txt", kCapture);
  folder.write("a/readme", "hello");
  const Ended ended = ddpdoctor({"report", folder.path("a"), "--format", "json"});
  EXPECT_LE(ended.status, kFound) << ended.err;
  EXPECT_NE(ended.out.find("unrecognized and skipped: " + folder.path("a/readme")),
            std::string::npos)
      << ended.out;
}

TEST(Report, OfAFolderEightAreLookedIntoAndTheNextIsNamed) {
  const TempDir folder;
  folder.write("d/1/2/3/4/5/6/7/8/capture.json", kCapture);
  folder.write("d/1/2/3/4/5/6/7/8/9/capture.json", kCapture);
  const Ended ended = ddpdoctor({"report", folder.path("d"), "--format", "json"});
  EXPECT_LE(ended.status, kFound) << ended.err;
  EXPECT_NE(ended.out.find("nested too deep and not read: " + folder.path("d/1/2/3/4/5/6/7/8/9")),
            std::string::npos)
      << ended.out;
  folder.write("e/1/2/3/4/5/6/7/8/9/capture.json", kCapture);
  expect_refusal(ddpdoctor({"report", folder.path("e")}), kNotObserved, "6/7/8/9");
}

TEST(Report, AnEmptyFileOfAFolderIsNotOneThatWasNotUnderstood) {
  const TempDir folder;
  folder.write("a/attempt_0/0/stderr.log", "[rank0]: Traceback (most recent call last):\n");
  folder.write("a/attempt_0/1/stderr.log", "");
  const Ended ended = ddpdoctor({"report", folder.path("a"), "--format", "json"});
  EXPECT_EQ(ended.out.find("not understood"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("empty files: " + folder.path("a/attempt_0/1/stderr.log")),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find("the log " + folder.path("a/attempt_0/0/stderr.log")), std::string::npos)
      << ended.out;
  folder.write("b/stderr.log", "");
  expect_refusal(ddpdoctor({"report", folder.path("b")}), kNotObserved, "its only file is empty");
}

TEST(Report, ALongOutputIsKnownByItsEnd) {
  const TempDir folder;
  std::string steps;
  for (int i = 0; i < 2000; ++i) {
    steps += "epoch 1 step 7 loss 2.7\n";
  }
  const std::string error =
      "Traceback (most recent call last):\n  File \"/srv/train.py\", line 3, in f\nKeyError: 3\n";
  const Ended ended = ddpdoctor({"report", folder.write("output.txt", steps + error)});
  EXPECT_EQ(ended.status, kFound) << ended.err;
  EXPECT_NE(ended.out.find("train.py:3"), std::string::npos) << ended.out;
  expect_refusal(ddpdoctor({"report", folder.write("steps.txt", steps)}), kNotObserved,
                 "steps.txt");
}

TEST(Report, AProgramIsNoOutputOfOne) {
  const TempDir folder;
  const std::string script = folder.write(
      "a/train.py", "# RuntimeError: Cannot re-initialize CUDA in forked subprocess\n");
  folder.write("a/run", "#!/bin/bash\n# RuntimeError: Too many open files\n");
  folder.write("a/notes.md", "RuntimeError: Too many open files\n");
  expect_refusal(ddpdoctor({"report", script}), kNotObserved, "is a program");
  expect_refusal(ddpdoctor({"report", folder.path("a")}), kNotObserved, "no usable files in");
  EXPECT_LE(ddpdoctor({"report", "--log", script}).status, kFound);
  EXPECT_LE(ddpdoctor({"report", folder.path("a/notes.md")}).status, kFound);
}

TEST(Report, RenderingsOfOursAreNoEvidence) {
  const TempDir folder;
  folder.write("capture.json", kCapture);
  folder.write("report.json", R"({"schema":"ddpdoctor.report/1"})");
  folder.write("report.html", "<title>ddpdoctor</title>");
  const Ended ended = ddpdoctor({"report", folder.path(""), "--format", "json"});
  EXPECT_LE(ended.status, kFound) << ended.err;
  EXPECT_EQ(ended.out.find("report.html"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("report.json"), std::string::npos) << ended.out;
}

}  // namespace
}  // namespace ddpdoctor::cli
