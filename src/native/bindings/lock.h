// The interpreter lock, which is released while kernels run.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace caransac {

// Releases the lock for the length of a block.
//
// When the interpreter ends, a daemon thread that asks for the lock again must not get it. Before version 3.14 Python
// ends such a thread by pthread_exit, which glibc does by unwinding its stack, and that ends the process with an abort
// where it meets a function that is noexcept, as nanobind's are. Here the thread waits for the end of the process
// instead, as later versions of Python have it.
class LockRelease {
  public:
    LockRelease() : state_(PyEval_SaveThread()) {}
    LockRelease(const LockRelease&) = delete;
    LockRelease& operator=(const LockRelease&) = delete;
    ~LockRelease() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {  // the unwinding: no C++ exception comes out of Python; to leave this block would abort, too
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }

  private:
    PyThreadState* state_;
};

}  // namespace caransac
