// SPDX-License-Identifier: Apache-2.0
// A file whose path a dump shortens is found if its lines match, and only then.
#include "collector/imports/stack_dumps/dump_sources.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kProgram = R"(import torch


class Trainer:
    def step(self, batch):
        for part in batch:
            self.model(
                part)

    async def evaluate(self):
        return 1


Trainer().step([])
)";

std::string file_of_user_frame(const std::string& frame, const std::vector<std::string>& folders,
                               const std::string& command = "python -u train.py") {
  auto job = read_text("Process 7: " + command +
                           "\nPython v3.11.7 (/usr/bin/python3)\n\nThread 7 (idle): "
                           "\"MainThread\"\n    " +
                           frame + "\n    <module> (train.py:14)\n",
                       "dump.txt");
  EXPECT_TRUE(job);
  settle_dumps(*job);
  find_short_sources(*job, folders);
  return job->observations.back().processes.front().threads.front().frames.front().file;
}

TEST(ShortSources, AFileWhoseFunctionsStandAtTheseLinesIsFound) {
  const tests::TempDir folder;
  const std::string path = folder.write("train.py", kProgram);
  EXPECT_EQ(file_of_user_frame("Trainer.step (train.py:7)", {folder.path(".")}), path);
  EXPECT_EQ(file_of_user_frame("Trainer.step (train.py:8)", {"/nowhere", folder.path(".")}), path);
  EXPECT_EQ(file_of_user_frame("evaluate (train.py:11)", {folder.path(".")}), path);
}

TEST(ShortSources, AFileOfOtherLinesIsAnotherProgram) {
  const tests::TempDir folder;
  folder.write("train.py", kProgram);
  EXPECT_EQ(file_of_user_frame("Trainer.step (train.py:11)", {folder.path(".")}), "train.py");
  EXPECT_EQ(file_of_user_frame("Trainer.step (train.py:99)", {folder.path(".")}), "train.py");
  EXPECT_EQ(file_of_user_frame("other (train.py:7)", {folder.path(".")}), "train.py");
}

TEST(ShortSources, LieBesideTheScriptOfTheCommandLine) {
  const tests::TempDir folder;
  const std::string path = folder.write("train.py", kProgram);
  EXPECT_EQ(file_of_user_frame("step (train.py:7)", {}, "python " + path), path);
}

TEST(ShortSources, LieBesideAScriptThatWasStartedFromTheFolderAbove) {
  const tests::TempDir folder;
  std::filesystem::create_directory(folder.path("jobs"));
  const std::string path = folder.write("jobs/train.py", kProgram);
  const std::vector<std::string> started_in{folder.path("")};
  EXPECT_EQ(file_of_user_frame("step (train.py:7)", started_in, "python -u jobs/train.py"), path);
  EXPECT_EQ(file_of_user_frame("step (train.py:7)", started_in, "python ../jobs/train.py"),
            "train.py");
}

TEST(ShortSources, AFileOfTheStandardLibraryGetsItsFolder) {
  EXPECT_EQ(file_of_user_frame("Pdb.interaction (pdb.py:433)", {}), "./lib/python3.11/pdb.py");
  EXPECT_EQ(file_of_user_frame("step (mine.py:7)", {}), "mine.py");
}

TEST(ShortSources, ANameThatLeadsOutOfTheFolderIsNotOpened) {
  const tests::TempDir folder;
  folder.write("train.py", kProgram);
  EXPECT_EQ(file_of_user_frame("step (sub/../train.py:7)", {folder.path(".")}), "sub/../train.py");
}

/// The files of a thread's frames, innermost first, after the packages were placed.
std::vector<std::string> files_placed(const std::string& frames) {
  auto job = read_text(
      "Process 7: python -m train\nPython v3.11.7 (/usr/bin/python3)\n\nThread 7 (idle): "
      "\"MainThread\"\n" +
          frames,
      "dump.txt");
  EXPECT_TRUE(job);
  settle_dumps(*job);
  find_short_sources(*job, {});
  std::vector<std::string> out;
  for (const auto& frame : job->observations.back().processes.front().threads.front().frames) {
    out.push_back(frame.file);
  }
  return out;
}

const std::string kProgramsPackage =
    "    step (llava/train/loop.py:4)\n    main (llava/train/train.py:9)\n"
    "    <module> (llava/train/train.py:20)\n";

TEST(CalledPackages, AreInstalledIfTheProgramIsAPackage) {
  EXPECT_EQ(files_placed("    run (flash/ops.py:3)\n" + kProgramsPackage).front(),
            "./lib/python3.11/site-packages/flash/ops.py");
}

TEST(CalledPackages, AreNoFilesWithoutAPackage) {
  for (const std::string file : {"helpers.py", "/srv/job/helpers.py", "<string>"}) {
    EXPECT_EQ(files_placed("    run (" + file + ":3)\n" + kProgramsPackage).front(), file);
  }
}

}  // namespace
}  // namespace ddpdoctor::imports
