// SPDX-License-Identifier: Apache-2.0
// Call sites in compiled code as an agent records them: a file and "+0xADDRESS" in it. Function and
// line are read from the file, once per site.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collector/model/collective.h"
#include "collector/sources/rings/reader.h"
#include "collector/stacks/native/source_lines.h"

namespace ddpdoctor::model {

class CompiledSites {
 public:
  /// The user's frames among these, both Python and compiled.
  std::vector<CallSite> user_sites(const std::vector<sources::RecordedFrame>& stack);

 private:
  CallSite look_up(const sources::RecordedFrame& frame);

  stacks::SourceLines lines_;
  std::map<std::pair<std::string, std::string>, CallSite> places_;
};

}  // namespace ddpdoctor::model
