# SPDX-License-Identifier: Apache-2.0
"""What lint says of names that two files of one folder define for themselves."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import unity_names  # noqa: E402


def unit(text, space="ddpdoctor::graph"):
    return f"namespace {space} {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace {space}\n"


def repeated(first, second, **spaces):
    return [name for _, _, name, _ in unity_names.repeated({"graph/a.cc": unit(first), "graph/b.cc": unit(second, **spaces)})]


def test_a_constant_a_type_and_a_function_may_be_defined_once_in_a_folder():
    assert repeated("constexpr int kMost = 3;", "constexpr std::size_t kMost = 80;") == ["kMost"]
    assert repeated("struct Kill {\n  int pid = 0;\n};", "struct Kill {\n};") == ["Kill"]
    assert repeated("bool asked(const Job& job, int rank) {\n}", "bool asked(const Job& a,\n           int b = 3) {\n}") == ["asked"]


def test_overloads_aliases_and_other_namespaces_do_not_collide():
    assert repeated("bool asked(const Job& job) {\n}", "bool asked(const Rank& rank) {\n}") == []
    assert repeated("using Lines = std::vector<int>;", "using Lines = std::vector<int>;") == []
    assert repeated("constexpr int kMost = 3;", "constexpr int kMost = 3;", space="ddpdoctor::graph::other") == []


def test_overloads_collide_where_one_is_handed_over_by_its_bare_name():
    hands_over = "bool asked(const Job& job) {\n}\n\nbool any(const Jobs& jobs) {\n  return std::any_of(jobs.begin(), jobs.end(), asked);\n}"
    assert repeated(hands_over, "bool asked(const Rank& rank) {\n}") == ["asked"]
    assert repeated("bool asked(const Rank& rank) {\n}", hands_over) == ["asked"]


def test_names_of_other_folders_and_exported_ones_do_not_count():
    texts = {"graph/a.cc": unit("constexpr int kMost = 3;"), "model/a.cc": unit("constexpr int kMost = 3;")}
    assert list(unity_names.repeated(texts)) == []
    assert list(unity_names.own_names("namespace ddpdoctor {\n\nint shown(int one) {\n}\n\n}  // namespace ddpdoctor\n")) == []


def test_a_name_of_a_header_that_a_file_of_the_folder_includes_is_taken():
    header = "namespace ddpdoctor::graph {\n\nstd::string quoted(std::string_view text);\n\n}  // namespace ddpdoctor::graph\n"
    user = '#include "graph/words.h"\n' + unit("constexpr int kMost = 3;")
    other = unit("std::string quoted(const std::string& text) {\n}")
    found = unity_names.repeated({"graph/a.cc": user, "graph/b.cc": other}, {"graph/words.h": header})
    assert [(path, name, first) for path, _, name, first in found] == [("graph/b.cc", "quoted", "graph/words.h")]
    assert list(unity_names.repeated({"graph/b.cc": other}, {"graph/words.h": header})) == []


def test_templates_are_defined_once_too():
    both = "template <class T>\nbool is_one_of(T one) {\n}"
    assert repeated(both, both) == ["is_one_of"]


def test_a_function_may_not_hide_one_of_a_header_that_another_file_calls():
    header = "namespace ddpdoctor::graph {\n\nstd::string named(pid_t pid);\nstd::string told(const Job& job);\n\n}  // namespace ddpdoctor::graph\n"
    user = '#include "graph/words.h"\n' + unit("int shown(pid_t pid, const Job& job) {\n  return named(pid).size() + told(job).size();\n}")
    other = unit("int named(const Job& job) {\n}\n\nint told(int rank) {\n}")
    found = unity_names.repeated({"graph/a.cc": user, "graph/b.cc": other}, {"graph/words.h": header})
    assert [(path, name, first) for path, _, name, first in found] == [("graph/b.cc", "named", "graph/words.h")]  # `told` is found by its argument
    caller = user.replace("ddpdoctor::graph", "ddpdoctor::graph::other")
    assert list(unity_names.repeated({"graph/a.cc": caller, "graph/b.cc": other}, {"graph/words.h": header})) == []


def test_a_type_is_the_same_with_and_without_its_namespace():
    assert repeated("bool asked(const model::Job& job) {\n}", "bool asked(const Job& job) {\n}") == ["asked"]


def test_a_type_is_in_one_header_only():
    one = "namespace ddpdoctor::graph {\n\nstruct Passed {\n  int line = 0;\n};\n\n}  // namespace ddpdoctor::graph\n"
    assert [name for _, _, name, _ in unity_names.repeated({}, {"graph/a.h": one, "graph/b.h": one})] == ["Passed"]
    assert list(unity_names.repeated({}, {"graph/a.h": one, "graph/b.h": one.replace("graph {", "graph::other {")})) == []
    forward = "namespace ddpdoctor::graph {\n\nstruct Passed;\n\n}  // namespace ddpdoctor::graph\n"
    assert list(unity_names.repeated({}, {"graph/a.h": one, "graph/b.h": forward})) == []


def test_a_type_is_the_same_by_its_name_and_by_an_alias_of_the_file():
    by_alias = "bool asked(const Lines& lines, int line) {\n}"
    texts = {"graph/a.cc": unit("bool asked(const program::SourceText& lines, int line) {\n}"),
             "graph/b.cc": "using Lines = program::SourceText;\n" + unit(by_alias)}
    assert [name for _, _, name, _ in unity_names.repeated(texts)] == ["asked"]
    assert repeated("bool asked(const SourceText& text, int line) {\n}", by_alias) == []
