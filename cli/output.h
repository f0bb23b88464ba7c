// SPDX-License-Identifier: Apache-2.0
// Where a diagnosis is written: stdout for the person, files for the rest. The same for every
// command with a diagnosis.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/renderings.h"
#include "collector/diagnosis/diagnosis.h"

namespace CLI {
class App;
}

namespace ddpdoctor::cli {

/// -o, --format, --native, --all as typed.
struct OutputOptions {
  std::vector<std::string> files;
  std::string format = "text";
  bool native = false;
  bool all = false;
};

void declare_output(CLI::App& app, OutputOptions& options);

/// The checked destinations of the result; created before anything is observed, so that a wrong
/// option costs nothing.
class Output {
 public:
  static base::Result<Output> create(const OutputOptions& options);

  /// Writes everything, stdout first; returns the exit status of the command.
  [[nodiscard]] int present(const diagnosis::Diagnosis& diagnosis) const;

 private:
  struct Target {
    std::string path;
    const Rendering* rendering = nullptr;
  };

  static base::Result<void> write(const Target& target, const diagnosis::Diagnosis& diagnosis,
                                  std::string_view current_folder);

  OutputOptions options_;
  const Rendering* on_stdout_ = nullptr;  // null = text
  std::vector<Target> targets_;
};

/// Writes everything to stdout; false if that failed for another reason than a closed reader.
bool print(std::string_view text);

}  // namespace ddpdoctor::cli
