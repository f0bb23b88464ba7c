// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/exit_codes.h"
#include "cli/file_writer.h"
#include "cli/folder_writer.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "viewer/render.h"

namespace ddpdoctor::cli {

namespace {

viewer::TextOptions text_options(const OutputOptions& options) {
  return {.colour = colour_wanted(),
          .native = options.native,
          .all_findings = options.all,
          .width = text_width()};
}

base::Result<void> write_folder(const std::string& path, const Rendering& rendering,
                                const diagnosis::Diagnosis& diagnosis) {
  const Folder folder = TRY(rendering.render_folder(diagnosis));
  if (auto written = write_whole_folder(path, folder); !written) {
    return tl::make_unexpected(written.error());
  }
  for (const std::string& note : folder.notes) {
    print_error({.what = fmt::format("-o {}: {}", path, note), .hint = {}});
  }
  return {};
}

}  // namespace

void declare_output(CLI::App& app, OutputOptions& options) {
  app.add_option(
         "-o,--output", options.files,
         "also write FILE, repeatable; its extension chooses the format: .json .html .ddpd .md "
         ".sarif .xml .dot .perfetto.json .fr (a folder of flight-recorder dumps)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--format", options.format, "what stdout gets: text, json, markdown, github")
      ->type_name("FORMAT");
  app.add_flag("--native", options.native, "also print every frame of every thread");
  app.add_flag("--all", options.all, "all findings, all evidence, all branches");
}

base::Result<Output> Output::create(const OutputOptions& options) {
  Output output;
  output.options_ = options;
  output.on_stdout_ = TRY(rendering_of_format(options.format));
  for (const std::string& path : options.files) {
    output.targets_.push_back({.path = path, .rendering = TRY(rendering_of_file(path))});
  }
  for (const Target& target : output.targets_) {
    const bool folder = target.rendering->render_folder != nullptr;
    if (const auto writable =
            folder ? check_writable_folder(target.path) : check_writable(target.path);
        !writable) {
      return tl::make_unexpected(writable.error());
    }
  }
  return output;
}

int Output::present(const diagnosis::Diagnosis& diagnosis) const {
  int status = diagnosis.findings.empty() ? kNothingFound : kFound;
  std::error_code no_folder;
  const std::string folder = std::filesystem::current_path(no_folder).string();
  const std::string shown = on_stdout_ == nullptr ? viewer::text(diagnosis, text_options(options_))
                                                  : on_stdout_->render(diagnosis, folder);
  if (!print(shown)) {
    status = kNotObserved;
  }
  for (const Target& target : targets_) {
    if (const auto written = write(target, diagnosis, folder); !written) {
      print_error(written.error());
      status = kNotObserved;
    }
  }
  return status;
}

base::Result<void> Output::write(const Target& target, const diagnosis::Diagnosis& diagnosis,
                                 std::string_view current_folder) {
  return target.rendering->render_folder != nullptr
             ? write_folder(target.path, *target.rendering, diagnosis)
             : write_whole(target.path, target.rendering->render(diagnosis, current_folder));
}

bool print(std::string_view text) {
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (whole || errno == EPIPE) {
    return true;
  }
  print_error({.what = fmt::format("stdout cannot be written: {}", std::strerror(errno)),
               .hint = {}});  // NOLINT(concurrency-mt-unsafe)
  return false;
}

}  // namespace ddpdoctor::cli
