// SPDX-License-Identifier: Apache-2.0
// Decides from the path alone whether a file is the user's own. An editable install counts as the
// user's. A user's package installed into site-packages looks like a library; it counts if a thread
// has no better frame and no known library has that name.
#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "collector/model/building/standard_library.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

using std::string_view;

template <std::size_t N>
bool is_one_of(string_view word, const std::array<string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Console scripts that start a job; they have no ".py" and are in some bin folder.
constexpr std::array<string_view, 21> kLaunchers = {
    "torchrun",         "accelerate",  "accelerate-launch", "deepspeed",  "lightning",
    "fabric",           "composer",    "colossalai",        "horovodrun", "ray",
    "pytest",           "py.test",     "ipython",           "ipython3",   "jupyter",
    "jupyter-notebook", "jupyter-lab", "coverage",          "debugpy",    "py-spy",
    "ddpdoctor"};

/// Parts of torch's own tree, for checkouts that are built in place
/// (".../pytorch/torch/distributed/...").
constexpr std::array<string_view, 21> kTorchParts = {"distributed", "nn",
                                                     "autograd",    "optim",
                                                     "utils",       "multiprocessing",
                                                     "_dynamo",     "_inductor",
                                                     "_functorch",  "cuda",
                                                     "fx",          "jit",
                                                     "_tensor.py",  "functional.py",
                                                     "_ops.py",     "_compile.py",
                                                     "__init__.py", "serialization.py",
                                                     "amp",         "_jit_internal.py",
                                                     "overrides.py"};

/// First components of paths that py-spy and hand-written captures shorten
/// ("torch/nn/modules/module.py").
constexpr std::array<string_view, 104> kLibraryRoots = {"torch",
                                                        "torchvision",
                                                        "torchaudio",
                                                        "torchmetrics",
                                                        "accelerate",
                                                        "lightning",
                                                        "pytorch_lightning",
                                                        "lightning_fabric",
                                                        "transformers",
                                                        "datasets",
                                                        "deepspeed",
                                                        "fairscale",
                                                        "apex",
                                                        "horovod",
                                                        "ignite",
                                                        "numpy",
                                                        "scipy",
                                                        "pandas",
                                                        "PIL",
                                                        "cv2",
                                                        "wandb",
                                                        "tensorboard",
                                                        "mlflow",
                                                        "tqdm",
                                                        "filelock",
                                                        "fsspec",
                                                        "huggingface_hub",
                                                        "safetensors",
                                                        "ray",
                                                        "mpi4py",
                                                        "lightning_utilities",
                                                        "xformers",
                                                        "triton",
                                                        "flashinfer",
                                                        "deep_gemm",
                                                        "nvidia",
                                                        "setuptools",
                                                        "pip",
                                                        "pkg_resources",
                                                        "_distutils_hack",
                                                        "hydra",
                                                        "omegaconf",
                                                        "click",
                                                        "typer",
                                                        "fire",
                                                        "absl",
                                                        "joblib",
                                                        "loky",
                                                        "multiprocess",
                                                        "billiard",
                                                        "faiss",
                                                        "gevent",
                                                        "psutil",
                                                        "requests",
                                                        "urllib3",
                                                        "uvicorn",
                                                        "uvloop",
                                                        "starlette",
                                                        "fastapi",
                                                        "dill",
                                                        "cloudpickle",
                                                        "jsonargparse",
                                                        "grpc",
                                                        "boto3",
                                                        "botocore",
                                                        "s3fs",
                                                        "aiohttp",
                                                        "zmq",
                                                        "ipykernel",
                                                        "tornado",
                                                        "traitlets",
                                                        "_pytest",
                                                        "pluggy",
                                                        "peft",
                                                        "trl",
                                                        "bitsandbytes",
                                                        "composer",
                                                        "colossalai",
                                                        "sklearn",
                                                        "matplotlib",
                                                        "h5py",
                                                        "zarr",
                                                        "pyarrow",
                                                        "webdataset",
                                                        "lmdb",
                                                        "torchdata",
                                                        "torch_xla",
                                                        "tensorboardX",
                                                        "comet_ml",
                                                        "neptune",
                                                        "aim",
                                                        "clearml",
                                                        "sentry_sdk",
                                                        "rich",
                                                        "yaml",
                                                        "jinja2",
                                                        "sympy",
                                                        "networkx",
                                                        "numba",
                                                        "nltk",
                                                        "tokenizers",
                                                        "sentencepiece",
                                                        "timm",
                                                        "monai"};

/// Packages below a framework: a compiler, arrays, drivers, launchers.
constexpr std::array<string_view, 26> kBelowFrameworks = {
    "torch", "triton", "torch_xla", "jax",         "jaxlib",   "nvidia", "cuda",
    "cupy",  "numpy",  "scipy",     "numba",       "mpi4py",   "ray",    "setuptools",
    "pip",   "tqdm",   "dill",      "cloudpickle", "absl",     "click",  "typer",
    "fire",  "pluggy", "_pytest",   "flashinfer",  "deep_gemm"};

/// Programs of frameworks that start ranks and wait for them.
constexpr std::array<string_view, 3> kStarters = {"deepspeed/launcher/", "accelerate/commands/",
                                                  "horovod/runner/"};

/// "/…/lib/python3.11/threading.py", "/…/lib64/python3.9/…", "/…/lib/python311.zip/…",
/// "/build/Lib/threading.py".
bool in_standard_library(string_view path) {
  for (std::size_t at = path.find("/python"); at != string_view::npos;
       at = path.find("/python", at + 1)) {
    const string_view before = path.substr(0, at);
    const string_view after = path.substr(at + string_view("/python").size());
    const bool in_lib = before.ends_with("/lib") || before.ends_with("/lib64") ||
                        before.ends_with("/Lib") || before.ends_with("/libexec");
    if (in_lib && !after.empty() && after.front() >= '2' && after.front() <= '4') {
      return true;
    }
  }
  constexpr string_view kTree = "/Lib/";  // of CPython's sources, and of Windows
  const std::size_t tree = path.rfind(kTree);
  return tree != path.npos && is_of_standard_library(path.substr(tree + kTree.size()));
}

bool is_launcher(string_view path) {
  const std::size_t slash = path.rfind('/');
  const string_view folder = slash == string_view::npos ? string_view() : path.substr(0, slash);
  return folder.ends_with("/bin") && is_one_of(base::file_name(path), kLaunchers);
}

/// "/…/torch/distributed/…" but not the user's "/home/me/torch/train.py".
bool in_torch_tree(string_view path) {
  constexpr string_view kFolder = "/torch/";
  for (std::size_t at = path.find(kFolder); at != string_view::npos;
       at = path.find(kFolder, at + 1)) {
    string_view part = path.substr(at + kFolder.size());
    part = part.substr(0, part.find('/'));
    if (is_one_of(part, kTorchParts)) {
      return true;
    }
  }
  return path.find("-packages/torch/") != string_view::npos;
}

bool is_relative_library(string_view path) {
  return !path.starts_with('/') &&
         (is_of_standard_library(path) || is_one_of(path.substr(0, path.find('/')), kLibraryRoots));
}

/// "./nptl/futex-internal.c", "../sysdeps/unix/x.S", "Modules/main.c", "/build/glibc-x/nptl/y.c":
/// paths at which debuggers show the distribution's libc and Python.
bool is_source_of_system(string_view path) {
  constexpr std::array<string_view, 20> kFolders = {
      "nptl",   "sysdeps", "csu",   "elf",    "posix",   "stdio-common", "libio",
      "stdlib", "socket",  "misc",  "io",     "time",    "signal",       "malloc",
      "string", "debug",   "iconv", "Python", "Modules", "Objects"};
  if (!(path.ends_with(".c") || path.ends_with(".h") || path.ends_with(".S"))) {
    return false;
  }
  if (path.starts_with("/build/") || path.starts_with("/usr/src/") ||
      path.starts_with("/usr/include/") || path.starts_with("/croot/")) {
    return true;
  }
  const bool below = path.starts_with("./") || path.starts_with("../");
  while (path.starts_with("./") || path.starts_with("../")) {
    path.remove_prefix(path.find('/') + 1);
  }
  const string_view folder = path.substr(0, path.find('/'));
  const bool capital = !folder.empty() && folder.front() >= 'A' && folder.front() <= 'Z';
  return folder.size() < path.size() && (below || capital) && is_one_of(folder, kFolders);
}

/// "mytrain" of "/venv/lib/python3.11/site-packages/mytrain/loop.py"; empty for paths outside.
string_view installed_root(string_view path) {
  constexpr string_view kPackages = "-packages/";
  const std::size_t at = path.rfind(kPackages);
  if (at == string_view::npos) {
    return {};
  }
  string_view root = path.substr(at + kPackages.size());
  root = root.substr(0, root.find('/'));
  return root.ends_with(".py") ? root.substr(0, root.size() - 3) : root;
}

}  // namespace

bool is_torch_file(std::string_view path) {
  return path.starts_with("torch/") || in_torch_tree(path);
}

bool is_console_script(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash != string_view::npos && path.substr(0, slash).ends_with("/bin") &&
         !path.ends_with(".py");
}

bool may_be_installed_by_user(std::string_view path) {
  const string_view root = installed_root(path);
  return !root.empty() && !is_one_of(root, kLibraryRoots) && !path.ends_with(".so");
}

bool is_framework_file(std::string_view path) {
  string_view root = installed_root(path);
  if (root.empty() && is_relative_library(path)) {
    root = path.substr(0, path.find('/'));
  }
  const bool starts = std::any_of(kStarters.begin(), kStarters.end(),
                                  [path](string_view part) { return base::contains(path, part); });
  return !root.empty() && !root.ends_with(".py") && !is_one_of(root, kBelowFrameworks) &&
         !is_of_standard_library(path) && !starts && !is_torch_file(path) && !path.ends_with(".so");
}

bool is_user_file(std::string_view path) {
  if (path.empty()) {
    return false;
  }
  if (path.front() ==
      '<') {  // <frozen runpy>, <string>, <eval_with_key>.3; but a notebook cell is the user's
    return path.starts_with("<ipython-input");
  }
  constexpr std::array<string_view, 7> kForeign = {
      "/site-packages/", "/dist-packages/", "site-packages/torch", "/torchinductor_",
      "/lib/ddpdoctor/", "/.debugpy/",      "mpi4py/MPI.src/"};
  const bool foreign = path.starts_with("torchinductor_") ||
                       std::any_of(kForeign.begin(), kForeign.end(),
                                   [path](string_view part) { return base::contains(path, part); });
  return !foreign && !in_standard_library(path) && !is_launcher(path) && !is_torch_file(path) &&
         !is_relative_library(path) && !is_source_of_system(path);
}

}  // namespace ddpdoctor::model
