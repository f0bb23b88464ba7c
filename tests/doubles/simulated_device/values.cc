// SPDX-License-Identifier: Apache-2.0
// Functions in which a host needs a value from its device: item() and everything that ends in it,
// tolist(), cpu(), numpy(), equal(), nonzero(). They have the names of torch's own functions for
// CUDA, and no Python frame. Data loading and optimizers work on the host's memory.
#include <Python.h>
#include <string_view>

#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/equal_native.h>
#include <ATen/ops/nonzero_native.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include "driver.h"
#include "process_group.h"

namespace {

/// Call with the GIL held.
bool is_of_the_host() {
  constexpr int kDepth = 12;
  bool host = false;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  for (int depth = 0; frame != nullptr && depth < kDepth && !host; ++depth) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    const char* const file = PyUnicode_AsUTF8(code->co_filename);
    const std::string_view name = file == nullptr ? "" : file;
    host = name.find("torch/utils/data/") != std::string_view::npos ||
           name.find("torch/optim/") != std::string_view::npos;
    Py_DECREF(code);
    PyFrameObject* const back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return host;
}

/// Call without the GIL, or on a thread of autograd that has none.
void wait_as_the_device_demands() {
  if (cuStreamQuery(nullptr) == 0) {
    c10::cuda::memcpy_and_sync();
    return;
  }
  bool host = false;
  {
    const pybind11::gil_scoped_acquire gil;
    host = is_of_the_host();
  }
  if (!host) {
    c10::cuda::memcpy_and_sync();
  }
}

}  // namespace

namespace at::native {

Scalar _local_scalar_dense_cuda(const Tensor& self) {
  wait_as_the_device_demands();
  return _local_scalar_dense_cpu(self);
}
bool cuda_equal(const Tensor& self, const Tensor& other) {
  wait_as_the_device_demands();
  return cpu_equal(self, other);
}
Tensor nonzero_cuda(const Tensor& self) {
  wait_as_the_device_demands();
  return nonzero_cpu(self);
}
/// Numbers that the host works with: torch's reducer copies its plan from the device this way.
Tensor& copy_to_host(Tensor& self, const Tensor& from, bool non_blocking) {
  if (!non_blocking && self.scalar_type() == kInt && from.scalar_type() == kInt) {
    wait_as_the_device_demands();
  }
  return copy_(self, from, non_blocking);
}

}  // namespace at::native

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("_local_scalar_dense", TORCH_FN(at::native::_local_scalar_dense_cuda));
  library.impl("equal", TORCH_FN(at::native::cuda_equal));
  library.impl("nonzero", TORCH_FN(at::native::nonzero_cuda));
  library.impl("copy_", TORCH_FN(at::native::copy_to_host));
}

namespace {

PyObject* base = nullptr;  // torch._C.TensorBase, whose methods these replace

PyObject* after_waiting(PyObject* self, PyObject* arguments, PyObject* keywords, const char* name) {
  {
    const pybind11::gil_scoped_release released;
    wait_as_the_device_demands();
  }
  PyObject* const method = PyObject_GetAttrString(base, name);
  const Py_ssize_t count = PyTuple_GET_SIZE(arguments);
  PyObject* const all = PyTuple_New(count + 1);
  Py_INCREF(self);
  PyTuple_SET_ITEM(all, 0, self);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const one = PyTuple_GET_ITEM(arguments, i);
    Py_INCREF(one);
    PyTuple_SET_ITEM(all, i + 1, one);
  }
  PyObject* const result = PyObject_Call(method, all, keywords);
  Py_DECREF(all);
  Py_DECREF(method);
  return result;
}

#define READER(name)                                                             \
  PyObject* THPVariable_##name(PyObject* self, PyObject* args, PyObject* keys) { \
    return after_waiting(self, args, keys, #name);                               \
  }
READER(tolist)
READER(cpu)
READER(numpy)

PyMethodDef readers[] = {
    {"tolist", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(THPVariable_tolist)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"cpu", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(THPVariable_cpu)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(THPVariable_numpy)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
};

/// Sets the methods on torch.Tensor. They are C methods, so that they have no Python frame.
void stand_before(pybind11::object tensor) {
  auto* const type = reinterpret_cast<PyTypeObject*>(tensor.ptr());
  base = pybind11::object(pybind11::module_::import("torch._C").attr("TensorBase")).release().ptr();
  for (PyMethodDef& one : readers) {
    PyObject* const method = PyDescr_NewMethod(type, &one);
    PyObject_SetAttrString(tensor.ptr(), one.ml_name, method);
    Py_DECREF(method);
  }
}

}  // namespace

PYBIND11_MODULE(simulated_nccl, module) {
  using namespace c10d;
  namespace py = pybind11;
  const auto c10d_module = py::module_::import("torch._C._distributed_c10d");
  py::class_<ProcessGroupNCCL, c10::intrusive_ptr<ProcessGroupNCCL>> group(
      module, "ProcessGroupNCCL", c10d_module.attr("Backend"));
  using Options = ProcessGroupNCCL::Options;
  py::class_<Options, c10::intrusive_ptr<Options>>(group, "Options",
                                                   c10d_module.attr("Backend").attr("Options"))
      .def(py::init([](bool) { return c10::make_intrusive<Options>(); }),
           py::arg("is_high_priority_stream") = false)
      .def_readwrite("is_high_priority_stream", &Options::is_high_priority_stream)
      .def_readwrite("split_from", &Options::split_from)
      .def_readwrite("split_color", &Options::split_color);
  group
      .def(py::init([](const c10::intrusive_ptr<Store>& store, int rank, int size,
                       c10::intrusive_ptr<Options> options) {
        return c10::make_intrusive<ProcessGroupNCCL>(store, rank, size, std::move(options));
      }))
      .def(
          "perform_nocolor_split",
          [](ProcessGroupNCCL& self, const py::object&) { self.performNocolorSplit(); },
          py::call_guard<py::gil_scoped_release>())
      .def(
          "_shutdown", [](ProcessGroupNCCL& self) { self.shutdown(); },
          py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("uid", [](ProcessGroupNCCL&) { return 0; });
  module.def("stand_before", &stand_before);
}
