// The hot kernels behind one table per instruction set, and the table this CPU should use.
#pragma once

#include "mlp.h"
#include "neighbours.h"
#include "normal_equations.h"
#include "points.h"

namespace caransac {

struct Kernels {
    const char* instruction_set;
    int (*five_point)(const double*, const double*, int, double*, int*);
    int (*seven_point)(const double*, const double*, int, double*, int*);
    void (*residuals_sq)(const double*, const Columns<double>&, double*);
    int (*close_points)(const double*, const Columns<double>&, double, int*);
    void (*msac_scores)(const double*, const Columns<double>&, double, float*);
    void (*pose_scores)(const double*, const double*, const double*, const Columns<double>&, double, float*);
    void (*positive_depths)(const double*, const double*, const Columns<double>&, double*);
    int (*top_models)(const double*, int, const Columns<float>&, double, int, int*, double*);
    void (*normal_equations)(const double*, const double*, int, const Columns<double>&, const double*, Loss, double,
                             Precision, NormalEquations&);
    void (*residual_jacobian)(const double*, const Columns<double>&, double*, double*);
    void (*mlp)(const Input*, int, int, const Layer*, int, float*);
    void (*neighbour_features)(const Grid&, double, float*);
};

// The fastest table this CPU can run. The environment variable CARANSAC_INSTRUCTION_SET (baseline, avx2, avx512), read
// once, asks for a lesser one; what the CPU lacks is never chosen.
const Kernels& kernels();

}  // namespace caransac
