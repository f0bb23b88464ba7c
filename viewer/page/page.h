// SPDX-License-Identifier: Apache-2.0
// The files of this folder, embedded by cmake/embed.cmake.
#pragma once

#include <string_view>

namespace ddpdoctor::viewer {

extern const std::string_view kPage;
extern const std::string_view kPageStyle;
extern const std::string_view kPageElements;
extern const std::string_view kPageFindings;
extern const std::string_view kPageWaits;
extern const std::string_view kPageStacks;
extern const std::string_view kPageTimeline;
extern const std::string_view kPageTimelineView;
extern const std::string_view kPageGroups;
extern const std::string_view kPageProcesses;
extern const std::string_view kPageExports;
extern const std::string_view kPageScript;

}  // namespace ddpdoctor::viewer
