# SPDX-License-Identifier: Apache-2.0
"""packaging/conda/recipe.yaml: its version, options and files must be those of the project. It is not built here."""
import re

import pytest

from conftest import ROOT

yaml = pytest.importorskip("yaml")


def test_the_recipe_is_of_this_project():
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert recipe["schema_version"] == 1
    assert f"VERSION {recipe['context']['version']} " in cmake
    assert recipe["source"]["path"].endswith("ddpdoctor-${{ version }}.tar.gz")
    options = re.findall(r"-D(DDPDOCTOR_[A-Z]+)=", " ".join(recipe["build"]["script"]))
    known = cmake + "".join(file.read_text() for file in (ROOT / "cmake").glob("*.cmake"))
    assert options and all(f"option({name} " in known for name in options)
    assert (ROOT / recipe["about"]["license_file"]).is_file()
