// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/framework_paths.h"

#include <algorithm>
#include <set>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/model/call_frames.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;

struct AllSources {
  model::JobModel job;  // nothing but sources
};

/// The lines of the loops of its function around a line.
std::set<int> lines_of_loops(const program::SourceText& lines, int line) {
  std::set<int> out;
  for (const program::Block& block : program::enclosing(lines, line)) {
    if (is_loop(block)) {
      out.insert(block.line);
    }
  }
  return out;
}

}  // namespace

const model::JobModel& with_frameworks(const Examination& examination) {
  return examination.memo
      .once<AllSources>([&examination] {
        AllSources all;
        all.job.sources = examination.job.sources;
        all.job.sources.insert(examination.job.framework_sources.begin(),
                               examination.job.framework_sources.end());
        return all;
      })
      .job;
}

Path whole_path(const model::JobModel& job, const Side& side) {
  Path out;
  if (side.standing == nullptr || side.standing->thread == nullptr) {
    return side.call == nullptr
               ? out
               : model::frames_of_call(job, side.call->rank, side.call->group, side.call->sequence);
  }
  for (const model::Frame& frame : side.standing->thread->frames) {
    if (frame.language == model::Language::kPython &&
        (model::is_user_file(frame.file) || model::is_framework_file(frame.file))) {
      out.push_back(model::call_site(frame));
    }
  }
  return out;
}

std::optional<bool> is_in_another_loop(const Examination& examination, const Side& in,
                                       const Side& out) {
  const auto fork = fork_of(whole_path(examination.job, in), whole_path(examination.job, out));
  if (!fork) {
    return std::nullopt;
  }
  const model::JobModel& job = with_frameworks(examination);
  const program::SourceText& lines = lines_of(job, fork->ours.file);
  const auto theirs = lines_of_loops(lines, fork->theirs.line);
  bool known = !lines.empty();
  for (const int loop : lines_of_loops(lines, fork->ours.line)) {
    if (!theirs.contains(loop)) {
      return true;
    }
  }
  for (const model::CallSite& site : fork->below_ours) {
    const program::SourceText& source = lines_of(job, site.file);
    if (!source.empty() && !lines_of_loops(source, site.line).empty()) {
      return true;
    }
    known = known && !source.empty();
  }
  return known ? std::optional(false) : std::nullopt;
}

bool is_behind_loop_of_framework(const Examination& examination, const Side& in, const Side& out) {
  const auto fork = fork_of(whole_path(examination.job, in), whole_path(examination.job, out));
  return fork && model::is_framework_file(fork->ours.file) && fork->theirs.line > fork->ours.line &&
         is_in_another_loop(examination, in, out) == true;
}

}  // namespace ddpdoctor::detectors
