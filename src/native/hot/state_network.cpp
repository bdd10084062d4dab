#include "state_network.h"

#include "blocks.h"
#include "columns.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Some rows of a matrix, by their numbers, or those from `first` on where there are no numbers.
struct Rows {
    const int* numbers;
    int first, count;
    long long operator[](int r) const { return numbers == nullptr ? first + r : numbers[r]; }
};

// Calls work(rows) for every block of the rows from first to last.
template <class Work>
inline void for_each_block(const int* numbers, int first, int last, const Work& work) {
    for (; first < last; first += kBlock)
        work(
            Rows{numbers == nullptr ? nullptr : numbers + first, first, first + kBlock < last ? kBlock : last - first});
}

void copy_rows(const float* from, int columns, const Rows& rows, float* block) {
    for (int r = 0; r < rows.count; ++r) copy_to_block(from + rows[r] * columns, columns, r, block);
}

// The scores of every match side by side, zero in the rest of the last tile.
void copy_scores(const Scores& scores, const Rows& rows, float* block) {
    for (int m = 0; m < scores.k; ++m) {
        const float* from = scores.scores + static_cast<long long>(m) * scores.n;
        float* to = at(block, 0, m);
        for (int r = 0; r < rows.count; ++r) to[r * kPadding] = from[rows.numbers[r]];
        for (int r = rows.count; r < whole_tiles(rows.count); ++r) to[r * kPadding] = 0;
    }
}

// Writes a block of states, and decodes it while it is in the cache.
void write_beliefs(float* states, const Layers& decoder, const Rows& rows, float* columns, float* hidden,
                   const Beliefs& out) {
    const int width = inputs_of(decoder);
    for (int r = 0; r < rows.count; ++r) copy_from_block(states, width, r, out.states + rows[r] * width);
    to_columns(states, width, rows.count, columns);
    const float* log_odds = apply_to_columns(columns, rows.count, decoder, hidden);
    float probabilities[kBlock];
    for (int r = 0; r < rows.count; r += kFloats)  // 1 / (1 + exp(-x))
        store(probabilities + r, 0.5f + 0.5f * hyperbolic_tangent(0.5f * load(log_odds + r)));
    for (int r = 0; r < rows.count; ++r) out.probabilities[rows[r]] = probabilities[r];
}

// sums (padded(columns)) += the rows of a block by their factors, which are a column of another one or all one. In
// single precision for a block, in several chains of sums, each a fraction as long as one would be.
inline void add_rows(float* block, int columns, const float* factors, int rows, double* sums) {
    constexpr int kChains = 4;
    static_assert(kTile % kChains == 0);
    for (int first = 0; first < columns; first += kFloats) {
        Floats chains[kChains] = {};
        for (int r = 0; r < whole_tiles(rows); r += kChains)
            for (int c = 0; c < kChains; ++c) {
                const Floats row = load(at(block, r + c, first));
                chains[c] += factors == nullptr ? row : factors[(r + c) * kPadding] * row;
            }
        const Floats total = (chains[0] + chains[1]) + (chains[2] + chains[3]);
        for (int i = 0; i < kFloats; ++i) sums[first + i] += static_cast<double>(lane(total, i));
    }
}

}  // namespace

int explained_first(const Scores& scores, int* rows) {
    int explained = 0;
    for (int first = 0; first < scores.n; first += kBlock) {
        const int count = first + kBlock < scores.n ? kBlock : scores.n - first;
        int any[kBlock] = {};
        for (int m = 0; m < scores.k; ++m) {
            const float* of_model = scores.scores + static_cast<long long>(m) * scores.n + first;
            for (int r = 0; r < count; ++r) any[r] |= of_model[r] != 0;
        }
        for (int r = 0; r < count; ++r) {
            // Both places are free, and the wrong one of them will be written again: no branch that is hard to predict.
            const int row = first + r, unexplained = row - explained;
            rows[explained] = rows[scores.n - 1 - unexplained] = row;
            explained += any[r];
        }
    }
    return explained;
}

void first_states(const float* side, int n, const Layers& init, const Layers& decoder, float* scratch,
                  const Beliefs& out) {
    float* const block = scratch;
    float* const states = block + block_size(inputs_of(init));
    float* const columns = states + block_size(outputs_of(init));
    float* const hidden = columns + block_size(outputs_of(init));
    for_each_block(nullptr, 0, n, [&](const Rows& rows) {
        copy_rows(side, inputs_of(init), rows, block);
        apply(block, rows.count, init, hidden, states);
        write_beliefs(states, decoder, rows, columns, hidden, out);
    });
}

void gather_messages(const float* states, const Scores& scores, const int* rows, int count, const Layers& message,
                     float* scratch, double* sums, double* totals) {
    const int columns = outputs_of(message);
    float* const block = scratch;
    float* const messages = block + block_size(inputs_of(message));
    float* const scored = messages + block_size(columns);
    float* const hidden = scored + block_size(scores.k);
    for_each_block(rows, 0, count, [&](const Rows& some) {
        copy_rows(states, inputs_of(message), some, block);
        copy_scores(scores, some, scored);
        apply(block, some.count, message, hidden, messages);
        for (int m = 0; m < scores.k; ++m)
            add_rows(messages, columns, at(scored, 0, m), some.count, sums + m * padded(columns));
        add_rows(scored, scores.k, nullptr, some.count, totals);
    });
}

void update_states(const float* states, const Scores& scores, const int* rows, int num_explained,
                   const UpdateLayers& layers, float* scratch, const Beliefs& out) {
    const int width = inputs_of(layers.unexplained);
    float* const scored = scratch;
    float* const before = scored + block_size(scores.k);
    float* const digests = before + block_size(width);
    float* const after = before + block_size(inputs_of(layers.explained));
    float* const columns = after + block_size(width);
    float* const hidden = columns + block_size(width);
    for_each_block(rows, 0, num_explained, [&](const Rows& some) {
        copy_rows(states, width, some, before);
        copy_scores(scores, some, scored);
        apply(scored, some.count, layers.digest, hidden, digests);
        apply(before, some.count, layers.explained, hidden, after);
        write_beliefs(after, layers.decoder, some, columns, hidden, out);
    });
    for_each_block(rows, num_explained, scores.n, [&](const Rows& some) {
        copy_rows(states, width, some, before);
        apply(before, some.count, layers.unexplained, hidden, after);
        write_beliefs(after, layers.decoder, some, columns, hidden, out);
    });
}

}  // namespace caransac::CARANSAC_ISA
