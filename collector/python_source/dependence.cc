// SPDX-License-Identifier: Apache-2.0
// Names speak first ("is_main" is a test of the rank wherever it comes from); what does not speak
// is followed through the assignments of the file, also through the branches that guard them.

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "collector/python_source/assignments.h"
#include "collector/python_source/blocks.h"
#include "collector/python_source/rank_words.h"

namespace ddpdoctor::python_source {
namespace {

/// `stop` ← `is_done` ← `rank == 0`: deeper chains are not followed.
constexpr int kMaxSteps = 3;
/// Every name is looked for in the whole file; no honest condition has more.
constexpr std::size_t kMaxNames = 64;

Dependence stronger(Dependence a, Dependence b) {
  if (a == Dependence::kRank || b == Dependence::kRank) {
    return Dependence::kRank;
  }
  return a == Dependence::kData || b == Dependence::kData ? Dependence::kData : Dependence::kNone;
}

/// Index after the brackets that open at `at`.
std::size_t after_brackets(Tokens tokens, std::size_t at) {
  const int depth = tokens[at].depth;
  std::size_t i = at + 1;
  while (i < tokens.size() && tokens[i].depth > depth) {
    ++i;
  }
  return std::min(i + 1, tokens.size());
}

/// `rank is None`, `local_rank != -1`, `rank >= 0`: asks whether the job is distributed, with one
/// answer on all ranks. `i` is the index after the name; closing brackets and other arguments are
/// skipped (int(os.environ.get("RANK", -1)) != -1).
bool only_asks_for_presence(Tokens tokens, std::size_t i) {
  while (i < tokens.size()) {
    const Token& token = tokens[i];
    if (token.is("(") || token.is("[")) {
      i = after_brackets(tokens, i);
    } else if (token.is(")") || token.is("]") || token.is(",") || token.is("-") ||
               token.kind == TokenKind::kNumber || token.kind == TokenKind::kString) {
      ++i;
    } else {
      break;
    }
  }
  const auto word = [&tokens](std::size_t index) {
    return index < tokens.size() ? tokens[index].text : std::string_view();
  };
  if (word(i) == "is") {
    return word(i + 1) == "None" || (word(i + 1) == "not" && word(i + 2) == "None");
  }
  if (word(i) == ">=" || word(i) == "<") {
    return word(i + 1) == "0";
  }
  const bool compares = word(i) == "!=" || word(i) == "==" || word(i) == ">";
  return compares && word(i + 1) == "-" && word(i + 2) == "1";
}

bool compares_with_number(Tokens tokens) {
  constexpr std::array<std::string_view, 5> kComparisons = {"==", "!=", "%", "<", ">"};
  const bool number = std::any_of(tokens.begin(), tokens.end(),
                                  [](const Token& t) { return t.kind == TokenKind::kNumber; });
  return number && std::any_of(tokens.begin(), tokens.end(), [&](const Token& t) {
           return std::find(kComparisons.begin(), kComparisons.end(), t.text) != kComparisons.end();
         });
}

/// `rank == 0 and step > 3` at its outermost level: a test, not a computation.
bool is_predicate(Tokens value) {
  constexpr std::array<std::string_view, 10> kTests = {
      "==", "!=", "<", ">", "<=", ">=", "in", "not", "or", "and"};
  const bool wrapped = value.size() > 1 && value.front().is("(");
  const int depth = value.empty() ? 0 : value.front().depth + (wrapped ? 1 : 0);
  const auto within = [depth](const Token& t) { return t.depth <= depth; };
  const bool chooses = std::any_of(value.begin(), value.end(),
                                   [&](const Token& t) { return within(t) && t.is("else"); });
  return !chooses && std::any_of(value.begin(), value.end(), [&](const Token& t) {
    return within(t) && std::find(kTests.begin(), kTests.end(), t.text) != kTests.end();
  });
}

/// `True`, `None`, `3`: what a flag is set to; `[]` and `float("nan")` are data.
bool is_flag(Tokens value) {
  return value.size() == 1 && (is_keyword(value.front().text) ||
                               (value.front().kind == TokenKind::kNumber &&
                                value.front().text.find('.') == std::string_view::npos));
}

/// `any(…)` or `torch.any(…)`, and not a method of a value.
bool is_function_of(const NameChain& chain) {
  constexpr std::array<std::string_view, 5> kModules = {"torch", "np", "numpy", "math", "builtins"};
  return chain.words.size() == 1 ||
         (chain.words.size() == 2 &&
          std::find(kModules.begin(), kModules.end(), chain.words.front()) != kModules.end());
}

/// Follows names, each once.
class Resolver {
 public:
  explicit Resolver(const Structure& structure) : structure_(structure) {}

  Dependence of(Tokens tokens, std::size_t at, int steps) {
    Dependence out = Dependence::kNone;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool asks_if_set = i + 1 < tokens.size() && tokens[i + 1].is("in");
      if (tokens[i].kind == TokenKind::kString && is_rank_variable(tokens[i].text) &&
          !asks_if_set && !only_asks_for_presence(tokens, i + 1)) {
        return Dependence::kRank;
      }
    }
    for (const NameChain& chain : name_chains(tokens)) {
      out = stronger(out, of_chain(tokens, chain, at, steps));
      if (out == Dependence::kRank) {
        break;
      }
    }
    return out;
  }

 private:
  Dependence of_chain(Tokens tokens, const NameChain& chain, std::size_t at, int steps) {
    const std::string_view last = chain.words.back();
    const bool argument_name = chain.end < tokens.size() && tokens[chain.end].is("=");
    if (argument_name || (chain.words.size() == 1 && is_keyword(last))) {
      return Dependence::kNone;
    }
    const bool any_rank = std::any_of(chain.words.begin(), chain.words.end(), is_rank_word);
    const bool gpu_number =
        (last == "gpu" || last == "gpu_id" || last == "device_id") && compares_with_number(tokens);
    if (any_rank || gpu_number) {
      return only_asks_for_presence(tokens, chain.end) ? Dependence::kNone : Dependence::kRank;
    }
    // any(flags) is as alike as the flags, alive.any() is a tensor's data
    const bool builtin = is_builtin_function(last) && is_function_of(chain);
    if (builtin || is_uniform_word(last) || last == "environ" || last == "getenv" ||
        (last == "get" && chain.words.size() > 1)) {
      return Dependence::kNone;
    }
    const bool after_dot = chain.begin > 0 && tokens[chain.begin - 1].is(".");
    if (after_dot) {
      return Dependence::kData;
    }
    const bool called = chain.end < tokens.size() && tokens[chain.end].is("(");
    return follow(chain, called, at, steps);
  }

  Dependence follow(const NameChain& chain, bool called, std::size_t at, int steps) {
    const std::string_view first = chain.words.front();
    const bool own = chain.words.size() == 2 && (first == "self" || first == "cls");
    if (chain.words.size() == 2 && !own && steps > 0) {
      return of_attribute(chain.words.back(), at, steps);
    }
    if ((chain.words.size() > 1 && !own) || steps == 0) {
      return Dependence::kData;
    }
    const std::string name =
        own ? std::string(first) + "." + std::string(chain.words[1]) : std::string(first);
    if (seen_.size() >= kMaxNames) {
      return Dependence::kData;
    }
    if (!seen_.insert(name).second) {
      return Dependence::kNone;  // counted where it was met first
    }
    std::vector<Assignment> sources = bindings(name, at);
    if (sources.empty() || called) {
      for (const Assignment& result : returns_of(structure_, chain.words.back())) {
        sources.push_back(result);
      }
    }
    Dependence out = sources.empty() ? Dependence::kData : Dependence::kNone;
    for (const Assignment& source : sources) {
      out = stronger(out, of_source(source, at, steps - 1));
    }
    return out;
  }

  /// `cfg.verbose` where a class of the file says `self.verbose = rank == 0`.
  Dependence of_attribute(std::string_view attribute, std::size_t at, int steps) {
    const auto sets = assignments_of(structure_, "self." + std::string(attribute), kNowhere);
    const bool tests = std::any_of(sets.begin(), sets.end(), [&](const Assignment& set) {
      return of_source(set, at, steps - 1) == Dependence::kRank;
    });
    return tests ? Dependence::kRank : Dependence::kData;
  }

  /// `first = rank == 0` is a test of the rank wherever it is used; `loss = x + 0.3 * rank`, and an
  /// `if rank == 1: batch = []`, only make data that differ.
  Dependence of_source(const Assignment& source, std::size_t at, int steps) {
    Dependence value = of(source.value, source.statement, steps);
    if (value == Dependence::kRank && !is_predicate(source.value) && has_data(source, steps)) {
      value = Dependence::kData;
    }
    Dependence guard = guards_of(source.statement, at, steps);
    if (guard == Dependence::kRank && !is_flag(source.value)) {
      guard = Dependence::kData;
    }
    return stronger(value, guard);
  }

  /// Something beside the rank goes into the value.
  bool has_data(const Assignment& source, int steps) {
    const auto chains = name_chains(source.value);
    return std::any_of(chains.begin(), chains.end(), [&](const NameChain& chain) {
      Resolver alone(structure_);
      return alone.of_chain(source.value, chain, source.statement, steps) == Dependence::kData;
    });
  }

  /// In the function, else in the functions around it, else at module level.
  std::vector<Assignment> bindings(const std::string& name, std::size_t at) const {
    std::size_t function = at == kNowhere ? kNowhere : structure_.function_around(at);
    while (true) {
      std::vector<Assignment> found = assignments_of(structure_, name, function);
      if (!found.empty() || function == kNowhere) {
        return found;
      }
      function = structure_.function_around(function);
    }
  }

  /// What decides whether an assignment happens: branches around it that do not surround `at`, too.
  Dependence guards_of(std::size_t statement, std::size_t at, int steps) {
    Dependence out = Dependence::kNone;
    if (steps == 0) {
      return out;
    }
    for (const std::size_t header : structure_.headers_around(statement)) {
      const Statement& guard = structure_.statements[header];
      const bool shared = at != kNowhere && structure_.encloses(header, at);
      if (!shared && guard.kind && (is_branch(*guard.kind) || guard.kind == BlockKind::kWhile)) {
        out = stronger(out, of(guard.header(), header, steps));
        for (std::size_t i = guard.opener; i != kNowhere; i = structure_.statements[i].opener) {
          out = stronger(out, of(structure_.statements[i].header(), i, steps));
        }
      }
    }
    return out;
  }

  const Structure& structure_;
  std::set<std::string> seen_;
};

}  // namespace

Dependence dependence(std::string_view expression, const program::SourceText& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::vector<Token> tokens = tokens_of(expression);
  return Resolver(structure).of(tokens, structure.at(line), kMaxSteps);
}

}  // namespace ddpdoctor::python_source
