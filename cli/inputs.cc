// SPDX-License-Identifier: Apache-2.0
// Finds files, sorts them by format, reads and merges them. All input is untrusted.
#include "cli/inputs.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/input_file.h"
#include "cli/input_folder.h"
#include "cli/input_formats.h"
#include "cli/packed_file.h"
#include "cli/piped_input.h"
#include "cli/unpacked_inputs.h"
#include "collector/imports/logs/odd_bytes.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/merge.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/dump_sources.h"
#include "collector/model/building/backends.h"
#include "collector/model/building/build_model.h"
#include "collector/model/building/languages.h"
#include "collector/monitor/spool_job.h"

namespace ddpdoctor::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNamed = 5;  // files of one kind named in a warning
constexpr std::string_view kListOfFormats = "what report reads: ddpdoctor help report";

/// The given files by format.
struct Sorted {
  std::vector<std::string> spools;
  std::map<const InputFormat*, std::vector<std::string>> files;
  std::vector<base::Error> failures;
  // Only files found in folders: the user did not name them as evidence.
  std::vector<std::string> unknown;
  std::vector<std::string> empty;
  std::vector<std::string> too_deep;  // folders
  std::vector<std::string> cut;       // folders that were read in part
  std::vector<std::string> packed;
  std::vector<std::string> texts;  // named like the output of a program, but without a known line
  UnpackedInputs* archives = nullptr;

  /// Everything but the unknown files.
  [[nodiscard]] std::size_t count() const {
    std::size_t sum = spools.size() + failures.size();
    for (const auto& [format, paths] : files) {
      sum += paths.size();
    }
    return sum;
  }
};

/// Our own rendering next to the recording it was made from: not evidence.
bool is_own_rendering(std::string_view head, std::string_view path) {
  return base::file_name(path).starts_with("report.") &&
         head.find("ddpdoctor") != std::string_view::npos;
}

/// "a, b and 7 more"
std::string some_of(const std::vector<std::string>& paths) {
  std::string names;
  for (std::size_t i = 0; i < std::min(paths.size(), kMostNamed); ++i) {
    names += (i == 0 ? "" : ", ") + paths[i];
  }
  return paths.size() > kMostNamed ? fmt::format("{} and {} more", names, paths.size() - kMostNamed)
                                   : names;
}

base::Error unrecognized(const std::string& path) {
  return {.what = fmt::format("unrecognized file: {}", path),
          .hint = fmt::format("to read it as output of the job: ddpdoctor report --log {}; {}",
                              path, kListOfFormats)};
}

void sort_folder(const std::string& folder, Sorted& out);

/// Sorts its content like that of a folder.
void sort_archive(const std::string& path, Sorted& out) {
  const auto folder = out.archives->folder_for(path);
  if (folder) {
    sort_folder(*folder, out);
  } else {
    out.failures.push_back(folder.error());
  }
}

// NOLINTNEXTLINE(misc-no-recursion): archives within archives, three at most
void sort_file(const std::string& path, bool from_folder, Sorted& out) {
  auto head = read_head(path);
  if (!head) {
    out.failures.push_back(head.error());
    return;
  }
  head = imports::from_utf16(*head).value_or(*head);  // read_head() decodes it only with a mark
  if (from_folder && is_own_rendering(*head, path)) {
    return;
  }
  if (const auto archive = packed(*head)) {
    if (can_unpack()) {
      sort_archive(path, out);
    } else if (from_folder) {
      out.packed.push_back(path);
    } else {
      out.failures.push_back(
          {.what = fmt::format("{} is packed ({}) and cannot be read", path, archive->how),
           .hint = fmt::format("unpack it first: {} {}", archive->unpack, path)});
    }
    return;
  }
  const bool program = is_named_like_program(path) || head->starts_with("#!");
  const InputFormat* format = program ? nullptr : format_of(*head, path);
  if (format == nullptr && !program && !from_folder) {
    format = plain_log(*head, path);
  }
  if (format != nullptr) {
    out.files[format].push_back(path);
  } else if (from_folder) {
    (head->empty() ? out.empty : out.unknown).push_back(path);
  } else if (head->empty()) {
    out.failures.push_back(
        {.what = fmt::format("{} is empty", path), .hint = "was it written to the end?"});
  } else if (program) {
    out.failures.push_back({.what = fmt::format("{} is a program, not the output of one", path),
                            .hint = "--log FILE reads it as output all the same"});
  } else if (may_be_output(*head, path)) {
    out.texts.push_back(path);
  } else {
    out.failures.push_back(unrecognized(path));
  }
}

std::string too_deep(const std::vector<std::string>& folders) {
  return "nested too deep and not read: " + some_of(folders);
}

std::string nothing_in(const std::string& folder, const FolderContents& contents,
                       std::size_t empty) {
  const std::size_t files = contents.files.size();
  std::string what =
      files == 0 ? fmt::format("no usable files in {}", folder)
      : files == empty
          ? fmt::format("no usable files in {}: {}", folder,
                        files == 1 ? "its only file is empty"
                                   : fmt::format("all {} files are empty", files))
          : fmt::format("no usable files in {}: {}", folder,
                        files == 1 ? "its only file is not recognized"
                                   : fmt::format("none of {} files is recognized", files));
  return contents.too_deep.empty() ? what : what + "; " + too_deep(contents.too_deep);
}

/// Hosts that share a spool folder have subfolders in it, except one.
void add_spools_of_other_hosts(const std::string& folder, Sorted& out) {
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::end(entry);
       entry.increment(error)) {
    const std::string path = entry->path().string();
    std::error_code unreadable;
    if (entry->is_directory(unreadable) && !entry->is_symlink(unreadable) &&
        monitor::holds_rings(path)) {
      others.push_back(path);
    }
  }
  std::sort(others.begin(), others.end());
  out.spools.insert(out.spools.end(), others.begin(), others.end());
}

void sort_folder(const std::string& folder, Sorted& out) {
  if (monitor::holds_rings(folder)) {
    out.spools.push_back(folder);
    add_spools_of_other_hosts(folder, out);
    return;
  }
  const std::size_t useful = out.count();
  const std::size_t empty = out.empty.size();
  auto contents = contents_of(folder);
  if (!contents) {
    out.failures.push_back(contents.error());
    return;
  }
  out.spools.insert(out.spools.end(), contents->spools.begin(), contents->spools.end());
  for (const std::string& file : contents->files) {
    sort_file(file, true, out);
  }
  if (out.count() == useful && !out.packed.empty()) {
    out.failures.push_back({.what = fmt::format("{} contains packed files, for example {}", folder,
                                                out.packed.front()),
                            .hint = "unpack them first"});
    return;
  }
  if (out.count() == useful) {
    out.failures.push_back({.what = nothing_in(folder, *contents, out.empty.size() - empty),
                            .hint = std::string(kListOfFormats)});
    return;
  }
  out.too_deep.insert(out.too_deep.end(), contents->too_deep.begin(), contents->too_deep.end());
  if (contents->cut) {
    out.cut.push_back(folder);
  }
}

/// What was read so far, and what failed.
struct Reading {
  std::optional<model::JobModel> job;
  std::vector<base::Error> failures;

  void take(base::Result<model::JobModel> read) {
    if (!read) {
      failures.push_back(std::move(read.error()));
    } else if (job) {
      imports::merge(*job, std::move(*read));
    } else {
      job = std::move(*read);
    }
  }
};

base::Result<model::JobModel> read_one(const InputFormat& format, const std::string& path) {
  const std::string bytes = TRY(read_file(path));
  return format.read(bytes, path);
}

base::Result<model::JobModel> read_log(const std::string& path) {
  const std::string bytes = TRY(read_file(path));
  return imports::read_text(bytes, path);
}

/// In the order of the table, so that the same files give the same job whatever their order.
void read_sorted(const Sorted& sorted, Reading& reading) {
  for (const std::string& spool : sorted.spools) {
    reading.take(monitor::job_of_spool(spool));
  }
  for (const InputFormat& format : input_formats()) {
    const auto files = sorted.files.find(&format);
    if (files == sorted.files.end()) {
      continue;
    }
    if (format.read_all != nullptr) {
      reading.take(format.read_all(files->second, reading.failures));
      continue;
    }
    for (const std::string& path : files->second) {
      reading.take(read_one(format, path));
    }
  }
}

/// Where the job's sources may be: the folders of its dumps, their parents, the current folder.
std::vector<std::string> source_folders(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  const auto add = [&out](const fs::path& folder) {
    std::string name = folder.empty() ? std::string(".") : folder.string();
    if (std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(std::move(name));
    }
  };
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path whole = fs::absolute(path, error).lexically_normal();
    const fs::path folder = fs::is_directory(whole, error) ? whole / "" : whole;
    add(folder.parent_path());
    add(folder.parent_path().parent_path());
  }
  add(".");
  return out;
}

/// An empty file of a rank shows that the rank wrote nothing.
void take_empty(const Sorted& sorted, Reading& reading) {
  for (const std::string& path : sorted.empty) {
    if (auto job = imports::read_empty_log(path)) {
      reading.take(std::move(*job));
    }
  }
}

/// Adds the given files that were not used, and the reasons.
void tell_what_is_left_out(const Sorted& sorted, const Reading& reading,
                           model::Coverage& coverage) {
  for (const base::Error& failure : reading.failures) {
    coverage.warnings.push_back(failure.what);
  }
  if (!sorted.unknown.empty()) {
    coverage.warnings.push_back("unrecognized and skipped: " + some_of(sorted.unknown));
  }
  if (!sorted.packed.empty()) {
    coverage.warnings.push_back("packed and skipped (unpack them first): " +
                                some_of(sorted.packed));
  }
  if (!sorted.too_deep.empty()) {
    coverage.warnings.push_back(too_deep(sorted.too_deep));
  }
  for (const std::string& folder : sorted.cut) {
    coverage.warnings.push_back(
        fmt::format("{} contains too much: only a part of it was read", folder));
  }
  if (!sorted.empty.empty()) {
    coverage.observed.push_back("empty files: " + some_of(sorted.empty));
  }
}

base::Result<model::JobModel> read_files(const std::vector<std::string>& paths,
                                         const std::vector<std::string>& logs,
                                         UnpackedInputs& archives) {
  Sorted sorted;
  sorted.archives = &archives;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      sort_folder(path, sorted);
    } else {
      sort_file(path, false, sorted);
    }
  }
  Reading reading;
  reading.failures = std::move(sorted.failures);
  read_sorted(sorted, reading);
  for (const std::string& path : sorted.texts) {  // the log of a job that other files show
    reading.take(reading.job ? read_log(path) : tl::make_unexpected(unrecognized(path)));
  }
  for (const std::string& path : logs) {
    reading.take(read_log(path));
  }
  if (reading.job) {
    take_empty(sorted, reading);
  } else {
    base::Error first = reading.failures.empty()
                            ? base::Error{.what = "no file was recognized", .hint = {}}
                            : reading.failures.front();
    if (reading.failures.size() > 1) {
      first.what += fmt::format(" (and {} more that cannot be used)", reading.failures.size() - 1);
    }
    return tl::make_unexpected(std::move(first));
  }
  if (imports::settle_dumps(*reading.job)) {
    imports::find_short_sources(*reading.job, source_folders(paths));
    model::load_local_sources(*reading.job);
    imports::infer_waits(*reading.job);
  }
  model::mark_languages(*reading.job);
  model::mark_backends(*reading.job);
  tell_what_is_left_out(sorted, reading, reading.job->coverage);
  return std::move(*reading.job);
}

base::Result<std::vector<std::string>> unpiped(const std::vector<std::string>& paths,
                                               PipedInputs& piped) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    files.push_back(TRY(piped.file_for(path)));
  }
  return files;
}
}  // namespace

base::Result<model::JobModel> read_inputs(const std::vector<std::string>& paths,
                                          const std::vector<std::string>& logs,
                                          const std::vector<FetchedInput>& fetched) {
  PipedInputs piped;
  auto files = TRY(unpiped(paths, piped));
  for (const FetchedInput& one : fetched) {
    files.push_back(TRY(piped.file_with(one.bytes, one.name)));
  }
  UnpackedInputs archives;
  auto job = read_files(files, TRY(unpiped(logs, piped)), archives);
  const auto as_given = [&](std::string sentence) {
    return piped.as_given(archives.as_given(std::move(sentence)));
  };
  if (!job) {
    return tl::make_unexpected(
        base::Error{.what = as_given(job.error().what), .hint = as_given(job.error().hint)});
  }
  for (auto* sentences :
       {&job->coverage.observed, &job->coverage.unobserved, &job->coverage.warnings}) {
    for (std::string& sentence : *sentences) {
      sentence = as_given(std::move(sentence));
    }
  }
  return job;
}

}  // namespace ddpdoctor::cli
