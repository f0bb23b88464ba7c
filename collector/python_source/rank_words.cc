// SPDX-License-Identifier: Apache-2.0
// Names collected from PyTorch, Lightning, Accelerate, Transformers, DeepSpeed, Megatron, timm,
// detectron2 and plain scripts.
#include "collector/python_source/rank_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace ddpdoctor::python_source {
namespace {

using std::string_view;

template <std::size_t N>
bool is_one_of(string_view word, const std::array<string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "isMainProcess" and "IS_MAIN_PROCESS" → is, main, process.
std::vector<std::string> parts_of(string_view word) {
  std::vector<std::string> out(1);
  bool was_lower = false;
  for (const char c : word) {
    const auto u = static_cast<unsigned char>(c);
    const bool upper = std::isupper(u) != 0;
    if ((c == '_' || (upper && was_lower)) && !out.back().empty()) {
      out.emplace_back();
    }
    if (c != '_') {
      out.back() += static_cast<char>(std::tolower(u));
    }
    was_lower = !upper && c != '_';
  }
  if (out.back().empty() && out.size() > 1) {
    out.pop_back();
  }
  return out;
}

/// Ranks of matrices, search results and adapters.
constexpr std::array<string_view, 22> kOtherRanks = {
    "low",     "lora",   "matrix", "max",        "min",      "full",      "num",  "page",
    "svd",     "search", "high",   "total",      "spearman", "effective", "mean", "reciprocal",
    "adapter", "re",     "approx", "percentile", "tensorly", "factor"};

constexpr std::array<string_view, 7> kAfterRank = {"zero", "0", "id", "idx", "index", "num", "one"};

constexpr std::array<string_view, 7> kChiefs = {"main",        "master",  "chief", "leader",
                                                "coordinator", "primary", "root"};

/// What makes "is_main_…" speak of something else.
constexpr std::array<string_view, 19> kOtherMains = {
    "thread", "module", "weight", "weights", "param", "params", "addr", "address", "port", "loop",
    "loss",   "metric", "branch", "stage",   "model", "score",  "task", "dtype",   "grads"};

constexpr std::array<string_view, 5> kProcessLike = {"process", "proc", "worker", "only", "gpu"};

constexpr std::array<string_view, 28> kRankNames = {"process_index",
                                                    "local_process_index",
                                                    "process_idx",
                                                    "process_id",
                                                    "local_process_id",
                                                    "proc_id",
                                                    "procid",
                                                    "proc_index",
                                                    "global_zero",
                                                    "is_global_zero",
                                                    "is_local_zero",
                                                    "is_world_process_zero",
                                                    "is_local_process_zero",
                                                    "is_last_process",
                                                    "is_last_stage",
                                                    "should_save",
                                                    "should_log",
                                                    "current_device",
                                                    "is_writer",
                                                    "is_first_worker",
                                                    "ismaster",
                                                    "ismain",
                                                    "is_pipeline_first_stage",
                                                    "is_pipeline_last_stage",
                                                    "master",
                                                    "is_driver",
                                                    "rank0",
                                                    "local_rank0"};

bool speaks_of_rank(const std::vector<std::string>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const string_view part = parts[i];
    const bool numbered =
        part.size() > 4 && part.starts_with("rank") &&
        (std::isdigit(static_cast<unsigned char>(part[4])) != 0 || part == "rankzero");
    if (numbered) {
      return true;
    }
    if (part != "rank" || (i > 0 && is_one_of(parts[i - 1], kOtherRanks))) {
      continue;
    }
    if (i + 1 == parts.size() || is_one_of(parts[i + 1], kAfterRank)) {
      return true;
    }
  }
  return false;
}

bool speaks_of_chief(const std::vector<std::string>& parts) {
  const auto has = [&parts](const auto& words) {
    return std::any_of(parts.begin(), parts.end(),
                       [&words](const std::string& part) { return is_one_of(part, words); });
  };
  if (parts.size() < 2 || !has(kChiefs) || has(kOtherMains)) {
    return false;
  }
  return parts[0] == "is" || parts[0] == "am" || parts[0] == "if" || parts[0] == "on" ||
         has(kProcessLike);
}

std::string lower(string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return out;
}

}  // namespace

bool is_rank_word(std::string_view word) {
  if (is_one_of(lower(word), kRankNames)) {
    return true;
  }
  const std::vector<std::string> parts = parts_of(word);
  return speaks_of_rank(parts) || speaks_of_chief(parts);
}

bool is_rank_variable(std::string_view literal) {
  constexpr std::array<string_view, 16> kVariables = {"RANK",
                                                      "LOCAL_RANK",
                                                      "GROUP_RANK",
                                                      "NODE_RANK",
                                                      "ROLE_RANK",
                                                      "SLURM_PROCID",
                                                      "SLURM_LOCALID",
                                                      "SLURM_NODEID",
                                                      "PMI_RANK",
                                                      "PMIX_RANK",
                                                      "OMPI_COMM_WORLD_RANK",
                                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                                      "MV2_COMM_WORLD_RANK",
                                                      "MPI_LOCALRANKID",
                                                      "rank",
                                                      "local_rank"};
  const std::size_t begin = literal.find_first_of("\"'");
  const std::size_t end = literal.find_last_of("\"'");
  return begin != string_view::npos && end > begin &&
         is_one_of(literal.substr(begin + 1, end - begin - 1), kVariables);
}

bool is_uniform_word(std::string_view word) {
  constexpr std::array<string_view, 19> kUniform = {"world_size",
                                                    "get_world_size",
                                                    "is_initialized",
                                                    "is_available",
                                                    "is_torchelastic_launched",
                                                    "device_count",
                                                    "nnodes",
                                                    "n_gpus",
                                                    "num_gpus",
                                                    "ngpus_per_node",
                                                    "distributed",
                                                    "is_distributed",
                                                    "use_ddp",
                                                    "use_distributed",
                                                    "num_processes",
                                                    "num_replicas",
                                                    "__name__",
                                                    "__debug__",
                                                    "WORLD_SIZE"};
  return is_one_of(word, kUniform);
}

bool is_builtin_function(std::string_view word) {
  constexpr std::array<string_view, 23> kFunctions = {
      "int",        "str",     "float",   "bool",   "len",  "range", "enumerate", "zip",
      "min",        "max",     "abs",     "sorted", "list", "tuple", "dict",      "set",
      "isinstance", "hasattr", "getattr", "any",    "all",  "sum",   "reversed"};
  return is_one_of(word, kFunctions);
}

bool is_keyword(std::string_view word) {
  constexpr std::array<string_view, 13> kKeywords = {"and",  "or",     "not",  "in", "is",
                                                     "True", "False",  "None", "if", "else",
                                                     "for",  "lambda", "await"};
  return is_one_of(word, kKeywords);
}

bool is_rank_decorator(std::string_view word) {
  constexpr std::array<string_view, 8> kDecorators = {
      "on_last_process", "on_process",  "on_local_process", "main_only",
      "master_only",     "run_on_main", "only_on_master",   "rank_zero_experiment"};
  return is_one_of(word, kDecorators) || is_rank_word(word);
}

}  // namespace ddpdoctor::python_source
