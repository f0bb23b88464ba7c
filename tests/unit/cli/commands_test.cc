// SPDX-License-Identifier: Apache-2.0
// check, clean, watch, help and mistyped commands, as a user types them.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::cli {
namespace {

using tests::ddpdoctor;
using tests::Ended;

void expect_usage(const Ended& ended, std::string_view part) {
  EXPECT_EQ(ended.status, kUsage) << ended.out;
  EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
}

TEST(CheckCommand, RefusesWordsItDoesNotKnow) {
  expect_usage(ddpdoctor({"check", "--workers", "many"}), "many");
  expect_usage(ddpdoctor({"check", "--batch-bytes", "3Q"}), "3Q");
  expect_usage(ddpdoctor({"check", "--batch-bytes", "-1"}), "-1");
  expect_usage(ddpdoctor({"check", "--format", "xml"}), "xml");
}

TEST(CheckCommand, AScriptThatIsNotThereBreaksTheJob) {
  const Ended ended =
      ddpdoctor({"check", "--format", "json", "--", "torchrun", "--nproc_per_node=2", "/no/t.py"});
  EXPECT_EQ(ended.status, kFound) << ended.out << ended.err;
  EXPECT_TRUE(ended.out.starts_with("{\n \"schema\": \"ddpdoctor.check/1\"")) << ended.out;
  EXPECT_NE(ended.out.find("/no/t.py"), std::string::npos);
  EXPECT_NE(ended.out.find("\"will_break\": true"), std::string::npos);
}

TEST(CheckCommand, EndsWithACountOfWhatItSaid) {
  const Ended ended = ddpdoctor({"check"});
  EXPECT_LE(ended.status, kFound);
  EXPECT_NE(ended.out.find(" error"), std::string::npos) << ended.out;
}

TEST(CleanCommand, WithoutATerminalAndWithoutYesOnlyLists) {
  expect_usage(ddpdoctor({"clean", "--older-than", "-1"}), "-1");
  expect_usage(ddpdoctor({"clean", "--format", "xml"}), "xml");
  const std::string path = fmt::format("/dev/shm/torch_999999999_{}_0", ::getpid());
  std::ofstream(path) << "x";
  const Ended listed = ddpdoctor({"clean", "--older-than", "0", "--format", "json"});
  EXPECT_EQ(listed.status, kFound) << listed.out;
  EXPECT_NE(listed.out.find(path), std::string::npos) << listed.out;
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove(path);
}

TEST(WatchCommand, SaysWhyItCannot) {
  expect_usage(ddpdoctor({"watch", "abc"}), "abc");
  expect_usage(ddpdoctor({"watch", "--interval", "0"}), "--interval");
  expect_usage(ddpdoctor({"watch", "1", "--spool", "x"}), "--spool");
  const Ended nobody = ddpdoctor({"watch", "999999999", "--once"});
  EXPECT_EQ(nobody.status, kNotObserved);
  EXPECT_NE(nobody.err.find("999999999"), std::string::npos) << nobody.err;
  const tests::TempDir folder;
  EXPECT_EQ(ddpdoctor({"watch", "--spool", folder.path("")}).status, kNotObserved);
}

TEST(WatchCommand, OnceIsOneLookAsText) {
  const Ended once = ddpdoctor({"watch", std::to_string(::getpid()), "--once"});
  EXPECT_EQ(once.status, kNothingFound) << once.err;
  EXPECT_TRUE(once.out.starts_with("ddpdoctor watch")) << once.out;
  EXPECT_EQ(once.out.find('\x1b'), std::string::npos);
}

TEST(Help, HasExamplesAndExitStatusesOfEachCommand) {
  for (const Command& command : commands()) {
    const Ended asked = ddpdoctor({std::string(command.name), "--help"});
    EXPECT_EQ(asked.status, kNothingFound) << command.name;
    EXPECT_NE(asked.out.find("\nExamples:\n  "), std::string::npos) << asked.out;
    EXPECT_NE(asked.out.find("\nExit status: "), std::string::npos) << asked.out;
    EXPECT_EQ(ddpdoctor({"help", std::string(command.name)}).out, asked.out);
  }
  EXPECT_EQ(ddpdoctor({"help"}).out, ddpdoctor({"--help"}).out);
  EXPECT_EQ(ddpdoctor({"-V"}).out, ddpdoctor({"--version"}).out);
  EXPECT_EQ(ddpdoctor({"version"}).out, ddpdoctor({"--version"}).out);
}

TEST(Usage, NamesTheWordThatWasMeant) {
  expect_usage(ddpdoctor({"atach", "1"}), "did you mean attach?");
  expect_usage(ddpdoctor({"attach", "1", "--sample=3"}), "did you mean --samples?");
  expect_usage(ddpdoctor({"zzzzzz"}), "unknown command zzzzzz\n  commands: attach");
}

TEST(Usage, ABarePidIsAttached) {
  const Ended ended = ddpdoctor({"999999999"});
  EXPECT_EQ(ended.status, kNotObserved);
  EXPECT_EQ(ended.err, ddpdoctor({"attach", "999999999"}).err);
}

TEST(ShellWords, HaveEveryCommandAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = ddpdoctor({"completion", shell}).out;
    for (const std::string_view part : {"attach", "samples", "unused-parameters"}) {
      EXPECT_NE(script.find(part), std::string::npos) << shell << " " << part;
    }
  }
  expect_usage(ddpdoctor({"completion", "tcsh"}), "tcsh");
  expect_usage(ddpdoctor({"completion"}), "no shell");
}

TEST(ManPages, AreOfTheProgramAndOfACommand) {
  EXPECT_NE(ddpdoctor({"man"}).out.find("ddpdoctor\\-attach"), std::string::npos);
  const std::string page = ddpdoctor({"man", "attach"}).out;
  EXPECT_TRUE(page.starts_with(".TH DDPDOCTOR\\-ATTACH 1")) << page;
  EXPECT_NE(page.find("\\-\\-samples"), std::string::npos) << page;
  EXPECT_NE(page.find(".SH EXIT STATUS"), std::string::npos) << page;
  expect_usage(ddpdoctor({"man", "nothing"}), "nothing");
}

}  // namespace
}  // namespace ddpdoctor::cli
