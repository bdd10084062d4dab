// The instruction set a translation unit is compiled for.
//
// The hot kernels (five_point, seven_point, score, normal_equations, mlp, neighbours) are compiled several times, each
// time into the namespace caransac::<CARANSAC_ISA> and with that instruction set's flags; `kernels()` picks one table
// at run time. Everything those files share therefore lives in that namespace, and they use neither Eigen nor the
// standard library's templates: a template compiled for AVX-512 and merged by the linker into baseline code would crash
// old CPUs.
#pragma once

#ifndef CARANSAC_ISA
#define CARANSAC_ISA baseline
#endif
