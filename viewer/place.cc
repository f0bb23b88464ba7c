// SPDX-License-Identifier: Apache-2.0
#include "viewer/place.h"

#include <cctype>

#include <fmt/format.h>

#include "collector/model/questions.h"

namespace ddpdoctor::viewer {

namespace {

/// The first word of a command that is a script's name.
std::string script_of(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    if (word.ends_with(".py") && model::is_user_file(word)) {
      return word;
    }
  }
  return {};
}

std::string launched_script(const model::JobModel& job) {
  std::string script = script_of(job.command);
  if (const model::Observation* observation = model::latest(job);
      observation != nullptr && script.empty()) {
    for (const model::Process& process : observation->processes) {
      if (script.empty()) {
        script = script_of(process.command);
      }
    }
  }
  return script;
}

// RFC 3986, unreserved characters and what a path may hold besides.
bool is_plain_in_path(char character) {
  constexpr std::string_view kAlso = "-._~/!$&'()*+,;=@";
  return std::isalnum(static_cast<unsigned char>(character)) != 0 ||
         kAlso.find(character) != std::string_view::npos;
}

}  // namespace

MainPlace main_place(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding) {
  for (const detectors::Location& location : finding.locations) {
    if (!location.file.empty()) {
      return {.file = location.file, .line = location.line > 0 ? location.line : 1};
    }
  }
  return {.file = launched_script(diagnosis.job), .line = 1};
}

std::string_view relative_to(std::string_view path, std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) {
    folder.remove_suffix(1);
  }
  const bool below = folder.size() > 1 && path.starts_with(folder) &&
                     path.size() > folder.size() + 1 && path[folder.size()] == '/';
  return below ? path.substr(folder.size() + 1) : path;
}

std::string uri(std::string_view path, std::string_view folder) {
  const std::string_view shown = relative_to(path, folder);
  std::string out = shown.starts_with('/') ? "file://" : "";
  for (const char character : shown) {
    if (is_plain_in_path(character)) {
      out += character;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(character));
    }
  }
  return out;
}

}  // namespace ddpdoctor::viewer
