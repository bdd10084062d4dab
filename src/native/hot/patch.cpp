#include "patch.h"

#include "pack.h"

namespace caransac::CARANSAC_ISA {
namespace {

constexpr double kIndependent = 1 / 30.0;  // share of pixels with independent errors: those of neighbours are alike
constexpr double kGreyNoise = 0.01;        // variance of normalised grey levels that no alignment explains
constexpr double kLeastWeight = 0.5;       // of the pixels inside of both images
constexpr float kLeastDeviation = 1e-6f;   // of grey levels, relative to their size, below which a patch is flat

// Columns with one number for each pixel of a patch. Padding has weight zero.
struct Patch {
    int n;
    const float *x, *y;
    alignas(64) float weight[kMostPatchPixels], grey[kMostPatchPixels], moved[kMostPatchPixels];
    alignas(64) float slope[kPatchParameters][kMostPatchPixels];  // of the normalised grey levels
};

// Weighted sum of products of two columns.
double sum_of(const Patch& patch, const float* a, const float* b) {
    Floats total{};
    for (int i = 0; i < patch.n; i += kFloats) total += load(patch.weight + i) * load(a + i) * load(b + i);
    return sum(total);
}

double sum_of(const Patch& patch, const float* a) {
    Floats total{};
    for (int i = 0; i < patch.n; i += kFloats) total += load(patch.weight + i) * load(a + i);
    return sum(total);
}

void add(const Patch& patch, float* column, float offset, float factor, const float* other) {
    for (int i = 0; i < patch.n; i += kFloats) store(column + i, load(column + i) + offset + factor * load(other + i));
}

// Normalises grey levels to mean 0 and deviation 1. Returns their deviation, or 0 if they are constant.
float normalise(const Patch& patch, float* grey) {
    const float mean = static_cast<float>(sum_of(patch, grey));
    for (int i = 0; i < patch.n; i += kFloats) store(grey + i, load(grey + i) - mean);
    const float deviation = ::sqrtf(static_cast<float>(sum_of(patch, grey, grey)));
    if (!(deviation > kLeastDeviation * (mean < 0 ? -mean : mean)) || !(deviation > 0)) return 0;
    for (int i = 0; i < patch.n; i += kFloats) store(grey + i, load(grey + i) * (1 / deviation));
    return deviation;
}

// Samples a window at the pixels of a patch, linearly interpolated.
void sample(const Window& window, const double centre[2], const double map[4], const Patch& patch, float* out) {
    const float x0 = static_cast<float>(centre[0] - window.origin[0]),
                y0 = static_cast<float>(centre[1] - window.origin[1]);
    const float a = static_cast<float>(map[0]), b = static_cast<float>(map[1]), c = static_cast<float>(map[2]),
                d = static_cast<float>(map[3]);
    const float right = static_cast<float>(window.width) - 1.001f, bottom = static_cast<float>(window.height) - 1.001f;
    const int stride = window.stride;
    for (int i = 0; i < patch.n; ++i) {
        float x = x0 + a * patch.x[i] + b * patch.y[i], y = y0 + c * patch.x[i] + d * patch.y[i];
        x = x > 0 ? x : 0;
        x = x < right ? x : right;
        y = y > 0 ? y : 0;
        y = y < bottom ? y : bottom;
        const int column = static_cast<int>(x), row = static_cast<int>(y);
        const float u = x - static_cast<float>(column), v = y - static_cast<float>(row);
        const float* at = window.grey + row * stride + column;
        const float upper = at[0] + u * (at[1] - at[0]), lower = at[stride] + u * (at[stride + 1] - at[stride]);
        out[i] = upper + v * (lower - upper);
    }
}

// Factorises a positive definite matrix in place: the lower triangle becomes L with A = L L^T. False if it is singular.
bool factorise(double (*A)[kPatchParameters], int size) {
    for (int i = 0; i < size; ++i) {
        for (int j = 0; j <= i; ++j) {
            double left = A[i][j];
            for (int k = 0; k < j; ++k) left -= A[i][k] * A[j][k];
            if (i == j) {
                if (!(left > 0)) return false;
                A[i][i] = ::sqrt(left);
            } else {
                A[i][j] = left / A[j][j];
            }
        }
    }
    return true;
}

void solve(const double (*L)[kPatchParameters], int size, double* b) {
    for (int i = 0; i < size; ++i) {
        for (int k = 0; k < i; ++k) b[i] -= L[i][k] * b[k];
        b[i] /= L[i][i];
    }
    for (int i = size - 1; i >= 0; --i) {
        for (int k = i + 1; k < size; ++k) b[i] -= L[k][i] * b[k];
        b[i] /= L[i][i];
    }
}

bool is_inside(double x, double y, const int size[2]) {
    return x >= 0 && y >= 0 && x <= size[0] - 1 && y <= size[1] - 1;
}

// Variance of a weighted mean of grey level differences, given the correlation of two normalised patches.
double variance_of(double correlation, int radius) {
    const int side = 2 * radius + 1;
    return (2 * (1 - correlation) + kGreyNoise) / (kIndependent * side * side);
}

// Copies the weights of the pixels that are inside of both images. Returns false if too few of them are.
bool weigh(const PatchShape& shape, const int point[2], const PatchAlignment& start, const int size1[2],
           const int size2[2], float* weight) {
    const double *centre = start.centre, *map = start.map;
    bool all_inside = true;
    for (int corner = 0; corner < 4; ++corner) {
        const int x = corner % 2 == 0 ? -shape.radius : shape.radius,
                  y = corner / 2 == 0 ? -shape.radius : shape.radius;
        all_inside = all_inside && is_inside(point[0] + x, point[1] + y, size1) &&
                     is_inside(centre[0] + map[0] * x + map[1] * y, centre[1] + map[2] * x + map[3] * y, size2);
    }
    std::memcpy(weight, shape.weight, sizeof(float) * shape.n);
    if (all_inside) return true;
    double total = 0;
    for (int i = 0; i < shape.n; ++i) {
        const double x = shape.x[i], y = shape.y[i];
        if (!is_inside(point[0] + x, point[1] + y, size1) ||
            !is_inside(centre[0] + map[0] * x + map[1] * y, centre[1] + map[2] * x + map[3] * y, size2))
            weight[i] = 0;
        total += weight[i];
    }
    for (int i = 0; i < shape.n; ++i) weight[i] /= static_cast<float>(total);
    return total >= kLeastWeight;
}

}  // namespace

bool align_patch(const PatchShape& shape, const Window& first, const int point[2], const Window& second,
                 const int size1[2], const int size2[2], const PatchOptions& options, PatchAlignment& alignment) {
    Patch patch;
    patch.n = shape.n;
    patch.x = shape.x;
    patch.y = shape.y;
    const int radius = shape.radius, side = 2 * radius + 1;
    double* const centre = alignment.centre;
    double* const map = alignment.map;

    // Grey levels, and their slopes by central differences.
    const int left = point[0] - static_cast<int>(first.origin[0]), top = point[1] - static_cast<int>(first.origin[1]);
    for (int i = side * side; i < shape.n; ++i) patch.grey[i] = patch.slope[0][i] = patch.slope[1][i] = 0;
    for (int row = 0; row < side; ++row) {
        const float* at = first.grey + (top + row - radius) * first.stride + left - radius;
        const int i = row * side;
        for (int column = 0; column < side; ++column) {
            patch.grey[i + column] = at[column];
            patch.slope[0][i + column] = 0.5f * (at[column + 1] - at[column - 1]);
            patch.slope[1][i + column] = 0.5f * (at[column + first.stride] - at[column - first.stride]);
        }
    }
    if (!weigh(shape, point, alignment, size1, size2, patch.weight)) return false;
    const float contrast = normalise(patch, patch.grey);
    if (contrast == 0) return false;

    // Slopes with respect to all parameters, without the parts that the normalisation removes.
    const int size = options.affine_deviation > 0 ? 6 : 2;
    for (int i = 0; i < patch.n; ++i) {
        const float gx = patch.slope[0][i] / contrast, gy = patch.slope[1][i] / contrast;
        patch.slope[0][i] = gx;
        patch.slope[1][i] = gy;
        patch.slope[2][i] = gx * patch.x[i];
        patch.slope[3][i] = gx * patch.y[i];
        patch.slope[4][i] = gy * patch.x[i];
        patch.slope[5][i] = gy * patch.y[i];
    }
    for (int p = 0; p < size; ++p) {
        add(patch, patch.slope[p], -static_cast<float>(sum_of(patch, patch.slope[p])), 0, patch.grey);
        add(patch, patch.slope[p], 0, -static_cast<float>(sum_of(patch, patch.slope[p], patch.grey)), patch.grey);
    }
    double H[kPatchParameters][kPatchParameters], L[kPatchParameters][kPatchParameters];
    for (int p = 0; p < size; ++p)
        for (int q = 0; q <= p; ++q) H[p][q] = sum_of(patch, patch.slope[p], patch.slope[q]);

    const double start[2] = {centre[0], centre[1]};
    bool factorised = false;
    for (int step = 0;; ++step) {
        sample(second, centre, map, patch, patch.moved);
        if (normalise(patch, patch.moved) == 0) return false;
        alignment.after = sum_of(patch, patch.moved, patch.grey);
        if (step == 0) alignment.before = alignment.after;
        if (step == options.max_steps) break;
        if (!factorised) {
            const double unit = variance_of(alignment.after, radius);
            for (int p = 0; p < size; ++p) {
                const double deviation = p < 2 ? options.max_shift : options.affine_deviation;
                for (int q = 0; q <= p; ++q) L[p][q] = H[p][q];
                L[p][p] += unit / (deviation * deviation);
            }
            if (!factorise(L, size)) return false;
            factorised = true;
        }
        double change[kPatchParameters];
        add(patch, patch.moved, 0, -1, patch.grey);
        for (int p = 0; p < size; ++p) change[p] = sum_of(patch, patch.slope[p], patch.moved);
        solve(L, size, change);
        // Compose the map with the inverse of the change.
        if (size == 6) {
            const double a = 1 + change[2], b = change[3], c = change[4], d = 1 + change[5], det = a * d - b * c;
            if (!(det > 0.25 && det < 4)) return false;
            const double m[4] = {map[0], map[1], map[2], map[3]};
            map[0] = (m[0] * d - m[1] * c) / det;
            map[1] = (m[1] * a - m[0] * b) / det;
            map[2] = (m[2] * d - m[3] * c) / det;
            map[3] = (m[3] * a - m[2] * b) / det;
        }
        double dx = -(map[0] * change[0] + map[1] * change[1]), dy = -(map[2] * change[0] + map[3] * change[1]);
        const double length = ::sqrt(dx * dx + dy * dy);
        if (!(length < 1e6)) return false;
        if (length > options.max_step) {
            dx *= options.max_step / length;
            dy *= options.max_step / length;
        }
        centre[0] += dx;
        centre[1] += dy;
        const double away[2] = {centre[0] - start[0], centre[1] - start[1]};
        if (away[0] * away[0] + away[1] * away[1] > options.max_shift * options.max_shift) return false;
        if (length < options.min_step) break;
    }
    // The information about the centre, from the slopes and the differences that are left.
    const double det = map[0] * map[3] - map[1] * map[2];
    if (!(det > 1e-6 || det < -1e-6)) return false;
    const double back[4] = {map[3] / det, -map[1] / det, -map[2] / det, map[0] / det};
    const double xx = H[0][0], xy = H[1][0], yy = H[1][1];
    const double per_noise = 1 / variance_of(alignment.after, radius);
    alignment.information[0] =
        per_noise * (back[0] * (xx * back[0] + xy * back[2]) + back[2] * (xy * back[0] + yy * back[2]));
    alignment.information[1] =
        per_noise * (back[0] * (xx * back[1] + xy * back[3]) + back[2] * (xy * back[1] + yy * back[3]));
    alignment.information[2] =
        per_noise * (back[1] * (xx * back[1] + xy * back[3]) + back[3] * (xy * back[1] + yy * back[3]));
    return true;
}

}  // namespace caransac::CARANSAC_ISA
