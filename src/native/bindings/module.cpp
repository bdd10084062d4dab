// The compiled module. Its functions check shapes and ranges, release the interpreter lock, and call the kernels.
#include "arrays.h"
#include "hot/kernels.h"

NB_MODULE(_native, m) {
    using namespace caransac;
    // nanobind takes the lock of the main interpreter when it frees arrays. In another interpreter that would wait
    // forever.
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        throw nb::import_error(
            "caransac works only in the main interpreter, not in a subinterpreter: use threads or processes, and with "
            "mod_wsgi the setting WSGIApplicationGroup %{GLOBAL}");
    }
    nb::set_leak_warnings(false);  // do not report leaks: some libraries keep modules alive until the process ends
    m.doc() = "Kernels of two-view geometry; see caransac.kernels.";
    m.def(
        "instruction_set", [] { return kernels().instruction_set; },
        "Return the instruction set in use: \"baseline\", \"avx2\" or \"avx512\".\n\n"
        "It is the best one of the CPU, unless the environment variable CARANSAC_INSTRUCTION_SET requests a lower "
        "one.");
    m.def(
        "sources_digest", [] { return CARANSAC_SOURCES_DIGEST; },
        "Return the digest of the C++ sources of the kernels, the same on every platform.");
    bind_correspondences(m);
    bind_solvers(m);
    bind_refine_options(m);
    bind_models(m);
    bind_lenses(m);
    bind_photographs(m);
    bind_sampler(m);
    bind_selection(m);
    bind_learned(m);
}
