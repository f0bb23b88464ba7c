// SPDX-License-Identifier: Apache-2.0
#include "cli/renderings.h"

#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/flight_recorder/write.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/recording/recording.h"
#include "viewer/render.h"

namespace ddpdoctor::cli {

namespace {

using diagnosis::Diagnosis;

base::Result<Folder> flight_recorder_folder(const Diagnosis& found) {
  imports::WrittenDumps dumps = TRY(imports::write_flight_recorder(found.job));
  Folder out{.files = {}, .time = dumps.seen, .notes = std::move(dumps.left_out)};
  for (imports::DumpFile& file : dumps.files) {
    out.files.emplace_back(std::move(file.name), std::move(file.bytes));
  }
  return out;
}

/// Values of variables leave the machine only if a finding reports them.
std::string recorded(const Diagnosis& found) {
  if (model::facts(found.job, model::kValueFact).empty()) {
    return recording::save(found.job);
  }
  model::Reported reported;
  for (const detectors::Finding& finding : found.findings) {
    for (const detectors::Location& location : finding.locations) {
      reported.lines.emplace_back(location.file, location.line);
    }
    for (const detectors::Evidence& evidence : finding.evidence) {
      reported.sentences.push_back(evidence.text);
    }
  }
  model::JobModel job = found.job;
  model::keep_reported_values(job.facts, reported);
  return recording::save(job);
}

constexpr std::array<Rendering, 10> kRenderings{{
    {.ending = ".json",
     .format = "json",
     .render = [](const Diagnosis& found, std::string_view) { return viewer::json(found); }},
    {.ending = ".md",
     .format = "markdown",
     .render = [](const Diagnosis& found, std::string_view) { return viewer::markdown(found); }},
    {.ending = ".sarif",
     .format = {},
     .render = [](const Diagnosis& found,
                  std::string_view folder) { return viewer::sarif(found, folder); }},
    {.ending = ".xml",
     .format = {},
     .render = [](const Diagnosis& found, std::string_view) { return viewer::junit(found); }},
    {.ending = {},
     .format = "github",
     .render = [](const Diagnosis& found,
                  std::string_view folder) { return viewer::github(found, folder); }},
    {.ending = ".html",
     .format = {},
     .render = [](const Diagnosis& found, std::string_view) { return viewer::html(found); }},
    {.ending = ".ddpd",
     .format = {},
     .render = [](const Diagnosis& found, std::string_view) { return recorded(found); }},
    {.ending = ".perfetto.json",
     .format = {},
     .render = [](const Diagnosis& found, std::string_view) { return viewer::trace(found); }},
    {.ending = ".dot",
     .format = {},
     .render = [](const Diagnosis& found, std::string_view) { return viewer::dot(found); }},
    {.ending = ".fr", .format = {}, .render_folder = flight_recorder_folder},
}};

/// The rendering with the longest ending that matches this name; null if none does.
const Rendering* rendering_that_ends(std::string_view name) {
  const Rendering* best = nullptr;
  for (const Rendering& rendering : kRenderings) {
    if (!rendering.ending.empty() && name.ends_with(rendering.ending) &&
        (best == nullptr || rendering.ending.size() > best->ending.size())) {
      best = &rendering;
    }
  }
  return best;
}

std::string endings_that_work() {
  std::string out;
  for (const Rendering& rendering : kRenderings) {
    if (!rendering.ending.empty()) {
      out += out.empty() ? "" : " ";
      out += rendering.ending;
    }
  }
  return out;
}

}  // namespace

base::Result<const Rendering*> rendering_of_file(std::string_view path) {
  const std::size_t comma = path.find(',');
  const std::string_view first = path.substr(0, comma);
  if (comma != std::string_view::npos && rendering_that_ends(first) != nullptr) {
    return base::failure(
        fmt::format("-o {} names several files", path),
        fmt::format("repeat the option: -o {} -o {}", first, base::trim(path.substr(comma + 1))));
  }
  const std::string_view name = path.substr(0, path.find_last_not_of('/') + 1);  // "dumps.fr/"
  const Rendering* best = rendering_that_ends(name);
  if (best == nullptr) {
    return base::failure(fmt::format("unknown output format: {}", path),
                         fmt::format("use one of: {}", endings_that_work()));
  }
  return best;
}

base::Result<const Rendering*> rendering_of_format(std::string_view format) {
  if (format == "text") {
    return nullptr;
  }
  for (const Rendering& rendering : kRenderings) {
    if (!rendering.format.empty() && rendering.format == format) {
      return &rendering;
    }
  }
  return base::failure(fmt::format("unknown format: {}", format),
                       "use text, json, markdown or github");
}

}  // namespace ddpdoctor::cli
