// The compiled module. Its functions check shapes and ranges, release the interpreter lock, and call the kernels.
#include "arrays.h"
#include "hot/kernels.h"

NB_MODULE(_native, m) {
    using namespace caransac;
    nb::set_leak_warnings(
        false);  // libraries that keep modules alive to the end of the process are no concern of users
    m.doc() = "Two-view geometry kernels; see caransac.kernels for the documented interface.";
    m.def("instruction_set", [] { return kernels().instruction_set; }, "Instruction set the kernels run with.");
    bind_correspondences(m);
    bind_solvers(m);
    bind_refine_options(m);
    bind_models(m);
    bind_sampler(m);
    bind_selection(m);
    bind_learned(m);
}
