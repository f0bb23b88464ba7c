// SPDX-License-Identifier: Apache-2.0
// Completion scripts. A word that is not an option completes to a file or, if the command has a
// list, to a word of it.
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/shell/words.h"

namespace ddpdoctor::cli {
namespace {

std::vector<std::string> names_of(const CommandWords& command) {
  std::vector<std::string> out;
  for (const OptionWords& option : command.options) {
    out.insert(out.end(), option.names.begin(), option.names.end());
  }
  return out;
}

std::vector<std::string> names_of(const std::vector<CommandWords>& commands) {
  std::vector<std::string> out;
  for (const CommandWords& command : commands) {
    out.push_back(command.name);
  }
  return out;
}

/// In single quotes of a shell; `bracket` also escapes characters that zsh interprets in a
/// specification.
std::string quoted(const std::string& text, bool bracket = false) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (bracket && (c == '[' || c == ']' || c == ':')) {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string bash(const std::vector<CommandWords>& commands) {
  std::string cases;
  for (const CommandWords& command : commands) {
    cases += fmt::format("    {}) options='{}' values='{}' ;;\n", command.name,
                         fmt::join(names_of(command), " "), fmt::join(command.values, " "));
  }
  return fmt::format(
      R"(# bash completion of ddpdoctor; source it, or put it where bash-completion looks
_ddpdoctor() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" options='' values='' word
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [ "$word" = -- ] && return  # what follows belongs to the job
  done
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '{0} help version --help --version' -- "$current")
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{1}    help) values='{0}' ;;
  esac
  case "$current" in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current") ;;
    *) [ -z "$values" ] || mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current") ;;
  esac
}}
complete -o default -F _ddpdoctor ddpdoctor
)",
      fmt::join(names_of(commands), " "), cases);
}

std::string zsh_options(const CommandWords& command) {
  std::string out;
  for (const OptionWords& option : command.options) {
    for (const std::string& name : option.names) {
      const std::string value = option.value.empty() ? "" : fmt::format(":{}:_files", option.value);
      out += fmt::format(" \\\n        {}", quoted(fmt::format("*{}[", name)) +
                                                quoted(option.meaning, true) +
                                                quoted(fmt::format("]{}", value)));
    }
  }
  return out;
}

std::string zsh(const std::vector<CommandWords>& commands) {
  std::string list;
  std::string cases;
  for (const CommandWords& command : commands) {
    list +=
        fmt::format("    {}\n", quoted(command.name) + quoted(":") + quoted(command.summary, true));
    const std::string values = command.values.empty()
                                   ? "'*:file:_files'"
                                   : fmt::format("'*:word:({})'", fmt::join(command.values, " "));
    cases += fmt::format("      {}) _arguments{} \\\n        {} ;;\n", command.name,
                         zsh_options(command), values);
  }
  return fmt::format(R"(#compdef ddpdoctor
_ddpdoctor() {{
  local -a commands=(
{0}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="${{words[2]}}"
  shift words
  (( CURRENT-- ))
  case "$command" in
{1}  esac
}}
if [ "$funcstack[1]" = _ddpdoctor ]; then _ddpdoctor "$@"; else compdef _ddpdoctor ddpdoctor; fi
)",
                     list, cases);
}

std::string fish_option(const std::string& command, const OptionWords& option) {
  std::string out =
      fmt::format("complete -c ddpdoctor -n '__fish_seen_subcommand_from {}'", command);
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    out += fmt::format(" -{} {}", is_long ? 'l' : 's', name.substr(is_long ? 2 : 1));
  }
  return out + fmt::format("{} -d {}\n", option.value.empty() ? "" : " -r", quoted(option.meaning));
}

std::string fish(const std::vector<CommandWords>& commands) {
  std::string out = "# fish completion of ddpdoctor\n";
  for (const CommandWords& command : commands) {
    out += fmt::format("complete -c ddpdoctor -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       quoted(command.summary));
    for (const OptionWords& option : command.options) {
      out += fish_option(command.name, option);
    }
    if (!command.values.empty()) {
      out += fmt::format("complete -c ddpdoctor -f -n '__fish_seen_subcommand_from {}' -a '{}'\n",
                         command.name, fmt::join(command.values, " "));
    }
  }
  return out;
}

}  // namespace

std::string completion_for(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") {
    return bash(commands);
  }
  if (shell == "zsh") {
    return zsh(commands);
  }
  return shell == "fish" ? fish(commands) : std::string();
}

}  // namespace ddpdoctor::cli
