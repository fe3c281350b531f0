// The suite judges the versions of functions for all lengths, unless a case says otherwise
// (specialised_test.cpp, and random graphs by turns): the lengths of its calls would make all others known.
#include "graph/base/options.h"

namespace bitale::test {
namespace {

Options for_all_lengths() {
    Options o = options();
    o.specialise = false;
    return o;
}

const ScopedOptions scope(for_all_lengths());

}  // namespace
}  // namespace bitale::test
