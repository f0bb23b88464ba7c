# SPDX-License-Identifier: Apache-2.0
"""For the sitecustomize.py of a device: it changes torch.distributed when a program loads it. No frame of this file is on a stack afterwards."""
import importlib.abc
import importlib.machinery
import os
import sys


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name, change):
        self.name, self.change = name, change

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.change(module)
        spec.loader.exec_module = exec_module
        return spec


def after_import(name, change, variable):
    """Calls `change` with the module of this name once it is loaded, in a process of the job that has the environment variable."""
    if os.environ.get(variable) and "torch.distributed.run" not in sys.orig_argv:
        sys.meta_path.insert(0, Finder(name, change))
