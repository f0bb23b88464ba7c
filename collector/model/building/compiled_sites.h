// SPDX-License-Identifier: Apache-2.0
// Places in compiled code as an agent records them: a file, and "+0xADDRESS" in it. Function and
// line are read from the file, once each.
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
  /// The user's frames among these, Python's and compiled ones.
  std::vector<CallSite> user_sites(const std::vector<sources::RecordedFrame>& stack);

 private:
  CallSite look_up(const sources::RecordedFrame& frame);

  stacks::SourceLines lines_;
  std::map<std::pair<std::string, std::string>, CallSite> places_;
};

}  // namespace ddpdoctor::model
