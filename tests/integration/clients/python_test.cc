// Unmodified CPython in many fibers of which some raise exceptions. It keeps the state of a thread, with what is raised in it, and
// passes one lock around.
#include <Python.h>

#include <string>

#include "tests/integration/clients/matrix.h"

namespace sylar::test {
namespace {

// A function that does everything in the program below, with a number.
constexpr char kProgram[] = R"(
import decimal, os, sys, threading, time

local = threading.local()
idents = {}

class Own(Exception):
    pass

def fail(i):
    if i % 6 == 0:
        return int('x%d' % i)
    if i % 6 == 1:
        return {}['key %d' % i]
    if i % 6 == 2:
        raise Own(i)
    if i % 6 == 3:
        os.stat('/nothing/%d' % i)
    if i % 6 == 4:
        return decimal.Decimal(1) / 0 if i % 4 == 0 else 1 / 0
    return 'no error %d' % i

def use(i, meet, feed, fd):
    local.number = i
    decimal.getcontext().prec = 3 + i
    idents[i] = threading.get_ident()
    seen = []
    meet()
    seen.append(str(len(set(idents.values()))))
    try:
        seen.append(fail(i))
    except Exception as error:
        meet()
        time.sleep(0.001)
        feed()
        seen.append(os.read(fd, 10).decode())
        seen.append(repr(sys.exc_info()[1]))
        assert sys.exc_info()[1] is error
    else:
        meet()
        feed()
        seen.append(os.read(fd, 10).decode() + repr(sys.exc_info()[1]))
    seen.append('%d %s' % (local.number, decimal.Decimal(1) / 3))
    meet()
    del idents[i]
    meet()
    if i % 2 == 0:
        fail(i)
    return ' '.join(seen)
)";

/// The number of whoever runs it, and what a script may call.
struct User {
  Users& us;
  int feeds;
};

PyObject* meet(PyObject* self, PyObject*) {
  auto& user = *static_cast<User*>(PyCapsule_GetPointer(self, nullptr));
  Py_BEGIN_ALLOW_THREADS;
  user.us.meet();
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

PyObject* feed(PyObject* self, PyObject*) {
  const auto& user = *static_cast<User*>(PyCapsule_GetPointer(self, nullptr));
  EXPECT_EQ(::write(user.feeds, "fed", 3), 3);
  Py_RETURN_NONE;
}

PyMethodDef g_meet{"meet", &meet, METH_NOARGS, nullptr};
PyMethodDef g_feed{"feed", &feed, METH_NOARGS, nullptr};

std::string toText(PyObject* object) {
  PyObject* const text = PyObject_Str(object);
  const std::string copy = PyUnicode_AsUTF8(text);
  Py_DECREF(text);
  return copy;
}

/// What was raised in this thread, which it takes away.
std::string raised() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const std::string text = type == nullptr ? "nothing" : toText(type) + ": " + toText(value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return text;
}

TEST(Python, SeesInFibersWhatItSeesInThreads) {
  Py_InitializeEx(0);
  PyObject* const program = PyImport_AddModule("__main__");
  ASSERT_EQ(PyRun_SimpleString(kProgram), 0);
  PyThreadState* const main = PyEval_SaveThread();
  int pipes[Users::kSize][2];
  for (auto& pipe : pipes) ASSERT_EQ(::pipe(pipe), 0);
  seesInFibersWhatItSeesInThreads(20, [&](Users& us, size_t i) {
    const PyGILState_STATE state = PyGILState_Ensure();
    User user{us, pipes[(i + 1) % Users::kSize][1]};
    PyObject* const self = PyCapsule_New(&user, nullptr, nullptr);
    PyObject* const meet = PyCFunction_New(&g_meet, self);
    PyObject* const feed = PyCFunction_New(&g_feed, self);
    PyObject* const result = PyObject_CallMethod(program, "use", "nOOi", static_cast<Py_ssize_t>(i), meet, feed, pipes[i][0]);
    Py_BEGIN_ALLOW_THREADS;
    us.meet();  // with what was raised
    Py_END_ALLOW_THREADS;
    const std::string seen = (result != nullptr ? toText(result) : "none") + "; " + raised();
    Py_XDECREF(result);
    Py_DECREF(meet);
    Py_DECREF(feed);
    Py_DECREF(self);
    PyGILState_Release(state);
    return seen;
  });
  for (auto& pipe : pipes) ::close(pipe[0]), ::close(pipe[1]);
  PyEval_RestoreThread(main);
  EXPECT_EQ(Py_FinalizeEx(), 0);
}

}  // namespace
}  // namespace sylar::test
