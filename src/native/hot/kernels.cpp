// Compiled once per instruction set, like the kernels it lists.
#include "kernels.h"

#include "five_point.h"
#include "score.h"
#include "seven_point.h"

#define CARANSAC_STRING_(x) #x
#define CARANSAC_STRING(x) CARANSAC_STRING_(x)

namespace caransac::CARANSAC_ISA {

extern const Kernels table;
const Kernels table = {CARANSAC_STRING(CARANSAC_ISA),
                       five_point,
                       seven_point,
                       residuals_sq,
                       close_points,
                       msac_scores,
                       pose_scores,
                       positive_depths,
                       top_models,
                       normal_equations,
                       residual_jacobian,
                       mlp,
                       neighbour_features};

}  // namespace caransac::CARANSAC_ISA
