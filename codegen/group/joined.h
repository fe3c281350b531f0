// Values that are put together from parts of others, as concatenations and gradients of slices are, or from
// elements that are looked up.
#pragma once

#include "codegen/group/values.h"
#include "codegen/target.h"

namespace bitale {

// Why such a value, each of whose elements is asked for so many times, is stored, for people; null: it is
// not.
//
// It has many narrow parts side by side (schedule/pieces.h): whatever reads it would ask, for each element,
// in which of them it lies. Or a product reads it whole for each of its rows: every task of rows would put it
// together again, and from memory it is read as it is. Not what is larger than a cache, nor narrower in
// memory than it is here. Or its elements are looked up, and a map of many times as many reads them, as a
// bias that is the same for all windows of an image: from memory they are loaded as vectors. So are elements
// of an argument or a shared variable that a transpose or a slice puts apart. Or a lookup in a reshaped array
// with a border, as random crops of images are, would ask for each element by quotients where it lies.
const char* why_stored_for_vectors(const Values& values, int number, double times, const Target& target);
// Whether the parts are values that the step computes, none of which is an argument or a shared variable.
bool is_joined_from_computed(const Values& values, int number);

}  // namespace bitale
