// SPDX-License-Identifier: Apache-2.0
// One page that needs nothing else: it contains style, script and report.
#include <string>
#include <string_view>

#include "viewer/formats/html_data.h"
#include "viewer/page/page.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

/// Removes every "<", so that the text cannot end the script element or begin a comment. JSON has
/// "<" only in strings, where the escape means the same.
std::string inside_script(std::string_view json_text) {
  std::string out;
  out.reserve(json_text.size() + json_text.size() / 16);
  for (const char c : json_text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

/// Appends `page` up to `marker` and skips the marker.
void append_until(std::string_view& page, std::string_view marker, std::string& out) {
  const std::size_t at = page.find(marker);
  out.append(page.substr(0, at));
  page.remove_prefix(at == std::string_view::npos ? page.size() : at + marker.size());
}

}  // namespace

std::string html(const diagnosis::Diagnosis& diagnosis) {
  std::string_view page = kPage;
  std::string out;
  append_until(page, "@@STYLE@@", out);
  out.append(kPageStyle);
  append_until(page, "@@DATA@@", out);
  out += inside_script(html_data(diagnosis));
  append_until(page, "@@SCRIPT@@", out);
  for (const std::string_view script :
       {kPageElements, kPageFindings, kPageWaits, kPageStacks, kPageTimeline, kPageTimelineView,
        kPageGroups, kPageProcesses, kPageExports, kPageScript}) {
    out.append(script);
  }
  out.append(page);
  return out;
}

}  // namespace ddpdoctor::viewer
