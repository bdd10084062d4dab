// The hot kernels in one table per instruction set, and the choice of the table for this CPU.
#pragma once

#include "five_point.h"
#include "four_point.h"
#include "homography.h"
#include "lens_equations.h"
#include "mlp.h"
#include "neighbours.h"
#include "normal_equations.h"
#include "patch.h"
#include "points.h"
#include "reprojection.h"
#include "score.h"
#include "seven_point.h"
#include "state_network.h"
#include "three_point.h"

// List of all hot kernels. The entries of the table have these names, the types of the functions, and this order.
// clang-format off
#define CARANSAC_KERNELS(entry) \
    entry(five_point) \
    entry(five_point_poses) \
    entry(seven_point) \
    entry(four_point) \
    entry(three_point) \
    entry(residuals_sq) \
    entry(msac_scores) \
    entry(pose_scores) \
    entry(rough_msac_scores) \
    entry(rough_pose_scores) \
    entry(positive_depths) \
    entry(dot) \
    entry(top_models) \
    entry(normal_equations) \
    entry(residual_jacobian) \
    entry(loss_terms) \
    entry(lens_equations) \
    entry(transfer_errors_sq) \
    entry(homography_scores) \
    entry(top_homographies) \
    entry(transfer_equations) \
    entry(reprojection_errors_sq) \
    entry(reprojection_scores) \
    entry(rough_reprojection_scores) \
    entry(top_projections) \
    entry(reprojection_equations) \
    entry(reprojection_jacobian) \
    entry(mlp) \
    entry(explained_first) \
    entry(first_states) \
    entry(gather_messages) \
    entry(update_states) \
    entry(neighbour_features) \
    entry(align_patch)
// clang-format on

namespace caransac {

struct Kernels {
    const char* instruction_set;
#define CARANSAC_POINTER(name) decltype(CARANSAC_ISA::name)* name;
    CARANSAC_KERNELS(CARANSAC_POINTER)
#undef CARANSAC_POINTER
};

// The fastest table that this CPU can run. The environment variable CARANSAC_INSTRUCTION_SET (baseline, avx2, avx512),
// read once, requests a lower one; an unsupported instruction set is never chosen.
const Kernels& kernels();

}  // namespace caransac
