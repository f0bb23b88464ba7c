// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "cli/shell/words.h"
#include "viewer/render.h"

namespace ddpdoctor::cli {
namespace {

/// roff interprets backslashes and leading dots; an unescaped "-" becomes a hyphen.
std::string roff(std::string_view text) {
  std::string out;
  bool at_begin = true;
  for (const char c : text) {
    if (at_begin && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    at_begin = c == '\n';
  }
  return out;
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string head(const std::string& title, const std::string& summary) {
  return fmt::format(".TH {} 1 \"\" \"ddpdoctor {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     roff(capitals(title)), viewer::tool_version(), roff(title), roff(summary));
}

std::string synopsis(const CommandWords& command) {
  std::string arguments;
  for (const OptionWords& argument : command.arguments) {
    arguments += fmt::format(" [\\fI{}\\fR]", roff(argument.value));
  }
  return fmt::format(".SH SYNOPSIS\n\\fBddpdoctor {}\\fR [\\fIoptions\\fR]{}\n", roff(command.name),
                     arguments);
}

/// "-o, --output FILE" with its description.
std::string entry(const OptionWords& option) {
  const std::string names = fmt::format("{}", fmt::join(option.names, ", "));
  const std::string value =
      option.value.empty()
          ? ""
          : fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(option.value));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(names), value, roff(option.meaning));
}

}  // namespace

std::string man_page(const CommandWords& command) {
  std::string out = head("ddpdoctor-" + command.name, command.summary) + synopsis(command);
  out += ".SH OPTIONS\n";
  for (const OptionWords& argument : command.arguments) {
    out += entry(argument);
  }
  for (const OptionWords& option : command.options) {
    out += entry(option);
  }
  const std::string status = "Exit status: ";
  const std::size_t end = command.footer.rfind(status);
  const std::string begin = "Examples:\n";
  if (end != std::string::npos && command.footer.starts_with(begin)) {
    out += fmt::format(".SH EXIT STATUS\n{}\n", roff(command.footer.substr(end + status.size())));
    out += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n",
                       roff(base::trim(command.footer.substr(begin.size(), end - begin.size()))));
  }
  return out + ".SH SEE ALSO\n\\fBddpdoctor\\fR(1)\n";
}

std::string man_page(const std::vector<CommandWords>& commands) {
  std::string out = head("ddpdoctor", "report why a distributed training job hangs");
  out += ".SH SYNOPSIS\n\\fBddpdoctor\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n";
  for (const CommandWords& command : commands) {
    out += fmt::format(".TP\n\\fBddpdoctor\\-{}\\fR(1)\n{}\n", roff(command.name),
                       roff(command.summary));
  }
  return out;
}

}  // namespace ddpdoctor::cli
