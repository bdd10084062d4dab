// The compiled module. Its functions check shapes and ranges, release the interpreter lock, and call the kernels.
#include "arrays.h"
#include "hot/kernels.h"

NB_MODULE(_native, m) {
    using namespace caransac;
    // nanobind asks for the lock of the main interpreter when it frees arrays: elsewhere that would wait for ever.
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        throw nb::import_error(
            "caransac works in the main interpreter alone, not in a subinterpreter: use threads or processes, and "
            "under "
            "mod_wsgi the setting WSGIApplicationGroup %{GLOBAL}");
    }
    nb::set_leak_warnings(
        false);  // libraries that keep modules alive to the end of the process are no concern of users
    m.doc() = "Two-view geometry kernels; see caransac.kernels for the documented interface.";
    m.def("instruction_set", [] { return kernels().instruction_set; }, "Instruction set the kernels run with.");
    m.def("sources_digest", [] { return CARANSAC_SOURCES_DIGEST; }, "Digest of the sources it was compiled from.");
    bind_correspondences(m);
    bind_solvers(m);
    bind_refine_options(m);
    bind_models(m);
    bind_lenses(m);
    bind_sampler(m);
    bind_selection(m);
    bind_learned(m);
}
