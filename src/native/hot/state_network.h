// The state network for all matches; caransac/learned/state_network.py documents the equations.
#pragma once

#include "isa.h"
#include "layers.h"

namespace caransac {

// Output for n matches: states, row by row, and the inlier probabilities decoded from them.
struct StateOutput {
    float *states, *probabilities;
};

// The MSAC scores of n matches for k models, model by model.
struct Scores {
    const float* scores;
    int k, n;
};

// The layers of an update, which depend on the scores of the call.
struct UpdateLayers {
    Layers digest;       // scores of a match -> last hidden layer of its digest
    Layers explained;    // [padded state, that layer] -> new state: for matches with scores
    Layers unexplained;  // state -> new state: for matches without scores, whose digests are all equal
    Layers decoder;
};

// Number of scratch floats for the kernels. They must be zero when the kernels are called.
static inline int first_scratch(const Layers& init, const Layers& decoder) {
    return block_size(inputs_of(init)) + 2 * block_size(outputs_of(init)) + hidden_size(init) + hidden_size(decoder);
}
static inline int message_scratch(const Layers& message, int k) {
    return block_size(inputs_of(message)) + block_size(outputs_of(message)) + block_size(k) + hidden_size(message);
}
static inline int update_scratch(const UpdateLayers& layers) {
    return block_size(inputs_of(layers.digest)) + block_size(inputs_of(layers.explained)) +
           2 * block_size(outputs_of(layers.explained)) + hidden_size(layers.digest) + hidden_size(layers.explained) +
           hidden_size(layers.decoder);
}

namespace CARANSAC_ISA {

// rows (n): matches with a score for some model, then the others in reverse order. Returns the number of matches with a
// score.
int explained_first(const Scores& scores, int* rows);

// States and probabilities from side information (n x inputs of init). scratch: first_scratch floats.
void first_states(const float* side, int n, const Layers& init, const Layers& decoder, float* scratch,
                  const StateOutput& out);

// Adds scores message(states) to sums (k x padded(outputs)) and the scores to totals (padded(k)), over `count` rows.
// The result is the same to the last bit on every run. scratch: message_scratch floats.
void gather_messages(const float* states, const Scores& scores, const int* rows, int count, const Layers& message,
                     float* scratch, double* sums, double* totals);

// New states and probabilities. rows: from explained_first. scratch: update_scratch floats.
void update_states(const float* states, const Scores& scores, const int* rows, int num_explained,
                   const UpdateLayers& layers, float* scratch, const StateOutput& out);

}  // namespace CARANSAC_ISA
}  // namespace caransac
