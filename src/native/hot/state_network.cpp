#include "state_network.h"

#include "blocks.h"
#include "columns.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Some rows of a matrix, no more than a block of them.
struct Rows {
    const int* numbers;
    int count;
};

// Calls work(rows) for every block of the rows.
template <class Work>
inline void for_each_block(const int* numbers, int count, const Work& work) {
    for (int first = 0; first < count; first += kBlock)
        work(Rows{numbers + first, first + kBlock < count ? kBlock : count - first});
}

void read_rows(const float* from, int columns, const Rows& rows, float* block) {
    for_each_piece(rows.count, columns, [=](int r, int column, int length) {
        copy(from + static_cast<long long>(rows.numbers[r]) * columns + column, length, at(block, r, column));
    });
}

void write_rows(float* block, int columns, const Rows& rows, float* to) {
    for_each_piece(rows.count, columns, [=](int r, int column, int length) {
        copy(at(block, r, column), length, to + static_cast<long long>(rows.numbers[r]) * columns + column);
    });
}

// Copies the scores of every match side by side; zero in the rest of the last tile.
void copy_scores(const Scores& scores, const Rows& rows, float* block) {
    for (int m = 0; m < scores.k; ++m) {
        const float* from = scores.scores + static_cast<long long>(m) * scores.n;
        float* to = at(block, 0, m);
        for (int r = 0; r < rows.count; ++r) to[r * kPadding] = from[rows.numbers[r]];
        for (int r = rows.count; r < whole_tiles(rows.count); ++r) to[r * kPadding] = 0;
    }
}

// Writes a block of states and decodes it while it is in the cache.
void write_states(float* states, const Layers& decoder, const Rows& rows, float* columns, float* hidden,
                  const StateOutput& out) {
    const int width = inputs_of(decoder);
    write_rows(states, width, rows, out.states);
    to_columns(states, width, rows.count, columns);
    const float* log_odds = apply_to_columns(columns, rows.count, decoder, hidden);
    float probabilities[kBlock];
    for (int r = 0; r < rows.count; r += kFloats) {  // 1 / (1 + exp(-x)), clamped because of rounding
        const Floats p = 0.5f + 0.5f * hyperbolic_tangent(0.5f * load(log_odds + r));
        store(probabilities + r, smaller(broadcast(1.0f), larger(broadcast(0.0f), p)));
    }
    for (int r = 0; r < rows.count; ++r) out.probabilities[rows.numbers[r]] = probabilities[r];
}

// Adds the sum of factor(r) row over the whole tiles of a block to sums (padded(columns)). Uses single precision within
// a block, and several partial sums, which are shorter and more accurate than one.
template <class Factor>
inline void add_rows(float* block, int columns, int rows, const Factor& factor, double* sums) {
    constexpr int kChains = 4;
    static_assert(kTile % kChains == 0);
    for (int first = 0; first < columns; first += kFloats) {
        const float* row = at(block, 0, first);
        Floats chains[kChains] = {};
        for (int r = 0; r < whole_tiles(rows); r += kChains)
            for (int c = 0; c < kChains; ++c) chains[c] += factor(r + c) * load(row + (r + c) * kPadding);
        float totals[kFloats];
        store(totals, (chains[0] + chains[1]) + (chains[2] + chains[3]));
        for (int i = 0; i < kFloats; ++i) sums[first + i] += static_cast<double>(totals[i]);
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
            // Writes to both places; the wrong one is overwritten later. This avoids an unpredictable branch.
            const int row = first + r, unexplained = row - explained;
            rows[explained] = rows[scores.n - 1 - unexplained] = row;
            explained += any[r];
        }
    }
    return explained;
}

void first_states(const float* side, int n, const Layers& init, const Layers& decoder, float* scratch,
                  const StateOutput& out) {
    float* const block = scratch;
    float* const states = block + block_size(inputs_of(init));
    float* const columns = states + block_size(outputs_of(init));
    float* const hidden = columns + block_size(outputs_of(init));
    int all[kBlock];
    for (int r = 0; r < kBlock; ++r) all[r] = r;
    for (int first = 0; first < n; first += kBlock) {
        const Rows rows{all, first + kBlock < n ? kBlock : n - first};
        const long long before = first;
        read_rows(side + before * inputs_of(init), inputs_of(init), rows, block);
        apply(block, rows.count, init, hidden, states);
        write_states(states, decoder, rows, columns, hidden,
                     {out.states + before * outputs_of(init), out.probabilities + before});
    }
}

void gather_messages(const float* states, const Scores& scores, const int* rows, int count, const Layers& message,
                     float* scratch, double* sums, double* totals) {
    const int columns = outputs_of(message);
    float* const block = scratch;
    float* const messages = block + block_size(inputs_of(message));
    float* const scored = messages + block_size(columns);
    float* const hidden = scored + block_size(scores.k);
    for_each_block(rows, count, [&](const Rows& some) {
        read_rows(states, inputs_of(message), some, block);
        copy_scores(scores, some, scored);
        apply(block, some.count, message, hidden, messages);
        for (int m = 0; m < scores.k; ++m) {
            const float* score = at(scored, 0, m);
            const auto factor = [=](int r) { return score[r * kPadding]; };
            add_rows(messages, columns, some.count, factor, sums + m * padded(columns));
        }
        add_rows(scored, scores.k, some.count, [](int) { return 1.0f; }, totals);
    });
}

void update_states(const float* states, const Scores& scores, const int* rows, int num_explained,
                   const UpdateLayers& layers, float* scratch, const StateOutput& out) {
    const int width = inputs_of(layers.unexplained);
    float* const scored = scratch;
    float* const before = scored + block_size(scores.k);
    float* const digests = before + block_size(width);
    float* const after = before + block_size(inputs_of(layers.explained));
    float* const columns = after + block_size(width);
    float* const hidden = columns + block_size(width);
    for_each_block(rows, num_explained, [&](const Rows& some) {
        read_rows(states, width, some, before);
        copy_scores(scores, some, scored);
        apply(scored, some.count, layers.digest, hidden, digests);
        apply(before, some.count, layers.explained, hidden, after);
        write_states(after, layers.decoder, some, columns, hidden, out);
    });
    for_each_block(rows + num_explained, scores.n - num_explained, [&](const Rows& some) {
        read_rows(states, width, some, before);
        apply(before, some.count, layers.unexplained, hidden, after);
        write_states(after, layers.decoder, some, columns, hidden, out);
    });
}

}  // namespace caransac::CARANSAC_ISA
