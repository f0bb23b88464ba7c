// SPDX-License-Identifier: Apache-2.0
// The remarks of one check about a machine that is described by a few files.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "collector/preflight/check.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::preflight {

/// A machine for one test: files in a folder that is removed afterwards.
class Machine {
 public:
  Machine() : folder_(std::make_unique<tests::TempDir>()) {
    setting.root = folder_->path("");
    while (setting.root.ends_with('/')) {
      setting.root.pop_back();
    }
  }
  Machine& file(const std::string& path, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(setting.root + path).parent_path());
    folder_->write(path.substr(1), text);
    return *this;
  }
  Machine& variable(const std::string& name, const std::string& value) {
    setting.environment[name] = value;
    return *this;
  }

  Setting setting;

 private:
  std::unique_ptr<tests::TempDir> folder_;
};

inline Remarks asked(std::string_view name, const Setting& setting) {
  const auto all = checks();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Check* one) { return one->name == name; });
  if (found == all.end()) {
    ADD_FAILURE() << "no check " << name;
    return {};
  }
  return (*found)->look(setting);
}

/// The worst level of the remarks; kOk without remarks.
inline Level worst(const Remarks& remarks) {
  Level level = Level::kOk;
  for (const Remark& remark : remarks) {
    level = std::max(level, remark.level);
  }
  return level;
}

inline std::string said(const Remarks& remarks) {
  std::string out;
  for (const Remark& remark : remarks) {
    out += std::string(level_name(remark.level)) + ": " + remark.what + " | " + remark.fix + "\n";
  }
  return out;
}

/// Every remark about a fault must have a fix.
inline void expect_fixes(const Remarks& remarks) {
  for (const Remark& remark : remarks) {
    EXPECT_TRUE(remark.level < Level::kWarning || !remark.fix.empty()) << remark.what;
  }
}

inline void expect(std::string_view name, const Setting& setting, Level level,
                   std::string_view part) {
  const Remarks remarks = asked(name, setting);
  EXPECT_EQ(worst(remarks), level) << said(remarks);
  EXPECT_NE(said(remarks).find(part), std::string::npos) << said(remarks);
  expect_fixes(remarks);
}

}  // namespace ddpdoctor::preflight
