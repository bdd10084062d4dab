#include "state_network.h"

#include "blocks.h"

namespace caransac::CARANSAC_ISA {
namespace {

// Rows of a matrix by their numbers, or all rows from `first` on where there are no numbers.
struct Rows {
    const int* numbers;
    int first, count;
    long long operator[](int r) const { return numbers == nullptr ? first + r : numbers[first + r]; }
};

// Calls work(rows) for every block of the rows from first to last.
template <class Work>
inline void for_each_block(const int* numbers, int first, int last, const Work& work) {
    for (; first < last; first += kBlock) work(Rows{numbers, first, first + kBlock < last ? kBlock : last - first});
}

void copy_rows(const float* from, int columns, const Rows& rows, float* block) {
    for (int r = 0; r < rows.count; ++r) copy_to_block(from + rows[r] * columns, columns, r, block);
    clear_rest(columns, rows.count, block);
}

// The scores of every match side by side.
void copy_scores(const Scores& scores, const Rows& rows, float* block) {
    for (int m = 0; m < scores.k; ++m) {
        const float* from = scores.scores + static_cast<long long>(m) * scores.n;
        float* to = block + m / kPadding * kPanel + m % kPadding;
        for (int r = 0; r < rows.count; ++r) to[r * kPadding] = from[rows[r]];
    }
    clear_rest(scores.k, rows.count, block);
}

// 1 / (1 + exp(-x)) of the first column of a block, to the rows of `probabilities`.
void write_probabilities(const float* log_odds, const Rows& rows, float* probabilities) {
    float column[kBlock] = {};
    for (int r = 0; r < rows.count; ++r) column[r] = log_odds[r * kPadding];
    for (int r = 0; r < rows.count; r += kFloats)
        store(column + r, 0.5f + 0.5f * hyperbolic_tangent(0.5f * load(column + r)));
    for (int r = 0; r < rows.count; ++r) probabilities[rows[r]] = column[r];
}

// Writes a block of states, and decodes it while it is in the cache. log_odds: a block of one column.
void write_beliefs(const float* states, const Layers& decoder, const Rows& rows, float* hidden, float* log_odds,
                   const Beliefs& out) {
    const int columns = inputs_of(decoder);
    for (int r = 0; r < rows.count; ++r) copy_from_block(states, columns, r, out.states + rows[r] * columns);
    apply(states, rows.count, decoder, hidden, log_odds);
    write_probabilities(log_odds, rows, out.probabilities);
}

// sums (padded(columns)) += the rows of a block by column m of the block of scores, in single precision per block.
void add_products(const float* block, int columns, const float* scores, int m, int rows, double* sums) {
    const float* score = scores + m / kPadding * kPanel + m % kPadding;
    for (int first = 0; first < columns; first += kFloats) {
        const float* column = block + first / kPadding * kPanel + first % kPadding;
        Floats even = broadcast(0.0f), odd = even;  // two chains of sums, half as long as one
        for (int r = 0; r < whole_tiles(rows); r += 2) {
            even += score[r * kPadding] * load(column + r * kPadding);
            odd += score[(r + 1) * kPadding] * load(column + (r + 1) * kPadding);
        }
        const Floats both = even + odd;
        for (int i = 0; i < kFloats; ++i) sums[first + i] += static_cast<double>(lane(both, i));
    }
}

}  // namespace

int explained_first(const Scores& scores, int* rows) {
    int explained = 0, unexplained = 0;
    // Those without go to the end, the last one first, until all are counted.
    for (int first = 0; first < scores.n; first += kBlock) {
        const int count = first + kBlock < scores.n ? kBlock : scores.n - first;
        bool any[kBlock] = {};
        for (int m = 0; m < scores.k; ++m) {
            const float* of_model = scores.scores + static_cast<long long>(m) * scores.n + first;
            for (int r = 0; r < count; ++r) any[r] |= of_model[r] != 0;
        }
        for (int r = 0; r < count; ++r) {
            rows[any[r] ? explained : scores.n - 1 - unexplained] = first + r;
            explained += any[r];
            unexplained += !any[r];
        }
    }
    for (int low = explained, high = scores.n - 1; low < high; ++low, --high) {
        const int row = rows[low];
        rows[low] = rows[high];
        rows[high] = row;
    }
    return explained;
}

void first_states(const float* side, int n, const Layers& init, const Layers& decoder, float* scratch,
                  const Beliefs& out) {
    float* const block = scratch;
    float* const states = block + block_size(inputs_of(init));
    float* const log_odds = states + block_size(outputs_of(init));
    float* const hidden = log_odds + block_size(1);
    for_each_block(nullptr, 0, n, [&](const Rows& rows) {
        copy_rows(side, inputs_of(init), rows, block);
        apply(block, rows.count, init, hidden, states);
        write_beliefs(states, decoder, rows, hidden, log_odds, out);
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
        for (int m = 0; m < scores.k; ++m) {
            add_products(messages, columns, scored, m, some.count, sums + m * padded(columns));
            const float* score = scored + m / kPadding * kPanel + m % kPadding;
            for (int r = 0; r < some.count; ++r) totals[m] += static_cast<double>(score[r * kPadding]);
        }
    });
}

void update_states(const float* states, const Scores& scores, const int* rows, int num_explained,
                   const UpdateLayers& layers, float* scratch, const Beliefs& out) {
    const int columns = inputs_of(layers.unexplained);
    float* const scored = scratch;
    float* const before = scored + block_size(scores.k);
    float* const digests = before + block_size(columns);
    float* const after = before + block_size(inputs_of(layers.explained));
    float* const log_odds = after + block_size(columns);
    float* const hidden = log_odds + block_size(1);
    for_each_block(rows, 0, num_explained, [&](const Rows& some) {
        copy_rows(states, columns, some, before);
        copy_scores(scores, some, scored);
        apply(scored, some.count, layers.digest, hidden, digests);
        apply(before, some.count, layers.explained, hidden, after);
        write_beliefs(after, layers.decoder, some, hidden, log_odds, out);
    });
    for_each_block(rows, num_explained, scores.n, [&](const Rows& some) {
        copy_rows(states, columns, some, before);
        apply(before, some.count, layers.unexplained, hidden, after);
        write_beliefs(after, layers.decoder, some, hidden, log_odds, out);
    });
}

}  // namespace caransac::CARANSAC_ISA
