// Evidence of the residuals of a robust fit about its precision.
#pragma once

#include <vector>

#include "deviations.h"

namespace caransac {

// Numbers that select the matches of a fit, in the unit of the residuals.
//   loss_scale: scale of the Cauchy loss
//   reach:      matches within this distance may be right
//   first:      matches between `first` and `last` are wrong
//   last:       matches farther away are not used
//   steepest:   matches whose derivatives are longer are not used
//   by_chance:  number of wrong matches that every model fits
//   enough:     maximum number of matches
//   freedoms:   number of degrees of freedom that determine the influence of a match
struct FitLimits {
    double loss_scale, reach, first, last, steepest, by_chance;
    int enough, freedoms;
};

// Sums over the matches, each with its weight `right`: its share of the weight times its probability of being right.
//   right:       weights of all matches; zero if not used
//   count:       sum of the weights
//   pull:        of r psi(r), with the influence function psi of the loss
//   spread:      of psi(r)^2, multiplied by the weight of the fit
//   information: of the outer products of the derivatives
//   thinning:    number of matches that each used match represents
struct FitEvidence {
    std::vector<double> right;
    double count = 0, pull = 0, spread = 0;
    double thinning = 1;
    Prior information;
};

// residuals: dimensions numbers for each match. slopes: a row of derivatives for each of these numbers. weights:
// weights of the fit. shares: the same, reduced for matches that are not independent.
FitEvidence fit_evidence(const double* residuals, const Eigen::Map<const Slopes>& slopes, const double* weights,
                         const double* shares, int n, const FitLimits& limits);

}  // namespace caransac
