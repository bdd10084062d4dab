// The interpreter lock, which is released while kernels run.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace caransac {

// Releases the lock for the duration of a block.
//
// When the interpreter exits, a daemon thread must not get the lock again. Before version 3.14, Python ends such a
// thread by pthread_exit. glibc implements that by unwinding the stack, which aborts the process at a noexcept
// function, such as nanobind's. Here the thread waits for the end of the process instead, as in later versions of
// Python.
class LockRelease {
  public:
    LockRelease() : state_(PyEval_SaveThread()) {}
    LockRelease(const LockRelease&) = delete;
    LockRelease& operator=(const LockRelease&) = delete;
    ~LockRelease() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {  // only unwinding, as Python throws no C++ exceptions; leaving this block would abort, too
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }

  private:
    PyThreadState* state_;
};

}  // namespace caransac
