// SPDX-License-Identifier: Apache-2.0
#include "viewer/place.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace ddpdoctor::viewer {

namespace {

// RFC 3986, unreserved characters and what a path may hold besides.
bool is_plain_in_path(char character) {
  constexpr std::string_view kAlso = "-._~/!$&'()*+,;=@";
  return std::isalnum(static_cast<unsigned char>(character)) != 0 ||
         kAlso.find(character) != std::string_view::npos;
}

}  // namespace

MainPlace main_place(const detectors::Finding& finding) {
  for (const detectors::Location& location : finding.locations) {
    if (!location.file.empty()) {
      return {.file = location.file, .line = std::max(location.line, 0)};
    }
  }
  return {};
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
