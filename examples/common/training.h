// Trains a classifier of images and shows how it goes: what the examples have in common.
#pragma once

#include <bitale/bitale.h>

#include <vector>

#include "common/dataset.h"
#include "common/settings.h"

// How well probabilities [n, 10] fit the labels [n].
struct Scores {
    bitale::Expr loss;   // mean crossentropy
    bitale::Expr wrong;  // number of images whose most probable class is not the label
};
Scores score(const bitale::Expr& probabilities, const bitale::Expr& labels);

struct Model {
    bitale::Expr x, y;  // a minibatch: float32 images (of rank 4, or rows of pixels) and int32 labels
    Scores training;    // of the network as it is trained, with dropout
    Scores testing;     // of the network as it is used
    bitale::Parameters params;
    bitale::Updates updates;
};

// The examples' whole main program: trains for the given epochs, evaluates after each, prints, saves. Where
// there is a validation set, it judges the epochs, and at the end every set is evaluated. Returns the exit
// status: 0, or 130 or 143 when Ctrl-C or SIGTERM ended the training early.
int train(const Settings& settings, const Data& data, const Model& model);
