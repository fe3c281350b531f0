// Trains a classifier of MNIST and shows how it goes: what the examples have in common.
#pragma once

#include <bitale/bitale.h>

#include <vector>

#include "common/mnist.h"
#include "common/settings.h"

// How well probabilities [n, 10] fit the labels [n].
struct Scores {
    bitale::Expr loss;   // mean crossentropy
    bitale::Expr wrong;  // number of images whose most probable class is not the label
};
Scores score(const bitale::Expr& probabilities, const bitale::Expr& labels);

struct Model {
    bitale::Expr x, y;  // a minibatch: float32 images (of rank 4, or rows of 784 pixels) and int32 labels
    Scores training;    // of the network as it is trained, with dropout
    Scores testing;     // of the network as it is used
    std::vector<bitale::Shared> params;
    bitale::Updates updates;
};

// The examples' whole main program: trains for the given epochs, evaluates after each, prints, saves. Returns
// the exit status: 0, or 130 when Ctrl-C ended the training early.
int train(const Settings& settings, const Mnist& mnist, const Model& model);
